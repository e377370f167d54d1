#include <drawpoint/diagnosis/tuner/live_target.hpp>
#include <drawpoint/diagnosis/tuner/online_tuner.hpp>

#include <boost/test/unit_test.hpp>

#include <chrono>
#include <future>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <drawpoint/loop/fit.hpp>

#include "pipeline/loader/loader_bench.hpp"
#include "pipeline/loader/numbered_source.hpp"

namespace drawpoint {
namespace {

using test::Bench;
using test::NumberedSource;
using namespace std::chrono_literals;

/// Records which samples it received.
struct NotingLearner {
    std::vector<std::uint64_t> seen;
    std::string fault;
    const NumberedSource* source;
    void begin_phase(bool) {}
    void forward(const Batch& batch) {
        seen.insert(seen.end(), batch.indices().begin(), batch.indices().end());
        if (fault.empty())
            fault = source->fault(batch, 0);
    }
    void loss(const Batch&) {}
    void backward() {}
    void opt_step() {}
    void zero_grad() {}
    double loss_value() { return 0; }
};

/// An endless fit on numbered samples in random order, which runs while another thread asks questions.
struct AskedFit {
    explicit AskedFit(std::size_t samples, const LoaderOptions& options)
        : source{samples}, sampler{samples, 5}, loader{bench.runtime, source, sampler, options} {}

    /// Trains until `ask` on another thread returns, and returns its result.
    template <class Ask>
    auto while_it_trains(Ask ask) {
        LiveTarget target{loader, *bench.recorder};
        CallbackList callbacks;
        callbacks.add(target);
        auto asking = std::async(std::launch::async, [&] {
            struct EndFit {
                LiveTarget& of;
                ~EndFit() { of.end_fit(); }
            } const end{target};
            return ask(target);
        });
        run(bench.runtime, fit(learner, loader, {.epochs = 1'000'000}, callbacks, *bench.recorder));
        return asking.get();
    }

    Bench bench{true};
    NumberedSource source;
    RandomSampler sampler;
    DataLoader loader;
    NotingLearner learner{.source = &source};
};

/// The first `count` indices of the sampler's orders, epoch after epoch.
std::vector<std::uint64_t> expected(const Sampler& sampler, std::size_t count) {
    std::vector<std::uint64_t> all, order(sampler.size());
    for (std::size_t epoch = 0; all.size() < count; ++epoch) {
        sampler.order(epoch, order);
        all.insert(all.end(), order.begin(), order.end());
    }
    all.resize(count);
    return all;
}

}   // namespace

BOOST_AUTO_TEST_SUITE(live_target)

BOOST_AUTO_TEST_CASE(a_fit_that_is_tuned_sees_the_samples_it_would_have_seen) {
    AskedFit fit{96, {.batch_size = 4, .num_workers = 1, .prefetch_depth = 2}};
    const auto blocks = fit.while_it_trains([](LiveTarget& target) {
        std::vector<TuneTarget::Block> all;
        for (const std::size_t workers : {3u, 1u, 2u})
            for (const std::size_t depth : {1u, 7u})
                all.push_back(target.run({.num_workers = workers, .prefetch_depth = depth, .batch_size = 4}, 3, 10));
        return all;
    });
    for (const TuneTarget::Block& block : blocks) {
        BOOST_TEST(block.batches_per_s > 0);
        BOOST_TEST(block.peak_bytes > 0);
    }
    BOOST_TEST(fit.loader.options().num_workers == 2);
    BOOST_TEST(fit.loader.options().prefetch_depth == 7);
    BOOST_TEST(fit.learner.fault == "");
    BOOST_TEST((fit.learner.seen == expected(fit.sampler, fit.learner.seen.size())));
    BOOST_TEST(fit.bench.recorder->ledger().settings.size() >= 5);
}

BOOST_AUTO_TEST_CASE(a_recorded_block_holds_the_setting_it_ran_with_and_can_be_replayed) {
    AskedFit fit{960, {.batch_size = 4, .num_workers = 1, .prefetch_depth = 2}};
    const RecordedRun recorded = fit.while_it_trains([](LiveTarget& target) {
        return target.record({.num_workers = 2, .prefetch_depth = 3, .batch_size = 4}, 10, 100);
    });
    BOOST_TEST(recorded.unusable == "");
    BOOST_TEST(recorded.setting.num_workers == 2);
    BOOST_TEST(recorded.setting.prefetch_depth == 3);
    BOOST_TEST(recorded.steps.size() > 20);
    BOOST_TEST(replay(recorded, {.setting = recorded.setting}).batches_per_s > 0);
}

BOOST_AUTO_TEST_CASE(order_changes_with_a_pass_and_what_is_counted_comes_after_it) {
    AskedFit fit{40, {.batch_size = 4, .num_workers = 2, .prefetch_depth = 2}};
    const TuneTarget::Block block = fit.while_it_trains([](LiveTarget& target) {
        return target.run({.num_workers = 2, .prefetch_depth = 2, .batch_size = 4, .order = OrderRule::out_of_order()},
                          3, 10);
    });
    BOOST_TEST(block.batches_per_s > 0);
    BOOST_CHECK(fit.loader.options().order == OrderRule::out_of_order());
}

BOOST_AUTO_TEST_CASE(a_setting_that_is_refused_is_refused_where_it_was_asked_for_and_the_fit_goes_on) {
    AskedFit fit{40, {.batch_size = 4, .num_workers = 2, .prefetch_depth = 2}};
    const TuneTarget::Block block = fit.while_it_trains([](LiveTarget& target) {
        BOOST_CHECK_THROW((void)target.run({.num_workers = 2, .prefetch_depth = 100, .batch_size = 4}, 3, 10),
                          std::invalid_argument);
        return target.run({.num_workers = 1, .prefetch_depth = 2, .batch_size = 4}, 3, 10);
    });
    BOOST_TEST(block.batches_per_s > 0);
}

BOOST_AUTO_TEST_CASE(a_fit_ends_once_it_is_tuned_and_its_loader_runs_on_with_what_was_tried) {
    AskedFit asked{400, {.batch_size = 4, .num_workers = 1, .prefetch_depth = 2}};
    LiveTarget target{asked.loader, *asked.bench.recorder};
    CallbackList callbacks;
    callbacks.add(target);
    const auto train = [&] {
        run(asked.bench.runtime,
            fit(asked.learner, asked.loader, {.epochs = 1'000'000}, callbacks, *asked.bench.recorder));
    };
    const TuneOptions options{.start = asked.loader.options().setting(), .most_workers = 3, .most_depth = 3};
    const Tuning tuning = tune_live(target, options, train);
    BOOST_TEST(tuning.chosen.num_workers <= 3);
    BOOST_TEST(tuning.steps_used <= 1000);
    BOOST_TEST(asked.learner.seen.size() >= 4 * tuning.steps_used);
}

BOOST_AUTO_TEST_CASE(a_fit_that_is_over_before_its_tuner_or_fails_is_said) {
    AskedFit asked{8, {.batch_size = 4, .num_workers = 1, .prefetch_depth = 2}};
    LiveTarget target{asked.loader, *asked.bench.recorder};
    const TuneOptions options{.start = asked.loader.options().setting()};
    BOOST_CHECK_THROW((void)tune_live(target, options, [] {}), FitOver);
    BOOST_CHECK_THROW((void)tune_live(target, options, [] { throw std::domain_error{"the fit's own"}; }),
                      std::domain_error);
}

BOOST_AUTO_TEST_CASE(whoever_asks_when_the_fit_is_over_is_told_so) {
    Bench bench{true};
    NumberedSource source{8};
    const SequentialSampler sampler{8};
    DataLoader loader{bench.runtime, source, sampler, {.batch_size = 4}};
    LiveTarget target{loader, *bench.recorder};
    NotingLearner learner{.source = &source};
    auto asking = std::async(std::launch::async, [&] {
        return target.run({.num_workers = 1, .prefetch_depth = 2, .batch_size = 4}, 3, 1'000'000);
    });
    CallbackList callbacks;
    callbacks.add(target);
    run(bench.runtime, fit(learner, loader, {.epochs = 2}, callbacks, *bench.recorder));
    BOOST_CHECK_THROW(asking.get(), FitOver);
    BOOST_CHECK_THROW((void)target.run({.num_workers = 1, .prefetch_depth = 2, .batch_size = 4}, 0, 1), FitOver);
}

BOOST_AUTO_TEST_CASE(an_online_tuner_changes_no_sample_and_records_each_decision) {
    Bench bench{true};
    NumberedSource source{400};
    source.before_fill = [](std::uint64_t) { std::this_thread::sleep_for(400us); };
    const RandomSampler sampler{400, 5};
    DataLoader loader{bench.runtime, source, sampler, {.batch_size = 4, .num_workers = 1, .prefetch_depth = 1}};
    OnlineTuner tuner{loader, *bench.recorder, {.most_workers = 8, .observe_steps = 30}};
    NotingLearner learner{.source = &source};
    CallbackList callbacks;
    callbacks.add(tuner);
    run(bench.runtime, fit(learner, loader, {.epochs = 6}, callbacks, *bench.recorder));
    BOOST_TEST(learner.fault == "");
    BOOST_TEST((learner.seen == expected(sampler, 6 * 400)));
    const std::vector<TunerDecision> decisions = tuner.decisions();
    const Ledger ledger = bench.recorder->ledger();
    BOOST_TEST(max_residual_ns(ledger) == 0);
    for (std::size_t i = 0; i < decisions.size(); ++i)
        BOOST_TEST(ledger.fact("tuner." + std::to_string(i + 1)).has_value());
    BOOST_TEST(!ledger.fact("tuner.stopped").has_value());
}

BOOST_AUTO_TEST_CASE(an_online_tuner_whose_fit_never_runs_ends_at_once) {
    Bench bench{true};
    NumberedSource source{8};
    const SequentialSampler sampler{8};
    DataLoader loader{bench.runtime, source, sampler, {.batch_size = 4}};
    OnlineTuner tuner{loader, *bench.recorder};
    BOOST_TEST(tuner.decisions().empty());
}

BOOST_AUTO_TEST_CASE(an_online_tuner_refuses_what_cannot_be_tuned) {
    Bench bench{true};
    NumberedSource source{8};
    const SequentialSampler sampler{8};
    DataLoader none{bench.runtime, source, sampler, {.batch_size = 4, .num_workers = 0}};
    DataLoader one{bench.runtime, source, sampler, {.batch_size = 4}};
    BOOST_CHECK_THROW((OnlineTuner{none, *bench.recorder}), std::invalid_argument);
    BOOST_CHECK_THROW((OnlineTuner{one, *bench.recorder, {.observe_steps = 1}}), std::invalid_argument);
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace drawpoint
