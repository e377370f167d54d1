#include <drawpoint/diagnosis/tuner/tuner.hpp>

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>
#include <random>
#include <stdexcept>
#include <utility>
#include <vector>

#include "diagnosis/replay/replayed_runs.hpp"

namespace drawpoint {
namespace {

/// `count` batches of the run from `first` on, with their samples and steps.
RecordedRun part_of(const RecordedRun& run, std::size_t first, std::size_t count) {
    RecordedRun part = run;
    const auto keep = [](auto& rows, std::size_t from, std::size_t size) {
        rows.erase(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(from));
        rows.resize(size);
    };
    keep(part.samples, first * run.setting.batch_size, count * run.setting.batch_size);
    keep(part.batches, first, count);
    keep(part.steps, first, count);
    for (SampleDemand& sample : part.samples)
        sample.batch -= static_cast<std::uint32_t>(first);
    return part;
}

/// A loop that is replayed on the samples that RepeatedSampler gives: the same ten batches for 100 steps, then another
/// ten. Each block's rate has noise of its own.
class ReplayedLoop final : public TuneTarget {
public:
    explicit ReplayedLoop(RecordedRun truth, double noise = 0.01) : truth_{std::move(truth)}, noise_{noise} {}

    Block run(const LoaderSetting& setting, std::size_t warm_up, std::size_t steps) override {
        constexpr std::size_t block_steps = 10, pass_steps = 100;
        const std::size_t parts = truth_.steps.size() / block_steps, part = steps_ / pass_steps % parts;
        const Replayed block = replay(part_of(truth_, part * block_steps, block_steps),
                                      {.setting = setting, .steps = steps, .warm_up_steps = warm_up});
        std::normal_distribution<double> normal;
        steps_ += warm_up + steps;
        most_bytes = std::max(most_bytes, block.peak_bytes);
        return {.batches_per_s = block.batches_per_s * std::exp(noise_ * normal(random_)),
                .foreign_cores = foreign_cores,
                .peak_bytes = block.peak_bytes,
                .steps = warm_up + steps};
    }
    RecordedRun record(const LoaderSetting& setting, std::size_t warm_up, std::size_t steps) override {
        RecordedRun recorded = truth_;
        recorded.setting = setting;
        recorded.setting.read_concurrency = 0;   // as if nothing had been read ahead
        recorded.batches_per_s = run(setting, warm_up, steps).batches_per_s;
        return recorded;
    }

    /// The rate of a long run without noise.
    [[nodiscard]] double rate(const LoaderSetting& setting) const {
        return replay(truth_, {.setting = setting, .steps = 400, .warm_up_steps = 60}).batches_per_s;
    }
    [[nodiscard]] std::size_t steps() const { return steps_; }

    std::uint64_t most_bytes = 0;
    double foreign_cores = 0;

private:
    RecordedRun truth_;
    double noise_;
    std::mt19937_64 random_{3};
    std::size_t steps_ = 0;
};

/// Batches of four samples that sleep for 4 ms each, and steps of 4 ms: four workers keep up.
RecordedRun sleepers() {
    RecordedRun run = test::constant_run(
        {.batch_size = 4, .sample = {.wait_ns = 4'000'000}, .compute = {.wait_ns = 4'000'000}, .steps = 100});
    run.batches_per_s = 62.5;
    return run;
}

}   // namespace

BOOST_AUTO_TEST_SUITE(tuner)

BOOST_AUTO_TEST_CASE(too_few_workers_become_as_many_as_keep_up_and_not_more) {
    ReplayedLoop loop{sleepers()};
    const Tuning tuning = tune(loop, {.start = sleepers().setting});
    BOOST_TEST(tuning.chosen.num_workers >= 4);
    BOOST_TEST(tuning.chosen.num_workers <= 5);
    BOOST_TEST(tuning.batches_per_s > 0.95 * loop.rate(tuning.chosen));
    BOOST_TEST(tuning.steps_used == loop.steps());
    BOOST_TEST(tuning.steps_used <= 400);
}

BOOST_AUTO_TEST_CASE(what_it_chooses_is_close_to_the_best_of_the_whole_grid) {
    double regret = 0, worst = 0;
    constexpr int runs = 20;
    for (int seed = 1; seed <= runs; ++seed) {
        const RecordedRun truth = test::random_run(static_cast<std::uint64_t>(seed));
        ReplayedLoop loop{truth};
        const Tuning tuning = tune(loop, {.start = truth.setting, .most_workers = 12, .most_depth = 8});
        double best = 0;
        for (const std::size_t workers : {1u, 2u, 3u, 4u, 6u, 8u, 12u})
            for (const std::size_t depth : {1u, 2u, 4u, 8u}) {
                LoaderSetting setting = truth.setting;
                setting.num_workers = workers;
                setting.prefetch_depth = depth;
                best = std::max(best, loop.rate(setting));
            }
        const double lost = std::max(1 - loop.rate(tuning.chosen) / best, 0.0);
        BOOST_TEST(tuning.steps_used <= 1000);
        BOOST_TEST_INFO("seed " << seed);
        BOOST_CHECK_LT(lost, 0.08);
        regret += lost / runs;
        worst = std::max(worst, lost);
    }
    BOOST_TEST_MESSAGE("mean regret " << regret << ", worst " << worst);
    BOOST_TEST(regret < 0.015);
}

BOOST_AUTO_TEST_CASE(under_a_budget_more_workers_wait_for_the_window_before_and_then_fill_theirs) {
    const LoaderSetting deep{.num_workers = 1, .prefetch_depth = 12}, wide{.num_workers = 3, .prefetch_depth = 4};
    BOOST_TEST(steps_to_settle(deep, wide) == 12u + 3u);
    LoaderSetting budgeted = wide;
    budgeted.memory_budget = 1'000;
    BOOST_TEST(steps_to_settle(deep, budgeted) == 12u + 4u + 3u);
    budgeted.num_workers = 1;   // with one worker, none waits for memory
    BOOST_TEST(steps_to_settle(deep, budgeted) == 12u + 1u);
}

BOOST_AUTO_TEST_CASE(a_memory_budget_is_never_exceeded) {
    RecordedRun truth = sleepers();
    LoaderSetting start = truth.setting;
    truth.worker_bytes = 2'000;
    start.memory_budget = 3 * 4'000 + 4 * 2'000;
    truth.setting = start;
    ReplayedLoop loop{truth};
    const Tuning tuning = tune(loop, {.start = start});
    BOOST_TEST(loop.most_bytes <= start.memory_budget);
    BOOST_TEST(tuning.chosen.memory_budget == start.memory_budget);
}

BOOST_AUTO_TEST_CASE(a_budget_that_nothing_keeps_is_refused_before_a_block_is_run) {
    RecordedRun truth = sleepers();
    truth.setting.memory_budget = 1;
    ReplayedLoop loop{truth};
    BOOST_CHECK_THROW(((void)tune(loop, {.start = truth.setting})), std::exception);
}

BOOST_AUTO_TEST_CASE(where_every_setting_is_as_good_the_cheapest_is_chosen) {
    const RecordedRun truth = test::constant_run(
        {.batch_size = 2, .sample = {.cpu_ns = 10'000}, .compute = {.wait_ns = 5'000'000}, .steps = 100});
    ReplayedLoop loop{truth, 0.002};
    const Tuning tuning = tune(loop, {.start = truth.setting});
    BOOST_TEST(tuning.chosen.num_workers == 1);
    BOOST_TEST(tuning.separated);
}

BOOST_AUTO_TEST_CASE(rounds_that_others_disturb_are_repeated_but_not_for_ever) {
    ReplayedLoop calm{sleepers()}, disturbed{sleepers()};
    disturbed.foreign_cores = 1;
    const Tuning first = tune(calm, {.start = sleepers().setting});
    const Tuning second = tune(disturbed, {.start = sleepers().setting});
    const auto blocks = [](const Tuning& tuning) {
        std::size_t sum = 0;
        for (const TuneTrial& trial : tuning.log)
            sum += trial.blocks;
        return sum;
    };
    BOOST_TEST(blocks(second) < blocks(first));
    BOOST_TEST(blocks(second) > 0u);
    BOOST_TEST(second.steps_used <= 400);
}

BOOST_AUTO_TEST_CASE(what_others_disturbed_is_not_trusted_and_leaves_the_setting_as_it_was) {
    LoaderSetting start = sleepers().setting;
    start.num_workers = 6;
    ReplayedLoop calm{sleepers()}, disturbed{sleepers(), 0.3};
    disturbed.foreign_cores = 1.7;
    const Tuning trusted = tune(calm, {.start = start}), doubted = tune(disturbed, {.start = start});
    BOOST_TEST(trusted.trusted);
    BOOST_TEST(trusted.why.find("trusted") == std::string::npos, trusted.why);
    BOOST_TEST(!doubted.trusted);
    BOOST_TEST(!doubted.separated);
    BOOST_TEST((doubted.chosen == start));
    BOOST_TEST(doubted.why.find("not to be trusted: other processes used 1.70 of ") != std::string::npos, doubted.why);
}

BOOST_AUTO_TEST_CASE(numbers_that_are_not_tuned_stay_and_the_start_is_always_raced) {
    LoaderSetting start = sleepers().setting;
    start.num_workers = 6;
    start.read_concurrency = 64;
    ReplayedLoop loop{sleepers()};
    const Tuning tuning = tune(loop, {.start = start});
    BOOST_TEST(tuning.chosen.read_concurrency == 64u);
    BOOST_TEST(std::ranges::count(tuning.log, start, &TuneTrial::tried) == 1);
}

BOOST_AUTO_TEST_CASE(a_decision_names_what_is_cheaper_and_what_is_not_known) {
    LoaderSetting start = sleepers().setting;
    start.num_workers = 6;
    ReplayedLoop disturbed{sleepers(), 0.3};
    disturbed.foreign_cores = 1;
    const Tuning tuning = tune(disturbed, {.start = start, .steps = 200, .most_steps = 200});
    const auto chosen = std::ranges::find(tuning.log, "chosen", &TuneTrial::decision);
    BOOST_REQUIRE((chosen != tuning.log.end() && chosen != tuning.log.begin()));
    for (auto trial = tuning.log.begin(); trial != tuning.log.end(); ++trial) {
        const std::string& said = trial->decision;
        BOOST_TEST(said.find("inf") == std::string::npos, said);
        BOOST_TEST(said.find("-100.0") == std::string::npos, said);
        if (trial < chosen)
            BOOST_TEST(said.find("more expensive") == std::string::npos, said);
        if (trial > chosen)
            BOOST_TEST(said.find("cheaper") == std::string::npos, said);
    }
    BOOST_TEST(std::ranges::any_of(tuning.log, [](const TuneTrial& trial) {
        return trial.decision.find("% (interval not known) and cheaper") != std::string::npos;
    }));
}

BOOST_AUTO_TEST_CASE(the_log_says_of_each_candidate_what_became_of_it) {
    ReplayedLoop loop{sleepers()};
    const Tuning tuning = tune(loop, {.start = sleepers().setting});
    BOOST_TEST(std::ranges::count(tuning.log, "chosen", &TuneTrial::decision) == 1);
    for (const TuneTrial& trial : tuning.log) {
        BOOST_TEST(!trial.decision.empty());
        BOOST_TEST((trial.blocks != 0) == (trial.measured > 0));
        BOOST_TEST(trial.predicted.low <= trial.predicted.high);
    }
    BOOST_TEST(!tuning.why.empty());
}

BOOST_AUTO_TEST_CASE(options_out_of_range_are_named) {
    ReplayedLoop loop{sleepers()};
    const LoaderSetting start = sleepers().setting;
    const auto names = [](const char* word) {
        return [word](const std::invalid_argument& error) {
            return std::string{error.what()}.find(word) != std::string::npos;
        };
    };
    BOOST_CHECK_EXCEPTION(((void)tune(loop, {.start = {.num_workers = 0}})), std::invalid_argument,
                          names("num_workers"));
    BOOST_CHECK_EXCEPTION(((void)tune(loop, {.start = start, .most_depth = 0})), std::invalid_argument,
                          names("most_depth"));
    BOOST_CHECK_EXCEPTION(((void)tune(loop, {.start = start, .most_candidates = 1})), std::invalid_argument,
                          names("most_candidates"));
    BOOST_CHECK_EXCEPTION(((void)tune(loop, {.start = start, .block_steps = 0})), std::invalid_argument,
                          names("block_steps"));
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace drawpoint
