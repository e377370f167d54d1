#pragma once

#include <exception>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include <asio/error.hpp>
#include <boost/test/unit_test.hpp>

#include <drawpoint/pipeline/loader/data_loader.hpp>

#include "support/coro_test.hpp"

namespace drawpoint::test {

/// What every test of a loader needs.
struct Bench {
    std::unique_ptr<Recorder> recorder = test::small_recorder();
    Runtime runtime;
    explicit Bench(bool record = false, WorkerThreads workers = WorkerThreads::arena)
        : runtime{{.workers = workers, .record = record}, *recorder} {}
};

inline bool aborted(const std::system_error& error) { return error.code() == asio::error::operation_aborted; }
inline auto says(std::string words) {
    return [words = std::move(words)](const std::exception& error) {
        if (std::string{error.what()} == words)
            return true;
        BOOST_TEST_MESSAGE("it says: " << error.what());
        return false;
    };
}

}   // namespace drawpoint::test
