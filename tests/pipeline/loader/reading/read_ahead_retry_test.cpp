#include "pipeline/loader/reading/read_retry.hpp"

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <thread>

#include <boost/test/unit_test.hpp>

#include "pipeline/loader/stored_source.hpp"

BOOST_AUTO_TEST_SUITE(read_ahead_retry)

using namespace drawpoint;
using namespace std::chrono_literals;
using test::StoredSource;

namespace {

[[noreturn]] void fail(int error) {
    throw std::filesystem::filesystem_error{"cannot read", "stored/1", std::error_code{error, std::generic_category()}};
}

/// What reading sample 1 throws if the first `failures` reads fail with `error`, and how often it was read.
struct Outcome {
    std::error_code code;
    std::string message;
    std::uint64_t reads = 0, retries = 0;
    bool whole = false;
};
Outcome outcome(int error, std::uint64_t failures, const ReadRules& rules) {
    StoredSource source{8};
    source.before_read = [&](std::uint64_t) {
        if (source.reads_begun <= failures)
            fail(error);
    };
    RetriedReads reads{source, rules};
    Outcome outcome;
    std::vector<std::byte> contents;
    try {
        reads.read(1, contents);
    } catch (const std::system_error& thrown) {
        outcome.code = thrown.code();
        outcome.message = thrown.what();
    }
    outcome.reads = source.reads_begun;
    outcome.retries = reads.retries();
    outcome.whole = StoredSource::holds(1, contents);
    return outcome;
}

}   // namespace

BOOST_AUTO_TEST_CASE(a_read_that_fails_for_a_moment_is_repeated_and_counted) {
    for (const int error : {EIO, ESTALE, EINTR, EAGAIN, EMFILE, ENFILE}) {
        const Outcome read = outcome(error, 2, {.retries = 2});
        BOOST_TEST(read.whole);
        BOOST_TEST(read.reads == 3u);
        BOOST_TEST(read.retries == 2u);
    }
}

BOOST_AUTO_TEST_CASE(other_failures_are_not_repeated_and_stay_what_they_are) {
    for (const int error : {ENOENT, EACCES, EISDIR, ENOMEM}) {
        const Outcome read = outcome(error, 1, {.retries = 3});
        BOOST_TEST(read.code.value() == error);
        BOOST_TEST(read.reads == 1u);
        BOOST_TEST(read.message.find("stored/1") != std::string::npos);
    }
}

BOOST_AUTO_TEST_CASE(a_read_that_fails_every_time_names_its_attempts) {
    const Outcome read = outcome(EIO, 9, {.retries = 2});
    BOOST_TEST(read.code.value() == EIO);
    BOOST_TEST(read.reads == 3u);
    BOOST_TEST(read.message == "cannot read, tried 3 times: Input/output error");
    BOOST_TEST(outcome(EIO, 9, {.retries = 0}).message.find("tried") == std::string::npos);
}

BOOST_AUTO_TEST_CASE(waits_between_repetitions_begin_at_10_ms_and_double_up_to_a_second) {
    BOOST_TEST((back_off(1) == 10ms));
    for (std::size_t n = 1; n < 7; ++n)
        BOOST_TEST((back_off(n + 1) == 2 * back_off(n)));
    for (std::size_t n = 8; n < 200; ++n)
        BOOST_TEST((back_off(n) == 1s));
}

BOOST_AUTO_TEST_CASE(a_repetition_that_would_come_after_the_deadline_is_not_made) {
    const Outcome read = outcome(EIO, 9, {.deadline = 5ms, .retries = 3});
    BOOST_TEST(read.reads == 1u);
    BOOST_TEST(read.code.value() == EIO);
}

BOOST_AUTO_TEST_CASE(a_read_that_ends_after_the_deadline_fails_and_names_it) {
    StoredSource source{8};
    source.before_read = [](std::uint64_t) { std::this_thread::sleep_for(2ms); };
    RetriedReads reads{source, {.deadline = 1ms, .retries = 3}};
    std::vector<std::byte> contents;
    BOOST_CHECK_EXCEPTION(reads.read(1, contents), std::system_error, [](const std::system_error& error) {
        return error.code() == std::errc::timed_out &&
               std::string{error.what()}.find("read_deadline = 0.001 s") != std::string::npos;
    });
    BOOST_TEST(source.reads_begun == 1u);
}

BOOST_AUTO_TEST_CASE(a_stop_ends_the_wait_and_all_later_ones) {
    StoredSource source{8};
    RetriedReads reads{source, {.retries = 100}};
    source.before_read = [&](std::uint64_t) {
        reads.stop();
        fail(EIO);
    };
    std::vector<std::byte> contents;
    for (std::uint64_t round = 1; round <= 2; ++round) {
        BOOST_CHECK_EXCEPTION(reads.read(1, contents), std::system_error, [](const std::system_error& error) {
            return error.code() == std::errc::operation_canceled;
        });
        BOOST_TEST(source.reads_begun == round);
    }
}

BOOST_AUTO_TEST_SUITE_END()
