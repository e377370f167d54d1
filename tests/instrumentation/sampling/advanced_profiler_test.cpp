#include <boost/test/unit_test.hpp>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>

#include <time.h>

#include <drawpoint/instrumentation/recorder/recorder.hpp>
#include <drawpoint/loop/profilers/advanced.hpp>

#include "tests/support/temporary_folder.hpp"

namespace {

using namespace drawpoint;

std::atomic<std::uint64_t> sink = 0;

/// Burns CPU time until there are `more` samples, or for longer than a working sampler needs.
bool burn(const AdvancedProfiler& profiler, std::uint64_t more) {
    const std::uint64_t wanted = profiler.sampler_state().samples + more;
    const auto cpu_s = [] {
        timespec time{};
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
        return time.tv_sec;
    };
    const auto begin_s = cpu_s();
    while (profiler.sampler_state().samples < wanted && cpu_s() - begin_s < 30) {
        for (int i = 0; i < 100'000; ++i)
            sink.store(sink.load(std::memory_order_relaxed) * 3 + 1, std::memory_order_relaxed);
    }
    return profiler.sampler_state().samples >= wanted;
}

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

auto says(std::string_view text) {
    return [text](const std::exception& error) { return std::string_view{error.what()} == text; };
}

}   // namespace

BOOST_AUTO_TEST_SUITE(advanced_profiler)

BOOST_AUTO_TEST_CASE(each_action_has_a_report_of_its_own) {
    Recorder recorder;
    AdvancedProfiler profiler{recorder};
    profiler.setup("fit", 2);
    {
        const auto outer = profiler.profile("outer");
        BOOST_REQUIRE(burn(profiler, 20));
        {
            const auto inner = profiler.profile("inner");
            BOOST_REQUIRE(burn(profiler, 20));
        }
    }
    const std::string report = profiler.summary();
    BOOST_TEST(report.starts_with("FIT Profiler Report\n"));
    BOOST_TEST(contains(report, "Profile stats for: outer rank: 2\n"));
    BOOST_TEST(contains(report, "Profile stats for: inner rank: 2\n"));
    BOOST_TEST(contains(report, "\n   ncalls  tottime  percall  cumtime  percall filename:lineno(function)\n"));
    BOOST_TEST(contains(report, "Profiler's own cost\n"));
}

BOOST_AUTO_TEST_CASE(starting_twice_and_stopping_what_never_started_are_errors_and_the_outer_goes_on) {
    Recorder recorder;
    AdvancedProfiler profiler{recorder};
    profiler.start("a");
    BOOST_CHECK_EXCEPTION(profiler.start("a"), std::invalid_argument,
                          says("Attempted to start a which has already started."));
    BOOST_CHECK_EXCEPTION(profiler.stop("x"), std::invalid_argument,
                          says("Attempting to stop recording an action (x) which was never started."));
    BOOST_CHECK_NO_THROW(profiler.stop("a"));
    BOOST_CHECK_THROW(profiler.stop("a"), std::invalid_argument);
}

BOOST_AUTO_TEST_CASE(teardown_clears) {
    Recorder recorder;
    AdvancedProfiler profiler{recorder};
    profiler.start("gone");
    BOOST_REQUIRE(burn(profiler, 5));
    profiler.teardown("fit");
    BOOST_TEST(!contains(profiler.summary(), "Profile stats for: gone"));
    BOOST_CHECK_THROW(profiler.stop("gone"), std::invalid_argument);
}

BOOST_AUTO_TEST_CASE(actions_may_overlap_without_nesting) {
    Recorder recorder;
    AdvancedProfiler profiler{recorder};
    profiler.start("first");
    profiler.start("second");
    profiler.stop("first");
    BOOST_REQUIRE(burn(profiler, 20));
    profiler.stop("second");
    const std::string report = profiler.summary();
    BOOST_TEST(contains(report, "Profile stats for: second\n"));
}

BOOST_AUTO_TEST_CASE(dumped_stats_are_a_pprof_file_per_action) {
    const test::TemporaryFolder folder;
    Recorder recorder;
    AdvancedProfiler profiler{recorder, {.dirpath = folder.path(), .filename = "adv"}, {.dump_stats = true}};
    profiler.setup("fit", 0);
    profiler.start("[LightningModule]X.training_step");
    BOOST_REQUIRE(burn(profiler, 20));
    profiler.stop("[LightningModule]X.training_step");
    profiler.describe();
    BOOST_TEST(std::filesystem::exists(folder.path() / "fit-adv-0.txt"));
    std::ifstream file{folder.path() / "fit-adv-0-[LightningModule]X.training_step.prof", std::ios::binary};
    BOOST_REQUIRE(file.is_open());
    BOOST_TEST(file.get() == 0x1f);   // gzip
    BOOST_TEST(file.get() == 0x8b);
}

BOOST_AUTO_TEST_CASE(a_dumped_profile_is_a_new_file_put_in_the_place_of_the_one_before) {
    const test::TemporaryFolder folder;
    const auto profile = folder.path() / "fit-adv-0-a.prof", before = folder.path() / "before";
    std::ofstream{profile} << "read by somebody";
    std::filesystem::create_hard_link(profile, before);
    Recorder recorder;
    AdvancedProfiler profiler{recorder, {.dirpath = folder.path(), .filename = "adv"}, {.dump_stats = true}};
    profiler.setup("fit", 0);
    profiler.start("a");
    BOOST_REQUIRE(burn(profiler, 20));
    profiler.stop("a");
    static_cast<void>(profiler.summary());
    BOOST_TEST(std::ifstream{profile}.get() == 0x1f);   // gzip
    BOOST_TEST(std::filesystem::file_size(before) == 16u);
}

BOOST_AUTO_TEST_CASE(dumped_stats_without_a_folder_are_refused_in_words) {
    Recorder recorder;
    AdvancedProfiler profiler{recorder, {}, {.dump_stats = true}};
    BOOST_CHECK_EXCEPTION(static_cast<void>(profiler.summary()), std::invalid_argument,
                          [](const auto& error) { return contains(error.what(), "dirpath"); });
}

BOOST_AUTO_TEST_SUITE_END()
