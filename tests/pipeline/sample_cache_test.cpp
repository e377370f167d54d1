#include <drawpoint/pipeline/sample_cache.hpp>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <thread>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <drawpoint/instrumentation/recorder.hpp>
#include <drawpoint/instrumentation/report/facts.hpp>

#include "support/temporary_folder.hpp"
#include "support/count_allocations.hpp"

BOOST_AUTO_TEST_SUITE(sample_cache)

using namespace drawpoint;

namespace {

constexpr std::uint64_t header = 64, entry = 64;

std::uint64_t round_up(std::uint64_t bytes) { return (bytes + 63) / 64 * 64; }
std::uint64_t index_bytes(std::size_t samples) { return round_up(header + 8 * samples); }

std::vector<std::byte> contents(std::uint64_t index, std::size_t bytes) {
    std::vector<std::byte> data(bytes);
    for (std::size_t i = 0; i < bytes; ++i)
        data[i] = static_cast<std::byte>(index * 131 + i * 7);
    return data;
}

bool keep(SampleCache& cache, std::uint64_t index, std::size_t bytes) {
    SampleCache::Place place = cache.reserve(index, bytes);
    if (!place)
        return false;
    std::ranges::copy(contents(index, bytes), place.data().begin());
    place.keep(static_cast<std::int64_t>(index) - 5, {1, static_cast<std::uint32_t>(index), 3, 4});
    return true;
}

bool holds_what_was_kept(SampleCache& cache, std::uint64_t index, std::size_t bytes) {
    const auto held = cache.find(index);
    return held && std::ranges::equal(held->data, contents(index, bytes)) &&
           held->target == static_cast<std::int64_t>(index) - 5 && held->shape[1] == index;
}

template <class F>
std::string refusal(F f) {
    try {
        f();
    } catch (const std::exception& error) {
        return error.what();
    }
    return "accepted";
}

std::vector<char> bytes_of(const std::filesystem::path& file) {
    std::ifstream in{file, std::ios::binary};
    return {std::istreambuf_iterator<char>{in}, {}};
}

void write(const std::filesystem::path& file, const std::vector<char>& bytes) {
    std::ofstream{file, std::ios::binary}.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

}   // namespace

BOOST_AUTO_TEST_CASE(what_is_kept_is_found_and_every_look_is_counted) {
    SampleCache cache{3, 1 << 20};
    BOOST_TEST(!cache.find(1));
    BOOST_TEST(keep(cache, 1, 1000));
    BOOST_TEST(holds_what_was_kept(cache, 1, 1000));
    BOOST_TEST(holds_what_was_kept(cache, 1, 1000));
    BOOST_TEST((cache.holds(1) && !cache.holds(0) && !cache.holds(3)));
    BOOST_TEST(!cache.find(3));
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
    BOOST_TEST(keep(cache, 9, 64));   // what is left is enough for a small one
    BOOST_TEST(cache.counters().bytes == cache.counters().budget_bytes);
    for (std::uint64_t i = 0; i < 4; ++i)
        BOOST_TEST(holds_what_was_kept(cache, i, bytes));
    BOOST_TEST(holds_what_was_kept(cache, 9, 64));
    BOOST_TEST(cache.counters().samples == 5u);
}

BOOST_AUTO_TEST_CASE(a_sample_in_the_making_is_found_by_nobody_and_its_room_is_used_once) {
    SampleCache cache{2, 1 << 20};
    std::uint64_t bytes = 0;
    {
        SampleCache::Place place = cache.reserve(0, 500);
        BOOST_TEST_REQUIRE(bool{place});
        BOOST_TEST(!cache.find(0));
        BOOST_TEST(!cache.holds(0));
        BOOST_TEST(!bool{cache.reserve(0, 500)});
        bytes = cache.counters().bytes;
    }
    BOOST_TEST(!cache.find(0));
    BOOST_TEST(!bool{cache.reserve(0, 513)});   // its room has 512
    BOOST_TEST(keep(cache, 0, 500));
    BOOST_TEST(holds_what_was_kept(cache, 0, 500));
    BOOST_TEST(cache.counters().bytes == bytes);
    SampleCache::Place one = cache.reserve(1, 10), moved;
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
    SampleCache cache{samples, index_bytes(samples) + samples / 2 * (entry + round_up(bytes))};
    std::atomic<std::uint64_t> kept{0}, damaged{0};
    std::vector<std::jthread> workers;
    for (std::size_t t = 0; t < threads; ++t)
        workers.emplace_back([&, worker = cache.add_worker()] {
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
}

BOOST_AUTO_TEST_CASE(keeping_and_finding_allocates_nothing) {
    SampleCache cache{100, 1 << 20};
    const std::vector<std::byte> data(1000);
    const std::uint64_t before = test::counted_allocations();
    test::count_this_thread(true);
    for (int round = 0; round < 3; ++round)
        for (std::uint64_t i = 0; i < 100; ++i)
            if (!cache.find(i))
                if (SampleCache::Place place = cache.reserve(i, data.size())) {
                    std::memcpy(place.data().data(), data.data(), data.size());
                    place.keep(0);
                }
    test::count_this_thread(false);
    BOOST_TEST(test::counted_allocations() - before == 0u);
    BOOST_TEST(cache.counters().hits == 200u);
}

BOOST_AUTO_TEST_CASE(reports_are_told_the_sum_of_all_caches_and_nothing_where_there_is_none) {
    const test::TemporaryFolder folder;
    Recorder recorder{RecorderOptions{}};
    set_cache_facts(recorder, {nullptr, nullptr});
    BOOST_TEST(!recorder.ledger().fact(facts::cache_hits));
    SampleCache a{4, 1 << 16, folder.path() / "cache", 1}, b{4, 1 << 16};
    keep(a, 0, 10);
    keep(b, 1, 10);
    (void)a.find(0);
    (void)b.find(1);
    (void)b.find(2);
    set_cache_facts(recorder, {&a, nullptr, &b});
    const Ledger ledger = recorder.ledger();
    BOOST_TEST(*ledger.fact(facts::cache_hits) == "2");
    BOOST_TEST(*ledger.fact(facts::cache_misses) == "1");
    BOOST_TEST(*ledger.fact(facts::cache_samples) == "2");
    BOOST_TEST(*ledger.fact(facts::cache_bytes) == std::to_string(2 * (index_bytes(4) + entry + 64)));
    BOOST_TEST(*ledger.fact(facts::cache_budget_bytes) == std::to_string(2 << 16));
    BOOST_TEST(*ledger.fact(facts::cache_origin) == a.origin());
}

BOOST_AUTO_TEST_CASE(a_file_gives_the_next_run_what_the_one_before_kept) {
    const test::TemporaryFolder folder;
    const auto file = folder.path() / "cache";
    std::uint64_t bytes = 0;
    {
        SampleCache cache{8, 1 << 16, file, 42};
        BOOST_TEST(cache.origin() == "new file " + file.string());
        for (std::uint64_t i = 0; i < 5; ++i)
            BOOST_TEST(keep(cache, i, 100 + i));
        bytes = cache.counters().bytes;
    }
    BOOST_TEST(std::filesystem::file_size(file) == 1u << 16);
    SampleCache cache{8, 1 << 16, file, 42};
    BOOST_TEST(cache.origin() == "5 samples found in " + file.string());
    BOOST_TEST(cache.counters().bytes == bytes);
    for (std::uint64_t i = 0; i < 5; ++i)
        BOOST_TEST(holds_what_was_kept(cache, i, 100 + i));
    BOOST_TEST(!cache.find(5));
    BOOST_TEST(keep(cache, 5, 100));
    BOOST_TEST(holds_what_was_kept(cache, 5, 100));
    BOOST_TEST(cache.counters().samples == 6u);
}

BOOST_AUTO_TEST_CASE(a_file_made_for_something_else_is_begun_anew_and_says_why) {
    const test::TemporaryFolder folder;
    const auto file = folder.path() / "cache";
    const auto fill = [&] {
        SampleCache cache{8, 1 << 16, file, 42};
        for (std::uint64_t i = 0; i < 8; ++i)
            keep(cache, i, 1000);
    };
    const auto reopened = [&](std::size_t samples, std::uint64_t budget, std::uint64_t fingerprint) {
        SampleCache cache{samples, budget, file, fingerprint};
        BOOST_TEST(cache.counters().samples == 0u);
        BOOST_TEST(cache.counters().bytes == index_bytes(samples));
        BOOST_TEST(!cache.find(0));
        return cache.origin().substr(file.string().size());
    };
    fill();
    BOOST_TEST(reopened(8, 1 << 16, 43) ==
               " begun anew: the data set, the recipe or the tag is not the one it was made for");
    fill();
    BOOST_TEST(reopened(7, 1 << 16, 42) ==
               " begun anew: the data set, the recipe or the tag is not the one it was made for");
    fill();
    BOOST_TEST(reopened(8, 4096, 42) == " begun anew: it holds more than the budget of 4096 bytes");
    fill();
    std::filesystem::resize_file(file, 30'000);
    BOOST_TEST(reopened(8, 1 << 16, 42) == " begun anew: it is incomplete");
}

BOOST_AUTO_TEST_CASE(another_budget_keeps_what_fits_it) {
    const test::TemporaryFolder folder;
    const auto file = folder.path() / "cache";
    {
        SampleCache cache{8, index_bytes(8) + 2 * (entry + 1024), file, 42};
        for (std::uint64_t i = 0; i < 8; ++i)
            keep(cache, i, 1000);
    }
    for (const std::uint64_t budget : {1u << 20, 1u << 16}) {
        SampleCache cache{8, budget, file, 42};
        BOOST_TEST(std::filesystem::file_size(file) == budget);
        BOOST_TEST(holds_what_was_kept(cache, 0, 1000));
        BOOST_TEST(holds_what_was_kept(cache, 1, 1000));
        keep(cache, 7, 1000);
        BOOST_TEST(holds_what_was_kept(cache, 7, 1000));
    }
}

BOOST_AUTO_TEST_CASE(a_file_that_is_no_cache_or_in_use_is_refused_and_left_as_it_is) {
    const test::TemporaryFolder folder;
    const auto letter = folder.path() / "letter.txt";
    const std::vector<char> words(3000, 'x');
    write(letter, words);
    BOOST_TEST(refusal([&] { SampleCache{8, 1 << 16, letter, 42}; }) ==
               "cached: " + letter.string() + " is not a cache file; it is left as it is, name another");
    BOOST_TEST(bytes_of(letter) == words);

    const auto file = folder.path() / "cache";
    SampleCache cache{8, 1 << 16, file, 42};
    keep(cache, 0, 100);
    BOOST_TEST(refusal([&] { SampleCache{8, 1 << 16, file, 43}; }) ==
               "cached: " + file.string() + " is in use by another recipe or process; each needs a file of its own");
    BOOST_TEST(holds_what_was_kept(cache, 0, 100));

    BOOST_TEST(refusal([&] { SampleCache{8, 1 << 16, folder.path(), 42}; }).find("cannot open") != std::string::npos);
    BOOST_TEST(refusal([&] { SampleCache{8, 1 << 16, "/dev/null", 42}; }).find("not a regular file") !=
               std::string::npos);
    BOOST_TEST(refusal([&] {
                   SampleCache{8, std::uint64_t{1} << 45, folder.path() / "huge", 42};
               }).find("cannot take 35184372088832 bytes") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_process_killed_while_writing_leaves_only_whole_samples) {
    const test::TemporaryFolder folder;
    const auto file = folder.path() / "cache";
    const pid_t child = ::fork();
    BOOST_TEST_REQUIRE(child >= 0);
    if (child == 0) {
        SampleCache cache{8, 1 << 16, file, 42};
        keep(cache, 2, 500);
        SampleCache::Place place = cache.reserve(3, 500);
        std::memset(place.data().data(), 1, 250);
        ::kill(::getpid(), SIGKILL);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    BOOST_TEST(WIFSIGNALED(status));
    SampleCache cache{8, 1 << 16, file, 42};
    BOOST_TEST(cache.counters().samples == 1u);
    BOOST_TEST(holds_what_was_kept(cache, 2, 500));
    BOOST_TEST(!cache.find(3));
    const std::uint64_t bytes = cache.counters().bytes;
    BOOST_TEST(keep(cache, 3, 500));   // in the room it had
    BOOST_TEST(cache.counters().bytes == bytes);
    BOOST_TEST(holds_what_was_kept(cache, 3, 500));
}

BOOST_AUTO_TEST_CASE(a_flipped_byte_costs_at_most_its_sample) {
    const test::TemporaryFolder folder;
    const auto file = folder.path() / "cache";
    constexpr std::size_t samples = 6, bytes = 150;
    {
        SampleCache cache{samples, 4096, file, 42};
        for (std::uint64_t i = 0; i < samples; ++i)
            keep(cache, i, bytes);
    }
    const std::vector<char> whole = bytes_of(file);
    std::mt19937 random{7};
    for (std::size_t at = 0; at < whole.size(); ++at) {
        std::vector<char> damaged = whole;
        damaged[at] = static_cast<char>(damaged[at] ^ (1 << random() % 8));
        write(file, damaged);
        std::size_t found = 0;
        try {
            SampleCache cache{samples, 4096, file, 42};
            for (std::uint64_t i = 0; i < samples; ++i)
                if (cache.holds(i) && cache.find(i)) {
                    BOOST_REQUIRE(holds_what_was_kept(cache, i, bytes));
                    ++found;
                }
            for (std::uint64_t i = 0; i < samples; ++i)   // and there is room for what was lost, or none
                keep(cache, i, bytes);
        } catch (const std::invalid_argument&) {
            BOOST_REQUIRE(at < 8);   // the magic number
            continue;
        }
        if (at >= header)
            BOOST_REQUIRE(found >= samples - 1);
    }
}

BOOST_AUTO_TEST_CASE(a_file_full_of_lies_is_survived) {
    const test::TemporaryFolder folder;
    const auto file = folder.path() / "cache";
    constexpr std::size_t samples = 6, bytes = 150;
    {
        SampleCache cache{samples, 4096, file, 42};
        for (std::uint64_t i = 0; i < samples; ++i)
            keep(cache, i, bytes);
    }
    const std::vector<char> whole = bytes_of(file);
    std::mt19937_64 random{11};
    for (int round = 0; round < 3000; ++round) {
        std::vector<char> damaged = whole;
        for (int flips = 0; flips < 20; ++flips) {   // whole words, as often in the index as in the samples
            const std::size_t words = flips % 2 == 0 ? samples : (damaged.size() - header) / 8;
            const std::uint64_t word = random() >> random() % 64;
            std::memcpy(damaged.data() + header + 8 * (random() % words), &word, 8);
        }
        write(file, damaged);
        SampleCache cache{samples, 4096, file, 42};
        for (int again = 0; again < 2; ++again)
            for (std::uint64_t i = 0; i < samples; ++i) {
                if (const auto held = cache.find(i))
                    BOOST_REQUIRE(held->data.size() <= 4096u);
                else
                    keep(cache, i, bytes);
            }
    }
}

BOOST_AUTO_TEST_SUITE_END()
