#include "device_case.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <ranges>
#include <span>
#include <stdexcept>
#include <utility>

#include <asio/co_spawn.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <drawpoint/instrumentation/facts.hpp>
#include <drawpoint/loop/event_callback.hpp>
#include <drawpoint/loop/fit.hpp>
#include <drawpoint/pipeline/loader/data_loader.hpp>
#include <drawpoint/pipeline/rng.hpp>
#include <drawpoint/pipeline/sampling/sampler.hpp>
#include <drawpoint/pipeline/torch/device_loader.hpp>
#include <drawpoint/pipeline/torch/pinned_memory.hpp>

#include "diagnosis/verdict/interventions.hpp"
#include "simulation/simulation.hpp"
#include "torch/fake_accelerator/fake_accelerator.hpp"
#include "change.hpp"
#include "truth.hpp"

namespace drawpoint::bench {
namespace {

namespace fake = fake_accelerator;
constexpr std::size_t warm_up = 60, recorded_passes = 4;

std::int64_t ns(double us) { return std::llround(us * 1e3); }

/// The factor of a sample, or of a step; its mean is 1.
double factor_of(const Variation& variation, std::uint64_t seed, std::uint32_t kind, std::uint64_t index) {
    CounterRng random{seed, kind, index};
    const double u = std::max(random.uniform(), 1e-12), v = random.uniform();
    const double normal = std::sqrt(-2 * std::log(u)) * std::cos(2 * 3.14159265358979323846 * v);
    const double common = std::exp(variation.sigma * normal - variation.sigma * variation.sigma / 2);
    const double mean = 1 + variation.rare_share * (variation.rare_factor - 1);
    const double factor = common * (random.uniform() < variation.rare_share ? variation.rare_factor : 1) / mean;
    return 1 + variation.spread * (factor - 1);
}

bool varies(const Variation& variation) { return variation.sigma > 0 || variation.rare_share > 0; }

/// Samples that wait in one stage.
class CaseSource final : public SampleSource {
public:
    CaseSource(const DeviceCase& of, std::uint64_t seed) : of_{of}, seed_{seed} {}

    [[nodiscard]] std::size_t size() const noexcept override { return of_.steps * of_.setting.batch_size; }
    [[nodiscard]] SampleLayout layout() const noexcept override {
        return {.type = ScalarType::int64, .rank = 1, .shape = {1}};
    }
    [[nodiscard]] std::vector<std::string> stages() const override { return {of_.stage}; }
    [[nodiscard]] std::string path(std::uint64_t index) const override { return std::to_string(index); }
    [[nodiscard]] std::unique_ptr<WorkerScratch> make_scratch() const override {
        return std::make_unique<WorkerScratch>();
    }
    void fill(SampleTask& task, WorkerScratch&) const override {
        const std::int64_t begin_ns = task.clock != nullptr ? task.clock->now_ns() : 0;
        simulation::sleep_for(ns(of_.sample_us * factor_of(of_.samples, seed_, 0, task.index)));
        *task.target = 0;
        task.stages[0] = {begin_ns, task.clock != nullptr ? task.clock->now_ns() - begin_ns : 0};
        task.stage_count = 1;
    }

private:
    const DeviceCase& of_;
    std::uint64_t seed_;
};

/// Steps that launch kernels, a third of them before the loss.
struct CaseLearner {
    const DeviceCase& of;
    std::uint64_t seed;
    std::uint64_t step = 0;

    void launch(std::size_t kernels) const {
        const double factor = factor_of(of.step, seed, 1, step);
        for (std::size_t i = 0; i < kernels; ++i) {
            simulation::compute(ns(of.launch_us * factor));
            fake::kernel(ns(of.kernel_us * factor));
        }
    }
    void begin_phase(bool) {}
    void forward(DeviceBatch&) const { launch(of.kernels / 3); }
    void loss(DeviceBatch&) {}
    [[nodiscard]] double loss_value() const {
        fake::synchronize_stream();
        return 0;
    }
    void backward() const { launch(of.kernels - of.kernels / 3); }
    void opt_step() const {
        if (of.sync == DeviceCase::Sync::end)
            fake::synchronize_stream();
    }
    void zero_grad() { ++step; }
};
static_assert(Learner<CaseLearner, DeviceBatch>);

/// What the loop's thread does by itself at the end of a step.
struct CaseCallback final : EventCallback<CaseCallback> {
    const DeviceCase& of;
    std::uint64_t seed;
    CaseCallback(const DeviceCase& a_case, std::uint64_t a_seed) : of{a_case}, seed{a_seed} {}
    void after_batch(const LoopState& state) const {
        if (of.callback_us > 0)
            simulation::compute(ns(of.callback_us * factor_of(of.step, seed, 1, state.train_steps)));
    }
};

/// The program of a run, on simulated threads.
void train(const DeviceCase& of, std::uint64_t seed, Recorder& recorder) {
    fake::reset({.call_ns = 500,
                 .query_ns = 500,
                 .nap_ns = 20'000,
                 .copy_ns = ns(of.copy_us),
                 .on_advance = simulation::compute,
                 .clock = [start_ns = simulation::now_ns()] { return simulation::now_ns() - start_ns; }});
    {
        Runtime runtime{{.workers = WorkerThreads::threads}, recorder};
        const CaseSource source{of, seed};
        const SequentialSampler sampler{source.size()};
        DataLoader host{runtime,
                        source,
                        sampler,
                        {.batch_size = of.setting.batch_size,
                         .num_workers = of.setting.num_workers,
                         .prefetch_depth = of.setting.prefetch_depth,
                         .order = of.setting.order,
                         .slot_memory = of.pinned ? pinned_memory() : nullptr}};
        DeviceLoader loader{host, {.device_prefetch = of.device_prefetch}};
        CaseLearner learner{of, seed};
        CaseCallback callback{of, seed};
        CallbackList callbacks;
        callbacks.add(callback);
        bool ended = false;
        std::exception_ptr error;
        asio::co_spawn(runtime.context(),
                       fit(learner, loader, {.record_loss = of.sync == DeviceCase::Sync::loss}, callbacks, recorder),
                       [&](std::exception_ptr thrown) {
                           ended = true;
                           error = std::move(thrown);
                       });
        while (!ended) {
            runtime.context().restart();
            if (runtime.context().poll() == 0)
                simulation::idle();
        }
        runtime.context().poll();
        if (error)
            std::rethrow_exception(error);
    }
    fake::synchronize();
    fake::settings().on_advance = {};
    fake::settings().clock = {};
}

/// The case with that changed; nullopt: it changes nothing about it.
std::optional<DeviceCase> changed(const DeviceCase& of, const LeverWords& words) {
    DeviceCase to = of;
    switch (words.lever) {
    case Lever::stage: to.sample_us /= 2; break;
    case Lever::transfer: to.copy_us /= 2; break;
    case Lever::compute:
        to.kernel_us /= 2;
        to.launch_us /= 2;
        to.callback_us /= 2;
        break;
    case Lever::variance:
        if (!varies(of.samples) && !varies(of.step))
            return std::nullopt;
        to.samples.spread /= 2;
        to.step.spread /= 2;
        break;
    case Lever::device_prefetch: ++to.device_prefetch; break;
    case Lever::pinned:
        if (of.pinned)
            return std::nullopt;
        to.pinned = true;
        break;
    case Lever::no_sync:
        if (of.sync == DeviceCase::Sync::none)
            return std::nullopt;
        to.sync = DeviceCase::Sync::none;
        break;
    case Lever::more_reads:   // nothing is read ahead
    case Lever::read:
    case Lever::collate:
    case Lever::uint8:   // the samples are not floats
    case Lever::sampler:
    case Lever::waiting:   // as `stage`
    case Lever::cores:
    case Lever::delivery: return std::nullopt;
    default:
        const auto setting = moved(words.lever, of.setting);
        if (!setting)
            return std::nullopt;
        to.setting = *setting;
    }
    return to;
}

bool waits_rarely(const Variation& variation) {
    return variation.rare_share <= 0.05 && variation.rare_share * variation.rare_factor > 1 - variation.rare_share;
}

/// The verdicts that are right where this change gains most.
std::set<Verdict> verdicts_of(const DeviceCase& of, const LeverWords& words) {
    if (words.verdict)
        return {*words.verdict};
    const bool bursty = of.step.sigma * of.step.spread >= 0.4;
    std::set<Verdict> right;
    switch (words.lever) {
    case Lever::stage:
        right.insert(of.stage == "read"     ? Verdict::read_latency
                     : of.stage == "decode" ? Verdict::decode
                                            : Verdict::transform);
        if (waits_rarely(of.samples))
            right.insert(Verdict::stragglers);
        break;
    case Lever::more_depth: right.insert(Verdict::prefetch_depth); break;
    default: right.insert(Verdict::stragglers);   // variance
    }
    if (bursty && words.lever != Lever::stage)
        right.insert(Verdict::bursty_consumer);
    return right;
}

/// How the loop is the limit, if a faster step gains most.
std::set<Verdict> verdicts_of_compute(const DeviceCase& of, const DeviceTruth& truth, std::uint64_t seed) {
    for (const DeviceGain& gain : truth.gains)
        if (gain.key == words_of(Lever::no_sync).key && gain.gain >= least_gain)
            return {Verdict::synchronised};
    DeviceCase loop = of, device = of;   // twice as fast
    loop.launch_us /= 2;
    loop.callback_us /= 2;
    device.kernel_us /= 2;
    const auto gain_of = [&](const DeviceCase& faster) { return rate_of(run_case(faster, seed)) / truth.rate - 1; };
    const double launches = gain_of(loop), kernels = gain_of(device);
    std::set<Verdict> right;
    if (launches >= kernels - tie)
        right.insert(Verdict::launch_bound);
    if (kernels >= launches - tie)
        right.insert(Verdict::compute_bound);
    return right;
}

/// What a case is drawn with.
class Draws {
public:
    Draws(std::uint64_t seed, std::size_t number) : random_{seed, 7, number} {}
    double by_factor(double low, double high) { return low * std::pow(high / low, random_.uniform()); }
    bool chance(double probability) { return random_.uniform() < probability; }
    std::size_t below(std::size_t n) {
        return std::min(static_cast<std::size_t>(random_.uniform() * static_cast<double>(n)), n - 1);
    }

private:
    CounterRng random_;
};

}   // namespace

Ledger run_case(const DeviceCase& of, std::uint64_t seed) {
    Recorder recorder{RecorderOptions{.ring_records = 1u << 17, .host_period = std::chrono::milliseconds{0}},
                      AnyClock{SteadyClock{}}};
    recorder.set_fact(facts::host_cores, std::to_string(simulation::exact_cores));
    simulation::run_exactly(seed, of.name.c_str(), [&] { train(of, seed, recorder); });
    Ledger ledger = recorder.ledger();
    if (ledger.steps.size() != of.steps)
        throw std::runtime_error{
            fmt::format("{}: {} of {} steps were recorded", of.name, ledger.steps.size(), of.steps)};
    return ledger;
}

double rate_of(const Ledger& ledger) {
    const DeviceStepRow *first = nullptr, *last = nullptr;
    for (const DeviceStepRow& row : ledger.device_steps) {
        if (row.step < warm_up)
            continue;
        first = first == nullptr ? &row : first;
        last = &row;
    }
    if (first == last)
        throw std::runtime_error{"no steps on the device were recorded"};
    return static_cast<double>(last->step - first->step) * 1e9 / static_cast<double>(last->end_ns - first->end_ns);
}

DeviceTruth truth_of(const DeviceCase& of, std::uint64_t seed) {
    DeviceTruth truth{.rate = rate_of(run_case(of, seed))};
    for (const LeverWords& words : levers)
        if (const auto other = changed(of, words))
            truth.gains.push_back({std::string{words.key} + (words.lever == Lever::stage ? of.stage : ""),
                                   rate_of(run_case(*other, seed)) / truth.rate - 1});
    std::ranges::stable_sort(truth.gains, std::ranges::greater{}, &DeviceGain::gain);
    if (truth.gains.front().gain < least_gain) {
        truth.verdicts = {Verdict::compute_bound, Verdict::balanced};
        return truth;
    }
    bool compute = false, other = false;
    for (const DeviceGain& gain : truth.gains) {
        if (gain.gain < least_gain || gain.gain < truth.gains.front().gain - tie)
            continue;
        const LeverWords& words = words_of(lever_of(gain.key).value());
        if (words.lever == Lever::compute || words.lever == Lever::no_sync) {
            compute = true;
            truth.verdicts.merge(verdicts_of_compute(of, truth, seed));
        } else {
            other = true;
            truth.verdicts.merge(verdicts_of(of, words));
        }
    }
    if (compute && other)
        truth.verdicts.insert(Verdict::balanced);
    return truth;
}

DeviceCase draw_device_case(std::uint64_t seed, std::size_t number) {
    Draws draws{seed, number};
    constexpr std::array stages{"decode", "transform", "read"};
    DeviceCase of;
    of.name = fmt::format("device-{}-{:03}", seed, number);
    of.setting.batch_size = 4 + 4 * draws.below(2);
    of.setting.num_workers = 1 + draws.below(4);
    of.setting.prefetch_depth = 1 + draws.below(4);
    of.setting.order = draws.chance(0.2) ? OrderRule::out_of_order() : OrderRule::in_order();
    of.stage = stages[draws.below(stages.size())];
    of.device_prefetch = draws.below(4);
    of.pinned = draws.chance(0.85);
    of.kernels = 12 + 3 * draws.below(13);
    const double device_us = draws.by_factor(2000, 10'000);   // of a step
    of.kernel_us = device_us / static_cast<double>(of.kernels);
    of.launch_us = of.kernel_us * (draws.chance(0.2) ? draws.by_factor(0.7, 2.5) : draws.by_factor(0.02, 0.4));
    of.copy_us = device_us * (draws.chance(0.25) ? draws.by_factor(0.5, 2) : draws.by_factor(0.02, 0.5));
    of.sample_us = device_us * draws.by_factor(0.3, 2.5) * static_cast<double>(of.setting.num_workers) /
                   static_cast<double>(of.setting.batch_size);
    of.sync = draws.chance(0.3) ? (draws.chance(0.5) ? DeviceCase::Sync::loss : DeviceCase::Sync::end)
                                : DeviceCase::Sync::none;
    of.samples.sigma = draws.by_factor(0.02, 0.6);
    if (draws.chance(0.25))
        of.samples.rare_share = draws.by_factor(0.01, 0.05), of.samples.rare_factor = draws.by_factor(5, 40);
    of.step.sigma = draws.chance(0.3) ? draws.by_factor(0.05, 0.5) : 0;
    of.callback_us = draws.chance(0.3) ? device_us * draws.by_factor(0.02, 0.4) : 0;
    return of;
}

DeviceScore score_device_case(const DeviceCase& of, std::uint64_t seed) {
    DeviceCase longer = of;
    longer.steps *= recorded_passes;
    DeviceScore score{.of = of, .truth = truth_of(of, seed), .said = diagnose(run_case(longer, seed + 1))};
    score.replay_error = std::abs(score.said.unexplained);
    for (const Intervention& change : score.said.interventions)
        for (const DeviceGain& real : score.truth.gains)
            if (real.key == change.key())
                score.gain_errors.push_back(std::abs(change.gain.median - real.gain) / (1 + real.gain));
    return score;
}

std::string to_text(const DeviceCase& of) {
    constexpr std::array syncs{"", ", waits for the loss", ", waits at its end"};
    return fmt::format(
        "{}, device_prefetch {}, {}copies of {:.0f} µs; samples: {} of {:.0f} µs, sigma {:.2f}, rare {:.3f} x {:.0f}; "
        "steps: {} kernels of {:.0f} µs, launched in {:.0f} µs, callbacks of {:.0f} µs, sigma {:.2f}{}",
        to_string(of.setting), of.device_prefetch, of.pinned ? "" : "pageable ", of.copy_us, of.stage, of.sample_us,
        of.samples.sigma, of.samples.rare_share, of.samples.rare_factor, of.kernels, of.kernel_us, of.launch_us,
        of.callback_us, of.step.sigma, syncs[static_cast<std::size_t>(of.sync)]);
}

std::string line_of(const DeviceScore& score) {
    std::string best;
    for (const DeviceGain& gain : score.truth.gains | std::views::take(3))
        best += fmt::format("{}{} {:+.1f} %", best.empty() ? "" : ", ", gain.key, 100 * gain.gain);
    return fmt::format(
        "{:<18} {:<5} {} (truth: {}; {}), off {:.1f} %", score.of.name, score.is_right() ? "right" : "WRONG",
        score.said.abstained ? "abstained (" + *score.said.abstained + ")" : std::string{to_string(score.said.verdict)},
        fmt::join(words_of(score.truth.verdicts), ", "), best,
        score.gain_errors.empty() ? 0 : 100 * std::ranges::max(score.gain_errors));
}

}   // namespace drawpoint::bench
