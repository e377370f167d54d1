#pragma once

#include <exception>
#include <map>
#include <string>
#include <utility>

#include <boost/test/execution_monitor.hpp>
#include <boost/test/unit_test.hpp>

#include "golden/golden_files.hpp"

namespace golden {

/// Replays recorded cases one by one. A case that fails or cannot be replayed is reported with the reason, and the next
/// one follows. In the end prints for each file how many cases were replayed, and for how many a rule of ours gives
/// another answer.
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
            } catch (const boost::execution_aborted&) {   // BOOST_REQUIRE has printed the reason
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

    /// Counts a case whose expectation is ours instead of the recorded one.
    void by_rule(const Path& path, const std::string& one, const std::string& rule) {
        ++counts_[path].by_rule;
        BOOST_TEST_MESSAGE(what_ << ": " << path.string() << " " << one << ": by rule: " << rule);
    }
    /// Reports that a companion of a case is missing, so that less is compared.
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
