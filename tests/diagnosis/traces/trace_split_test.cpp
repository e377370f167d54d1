#include <drawpoint/diagnosis/traces/trace_split.hpp>

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <random>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <drawpoint/instrumentation/import/chrome_trace.hpp>
#include "golden/replays.hpp"

using namespace drawpoint;

namespace {

constexpr std::string_view multi = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__";
constexpr std::string_view single = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__";

/// A ledger of ranges, in microseconds, like one that an import makes.
class Trace {
public:
    void add(std::string_view name, std::int64_t begin_us, std::int64_t us, std::uint32_t thread = 0,
             OperatorKind kind = OperatorKind::user_annotation) {
        ledger_.names.emplace_back(name);
        while (ledger_.threads.size() <= thread)
            ledger_.threads.push_back({.tid = ledger_.threads.size() + 1});
        if (kind == OperatorKind::kernel)
            ledger_.threads[thread].device = 0;
        ledger_.operators.push_back({.kind = kind,
                                     .name = static_cast<std::uint32_t>(ledger_.names.size() - 1),
                                     .thread = thread,
                                     .begin_ns = begin_us * 1000,
                                     .ns = us * 1000});
    }
    /// Adds a step that begins where the last one ended: 10 us, the draw, compute, and 5 us before the next one.
    void add_step(std::int64_t draw_us, std::int64_t compute_us, std::string_view draw = multi) {
        add("ProfilerStep#" + std::to_string(number_++), at_us_, draw_us + compute_us);
        add(draw, at_us_ + 10, draw_us);
        at_us_ += draw_us + compute_us + 5;
    }
    [[nodiscard]] std::int64_t at_us() const noexcept { return at_us_; }
    void skip(std::int64_t us) noexcept { at_us_ += us; }
    void next_number() noexcept { ++number_; }
    [[nodiscard]] Ledger ledger() const {
        Ledger sorted = ledger_;
        sorted.sort();
        return sorted;
    }
    [[nodiscard]] TraceSplit split() const { return split_trace(ledger()); }

private:
    Ledger ledger_;
    std::int64_t at_us_ = 1'000'000;
    std::uint32_t number_ = 3;
};

bool has(const std::vector<std::string>& sentences, std::string_view words) {
    return std::ranges::any_of(sentences,
                               [&](const std::string& sentence) { return sentence.find(words) != sentence.npos; });
}

void check_tiling(const TraceSplit& split) {
    for (std::size_t i = 0; i < split.steps.size(); ++i) {
        const TraceStep& step = split.steps[i];
        for (const std::int64_t ns : {step.draw_ns, step.setup_ns, step.compute_ns, step.between_ns})
            BOOST_TEST(ns >= 0);
        if (i + 1 < split.steps.size())
            BOOST_TEST(step.begin_ns + step.draw_ns + step.setup_ns + step.compute_ns + step.between_ns ==
                       split.steps[i + 1].begin_ns);
    }
}

}   // namespace

BOOST_AUTO_TEST_SUITE(trace_split)

BOOST_AUTO_TEST_CASE(draws_and_compute_of_steps_are_theirs_to_the_nanosecond) {
    Trace trace;
    for (int i = 0; i < 30; ++i)
        trace.add_step(200, 800);
    const TraceSplit split = trace.split();
    BOOST_TEST_REQUIRE(split.steps.size() == 30u);
    check_tiling(split);
    BOOST_TEST(split.steps[0].number == 3u);
    BOOST_TEST(split.steps[0].draw_begin_ns == split.steps[0].begin_ns + 10'000);
    BOOST_TEST(split.steps[7].draw_ns == 200'000);
    BOOST_TEST(split.steps[7].compute_ns == 800'000);
    BOOST_TEST(split.steps[7].between_ns == 5'000);
    BOOST_TEST((split.iterator == LoaderIterator::multi_process));
    BOOST_TEST(split.steady_steps == 30u);
    BOOST_TEST(split.warm_up_steps + split.boundaries == 0u);
    BOOST_TEST(split.steady_draw.max_ns == 200'000);
    BOOST_TEST(split.steady_step_p50_ns == 1'000'000);
    const double all = 30 * 1005 - 5;
    BOOST_TEST(split.draw_share == 30 * 200 / all, boost::test_tools::tolerance(1e-12));
    BOOST_TEST(split.draw_share_of_all == split.draw_share, boost::test_tools::tolerance(1e-12));
    BOOST_TEST(split.headroom.value() == 6000 / (all - 6000), boost::test_tools::tolerance(1e-12));
    BOOST_TEST(split.headroom_90->first <= *split.headroom);
    BOOST_TEST(split.headroom_90->second >= *split.headroom * 0.999);
    BOOST_TEST(split.between_share == 29 * 5 / all, boost::test_tools::tolerance(1e-12));
    BOOST_TEST(!split.period.has_value());
    BOOST_TEST(split.notes.empty());
    BOOST_TEST(split.hint.find("Draws are alike (median 0.2 ms") == 0u);
}

BOOST_AUTO_TEST_CASE(the_first_steps_are_warm_up_while_they_are_long) {
    Trace trace;
    for (const int draw : {4000, 2000, 1500})
        trace.add_step(draw, 800);
    for (int i = 0; i < 30; ++i)
        trace.add_step(i == 12 ? 5000 : 100, 800);
    const TraceSplit split = trace.split();
    BOOST_TEST(split.warm_up_steps == 3u);
    BOOST_TEST(split.steps[2].warm_up);
    BOOST_TEST(!split.steps[3].warm_up);
    BOOST_TEST(split.steady_steps == 30u);
    BOOST_TEST(split.steady_draw.max_ns == 5'000'000);   // later ones are not
    BOOST_TEST(split.steady_draw.p50_ns == 100'000);
    BOOST_TEST(split.warm_up_share == 7500.0 / (7500 + 29 * 100 + 5000), boost::test_tools::tolerance(1e-12));
    BOOST_TEST(split.draw_share < split.draw_share_of_all);
}

BOOST_AUTO_TEST_CASE(steps_that_only_get_shorter_have_no_warm_up_and_it_says_so) {
    Trace trace;
    for (int i = 0; i < 20; ++i)
        trace.add_step(i < 12 ? 10'000 : 100, 800);
    const TraceSplit split = trace.split();
    BOOST_TEST(split.warm_up_steps == 0u);
    BOOST_TEST(has(split.notes, "warm-up cannot be told"));
}

BOOST_AUTO_TEST_CASE(a_step_that_draws_once_more_than_usual_ended_an_epoch) {
    Trace trace;
    for (int i = 0; i < 40; ++i) {
        if (i % 10 != 9) {
            trace.add_step(50, 950);
            continue;
        }
        // The last __next__ finds no batch; workers start again; then comes the next epoch's first batch.
        trace.add("ProfilerStep#" + std::to_string(3 + i), trace.at_us(), 5000);
        trace.add(multi, trace.at_us() + 10, 20);
        trace.add(multi, trace.at_us() + 1030, 3000);
        trace.skip(5005);
        trace.next_number();
    }
    const TraceSplit split = trace.split();
    check_tiling(split);
    BOOST_TEST(split.boundaries == 4u);
    const TraceStep& step = split.steps[9];
    BOOST_TEST(step.boundary);
    BOOST_TEST(step.draws == 2u);
    BOOST_TEST(step.draw_ns == 3'020'000);
    BOOST_TEST(step.setup_ns == 1'000'000);
    BOOST_TEST(step.compute_ns == 980'000);
    BOOST_TEST(split.steady_steps == 36u);
    BOOST_TEST(split.steady_draw.max_ns == 50'000);
    BOOST_TEST(split.boundary_share == 4 * 4020.0 / (4 * 4020 + 36 * 50), boost::test_tools::tolerance(1e-12));
    BOOST_TEST(split.draw_share == 36 * 50 / (36 * 1005.0), boost::test_tools::tolerance(1e-3));
}

BOOST_AUTO_TEST_CASE(steps_that_all_draw_several_times_end_no_epoch) {
    Trace trace;
    for (int i = 0; i < 20; ++i) {
        trace.add("ProfilerStep#" + std::to_string(i), trace.at_us(), 1000);
        for (int draw = 0; draw < 4; ++draw)
            trace.add(multi, trace.at_us() + 10 + 250 * draw, 50);
        trace.skip(1000);
    }
    const TraceSplit split = trace.split();
    check_tiling(split);
    BOOST_TEST(split.boundaries == 0u);
    BOOST_TEST(split.steps[3].draws == 4u);
    BOOST_TEST(split.steps[3].draw_ns == 200'000);
    BOOST_TEST(split.draw_share == 0.2, boost::test_tools::tolerance(1e-12));
}

BOOST_AUTO_TEST_CASE(a_draw_that_is_long_and_begins_late_is_a_new_iterators) {
    Trace trace;
    for (int i = 0; i < 12; ++i)
        trace.add_step(50, 950);
    trace.add("ProfilerStep#15", trace.at_us(), 9000);
    trace.add(multi, trace.at_us() + 4000, 4000);
    trace.skip(9000);
    trace.next_number();
    for (int i = 0; i < 12; ++i)
        trace.add_step(50, 950);
    const TraceSplit split = trace.split();
    BOOST_TEST(split.boundaries == 1u);
    BOOST_TEST(split.steps[12].boundary);
}

BOOST_AUTO_TEST_CASE(workers_that_are_all_late_show_as_a_period_and_not_as_stragglers) {
    std::mt19937 random{1};
    Trace regular, rare;
    for (int i = 0; i < 120; ++i) {
        regular.add_step(i % 4 == 0 ? 3000 + static_cast<int>(random() % 300) : 30, 800);
        rare.add_step(random() % 12 == 0 ? 3000 : 30, 800);
    }
    const TraceSplit periodic = regular.split(), spiky = rare.split();
    BOOST_TEST(periodic.period.value() == 4u);
    BOOST_TEST(periodic.hint.find("every 4th draw") != std::string::npos);
    BOOST_TEST(!spiky.period.has_value());
    BOOST_TEST(spiky.hint.find("Few draws are long") == 0u);
    BOOST_TEST(spiky.steady_draw.p99_ns == 3'000'000);
}

BOOST_AUTO_TEST_CASE(uneven_draws_are_never_called_alike_however_few_there_are) {
    Trace few;
    for (int i = 0; i < 12; ++i)
        few.add_step(i % 5 == 2 || i == 4 ? 46'900 : 636, 800);
    const std::string hint = few.split().hint;
    BOOST_TEST(hint.find("alike") == std::string::npos, hint);
    BOOST_TEST(hint.find("of 12 draws are long (median 0.636 ms, 99th percentile 46.9 ms)") != std::string::npos, hint);
    BOOST_TEST(hint.find("too few steps") != std::string::npos, hint);
}

BOOST_AUTO_TEST_CASE(where_many_draws_are_long_the_workers_are_too_slow) {
    std::mt19937 random{4};
    Trace trace;
    for (int i = 0; i < 60; ++i)
        trace.add_step(random() % 60 < 23 ? 20'000 + static_cast<int>(random() % 9000) : 60, 700);
    const TraceSplit split = trace.split();
    BOOST_TEST_REQUIRE(!split.period.has_value());
    BOOST_TEST(split.draw_share > 0.8);
    BOOST_TEST(split.hint.find("not too slow") == std::string::npos, split.hint);
    BOOST_TEST(split.hint.find("the workers are too slow as a whole") != std::string::npos, split.hint);
    BOOST_TEST(split.hint.find(" of 60 draws are long") != std::string::npos, split.hint);
}

BOOST_AUTO_TEST_CASE(one_very_long_draw_does_not_hide_that_many_are_long) {
    std::mt19937 random{4};
    Trace trace;
    for (int i = 0; i < 60; ++i)
        trace.add_step(i == 31 ? 200'000 : random() % 60 < 23 ? 20'000 + static_cast<int>(random() % 9000) : 60, 700);
    const TraceSplit split = trace.split();
    BOOST_TEST(split.long_draws > 15u);
    BOOST_TEST(split.hint.find("not too slow") == std::string::npos, split.hint);
}

BOOST_AUTO_TEST_CASE(the_period_of_long_draws_is_an_ordinal_number) {
    for (const auto& [period, words] :
         {std::pair{2, "every 2nd draw"}, {3, "every 3rd draw"}, {12, "every 12th draw"}}) {
        Trace trace;
        for (int i = 0; i < 240; ++i)
            trace.add_step(i % period == 0 ? 3000 : 30, 800);
        const TraceSplit split = trace.split();
        BOOST_TEST(split.period.value() == static_cast<std::size_t>(period));
        BOOST_TEST(split.hint.find(words) != std::string::npos, split.hint);
    }
}

BOOST_AUTO_TEST_CASE(a_period_is_itself_and_not_a_multiple_of_it) {
    for (unsigned seed = 1; seed <= 20; ++seed) {
        std::mt19937 random{seed};
        Trace trace;
        for (int i = 0; i < 120; ++i)
            trace.add_step(i % 4 == 0 ? 3000 + static_cast<int>(random() % 300) : 30, 800);
        BOOST_TEST(trace.split().period.value_or(0) == 4u);
    }
}

BOOST_AUTO_TEST_CASE(without_workers_the_draw_is_the_loading_and_that_is_the_finding) {
    Trace trace;
    for (int i = 0; i < 10; ++i)
        trace.add_step(900, 600, single);
    const TraceSplit split = trace.split();
    BOOST_TEST((split.iterator == LoaderIterator::single_process));
    BOOST_TEST(split.hint.find("num_workers is 0") == 0u);
    BOOST_TEST(!split.headroom_90.has_value());   // too few steps
    BOOST_TEST(!has(split.cannot_tell, "worker processes"));
    trace.add(multi, trace.at_us(), 1);
    BOOST_TEST((trace.split().iterator == LoaderIterator::unknown));
    BOOST_TEST(has(trace.split().notes, "two kinds of iterator"));
}

BOOST_AUTO_TEST_CASE(a_loop_that_hardly_waits_is_told_so) {
    Trace trace;
    for (int i = 0; i < 50; ++i)
        trace.add_step(10, 990);
    BOOST_TEST(trace.split().hint.find("The loop hardly waits") == 0u);
}

BOOST_AUTO_TEST_CASE(a_trace_without_steps_is_split_from_draw_to_draw) {
    Trace trace;
    for (int i = 0; i < 11; ++i)
        trace.add(multi, 1000 * i, 100 + i);
    const TraceSplit split = trace.split();
    BOOST_TEST(split.steps_by_draw);
    BOOST_TEST_REQUIRE(split.steps.size() == 10u);
    check_tiling(split);
    BOOST_TEST(split.steps[4].draw_ns == 104'000);
    BOOST_TEST(split.steps[4].compute_ns == 896'000);
    BOOST_TEST(has(split.notes, "no ProfilerStep"));
}

BOOST_AUTO_TEST_CASE(a_trace_without_draws_says_so_and_claims_nothing) {
    Trace trace;
    for (int i = 0; i < 12; ++i)
        trace.add("ProfilerStep#" + std::to_string(i), 1000 * i, 1000);
    const TraceSplit split = trace.split();
    BOOST_TEST(!split.has_draws);
    BOOST_TEST(split.steps.size() == 12u);
    BOOST_TEST(has(split.notes, "no draws"));
    BOOST_TEST(split.hint.empty());
    BOOST_TEST(!split.headroom.has_value());
    BOOST_TEST(to_text(split).find("headroom") == std::string::npos);
    const TraceSplit none = split_trace({});
    BOOST_TEST(none.steps.empty());
    BOOST_TEST(has(none.notes, "no steps"));
    BOOST_TEST(!to_text(none).empty());
}

BOOST_AUTO_TEST_CASE(what_overlaps_repeats_or_lies_elsewhere_is_left_out_with_a_note) {
    Trace trace;
    for (int i = 0; i < 6; ++i)
        trace.add_step(100, 900);
    const TraceSplit whole = trace.split();
    trace.add("ProfilerStep#77", 1'000'500, 1000);   // begins inside a step
    trace.add(multi, 1'000'020, 10);                 // inside another draw, as if a loader used a loader
    trace.add(multi, 900'000, 50);                   // before every step
    trace.add("ProfilerStep#3", 1'900'000, 10);      // a number that occurred before
    trace.add(multi, 1'000'000, 50, 1);              // on another thread
    trace.add("ProfilerStep#3", 1'000'000, 50, 1);
    const TraceSplit split = trace.split();
    check_tiling(split);
    BOOST_TEST_REQUIRE(split.steps.size() == 7u);
    BOOST_TEST(split.steps[0].draw_ns == whole.steps[0].draw_ns);
    BOOST_TEST(split.steps[0].compute_ns == whole.steps[0].compute_ns);
    BOOST_TEST(has(split.notes, "1 ProfilerStep ranges begin inside"));
    BOOST_TEST(has(split.notes, "1 draws lie outside"));
    BOOST_TEST(has(split.notes, "1 step numbers do not go up"));
    BOOST_TEST(has(split.notes, "1 draws are on threads other"));
    BOOST_TEST(has(split.notes, "1 ProfilerStep ranges of other threads"));
    BOOST_TEST(has(split.notes, "1 steps fetch no batch"));
}

BOOST_AUTO_TEST_CASE(draws_during_which_a_device_works_are_hidden_by_so_much) {
    Trace trace;
    std::vector<std::int64_t> begins;
    for (int i = 0; i < 20; ++i) {
        begins.push_back(trace.at_us() + 10);
        trace.add_step(400, 600);
    }
    BOOST_TEST(!trace.split().hidden_share.has_value());
    for (const std::int64_t begin : begins) {
        trace.add("before", begin - 100, 200, 1, OperatorKind::kernel);
        trace.add("beside it", begin + 50, 150, 2, OperatorKind::kernel);    // 100 more
        trace.add("elsewhere", begin + 500, 100, 1, OperatorKind::kernel);   // outside the draws
    }
    BOOST_TEST(trace.split().hidden_share.value() == 0.5, boost::test_tools::tolerance(1e-12));
    Trace covered;
    for (int i = 0; i < 20; ++i)
        covered.add_step(400, 600);
    covered.add("long", 0, 10'000'000, 1, OperatorKind::kernel);
    BOOST_TEST(covered.split().hidden_share.value() == 1.0, boost::test_tools::tolerance(1e-12));
}

BOOST_AUTO_TEST_CASE(random_ranges_always_tile) {
    std::mt19937 random{7};
    for (int round = 0; round < 300; ++round) {
        Trace trace;
        const auto pick = [&](int below) { return static_cast<int>(random() % static_cast<unsigned>(below)); };
        for (int i = pick(60); i > 0; --i)
            trace.add(pick(3) == 0 ? "ProfilerStep#" + std::to_string(pick(9)) : std::string{pick(2) ? multi : single},
                      pick(3000), pick(400), static_cast<std::uint32_t>(pick(2)));
        const TraceSplit split = trace.split();
        check_tiling(split);
        for (const double share :
             {split.draw_share, split.draw_share_of_all, split.warm_up_share, split.boundary_share})
            BOOST_TEST((share >= 0 && share <= 1));
        BOOST_TEST(!to_text(split).empty());
    }
}

BOOST_AUTO_TEST_CASE(the_loops_own_rows_stand_in_where_a_trace_has_no_ranges) {
    Ledger ledger;
    for (std::uint32_t i = 0; i < 12; ++i)
        ledger.steps.push_back(
            {.step = i, .epoch = i / 6, .size = 8, .draw_begin_ns = 1000 * i, .draw_ns = 300, .batch_ns = 700});
    const TraceSplit split = split_trace(ledger);
    BOOST_TEST(split.steps.size() == 12u);
    BOOST_TEST(split.boundaries == 1u);
    BOOST_TEST(split.draw_share == 0.3, boost::test_tools::tolerance(1e-12));
}

void check_split(const golden::Path& file, const golden::Json& truth) {
    const TraceSplit split = split_trace(import_chrome_trace(file, {.operators = false}).ledger);
    check_tiling(split);
    double draws = 0, all = 0;
    std::size_t i = 0;
    for (const golden::Json& step : truth.at("steps")) {
        if (!step.at("recorded").get<bool>())
            continue;
        const double draw = step.at("draw_s"), compute = step.at("compute_s");
        draws += draw;
        all += draw + compute;
        BOOST_TEST_REQUIRE(i < split.steps.size());
        const TraceStep& ours = split.steps[i++];
        BOOST_TEST(ours.number == step.at("step").get<std::uint32_t>());
        // The loop's clock also includes entering and leaving the range.
        BOOST_TEST(static_cast<double>(ours.draw_ns) * 1e-9 <= draw);
        BOOST_TEST(static_cast<double>(ours.draw_ns) * 1e-9 >= draw - 250e-6);
    }
    BOOST_TEST(i == split.steps.size());
    BOOST_TEST(std::abs(split.draw_share_of_all - draws / all) < 0.03);
    const bool has_workers = truth.at("loader").at("num_workers").get<int>() > 0;
    BOOST_TEST((split.iterator == (has_workers ? LoaderIterator::multi_process : LoaderIterator::single_process)));
    BOOST_TEST((split.hint.find("num_workers is 0") == 0) == !has_workers);
    BOOST_TEST(!split.actions.empty());
    // The operators do not change the text.
    BOOST_TEST(to_text(split) == to_text(split_trace(import_chrome_trace(file).ledger)));
    BOOST_TEST_MESSAGE(to_text(split));
}

BOOST_AUTO_TEST_CASE(of_recorded_pytorch_runs_the_split_is_the_loops_own) {
    golden::Replays replays{"trace_split"};
    for (const golden::Path& file : golden::traces()) {
        const golden::Path truth_file = golden::trace_stem(file).string() + ".loop_truth.json";
        if (exists(truth_file))
            replays(file, [&] { check_split(file, golden::read_json(truth_file)); });
        else
            replays.missing(file, truth_file);
    }
}

BOOST_AUTO_TEST_SUITE_END()
