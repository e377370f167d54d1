#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <drawpoint/instrumentation/ledger/ledger.hpp>

namespace drawpoint {

/// What else used the machine while a run was recorded, from its `host` rows and its threads' run queues. Averages over
/// the part of a time range that the rows cover, interpolated between rows; where a counter went backwards, the
/// interval is left out. What is not recorded at all is 0 or absent.
struct Interference {
    double cores = 1;       ///< usable: affinity and quota, as recorded
    double own_cores = 0;   ///< kept busy by this process
    /// Kept busy by other processes, on the cores that this process may use; 0 … `cores`, without `steal_cores`. If a
    /// quota grants this process fewer cores than its affinity mask has (2 of 8, say), others may use the difference
    /// (6) without taking anything away: only what they use beyond that counts.
    double foreign_cores = 0;
    /// Standard deviation of `foreign_cores` from host row to host row. The variance that is due only to the kernel's
    /// counting in ticks of 10 ms is subtracted from theirs.
    double foreign_cores_spread = 0;
    double steal_cores = 0;   ///< taken by the hypervisor, at most `cores`
    /// Standard deviation of `steal_cores` from host row to host row, less the variance of counting in whole ticks.
    double steal_cores_spread = 0;
    /// Time for which the cgroup's CPU quota stopped this process, per time: summed over the stopped cores and over the
    /// cgroup and its ancestors, but at most 1.
    double throttled_share = 0;
    /// Part of the workers' time in samples that they waited for a core, over the samples for which it was measured.
    double run_queue_share = 0;
    /// Shares of the time in which some task of the whole system waited for this resource (PSI "some").
    std::optional<double> cpu_pressure, io_pressure, memory_pressure;
    std::optional<double> major_faults_per_s, involuntary_switches_per_s;   ///< of this process
    std::optional<std::uint64_t> resident_peak_bytes;                       ///< the largest of the host rows
    /// Host rows give `own_cores` and `foreign_cores` for at least half of the time. false: these are averages over
    /// less than that, or 0.
    bool measured = false;
};

/// Over [from_ns, to_ns), in the ledger's clock; in an empty range nothing is measured. Sorted ledger. O(host rows +
/// samples). Any thread.
[[nodiscard]] Interference interference(const Ledger&, std::int64_t from_ns, std::int64_t to_ns);

/// Why a run is not trusted. The conditions refer to [from_ns, to_ns) of `trust_of`, except where they say "recording".
enum class DistrustReason : std::uint8_t {
    /// Other processes were measured to keep at least a quarter of the cores busy. (A smaller, steady load is an input
    /// to the replay, no reason for distrust.)
    foreign_load,
    /// The load of other processes in the first half of the range differs from that in the second by at least an eighth
    /// of the cores, and by more than the kernel's ticks explain.
    changing_load,
    /// The load of others was not measured, and workers waited for a core for at least 5 % of their time, although the
    /// loop and the workers of the recording's largest loader are no more threads than cores.
    run_queue,
    throttling,   ///< the CPU quota stopped the process for over 1 % of the time
    steal,        ///< the hypervisor took over a quarter of the cores
    /// The rings of the loop and of the workers together lost over 0.1 % of the recording's steps, batches and samples.
    lost_records,
    residual,   ///< the pieces of a pass of the recording do not sum to its length, or do not tile it
    /// Over 1 % of the passes' time was not marked before what followed it, or stamps were off by as much (`PassRow`).
    misplaced,
    /// From 32 training steps on: of the four quarters by number of steps, the slowest takes longer per step than the
    /// fastest by more than 10 % of the mean plus four standard errors. A step is draw + batch here; first steps of
    /// passes are left out; standard errors come from means of consecutive steps, because neighbours depend on each
    /// other.
    drift,
    clock_went_back,   ///< a step of the recording begins before the one before it ended, or has a negative length
    /// There is no host row for half a second longer than usual, and for three times as long as usual, and a step that
    /// is over ten times the median step fills the gap: the process was stopped, or its clock was set forward.
    stood_still
};
/// "foreign-load", …
[[nodiscard]] std::string_view to_string(DistrustReason) noexcept;
/// Whether something outside the process took time from it: foreign_load, changing_load, run_queue, throttling, steal.
[[nodiscard]] bool is_interference(DistrustReason) noexcept;

/// A reason to distrust a run.
struct Doubt {
    DistrustReason reason{};
    std::string text;   ///< the reason with its numbers, as a sentence
};

/// Whether the figures of a run can be relied on.
struct Trust {
    bool trusted = true;
    double interference_share = 0;   ///< part of the usable cores that other processes used, 0 … 1
    double steal_share = 0;          ///< part of the usable cores that the hypervisor took, 0 … 1
    std::vector<Doubt> reasons;      ///< in the order of DistrustReason; empty when trusted
    [[nodiscard]] std::vector<std::string> texts() const;
};

/// Trusts the run unless a DistrustReason applies over [from_ns, to_ns). Sorted ledger; the Interference must be of the
/// same ledger and range. O(rows). Any thread.
[[nodiscard]] Trust trust_of(const Ledger&, const Interference&, std::int64_t from_ns, std::int64_t to_ns);

}   // namespace drawpoint
