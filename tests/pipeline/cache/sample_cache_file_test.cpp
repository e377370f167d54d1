// What outlives the process, and how it is damaged.
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>
#include <random>
#include <system_error>
#include <thread>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "pipeline/cache/sample_cache_help.hpp"
#include "support/count_allocations.hpp"
#include "support/temporary_folder.hpp"

BOOST_AUTO_TEST_SUITE(sample_cache_file)

using namespace drawpoint;
using namespace drawpoint::test;

namespace {

std::vector<char> bytes_of(const std::filesystem::path& file) {
    std::ifstream in{file, std::ios::binary};
    return {std::istreambuf_iterator<char>{in}, {}};
}

void write(const std::filesystem::path& file, const std::vector<char>& bytes) {
    std::ofstream{file, std::ios::binary}.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

}   // namespace

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
    BOOST_TEST(!finds(cache, 5));
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
        BOOST_TEST(!finds(cache, 0));
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
        SampleCache::Worker worker;
        SampleCache::Place place = cache.reserve(3, 500, worker);
        std::memset(place.data().data(), 1, 250);
        ::kill(::getpid(), SIGKILL);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    BOOST_TEST(WIFSIGNALED(status));
    SampleCache cache{8, 1 << 16, file, 42};
    BOOST_TEST(cache.counters().samples == 1u);
    BOOST_TEST(holds_what_was_kept(cache, 2, 500));
    BOOST_TEST(!finds(cache, 3));
    const std::uint64_t bytes = cache.counters().bytes;
    BOOST_TEST(keep(cache, 3, 500));   // uses the room that was reserved for it
    BOOST_TEST(cache.counters().bytes == bytes);
    BOOST_TEST(holds_what_was_kept(cache, 3, 500));
}

BOOST_AUTO_TEST_CASE(a_file_for_which_there_is_no_room_is_not_taken_for_a_whole_one) {
    const test::TemporaryFolder folder;
    const auto file = folder.path() / "cache";
    const pid_t child = ::fork();
    if (child == 0) {
        ::signal(SIGXFSZ, SIG_IGN);
        const rlimit limit{1 << 12, 1 << 12};
        ::setrlimit(RLIMIT_FSIZE, &limit);
        try {
            const SampleCache cache{8, 1 << 16, file, 42};
        } catch (const std::system_error&) {
            ::_exit(0);
        }
        ::_exit(1);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    BOOST_TEST((WIFEXITED(status) && WEXITSTATUS(status) == 0));
    std::filesystem::resize_file(file, 1 << 16);   // as if all of it had been written
    const SampleCache cache{8, 1 << 16, file, 42};
    BOOST_TEST(cache.origin() == file.string() + " begun anew: it is incomplete");
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
                if (cache.holds(i) && finds(cache, i)) {
                    BOOST_REQUIRE(holds_what_was_kept(cache, i, bytes));
                    ++found;
                }
            // there is room for what was lost, unless its place is damaged
            for (std::uint64_t i = 0; i < samples; ++i)
                keep(cache, i, bytes);
        } catch (const std::invalid_argument&) {
            BOOST_REQUIRE(at < 8);   // the magic number
            continue;
        }
        if (at >= header)
            BOOST_REQUIRE(found >= samples - 1);
    }
}

BOOST_AUTO_TEST_CASE(a_sample_of_another_shape_than_was_kept_is_missed) {
    const test::TemporaryFolder folder;
    const auto file = folder.path() / "cache";
    constexpr std::size_t shape_at = 24;   // in the entry's header: four numbers of 32 bits
    {
        SampleCache cache{1, 4096, file, 42};
        keep(cache, 0, 100);
    }
    const std::vector<char> whole = bytes_of(file);
    for (std::size_t dimension = 0; dimension < 4; ++dimension) {
        std::vector<char> damaged = whole;
        damaged[index_bytes(1) + shape_at + 4 * dimension] ^= 1;
        write(file, damaged);
        SampleCache cache{1, 4096, file, 42};
        BOOST_TEST(!finds(cache, 0), "dimension " << dimension);
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
        for (int flips = 0; flips < 20; ++flips) {   // overwrites whole words, half of them in the index
            const std::size_t words = flips % 2 == 0 ? samples : (damaged.size() - header) / 8;
            const std::uint64_t word = random() >> random() % 64;
            std::memcpy(damaged.data() + header + 8 * (random() % words), &word, 8);
        }
        write(file, damaged);
        SampleCache cache{samples, 4096, file, 42};
        SampleCache::Worker worker;
        for (int again = 0; again < 2; ++again)
            for (std::uint64_t i = 0; i < samples; ++i) {
                if (const auto held = cache.find(i, worker))
                    BOOST_REQUIRE(held->data.size() <= 4096u);
                else
                    keep(cache, i, bytes);
            }
    }
}

BOOST_AUTO_TEST_CASE(a_file_that_somebody_cuts_while_it_is_used_is_given_up_and_ends_nothing) {
    const test::TemporaryFolder folder;
    const auto file = folder.path() / "cache";
    for (const std::uintmax_t left :
         {std::uintmax_t{0}, std::uintmax_t{100}, std::uintmax_t{3000}, std::uintmax_t{65'000}})
        for (const bool keeps_first : {false, true}) {
            SampleCache cache{8, 1 << 16, file, 42};
            for (std::uint64_t i = 0; i < 7; ++i)
                keep(cache, i, 9000);
            const CacheCounters before = cache.counters();
            BOOST_TEST(before.samples == 7u);
            SampleCache::Worker worker;
            SampleCache::Place place = cache.reserve(7, 100, worker);
            BOOST_TEST_REQUIRE(bool{place});
            std::filesystem::resize_file(file, left);
            if (keeps_first)
                place.keep(0);   // the cache is given up, and this sample with it
            std::uint64_t found = 0;
            for (std::uint64_t i = 0; i < 8; ++i)
                if (finds(cache, i)) {
                    BOOST_TEST(holds_what_was_kept(cache, i, 9000));
                    found += 2;
                }
            const CacheCounters counters = cache.counters();
            BOOST_TEST(counters.hits == found);
            BOOST_TEST((found == 0 || (left == 65'000 && !keeps_first)));   // samples before the cut are unchanged
            if (left < 65'000 || keeps_first) {
                BOOST_TEST(counters.samples == 0u);
                BOOST_TEST(!cache.holds(0));
                BOOST_TEST(!keep(cache, 7, 100));
                BOOST_TEST(cache.origin().ends_with(", given up: somebody cut the file"));
            }
            BOOST_TEST(std::filesystem::file_size(file) == left);   // nothing is written beyond its end
            std::filesystem::remove(file);
        }
}

BOOST_AUTO_TEST_CASE(a_sample_damaged_while_the_file_is_used_is_missed_and_kept_anew) {
    const test::TemporaryFolder folder;
    const auto file = folder.path() / "cache";
    constexpr std::size_t samples = 6, bytes = 150;
    SampleCache cache{samples, 4096, file, 42};
    for (std::uint64_t i = 0; i < samples; ++i)
        keep(cache, i, bytes);
    const std::uint64_t used = cache.counters().bytes;
    std::fstream stranger{file, std::ios::binary | std::ios::in | std::ios::out};
    for (std::uint64_t at = index_bytes(samples); at < used; ++at) {
        stranger.seekg(static_cast<std::streamoff>(at));
        const int byte = stranger.get();
        stranger.seekp(static_cast<std::streamoff>(at));
        stranger.put(static_cast<char>(byte ^ 0x10)).flush();
        std::uint64_t lost = 0;
        for (std::uint64_t i = 0; i < samples; ++i)
            if (!holds_what_was_kept(cache, i, bytes)) {
                BOOST_REQUIRE(!cache.holds(i));
                ++lost;
                const bool kept = keep(cache, i, bytes);
                if (kept)
                    BOOST_REQUIRE(holds_what_was_kept(cache, i, bytes));
            }
        BOOST_REQUIRE(lost <= 1u);
        BOOST_REQUIRE(cache.counters().bytes == used);
        stranger.seekp(static_cast<std::streamoff>(at));
        // in bytes that are not read: the capacity, the end of the room
        stranger.put(static_cast<char>(byte)).flush();
    }
    BOOST_TEST(cache.counters().samples == samples);
}

BOOST_AUTO_TEST_CASE(workers_see_no_wrong_sample_while_a_stranger_damages_the_file) {
    const test::TemporaryFolder folder;
    const auto file = folder.path() / "cache";
    constexpr std::size_t samples = 6, bytes = 3000, threads = 4, flips = 4000;
    constexpr std::uint64_t budget = 1 << 16;
    std::optional<SampleCache> cache{std::in_place, samples, budget, file, 42};
    for (std::uint64_t i = 0; i < samples; ++i)
        keep(*cache, i, bytes);
    const std::uint64_t used = cache->counters().bytes;
    std::atomic<bool> done{false};
    std::atomic<std::uint64_t> asked{0}, wrong{0}, kept{0};
    {
        std::vector<std::jthread> workers;
        for (std::size_t t = 0; t < threads; ++t)
            workers.emplace_back([&, worker = cache->make_worker()]() mutable {
                for (bool last = false; !last;) {   // a pass begins after the last damage, and notices it
                    last = done;
                    for (std::uint64_t i = 0; i < samples; ++i, ++asked)
                        if (const auto held = cache->find(i, worker))
                            wrong += !is_what_was_kept(*held, i, bytes);
                        else
                            kept += keep(*cache, i, bytes);
                }
            });
        const int stranger = ::open(file.c_str(), O_RDWR | O_CLOEXEC);
        std::mt19937_64 random{5};
        for (std::size_t flip = 0; flip < flips; ++flip) {
            const auto at = static_cast<off_t>(index_bytes(samples) + random() % (used - index_bytes(samples)));
            unsigned char byte = 0;
            if (::pread(stranger, &byte, 1, at) != 1)
                break;
            byte ^= static_cast<unsigned char>(1 << random() % 8);
            if (::pwrite(stranger, &byte, 1, at) != 1)
                break;
            std::this_thread::yield();
        }
        ::close(stranger);
        done = true;
    }
    const CacheCounters counters = cache->counters();
    BOOST_TEST(wrong == 0u);
    BOOST_TEST(kept > 0u);
    BOOST_TEST(counters.hits + counters.misses == asked);
    BOOST_TEST(counters.bytes == used);   // nothing is stored twice
    std::uint64_t held = 0;
    for (std::uint64_t i = 0; i < samples; ++i)
        held += cache->holds(i);
    BOOST_TEST(counters.samples == held);
    cache.reset();
    cache.emplace(samples, budget, file, 42);
    for (std::uint64_t i = 0; i < samples; ++i)
        BOOST_TEST((!finds(*cache, i) || holds_what_was_kept(*cache, i, bytes)));
}

BOOST_AUTO_TEST_CASE(an_index_that_points_to_where_no_sample_fits_is_not_believed) {
    const test::TemporaryFolder folder;
    const auto file = folder.path() / "cache";
    constexpr std::size_t samples = 6, bytes = 150;
    std::uint64_t used = 0;
    {
        SampleCache cache{samples, 4096, file, 42};
        for (std::uint64_t i = 0; i < samples; ++i)
            keep(cache, i, bytes);
        used = cache.counters().bytes;
    }
    {
        std::fstream stranger{file, std::ios::binary | std::ios::in | std::ios::out};
        stranger.seekp(std::streamoff{header});
        // the first + 64 overflows to 0
        for (const std::uint64_t offset : {~std::uint64_t{63}, used, std::uint64_t{64}}) {
            const std::uint64_t word = offset | 3;   // "whole"
            stranger.write(reinterpret_cast<const char*>(&word), sizeof word);
        }
    }
    SampleCache cache{samples, 4096, file, 42};
    BOOST_TEST(cache.counters().samples == samples - 3);
    for (std::uint64_t i = 0; i < samples; ++i)
        BOOST_TEST(holds_what_was_kept(cache, i, bytes) == (i >= 3));
}

BOOST_AUTO_TEST_CASE(a_sample_said_to_be_huge_takes_no_memory) {
    const test::TemporaryFolder folder;
    const auto file = folder.path() / "cache";
    constexpr std::uint64_t budget = 1 << 26, huge = 1 << 25;
    SampleCache cache{1, budget, file, 42};
    keep(cache, 0, 100);
    {
        std::fstream stranger{file, std::ios::binary | std::ios::in | std::ios::out};
        stranger.seekp(static_cast<std::streamoff>(index_bytes(1) + 8));
        stranger.write(reinterpret_cast<const char*>(&huge), sizeof huge);
    }
    SampleCache::Worker worker;
    const std::uint64_t before = test::counted_allocations();
    test::count_this_thread(true);
    const bool found = cache.find(0, worker).has_value();
    test::count_this_thread(false);
    BOOST_TEST(!found);
    BOOST_TEST(test::counted_allocations() == before);
}

BOOST_AUTO_TEST_SUITE_END()
