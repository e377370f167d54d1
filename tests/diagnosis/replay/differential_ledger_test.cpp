// A loader without workers, on a clock that only demands move, and its replay give the same ledger to the nanosecond.
#include <drawpoint/diagnosis/replay/replay.hpp>

#include <boost/test/unit_test.hpp>

#include <chrono>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <drawpoint/loop/fit.hpp>
#include <drawpoint/pipeline/loader/data_loader.hpp>

#include "diagnosis/replay/replayed_runs.hpp"

namespace drawpoint {
namespace {

using std::chrono::nanoseconds;

/// Samples of one 64-bit number, made in two stages that take the demands' times in the order in which they are used.
class DemandedSource final : public SampleSource {
public:
    DemandedSource(const RecordedRun& run, std::size_t size, ManualClock& clock)
        : run_{&run}, size_{size}, clock_{&clock} {}
    std::size_t size() const noexcept override { return size_; }
    SampleLayout layout() const noexcept override { return {.type = ScalarType::int64, .rank = 1, .shape = {1}}; }
    std::vector<std::string> stages() const override { return run_->stages; }
    std::string path(std::uint64_t) const override { return {}; }
    std::unique_ptr<WorkerScratch> make_scratch() const override { return std::make_unique<WorkerScratch>(); }
    void fill(SampleTask& task, WorkerScratch&) const override {
        const SampleDemand& demand = run_->samples[made_++ % run_->samples.size()];
        for (std::size_t stage = 0; stage < run_->stages.size(); ++stage) {
            const std::int64_t begin = clock_->now_ns();
            clock_->advance(nanoseconds{demand.stages[stage].ns()});
            task.stages[stage] = {begin, clock_->now_ns() - begin};
        }
        task.stage_count = static_cast<std::uint32_t>(run_->stages.size());
        *task.target = static_cast<std::int64_t>(task.index);
    }

private:
    const RecordedRun* run_;
    std::size_t size_;
    ManualClock* clock_;
    mutable std::size_t made_ = 0;
};

struct DemandedLearner {
    const RecordedRun* run;
    ManualClock* clock;
    std::size_t step = 0;
    void begin_phase(bool) {}
    void forward(const Batch&) { clock->advance(nanoseconds{run->steps[step++ % run->steps.size()].compute.ns()}); }
    void loss(const Batch&) {}
    void backward() {}
    void opt_step() {}
    void zero_grad() {}
    [[nodiscard]] double loss_value() const { return 0; }
};

struct Recorded {
    Ledger ledger;
    std::size_t steps;
};

Recorded record(const RecordedRun& run, std::size_t samples, std::size_t epochs) {
    ManualClock clock;
    Recorder recorder{{}, AnyClock{clock}};
    Runtime runtime{{}, recorder};
    const DemandedSource source{run, samples, clock};
    const SequentialSampler sampler{samples};
    DataLoader loader{runtime, source, sampler, {.batch_size = run.setting.batch_size, .num_workers = 0}};
    DemandedLearner learner{&run, &clock};
    drawpoint::run(runtime, fit(learner, loader, FitOptions{.epochs = epochs}, recorder));
    return {recorder.ledger(), learner.step};
}

BOOST_AUTO_TEST_SUITE(differential_ledger)

BOOST_AUTO_TEST_CASE(an_inline_loader_records_what_its_replay_says) {
    std::size_t batches = 0, short_batches = 0;
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
        RecordedRun run = test::random_run(seed);
        run.setting.num_workers = 0;
        const std::size_t samples = 5 + seed % 37, epochs = 1 + seed % 3;
        const Recorded real = record(run, samples, epochs);
        run.pass_samples = samples;
        run.pass_batches = (samples + run.setting.batch_size - 1) / run.setting.batch_size;
        ReplayOptions options = test::exact(run.setting);
        options.steps = real.steps;
        options.keep_rows = options.ends = true;
        // A step's demand is the one for its size.
        const std::vector<StepDemand> steps = std::exchange(run.steps, {});
        for (std::size_t i = 0; i < real.steps; ++i) {
            run.steps.push_back(steps[i % steps.size()]);
            run.steps.back().size = real.ledger.steps.at(i).size;
        }
        const Ledger replayed = replay(run, options).ledger;
        BOOST_REQUIRE(replayed.batches.size() == real.ledger.batches.size());
        BOOST_REQUIRE(replayed.samples.size() == real.ledger.samples.size());
        BOOST_REQUIRE(replayed.steps.size() == real.ledger.steps.size());
        for (std::size_t i = 0; i < replayed.batches.size(); ++i) {
            const BatchRow &here = real.ledger.batches[i], &there = replayed.batches[i];
            BOOST_TEST_CONTEXT("seed " << seed << ", batch " << i) {
                BOOST_TEST(here.epoch == there.epoch);
                BOOST_TEST(here.batch == there.batch);
                BOOST_TEST(here.size == there.size);
                BOOST_TEST(here.slot == there.slot);
                BOOST_TEST(here.ready_batches == there.ready_batches);
                BOOST_TEST(here.admitted_ns == there.admitted_ns);
                BOOST_TEST(here.first_claim_ns == there.first_claim_ns);
                BOOST_TEST(here.last_done_ns == there.last_done_ns);
                BOOST_TEST(here.offered_ns == there.offered_ns);
                BOOST_REQUIRE(here.taken_ns == there.taken_ns);
            }
            short_batches += here.size < run.setting.batch_size;
        }
        for (std::size_t i = 0; i < replayed.samples.size(); ++i) {
            const SampleRow &here = real.ledger.samples[i], &there = replayed.samples[i];
            BOOST_TEST(here.begin_ns == there.begin_ns);
            BOOST_TEST(here.batch == there.batch);
            BOOST_TEST(here.slot == there.slot);
            for (std::size_t stage = 0; stage < run.stages.size(); ++stage) {
                BOOST_TEST(real.ledger.stages_of(here)[stage].begin_ns == replayed.stages_of(there)[stage].begin_ns);
                BOOST_TEST(real.ledger.stages_of(here)[stage].ns == replayed.stages_of(there)[stage].ns);
            }
        }
        for (std::size_t i = 0; i < replayed.steps.size(); ++i) {
            const StepRow &here = real.ledger.steps[i], &there = replayed.steps[i];
            BOOST_TEST(here.draw_begin_ns == there.draw_begin_ns);
            BOOST_TEST(here.draw_ns == there.draw_ns);
            BOOST_TEST(here.batch_ns == there.batch_ns);
            BOOST_TEST(here.size == there.size);
        }
        batches += replayed.batches.size();
    }
    BOOST_TEST(batches > 2'000u);
    BOOST_TEST(short_batches > 50u);
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
}   // namespace drawpoint
