#include <atomic>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <drawpoint/instrumentation/recorder/recorder.hpp>
#include <drawpoint/instrumentation/facts.hpp>

#include "pipeline/cache/sample_cache_help.hpp"
#include "support/count_allocations.hpp"
#include "support/temporary_folder.hpp"

BOOST_AUTO_TEST_SUITE(sample_cache)

using namespace drawpoint;
using namespace drawpoint::test;

BOOST_AUTO_TEST_CASE(what_is_kept_is_found_and_every_look_is_counted) {
    SampleCache cache{3, 1 << 20};
    BOOST_TEST(!finds(cache, 1));
    BOOST_TEST(keep(cache, 1, 1000));
    BOOST_TEST(holds_what_was_kept(cache, 1, 1000));
    BOOST_TEST(holds_what_was_kept(cache, 1, 1000));
    BOOST_TEST((cache.holds(1) && !cache.holds(0) && !cache.holds(3)));
    BOOST_TEST(!finds(cache, 3));
    const CacheCounters counters = cache.counters();
    BOOST_TEST(counters.hits == 2u);
    BOOST_TEST(counters.misses == 2u);
    BOOST_TEST(counters.samples == 1u);
    BOOST_TEST(counters.hit_share() == 0.5);
    BOOST_TEST(counters.bytes == index_bytes(3) + entry + round_up(1000));
    BOOST_TEST(counters.budget_bytes == 1u << 20);
    BOOST_TEST(cache.origin() == "memory");
}

BOOST_AUTO_TEST_CASE(it_fills_to_the_last_byte_and_never_evicts) {
    constexpr std::size_t samples = 10, bytes = 640;
    SampleCache cache{samples, index_bytes(samples) + 4 * (entry + bytes) + entry + 64};
    for (std::uint64_t i = 0; i < samples; ++i)
        BOOST_TEST(keep(cache, i, bytes) == (i < 4));
    BOOST_TEST(!keep(cache, 8, 65));
    BOOST_TEST(keep(cache, 9, 64));   // the rest has room for a small sample
    BOOST_TEST(cache.counters().bytes == cache.counters().budget_bytes);
    for (std::uint64_t i = 0; i < 4; ++i)
        BOOST_TEST(holds_what_was_kept(cache, i, bytes));
    BOOST_TEST(holds_what_was_kept(cache, 9, 64));
    BOOST_TEST(cache.counters().samples == 5u);
}

BOOST_AUTO_TEST_CASE(a_sample_in_the_making_is_found_by_nobody_and_its_room_is_used_once) {
    SampleCache cache{2, 1 << 20};
    SampleCache::Worker worker;
    std::uint64_t bytes = 0;
    {
        SampleCache::Place place = cache.reserve(0, 500, worker);
        BOOST_TEST_REQUIRE(bool{place});
        BOOST_TEST(!finds(cache, 0));
        BOOST_TEST(!cache.holds(0));
        BOOST_TEST(!bool{cache.reserve(0, 500, worker)});
        bytes = cache.counters().bytes;
    }
    BOOST_TEST(!finds(cache, 0));
    BOOST_TEST(!bool{cache.reserve(0, 513, worker)});   // the capacity is 512
    BOOST_TEST(keep(cache, 0, 500));
    BOOST_TEST(holds_what_was_kept(cache, 0, 500));
    BOOST_TEST(cache.counters().bytes == bytes);
    SampleCache::Place one = cache.reserve(1, 10, worker), moved;
    moved = std::move(one);
    BOOST_TEST(!keep(cache, 1, 10));
    moved = {};
    BOOST_TEST(keep(cache, 1, 10));
}

BOOST_AUTO_TEST_CASE(a_budget_that_does_not_hold_the_index_is_refused) {
    BOOST_TEST(refusal([] { SampleCache{100, index_bytes(100) - 1}; }) ==
               "cached: 895 bytes do not hold the index of 100 samples, 8 bytes each");
    BOOST_TEST(refusal([] { SampleCache{100, index_bytes(100)}; }) == "accepted");
    BOOST_TEST(
        refusal([] { SampleCache{~std::size_t{0} / 8, 1 << 20}; }).starts_with("cached: 1048576 bytes do not hold"));
}

BOOST_AUTO_TEST_CASE(threads_find_whole_samples_and_keep_each_once) {
    constexpr std::size_t samples = 400, bytes = 3000, threads = 4, rounds = 6;
    const test::TemporaryFolder folder;
    const std::uint64_t budget = samples / 2 * (entry + round_up(bytes));
    for (const bool in_file : {false, true}) {
        auto made =
            in_file ? std::make_unique<SampleCache>(samples, index_bytes(samples) + budget, folder.path() / "cache", 1)
                    : std::make_unique<SampleCache>(samples, index_bytes(samples) + budget);
        SampleCache& cache = *made;
        std::atomic<std::uint64_t> kept{0}, damaged{0};
        std::vector<std::jthread> workers;
        for (std::size_t t = 0; t < threads; ++t)
            workers.emplace_back([&, worker = cache.make_worker()]() mutable {
                for (std::size_t i = 0; i < rounds * samples; ++i) {
                    const std::uint64_t index = i * 7 % samples;
                    if (const auto held = cache.find(index, worker))
                        damaged += !std::ranges::equal(held->data, contents(index, bytes));
                    else
                        kept += keep(cache, index, bytes);
                }
            });
        workers.clear();
        BOOST_TEST(damaged == 0u);
        BOOST_TEST(kept == samples / 2);
        const CacheCounters counters = cache.counters();
        BOOST_TEST(counters.samples == samples / 2);
        BOOST_TEST(counters.bytes == counters.budget_bytes);
        BOOST_TEST(counters.hits + counters.misses == threads * rounds * samples);
        if (!in_file)
            continue;
        made.reset();
        SampleCache again{samples, index_bytes(samples) + budget, folder.path() / "cache", 1};
        BOOST_TEST(again.counters().samples == samples / 2);
        std::size_t whole = 0;
        for (std::uint64_t i = 0; i < samples; ++i)
            whole += holds_what_was_kept(again, i, bytes);
        BOOST_TEST(whole == samples / 2);
    }
}

BOOST_AUTO_TEST_CASE(keeping_and_finding_allocates_nothing) {
    const test::TemporaryFolder folder;
    SampleCache in_memory{100, 1 << 20}, in_file{100, 1 << 20, folder.path() / "cache", 1};
    const std::vector<std::byte> data(1000);
    for (SampleCache* const cache : {&in_memory, &in_file}) {
        SampleCache::Worker worker;
        (void)cache->reserve(0, data.size(), worker);   // reserves room, if it needs any
        const std::uint64_t before = test::counted_allocations();
        test::count_this_thread(true);
        for (int round = 0; round < 3; ++round)
            for (std::uint64_t i = 0; i < 100; ++i)
                if (!cache->find(i, worker))
                    if (SampleCache::Place place = cache->reserve(i, data.size(), worker)) {
                        std::memcpy(place.data().data(), data.data(), data.size());
                        place.keep(0);
                    }
        test::count_this_thread(false);
        BOOST_TEST(test::counted_allocations() - before == 0u);
        BOOST_TEST(cache->counters().hits == 200u);
    }
}

BOOST_AUTO_TEST_CASE(reports_are_told_the_sum_of_all_caches_and_nothing_where_there_is_none) {
    const test::TemporaryFolder folder;
    Recorder recorder{RecorderOptions{}};
    set_cache_facts(recorder, {nullptr, nullptr});
    BOOST_TEST(!recorder.ledger().fact(facts::cache_hits));
    SampleCache a{4, 1 << 16, folder.path() / "cache", 1}, b{4, 1 << 16};
    keep(a, 0, 10);
    keep(b, 1, 10);
    (void)finds(a, 0);
    (void)finds(b, 1);
    (void)finds(b, 2);
    set_cache_facts(recorder, {&a, nullptr, &b});
    const Ledger ledger = recorder.ledger();
    BOOST_TEST(*ledger.fact(facts::cache_hits) == "2");
    BOOST_TEST(*ledger.fact(facts::cache_misses) == "1");
    BOOST_TEST(*ledger.fact(facts::cache_samples) == "2");
    BOOST_TEST(*ledger.fact(facts::cache_bytes) == std::to_string(2 * (index_bytes(4) + entry + 64)));
    BOOST_TEST(*ledger.fact(facts::cache_budget_bytes) == std::to_string(2 << 16));
    BOOST_TEST(*ledger.fact(facts::cache_origin) == a.origin());
}

BOOST_AUTO_TEST_SUITE_END()
