#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <drawpoint/instrumentation/ledger/ledger.hpp>

namespace drawpoint {

/// What else used the machine while a run was recorded, from its `host` rows and its threads' run queues. Averages over
/// the time asked for that the rows cover, between rows by interpolation; a counter that went back is left out there.
struct Interference {
    double cores = 1;       ///< usable: affinity and quota, as the recording says
    double own_cores = 0;   ///< that this process kept busy
    /// Of `cores`, that others kept busy; where a quota grants less than the affinity mask has, only what is beyond the rest.
    double foreign_cores = 0;
    double foreign_cores_spread = 0;   ///< standard deviation over the host rows, less what a 10 ms tick alone explains
    double steal_cores = 0;            ///< that the hypervisor took
    double throttled_share = 0;   ///< of the time, by the cgroup's quota; summed over the cores it stopped, at most 1
    double run_queue_share = 0;   ///< of the workers' time in samples where it was measured
    std::optional<double> cpu_pressure, io_pressure, memory_pressure;   ///< shares of time, PSI "some"
    std::optional<double> major_faults_per_s, involuntary_switches_per_s;
    std::optional<std::uint64_t> resident_peak_bytes;
    bool measured = false;   ///< host rows tell `own_cores` and `foreign_cores`, over half of the time or more
};

/// Over [from_ns, to_ns). Sorted ledger. O(host rows + samples). Any thread.
[[nodiscard]] Interference interference(const Ledger&, std::int64_t from_ns, std::int64_t to_ns);

/// Why a run is not to be trusted.
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
/// Whether it lies outside the process: with nothing else on the machine the run would be trusted.
[[nodiscard]] bool is_interference(DistrustReason) noexcept;

/// A reason with its numbers, as a sentence.
struct Doubt {
    DistrustReason reason{};
    std::string text;
};

/// Whether figures of this run mean what they say.
struct Trust {
    bool trusted = true;
    double interference_share = 0;   ///< of the usable cores, taken by others
    double steal_share = 0;
    std::vector<Doubt> reasons;   ///< empty when trusted
    [[nodiscard]] std::vector<std::string> texts() const;
};

/// Says no where, over [from_ns, to_ns) of a sorted ledger,
/// * others kept half a core or more busy, or the two halves differ by more than a quarter and by more than ticks explain:
///   less that is steady and measured is an input to the replay;
/// * it was not measured, and workers waited 5 % of their time for a core although there were fewer threads than cores;
/// * the quota stopped the process for 1 % of the time, or a hypervisor took 2 % of the cores;
/// * steps drifted: means of training steps' draw + batch in its four quarters differ by more than 10 % and than four
///   standard errors (of means of consecutive steps, so that a rhythm of the loader is no noise; first steps of passes are
///   left out); from 32 steps on;
/// * the clock stepped or the process was stopped: stamps go back, or one step fills a gap between host rows;
/// * a ring of the loop's or a worker's lost more than 0.1 % of the records, or pieces do not sum to the steps.
/// O(rows). Any thread.
[[nodiscard]] Trust trust_of(const Ledger&, const Interference&, std::int64_t from_ns, std::int64_t to_ns);

}   // namespace drawpoint
