#pragma once

#include <exception>
#include <map>
#include <string>
#include <utility>

#include <boost/test/execution_monitor.hpp>
#include <boost/test/unit_test.hpp>

#include "golden/golden_files.hpp"

namespace golden {

/// Replays recorded cases one by one: where one fails or cannot be replayed, it is named with the reason, and the next goes on.
/// In the end it says of each file how many cases were replayed, and how many a rule of ours answers otherwise.
class Replays {
public:
    explicit Replays(std::string what) : what_{std::move(what)} {}
    Replays(const Replays&) = delete;
    Replays& operator=(const Replays&) = delete;
    ~Replays() {
        for (const auto& [path, count] : counts_)
            BOOST_TEST_MESSAGE(what_ << ": " << path.string() << ": " << count.replayed << " replayed, " << count.failed
                                     << " not replayed, " << count.by_rule << " by rule");
    }

    template <class Function>
    void operator()(const Path& path, const std::string& one, Function&& replay) {
        Count& count = counts_[path];
        BOOST_TEST_CONTEXT(path.string() << " " << one) {
            try {
                std::forward<Function>(replay)();
                ++count.replayed;
            } catch (const boost::execution_aborted&) {   // BOOST_REQUIRE has said why
                ++count.failed;
            } catch (const std::exception& error) {
                ++count.failed;
                BOOST_ERROR(path.string() << " " << one << ": not replayed: " << error.what());
            }
        }
    }
    template <class Function>
    void operator()(const Path& path, Function&& replay) {
        (*this)(path, "", std::forward<Function>(replay));
    }

    /// A case whose expectation is ours, not the recorded one.
    void by_rule(const Path& path, const std::string& one, const std::string& rule) {
        ++counts_[path].by_rule;
        BOOST_TEST_MESSAGE(what_ << ": " << path.string() << " " << one << ": by rule: " << rule);
    }
    /// Something beside a case that is not there, so that less is compared.
    void missing(const Path& path, const std::string& companion) {
        BOOST_TEST_MESSAGE(what_ << ": " << path.string() << ": missing companion " << companion);
    }
    [[nodiscard]] std::size_t replayed() const {
        std::size_t all = 0;
        for (const auto& [path, count] : counts_)
            all += count.replayed;
        return all;
    }

private:
    struct Count {
        std::size_t replayed = 0, failed = 0, by_rule = 0;
    };
    std::string what_;
    std::map<Path, Count> counts_;
};

}   // namespace golden
