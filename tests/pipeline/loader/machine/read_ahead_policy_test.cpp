#include <drawpoint/pipeline/loader/machine/detail/read_policy.hpp>

#include <algorithm>
#include <deque>
#include <queue>
#include <vector>

#include <boost/test/unit_test.hpp>

BOOST_AUTO_TEST_SUITE(read_ahead_policy)

using drawpoint::ReadPolicy;

namespace {

constexpr std::uint64_t us = 1'000, ms = 1'000'000;

ReadPolicy slow(std::size_t concurrency, std::size_t workers, std::uint64_t latency, std::uint64_t sample) {
    ReadPolicy policy{concurrency, workers};
    policy.observe_samples(1, sample);
    for (int i = 0; i < 50; ++i)
        policy.observe_reads(1, latency, latency);
    return policy;
}

/// Simulates a loader in virtual time: `workers` that take `sample` ns to make a sample from its bytes, storage with a
/// latency of `latency` ns under any load, and readers that follow the policy. Returns the rate relative to a loader
/// whose bytes are always there.
double rate(std::size_t concurrency, std::uint64_t workers, std::uint64_t latency, std::uint64_t sample) {
    constexpr int samples = 5'000, skipped = 200;
    ReadPolicy policy{concurrency, workers};
    std::deque<std::uint64_t> arrivals;   // of the oldest samples not made yet, whose reads have all begun
    std::vector<std::uint64_t> free_at(workers, 0);
    std::priority_queue<std::uint64_t, std::vector<std::uint64_t>, std::greater<>> in_flight;
    std::uint64_t begun_making = 0;
    for (int made = 0; made < samples + skipped; ++made) {
        const auto worker = std::ranges::min_element(free_at);
        const std::uint64_t now = *worker;
        if (made == skipped)
            begun_making = now;
        while (!in_flight.empty() && in_flight.top() <= now) {
            const std::uint64_t at = in_flight.top();
            in_flight.pop();
            policy.observe_reads(1, latency, latency);
            if (policy.ahead() && arrivals.size() < policy.hold() && in_flight.size() < policy.in_flight()) {
                arrivals.push_back(at + latency);
                in_flight.push(at + latency);
            }
        }
        while (policy.ahead() && arrivals.size() < policy.wake_below() && in_flight.size() < policy.in_flight()) {
            arrivals.push_back(now + latency);
            in_flight.push(now + latency);
        }
        std::uint64_t there = now + latency;
        if (arrivals.empty()) {
            policy.observe_reads(1, latency, latency);
        } else {
            there = std::max(now, arrivals.front());
            arrivals.pop_front();
        }
        policy.observe_samples(1, sample);
        *worker = there + sample;
    }
    const std::uint64_t end = *std::ranges::max_element(free_at);
    return samples * static_cast<double>(sample) / static_cast<double>(workers) /
           static_cast<double>(end - begun_making);
}

}   // namespace

BOOST_AUTO_TEST_CASE(reads_that_never_wait_are_not_read_ahead_however_long_they_take) {
    ReadPolicy policy{64, 2};
    policy.observe_samples(1, 400 * us);
    for (int i = 0; i < 1000; ++i) {
        policy.observe_reads(1, 10 * ms, 0);
        BOOST_REQUIRE(!policy.ahead());
    }
}

BOOST_AUTO_TEST_CASE(the_second_read_that_waits_turns_reading_ahead_on) {
    ReadPolicy policy{64, 2};
    policy.observe_reads(1, 5 * ms, 5 * ms);
    BOOST_TEST(!policy.ahead());
    policy.observe_reads(1, 5 * ms, 5 * ms);
    BOOST_TEST(policy.ahead());
}

BOOST_AUTO_TEST_CASE(it_turns_on_above_the_threshold_and_off_below_half_of_it) {
    for (const std::uint64_t sample : {100 * us, 4800 * us}) {
        const std::uint64_t threshold = std::max(30 * us, sample / 64);
        ReadPolicy policy{64, 2};
        policy.observe_samples(1, sample);
        policy.observe_reads(16, 16 * (threshold - us), 16 * (threshold - us));
        BOOST_TEST(!policy.ahead());
        policy.observe_reads(16, 16 * (threshold + us), 16 * (threshold + us));
        BOOST_TEST(policy.ahead());
        policy.observe_reads(16, 16 * (threshold / 2 + us), 16 * (threshold / 2 + us));
        BOOST_TEST(policy.ahead());
        policy.observe_reads(16, 16 * (threshold / 2 - us), 16 * (threshold / 2 - us));
        BOOST_TEST(!policy.ahead());
    }
}

BOOST_AUTO_TEST_CASE(reads_in_flight_are_rate_times_latency_and_half_as_many_again) {
    const ReadPolicy policy = slow(64, 2, 5 * ms, 400 * us);   // at least 26
    BOOST_TEST(policy.in_flight() >= 26u);
    BOOST_TEST(policy.in_flight() <= 26u + 13u + 2u);
    BOOST_TEST(policy.wake_below() > 26u);
    BOOST_TEST(policy.wake_below() < policy.hold());
}

BOOST_AUTO_TEST_CASE(no_more_than_the_concurrency_and_what_it_lets_hold) {
    for (const std::size_t concurrency : {1u, 2u, 3u, 64u}) {
        const ReadPolicy policy = slow(concurrency, 256, 3600'000 * ms, 1);
        BOOST_TEST(policy.in_flight() == concurrency);
        BOOST_TEST(policy.hold() == ReadPolicy::most_held(concurrency));
        BOOST_TEST(policy.wake_below() <= policy.hold());
    }
}

BOOST_AUTO_TEST_CASE(without_concurrency_nothing_is_read_ahead) {
    BOOST_TEST(!slow(0, 2, 5 * ms, 400 * us).ahead());
    BOOST_TEST(slow(1, 2, 5 * ms, 400 * us).ahead());
}

BOOST_AUTO_TEST_CASE(in_virtual_time_slow_storage_costs_nothing_while_the_concurrency_suffices) {
    for (const std::uint64_t workers : {1u, 2u, 16u})
        for (const std::uint64_t latency : {100 * us, 1 * ms, 5 * ms})
            for (const std::uint64_t sample : {350 * us, 2 * ms}) {
                BOOST_TEST_CONTEXT(workers << " workers, " << latency << " ns of latency, " << sample << " ns a sample")
                BOOST_TEST(rate(512, workers, latency, sample) > 0.99);
            }
}

BOOST_AUTO_TEST_CASE(in_virtual_time_the_concurrency_is_the_bound_where_it_does_not_suffice) {
    const double bound = 8 * 350.0 / 2 / 5000;   // 8 reads of 5 ms at a time, and two workers that take 350 us
    BOOST_TEST(rate(8, 2, 5 * ms, 350 * us) > 0.95 * bound);
    BOOST_TEST(rate(0, 2, 5 * ms, 350 * us) < 0.07);
}

BOOST_AUTO_TEST_SUITE_END()
