#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace drawpoint {

/// Why a training loop waits for data, or why that cannot be said. docs/verdicts.md describes each.
enum class Verdict : std::uint8_t {
    compute_bound,      ///< the loop's own step is the limit
    balanced,           ///< no single change gains
    copy,               ///< the copy of a batch to the device
    delivery,           ///< the batch was there, but the loop resumed late
    warm_up,            ///< steady steps hardly wait; the first ones do
    read_latency,       ///< each read waits long, whatever its size
    read_bandwidth,     ///< the bytes of reads
    decode,             ///< decoding pictures
    transform,          ///< a stage that neither reads nor decodes
    collate,            ///< putting samples together into a batch
    workers,            ///< too few workers
    oversubscription,   ///< too many workers
    prefetch_depth,     ///< too few batches ahead
    memory,             ///< the memory budget
    order,              ///< complete batches wait for older ones
    sampler,            ///< computing the order of samples at the begin of a pass
    stragglers,         ///< few samples that take much longer than the others
    bursty_consumer,    ///< the loop's own time varies much
    launch_bound,       ///< the loop gives a device its work no faster than that is done
    synchronised,       ///< the loop waits for the device in each step
    interference,       ///< no verdict: something outside the run disturbed it
    undecided           ///< no verdict, for another reason
};

/// What one replay changes of a recorded run. The settings come first, the cheapest to adopt first; the others are
/// thought experiments. A sample's *demand* is the time it needs by itself: computing on a core, and waiting off it
/// (asleep, for a read, for a device), but not waiting for a core (`Demand`, recorded_run.hpp).
enum class Lever : std::uint8_t {
    fewer_workers,     ///< half
    out_of_order,      ///< batches are drawn in the order in which they finish
    more_depth,        ///< twice
    device_prefetch,   ///< one more batch ahead on the device
    more_reads,        ///< four times the reads ahead at a time
    more_workers,      ///< twice
    more_memory,       ///< twice the budget
    stage,             ///< one stage twice as fast
    read,              ///< reads ahead twice as fast
    collate,           ///< collating twice as fast
    transfer,          ///< transfers to the device twice as fast
    uint8,             ///< floats become uint8, which the device normalises: a quarter of the bytes
    pinned,            ///< the loop does not wait for copies to the device: from pinned memory
    sampler,           ///< the order of a pass computed twice as fast
    compute,           ///< the loop's own step twice as fast
    no_sync,           ///< the loop does not wait for the device in a step
    variance,          ///< every demand lies half as far from its mean: samples and steps are more even
    waiting,           ///< samples wait half as long off their core, for reads and asleep
    cores,             ///< no thread waits for a core
    delivery           ///< the loop resumes at once
};

/// The words of a lever, and the verdict if it is the one that gains most.
struct LeverWords {
    Lever lever{};
    /// In JSON, and in the files of measured gains that `bench accuracy` compares with. For one stage it is a prefix,
    /// which the stage's name follows.
    std::string_view key;
    /// Empty: it depends on the run. That of `cores` never becomes a run's verdict, because nobody can set the number
    /// of cores.
    std::optional<Verdict> verdict;
    std::string_view option;   ///< of `drawpoint profile`, without the leading dashes; empty: it is no setting
    [[nodiscard]] constexpr bool is_setting() const noexcept { return !option.empty(); }
};

/// All levers, by their value.
inline constexpr std::array<LeverWords, 20> levers{{
    {Lever::fewer_workers, "num_workers/2", Verdict::oversubscription, "num-workers"},
    {Lever::out_of_order, "order", Verdict::order, "order"},
    {Lever::more_depth, "prefetch_depth", {}, "prefetch-depth"},
    {Lever::device_prefetch, "device_prefetch", Verdict::copy, "device-prefetch"},
    {Lever::more_reads, "read_concurrency", {}, "read-concurrency"},
    {Lever::more_workers, "num_workers", Verdict::workers, "num-workers"},
    {Lever::more_memory, "memory_budget", Verdict::memory, "memory-budget"},
    {Lever::stage, "stage:", {}, {}},
    {Lever::read, "read", {}, {}},
    {Lever::collate, "collate", Verdict::collate, {}},
    {Lever::transfer, "transfer", Verdict::copy, {}},
    {Lever::uint8, "uint8", Verdict::copy, {}},
    {Lever::pinned, "pinned", Verdict::copy, {}},
    {Lever::sampler, "sampler", Verdict::sampler, {}},
    {Lever::compute, "compute", Verdict::compute_bound, {}},   // or how that is, on a device
    {Lever::no_sync, "no_sync", Verdict::synchronised, {}},
    {Lever::variance, "variance", {}, {}},
    {Lever::waiting, "waiting", {}, {}},
    {Lever::cores, "cores", Verdict::workers, {}},
    {Lever::delivery, "delivery", Verdict::delivery, {}},
}};

[[nodiscard]] constexpr const LeverWords& words_of(Lever lever) noexcept {
    return levers[static_cast<std::size_t>(lever)];
}

/// The lever of a key as `Intervention::key()` writes it: "num_workers", "stage:decode". nullopt: it is no such key.
[[nodiscard]] std::optional<Lever> lever_of(std::string_view key) noexcept;

/// The verdict's word in reports, JSON and docs: "compute-bound".
[[nodiscard]] std::string_view to_string(Verdict) noexcept;
/// The verdict of a word that to_string() writes. nullopt: it is no such word.
[[nodiscard]] std::optional<Verdict> verdict_of(std::string_view word) noexcept;

}   // namespace drawpoint
