#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <drawpoint/instrumentation/ledger/ledger.hpp>

namespace drawpoint {

/// What else used the machine while a run was recorded, from its `host` rows and its threads' run queues. Averages over
/// the part of the time range that the rows cover, interpolated between rows; where a counter went backwards, the
/// interval is left out.
struct Interference {
    double cores = 1;       ///< usable: affinity and quota, as recorded
    double own_cores = 0;   ///< kept busy by this process
    /// Of `cores`: kept busy by others. If a quota grants fewer cores than the affinity mask has, others may use the
    /// rest: only what they use beyond it counts.
    double foreign_cores = 0;
    /// Standard deviation over the host rows, minus what the 10 ms tick alone explains.
    double foreign_cores_spread = 0;
    double steal_cores = 0;   ///< taken by the hypervisor
    /// Share of the time for which the cgroup's quota stopped the process, summed over the stopped cores; at most 1.
    double throttled_share = 0;
    double run_queue_share = 0;   ///< of the workers' time in samples, where it was measured: waiting for a core
    std::optional<double> cpu_pressure, io_pressure, memory_pressure;   ///< shares of the time, PSI "some"
    std::optional<double> major_faults_per_s, involuntary_switches_per_s;
    std::optional<std::uint64_t> resident_peak_bytes;
    bool measured = false;   ///< host rows give `own_cores` and `foreign_cores` for at least half of the time
};

/// Over [from_ns, to_ns). Sorted ledger. O(host rows + samples). Any thread.
[[nodiscard]] Interference interference(const Ledger&, std::int64_t from_ns, std::int64_t to_ns);

/// Why a run is not trusted.
enum class DistrustReason : std::uint8_t {
    foreign_load,
    changing_load,
    run_queue,
    throttling,
    steal,
    lost_records,
    residual,
    drift,
    clock_went_back,
    stood_still
};
/// "foreign-load", …
[[nodiscard]] std::string_view to_string(DistrustReason) noexcept;
/// Whether the reason lies outside the process: on an otherwise idle machine it would not occur.
[[nodiscard]] bool is_interference(DistrustReason) noexcept;

/// A reason with its numbers, as a sentence.
struct Doubt {
    DistrustReason reason{};
    std::string text;
};

/// Whether the figures of a run can be relied on.
struct Trust {
    bool trusted = true;
    double interference_share = 0;   ///< of the usable cores: used by others
    double steal_share = 0;          ///< of the usable cores: taken by the hypervisor
    std::vector<Doubt> reasons;      ///< empty when trusted
    [[nodiscard]] std::vector<std::string> texts() const;
};

/// Does not trust the run if, over [from_ns, to_ns) of a sorted ledger,
/// * others kept at least half a core busy, or a quarter of a core more in one half of the time than in the other and
///   more than the tick explains (less load that is steady and measured is an input to the replay);
/// * the load was not measured, and workers waited for a core for 5 % of their time although there were no more threads
///   than cores;
/// * the quota stopped the process for over 1 % of the time, or a hypervisor took over 2 % of the cores;
/// * steps drifted: the means of draw + batch of the training steps in its four quarters differ by more than 10 % plus
///   four standard errors (of means of consecutive steps, because neighbouring steps depend on each other; first steps
///   of passes are left out); from 32 steps on;
/// * the clock stepped or the process was stopped: timestamps go backwards, or one step fills a gap between host rows;
/// * the ring of the loop or of a worker lost more than 0.1 % of the records, or pieces do not sum to the steps.
/// O(rows). Any thread.
[[nodiscard]] Trust trust_of(const Ledger&, const Interference&, std::int64_t from_ns, std::int64_t to_ns);

}   // namespace drawpoint
