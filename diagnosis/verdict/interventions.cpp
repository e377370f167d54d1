#include "diagnosis/verdict/interventions.hpp"

#include <algorithm>
#include <cctype>
#include <numeric>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace drawpoint {
namespace {

/// `now` times `factor`, but at most `most`, and never less than `now`.
template <class Number>
Number times(Number now, Number factor, Number most) {
    return now > most / factor ? std::max(now, most) : now * factor;
}

/// The samples' demands of `stage`, added up.
Demand sum_of_stage(const RecordedRun& run, std::size_t stage) {
    Demand sum;
    for (const SampleDemand& sample : run.samples) {
        sum.cpu_ns += sample.stages[stage].cpu_ns;
        sum.wait_ns += sample.stages[stage].wait_ns;
    }
    return sum;
}

bool names(std::string_view name, std::string_view word) {
    return std::ranges::search(name, word, {}, [](char c) {
               return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
           }).begin() != name.end();
}

/// Whether the stage's name says that it reads, or it is the first one and mostly waits for bytes.
bool is_read(const RecordedRun& run, std::size_t stage) {
    if (says_read(run.stages[stage]))
        return true;
    const Demand sum = stage == 0 && !run.reads_ahead ? sum_of_stage(run, stage) : Demand{};
    const bool has_bytes =   // which PyTorch's loader does not tell
        run.setting.kind == LoaderKind::pytorch ||
        std::ranges::any_of(run.samples, [](const SampleDemand& sample) { return sample.bytes > 0; });
    return sum.wait_ns > sum.cpu_ns && has_bytes;
}

Verdict cause_of_reads(const Traits& traits) {
    return traits.bandwidth ? Verdict::read_bandwidth : Verdict::read_latency;
}

Verdict cause_of_stage(const RecordedRun& run, std::size_t stage, const Traits& traits) {
    // A fused image stage counts as decode, also where it reads for itself; the first one of PyTorch's is not fused.
    const bool may_read = run.setting.kind == LoaderKind::pytorch && is_read(run, stage);
    if (says_decode(run.stages[stage]) && !may_read)
        return Verdict::decode;
    return is_read(run, stage) ? cause_of_reads(traits) : Verdict::transform;
}

/// Whether a twentieth of the samples waits longer in this stage than all the others together.
bool waits_rarely(const RecordedRun& run, std::size_t stage) {
    std::vector<std::int64_t> waits;
    for (const SampleDemand& sample : run.samples)
        waits.push_back(sample.stages[stage].wait_ns);
    const auto longest = waits.end() - static_cast<std::ptrdiff_t>(waits.size() / 20);
    std::ranges::nth_element(waits, longest);
    const auto sum = [](auto from, auto to) { return std::accumulate(from, to, 0.0); };
    return sum(longest, waits.end()) > sum(waits.begin(), longest);
}

/// Where samples wait off their core.
struct Waiting {
    double reading_ns = 0, else_ns = 0;
    std::size_t stage = 0;   // the one of longest waits, of those that do not read
    [[nodiscard]] bool is_storage() const noexcept { return reading_ns >= else_ns; }
};

Waiting waiting_of(const RecordedRun& run) {
    Waiting found;
    for (const SampleDemand& sample : run.samples)
        found.reading_ns += static_cast<double>(sample.read.wait_ns);
    double longest_ns = 0;
    for (std::size_t stage = 0; stage < run.stages.size(); ++stage) {
        const auto wait_ns = static_cast<double>(sum_of_stage(run, stage).wait_ns);
        (is_read(run, stage) ? found.reading_ns : found.else_ns) += wait_ns;
        if (!is_read(run, stage) && wait_ns > longest_ns) {
            longest_ns = wait_ns;
            found.stage = stage;
        }
    }
    return found;
}

Verdict cause_of_waiting(const RecordedRun& run, const Traits& traits) {
    const Waiting waiting = waiting_of(run);
    if (waiting.is_storage())
        return cause_of_reads(traits);
    return waits_rarely(run, waiting.stage) ? Verdict::stragglers : cause_of_stage(run, waiting.stage, traits);
}

std::string words_for(Lever lever, const LoaderSetting& from, const LoaderSetting& to) {
    const bool is_pytorch = from.kind == LoaderKind::pytorch;
    switch (lever) {
    case Lever::out_of_order:
        if (is_pytorch)
            return "in_order True -> False";
        return fmt::format("order {} -> {}", to_string(from.order), to_string(to.order));
    case Lever::more_depth:
        return fmt::format("{} {} -> {}", prefetch_name(from.kind), prefetch_of(from), prefetch_of(to));
    case Lever::more_reads: return fmt::format("read_concurrency {} -> {}", from.read_concurrency, to.read_concurrency);
    case Lever::more_memory: return "twice the memory_budget";
    default: return fmt::format("num_workers {} -> {}", from.num_workers, to.num_workers);
    }
}

/// Whether computing an order takes a hundredth of a pass or more.
bool takes_part_of_a_pass(const RecordedRun& run) {
    return static_cast<double>(run.order.ns()) * 1e-9 * run.batches_per_s >
               0.01 * static_cast<double>(run.pass_batches) &&
           run.pass_batches != 0;
}

template <class Rows, class Of>
bool any(const Rows& rows, Of of) {
    return std::ranges::any_of(rows, [&](const auto& row) { return of(row) > 0; });
}

/// Whether the stages' names say that they decode pictures and make floats of them.
bool makes_floats(const RecordedRun& run) {
    return std::ranges::any_of(run.stages, says_decode) && std::ranges::any_of(run.stages, [](std::string_view stage) {
               return names(stage, "normalize") || names(stage, "to_float");
           });
}

bool collates(const RecordedRun& run) {
    return any(run.batches, [](const BatchDemand& batch) { return batch.collate.ns(); });
}

/// Changes of how a device is fed.
void add_for_device(const RecordedRun& run, const auto& add) {
    if (run.device_buffers == 0)
        return;
    if (run.device_buffers <= loader_limits::most_prefetch_depth && run.copies != Copies::in_order)
        add(Lever::device_prefetch, fmt::format("device_prefetch {} -> {}", run.device_buffers - 1, run.device_buffers))
            .what.device_buffers = run.device_buffers + 1;
    if (makes_floats(run) && !collates(run))
        add(Lever::uint8, "batches of uint8, normalised on the device").what.transfer = 0.25;
    if (run.copies == Copies::pageable)
        add(Lever::pinned, "batches in pinned memory").what.pinned = true;
}

}   // namespace

bool starts_workers(const RecordedRun& run) noexcept {
    return has_worker_processes(run.setting) && !run.persistent_workers;
}

bool says_decode(std::string_view stage) { return names(stage, "decode"); }
bool says_read(std::string_view stage) {
    return names(stage, "read") || names(stage, "fetch") || names(stage, "download");
}

Verdict cause_of(Lever lever, std::string_view stage, const RecordedRun& run, const Traits& traits) {
    if (run.setting.kind == LoaderKind::pytorch && lever == Lever::transfer)
        return Verdict::delivery;
    if (const std::optional<Verdict> always = words_of(lever).verdict)
        return *always;
    switch (lever) {
    case Lever::stage: {
        const auto found = std::ranges::find(run.stages, stage);
        return found == run.stages.end()
                   ? Verdict::transform
                   : cause_of_stage(run, static_cast<std::size_t>(found - run.stages.begin()), traits);
    }
    case Lever::waiting: return cause_of_waiting(run, traits);
    case Lever::more_depth: return traits.bursty_compute ? Verdict::bursty_consumer : Verdict::prefetch_depth;
    case Lever::variance: return traits.bursty_compute ? Verdict::bursty_consumer : Verdict::stragglers;
    default: return cause_of_reads(traits);   // read, more_reads
    }
}

std::optional<LoaderSetting> moved(Lever lever, const LoaderSetting& from) {
    using namespace loader_limits;
    const bool prefetches = from.num_workers > 0;
    LoaderSetting to = from;
    switch (lever) {
    case Lever::fewer_workers: to = from.num_workers >= 2 ? with_workers(from, from.num_workers / 2) : from; break;
    case Lever::out_of_order: to.order = prefetches ? OrderRule::out_of_order() : from.order; break;
    case Lever::more_depth:
        if (prefetches)
            to = with_prefetch(from, from.kind == LoaderKind::pytorch
                                         ? 2 * prefetch_of(from)
                                         : times(from.prefetch_depth, std::size_t{2}, most_prefetch_depth));
        break;
    case Lever::more_reads:
        to.read_concurrency = times(from.read_concurrency, std::size_t{4}, most_read_concurrency);
        break;
    case Lever::more_workers:
        to = with_workers(from, std::max<std::size_t>(1, times(from.num_workers, std::size_t{2}, most_workers)));
        break;
    case Lever::more_memory: to.memory_budget = times(from.memory_budget, std::uint64_t{2}, most_memory_budget); break;
    default: return std::nullopt;
    }
    const bool is_replayed = to.prefetch_depth <= most_depth(to);   // a PyTorch loader may prefetch more
    return to == from || !is_replayed ? std::nullopt : std::optional{to};
}

std::vector<Intervention> unit_interventions(const RecordedRun& run, const Traits& traits) {
    std::vector<Intervention> all;
    const auto add = [&](Lever lever, std::string change, std::string_view stage = {}) -> Intervention& {
        return all.emplace_back(Intervention{.lever = lever,
                                             .stage = std::string{stage},
                                             .change = std::move(change),
                                             .verdict = cause_of(lever, stage, run, traits),
                                             .setting = run.setting,
                                             .what = {},
                                             .gain = {}});
    };
    const bool is_pytorch = run.setting.kind == LoaderKind::pytorch;
    const bool reads_ahead = any(run.samples, [](const SampleDemand& sample) { return sample.read.ns(); });
    for (const LeverWords& words : levers)
        if (const auto to = moved(words.lever, run.setting); to && (words.lever != Lever::more_reads || reads_ahead))
            add(words.lever, words_for(words.lever, run.setting, *to)).setting = *to;
    // Reads ahead do the first stage's work.
    for (std::size_t stage = run.reads_ahead ? 1 : 0; stage < run.stages.size(); ++stage)
        if (sum_of_stage(run, stage).ns() > 0)
            add(Lever::stage, run.stages[stage] + " twice as fast", run.stages[stage]).what.stages[stage] = 0.5;
    if (reads_ahead)
        add(Lever::read, "reads twice as fast").what.read = 0.5;
    if (collates(run))
        add(Lever::collate, "collating twice as fast").what.collate = 0.5;
    add_for_device(run, add);   // before the next: of changes that gain the same, one that can be made is advised
    if (any(run.batches, [](const BatchDemand& batch) { return batch.transfer.ns(); }))
        add(Lever::transfer, is_pytorch ? "batches delivered twice as fast: fewer and larger tensors in each"
                                        : "transfers twice as fast")
            .what.transfer = 0.5;
    if (any(run.steps, [](const StepDemand& step) { return step.device.first_ns + step.device.kernel_wait_ns; }))
        add(Lever::no_sync, "no wait for the device in a step").what.no_sync = true;
    if (takes_part_of_a_pass(run))
        add(Lever::sampler, starts_workers(run) ? "persistent_workers False -> True" : "the sampler twice as fast")
            .what.sampler = starts_workers(run) ? 0 : 0.5;
    add(Lever::compute, "the loop's own step twice as fast").what.compute = 0.5;
    add(Lever::variance, "samples and steps half as uneven").what.variance = 0.5;
    if (any(run.samples, [](const SampleDemand& sample) {
            std::int64_t waits = sample.read.wait_ns;
            for (const Demand& stage : sample.stages)
                waits += stage.wait_ns;
            return waits;
        }))
        add(Lever::waiting,
            waiting_of(run).is_storage() ? "samples wait half as long for storage" : "samples wait half as long")
            .what.waiting = 0.5;
    add(Lever::cores, "no thread waits for a core").what.unlimited_cores = true;
    std::erase_if(all, [&](const Intervention& change) { return !fits_memory(run, change.setting); });
    return all;
}

}   // namespace drawpoint
