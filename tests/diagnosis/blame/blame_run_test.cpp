// Real loaders with real threads: whatever a run does, its draws and workers are accounted for.

#include <drawpoint/diagnosis/blame/blame.hpp>
#include <drawpoint/diagnosis/blame/explain.hpp>

#include <boost/test/unit_test.hpp>

#include <array>
#include <chrono>
#include <memory>
#include <numeric>
#include <set>
#include <thread>

#include <drawpoint/instrumentation/report/summary.hpp>
#include <drawpoint/loop/event_callback.hpp>
#include <drawpoint/loop/fit.hpp>
#include <drawpoint/pipeline/loader/blocking.hpp>
#include <drawpoint/pipeline/loader/cache_loader.hpp>
#include <drawpoint/pipeline/loader/core/collate.hpp>

#include "diagnosis/replay/littles_law.hpp"
#include "pipeline/loader/loader_bench.hpp"
#include "pipeline/loader/numbered_source.hpp"

namespace drawpoint {
namespace {

using test::Bench;
using test::NumberedSource;
using namespace std::chrono_literals;

/// A learner that does nothing and takes no time.
struct IdleLearner {
    void begin_phase(bool) {}
    void forward(const Batch&) {}
    void loss(const Batch&) {}
    void backward() {}
    void opt_step() {}
    void zero_grad() {}
    double loss_value() { return 0; }
};

/// Cancels every third batch, some of them before they are drawn.
struct CancelSome final : EventCallback<CancelSome> {
    std::size_t draws = 0, batches = 0;
    void before_draw() {
        if (++draws % 3 == 0)
            throw CancelBatch{};
    }
    void before_batch() {
        if (++batches % 3 == 0)
            throw CancelBatch{};
    }
};

void check_conservation(const Ledger& ledger, const Blame& result) {
    BOOST_TEST(result.draws.size() == ledger.steps.size());
    BOOST_TEST(result.max_residual_ns == 0);
    for (const WorkerBlame& worker : result.workers) {
        std::int64_t sum = worker.collate_ns + worker.sampler_ns + worker.run_queue_ns + worker.overhead_ns +
                           worker.idle_no_slot_ns + worker.idle_ns + worker.unknown_ns;
        for (const std::int64_t ns : worker.stages_ns)
            sum += ns;
        BOOST_TEST(sum == worker.span_ns);
    }
}

std::int64_t sum_of(const Blame& result, Cause cause) {
    std::int64_t sum = 0;
    for (const BlamePiece& piece : result.pieces)
        sum += piece.cause == cause ? piece.ns : 0;
    return sum;
}

BOOST_AUTO_TEST_SUITE(blame_run)

BOOST_AUTO_TEST_CASE(every_draw_of_every_kind_of_loader_is_accounted_for) {
    const FunctionCollate collate{"count", [](const FinishedSamples& samples, CollatedBatch& batch) {
                                      const std::array<std::int64_t, 1> shape{1};
                                      batch.add_values<std::int64_t>("count", ScalarType::int64, shape)[0] =
                                          static_cast<std::int64_t>(samples.samples.size());
                                  }};
    for (const std::size_t workers : {0u, 1u, 3u})
        for (const OrderRule order : {OrderRule::in_order(), OrderRule::out_of_order(), OrderRule::bounded(2)})
            for (const bool collated : {false, true}) {
                BOOST_TEST_CONTEXT(workers << " workers, order " << to_string(order) << ", collated " << collated) {
                    Bench bench{true};
                    NumberedSource source{50};
                    source.before_fill = [](std::uint64_t index) {
                        if (index % 13 == 5)
                            std::this_thread::sleep_for(300us);
                    };
                    const RandomSampler sampler{50, 2};
                    LoaderOptions options{.batch_size = 4, .num_workers = workers, .prefetch_depth = 3, .order = order};
                    if (collated)
                        options.collate = &collate;
                    DataLoader loader{bench.runtime, source, sampler, options};
                    IdleLearner learner;
                    CancelSome cancels;
                    CallbackList callbacks;
                    callbacks.add(cancels);
                    run(bench.runtime, fit(learner, loader, {.epochs = 3}, callbacks, *bench.recorder));
                    const Ledger ledger = bench.recorder->ledger();
                    const Blame result = blame(ledger);
                    check_conservation(ledger, result);
                    test::check_littles_law(ledger, options.prefetch_depth);
                    std::set<std::uint32_t> batches;
                    for (const DrawBlame& draw : result.draws) {
                        const StepRow& step = ledger.steps[draw.step];
                        BOOST_TEST((draw.batch != nothing) == (step.size > 0));
                        if (draw.batch == nothing)
                            continue;
                        BOOST_TEST(batches.insert(draw.batch).second);
                        BOOST_TEST(ledger.batches[draw.batch].batch == step.batch);
                        BOOST_TEST(draw.last_sample != nothing);
                    }
                    BOOST_TEST(sum_of(result, Cause::unknown) == 0);
                    BOOST_TEST(result.workers.empty() == (workers == 0));
                    BOOST_TEST(!explain(ledger, result).empty());
                }
            }
}

/// Its order takes 20 ms.
struct SlowSampler final : Sampler {
    [[nodiscard]] std::size_t size() const noexcept override { return 12; }
    void order(std::size_t, std::span<std::uint64_t> order) const override {
        std::iota(order.begin(), order.end(), 0);
        std::this_thread::sleep_for(20ms);
    }
};

BOOST_AUTO_TEST_CASE(a_slow_sampler_is_what_the_first_draw_of_each_pass_waits_for) {
    for (const std::size_t workers : {0u, 2u}) {
        BOOST_TEST_CONTEXT(workers << " workers") {
            Bench bench{true};
            const NumberedSource source{12};
            const SlowSampler sampler;
            DataLoader loader{bench.runtime, source, sampler, {.batch_size = 4, .num_workers = workers}};
            IdleLearner learner;
            run(bench.runtime, fit(learner, loader, {.epochs = 3}, *bench.recorder));
            const Ledger ledger = bench.recorder->ledger();
            const Blame result = blame(ledger);
            check_conservation(ledger, result);
            BOOST_TEST_REQUIRE(ledger.orders.size() == 3u);
            for (std::uint32_t epoch = 0; epoch < 3; ++epoch) {
                BOOST_TEST(ledger.orders[epoch].epoch == epoch);
                BOOST_TEST(ledger.orders[epoch].ns >= 20'000'000);
                BOOST_TEST((ledger.orders[epoch].cpu_ns >= 0 && ledger.orders[epoch].cpu_ns < ledger.orders[epoch].ns));
                if (workers == 0)
                    BOOST_TEST(!ledger.orders[epoch].worker.has_value());
            }
            std::int64_t computed_ns = 0, waited_ns = sum_of(result, Cause::sampler);
            for (const OrderRow& row : ledger.orders)
                computed_ns += row.ns;
            BOOST_TEST(waited_ns <= computed_ns);
            BOOST_TEST(waited_ns > 0);
            if (workers == 0)   // nobody computes it ahead
                BOOST_TEST(waited_ns == computed_ns);
        }
    }
}

BOOST_AUTO_TEST_CASE(a_failing_run_is_accounted_for) {
    Bench bench{true};
    NumberedSource source{50};
    source.fails = [](std::uint64_t index) { return index == 30; };
    const SequentialSampler sampler{50};
    DataLoader loader{bench.runtime, source, sampler, {.batch_size = 4, .num_workers = 2}};
    IdleLearner learner;
    BOOST_CHECK_THROW(run(bench.runtime, fit(learner, loader, {.epochs = 1}, *bench.recorder)), SampleError);
    const Ledger ledger = bench.recorder->ledger();
    const Blame result = blame(ledger);
    check_conservation(ledger, result);
    const DrawBlame& last = result.draws.back();
    BOOST_REQUIRE(last.batch != nothing);
    BOOST_CHECK(ledger.batches[last.batch].status == BatchStatus::failed);
}

BOOST_AUTO_TEST_CASE(batches_drawn_again_from_a_cache_are_nobody_s) {
    Bench bench{true};
    const NumberedSource source{40};
    const SequentialSampler sampler{40};
    DataLoader loader{bench.runtime, source, sampler, {.batch_size = 4, .num_workers = 2}};
    CacheLoader cache{loader, 3};
    IdleLearner learner;
    run(bench.runtime, fit(learner, cache, {.epochs = 2}, *bench.recorder));
    const Ledger ledger = bench.recorder->ledger();
    const Blame result = blame(ledger);
    check_conservation(ledger, result);
    BOOST_REQUIRE(result.draws.size() == 20u);
    for (std::size_t i = 0; i < 20; ++i)
        BOOST_TEST((result.draws[i].batch == nothing) == (i >= 3));
}

BOOST_AUTO_TEST_CASE(a_run_of_bounded_memory_is_accounted_for_as_far_as_its_rows_go) {
    const auto recorder = std::make_unique<Recorder>(RecorderOptions{.ledger_steps = 64});
    {
        Runtime runtime{{.record = true}, *recorder};
        const NumberedSource source{400};
        const SequentialSampler sampler{400};
        DataLoader loader{runtime, source, sampler, {.batch_size = 4, .num_workers = 2}};
        IdleLearner learner;
        run(runtime, fit(learner, loader, {.epochs = 3}, *recorder));
    }
    const Ledger ledger = recorder->ledger();
    BOOST_TEST(ledger.folded.steps > 0u);
    const Blame result = blame(ledger);
    check_conservation(ledger, result);
    for (const DrawBlame& draw : result.draws)   // the first step is kept without its batch
        BOOST_TEST((draw.batch != nothing) == (ledger.steps[draw.step].draw_begin_ns >= ledger.folded.until_ns));
    BOOST_TEST(ledger.steps[result.first_steady_step].draw_begin_ns >= ledger.folded.until_ns);
}

BOOST_AUTO_TEST_CASE(order_and_the_split_of_draws_are_the_summary_s) {
    Bench bench{true};
    NumberedSource source{60};
    source.before_fill = [](std::uint64_t index) {
        if (index % 12 == 0)
            std::this_thread::sleep_for(1ms);
    };
    const SequentialSampler sampler{60};
    DataLoader loader{bench.runtime, source, sampler, {.batch_size = 4, .num_workers = 3, .prefetch_depth = 4}};
    IdleLearner learner;
    run(bench.runtime, fit(learner, loader, {.epochs = 2}, *bench.recorder));
    const Ledger ledger = bench.recorder->ledger();
    const Blame result = blame(ledger);
    const Summary summary = summarize(ledger, {.drop_first_batch = false});
    std::int64_t order_ns = 0, draws_ns = 0;
    for (const DrawBlame& draw : result.draws)
        order_ns += draw.order_ns;
    for (const BlamePiece& piece : result.pieces)
        draws_ns += piece.ns;
    BOOST_TEST(static_cast<double>(order_ns) / 1e9 == summary.draw.order_s);
    BOOST_TEST(static_cast<double>(draws_ns) / 1e9 == summary.headroom.draw_s);
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
}   // namespace drawpoint
