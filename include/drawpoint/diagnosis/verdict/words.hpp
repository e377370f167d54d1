#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace drawpoint {

/// Why a training loop waits for data, or why that cannot be said. docs/verdicts.md describes each.
enum class Verdict : std::uint8_t {
    compute_bound,
    balanced,
    transfer,
    delivery,
    warm_up,
    read_latency,
    read_bandwidth,
    decode,
    transform,
    collate,
    workers,
    oversubscription,
    prefetch_depth,
    memory,
    order,
    stragglers,
    bursty_consumer,
    interference,
    undecided
};

/// What one replay changes of a recorded run. The settings come first, the cheapest to adopt first; the others are
/// experiments of thought.
enum class Lever : std::uint8_t {
    fewer_workers,   ///< half
    out_of_order,
    more_depth,     ///< twice
    more_reads,     ///< four times the reads ahead at a time
    more_workers,   ///< twice
    more_memory,    ///< twice the budget
    stage,          ///< one stage twice as fast
    read,           ///< reads ahead twice as fast
    collate,
    transfer,
    compute,    ///< the loop's own step twice as fast
    variance,   ///< every demand is its mean
    waiting,    ///< no sample waits off its core
    cores,      ///< nobody waits for a core
    delivery    ///< the loop resumes at once
};

/// The words of a lever, and what follows from its being the one that gains most.
struct LeverWords {
    Lever lever{};
    std::string_view key;   ///< in JSON and in the truth of `bench accuracy`; of a stage, the prefix of its name
    std::optional<Verdict> verdict;   ///< empty: it depends on the run
    std::string_view option;          ///< of `drawpoint profile`, without dashes; empty: it is no setting
    [[nodiscard]] constexpr bool is_setting() const noexcept { return !option.empty(); }
};

/// All levers, by their value.
inline constexpr std::array<LeverWords, 15> levers{{
    {Lever::fewer_workers, "num_workers/2", Verdict::oversubscription, "num-workers"},
    {Lever::out_of_order, "order", Verdict::order, "order"},
    {Lever::more_depth, "prefetch_depth", {}, "prefetch-depth"},
    {Lever::more_reads, "read_concurrency", {}, "read-concurrency"},
    {Lever::more_workers, "num_workers", Verdict::workers, "num-workers"},
    {Lever::more_memory, "memory_budget", Verdict::memory, "memory-budget"},
    {Lever::stage, "stage:", {}, {}},
    {Lever::read, "read", {}, {}},
    {Lever::collate, "collate", Verdict::collate, {}},
    {Lever::transfer, "transfer", Verdict::transfer, {}},
    {Lever::compute, "compute", Verdict::compute_bound, {}},
    {Lever::variance, "variance", {}, {}},
    {Lever::waiting, "waiting", {}, {}},
    {Lever::cores, "cores", Verdict::workers, {}},
    {Lever::delivery, "delivery", Verdict::delivery, {}},
}};

[[nodiscard]] constexpr const LeverWords& words_of(Lever lever) noexcept {
    return levers[static_cast<std::size_t>(lever)];
}

/// The lever of a key as `Intervention::key()` writes it: "num_workers", "stage:decode". nullopt: it is none.
[[nodiscard]] std::optional<Lever> lever_of(std::string_view key) noexcept;

/// The verdict's word in reports, JSON and docs: "compute-bound".
[[nodiscard]] std::string_view to_string(Verdict) noexcept;
/// The verdict that to_string() writes so. nullopt: it is none.
[[nodiscard]] std::optional<Verdict> verdict_of(std::string_view word) noexcept;

}   // namespace drawpoint
