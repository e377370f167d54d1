#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <drawpoint/instrumentation/event.hpp>

namespace drawpoint {

struct Ledger;

/// The machine and software that a run used.
struct Machine {
    std::string cpu, kernel, compiler;
    std::optional<std::int64_t> cores_usable;                     ///< by affinity and cgroup
    std::vector<std::pair<std::string, std::string>> libraries;   ///< name and version
    bool operator==(const Machine&) const = default;
};

/// One row: statistics of an action of a phase, over the calls that count.
struct SummaryRow {
    std::string_view phase;   ///< "fit", "train" or "valid"
    Action action{};
    std::size_t calls = 0;
    double mean_s = 0, std_s = 0, median_s = 0, p90_s = 0, p99_s = 0, total_s = 0;   ///< std: of the population
    std::optional<double> share_of_total;                                            ///< share of the wall time
    std::optional<double> samples_per_s;   ///< mean of the batches' rates; for draw: the loss by drawing, at most 0
    bool operator==(const SummaryRow&) const = default;
};

/// A stage of the loaders, over the recorded samples; samples made in one go count as calls of equal duration. For
/// `collate`: over the batches.
struct StageSummary {
    std::string stage;
    std::size_t calls = 0;
    double mean_s = 0, median_s = 0, p90_s = 0, p99_s = 0, total_s = 0;
    /// The part of total_s that was CPU time, extrapolated from the calls for which it is known; absent if those are
    /// less than a tenth.
    std::optional<double> cpu_s;
    std::optional<double> run_queue_s;       ///< same for waiting for a core; only if its pipelines have no other stage
    std::uint64_t bytes = 0, failures = 0;   ///< bytes read from storage, counted at a pipeline's first stage
    bool operator==(const StageSummary&) const = default;
};

struct WorkerSummary {
    std::uint32_t worker = 0;
    /// Share of the wall time. Samples without a record are assumed to be like the others; collating is included.
    double busy_share = 0;
    std::uint64_t samples = 0;   ///< recorded ones
    bool operator==(const WorkerSummary&) const = default;
};

struct ErrorSummary {
    std::uint64_t index = 0;
    std::string path, stage, message;
    bool operator==(const ErrorSummary&) const = default;
};

/// What the draws of steady training waited for: one row per cause.
struct BlameSummary {
    std::string cause;   ///< a stage's name, or "prefetch_depth", "order" …
    double total_s = 0;
    std::optional<double> share;   ///< share of the steady draws' time
    bool operator==(const BlameSummary&) const = default;
};

/// Whether the measured numbers can be trusted.
struct TrustSummary {
    bool trusted = true;
    double interference_share = 0,
           steal_share = 0;             ///< shares of the usable cores taken by other processes, by the hypervisor
    std::vector<std::string> reasons;   ///< why not
    bool operator==(const TrustSummary&) const = default;
};

/// The contents of drawpoint's own report, computed from a ledger only. Absent values are unknown. Times are seconds.
/// The caller fills in `blame` and `trust` from a diagnosis.
struct Summary {
    struct Run {
        std::uint32_t batch_size = 0, num_workers = 0, prefetch_depth = 0;
        std::size_t epochs = 0, steps = 0;   ///< of all phases, including incomplete ones
        std::uint64_t samples = 0;           ///< drawn samples
        double wall_s = 0;                   ///< time of the fits, or without a fit of the outermost passes
        bool ended = true;                   ///< false: the recording stops before the run's end
        std::string order = "in";            ///< or "out", or how many younger batches may overtake one
        std::optional<std::string> stopped, digest;
        std::optional<std::string> version, clock;
        std::vector<std::pair<std::string, std::string>> options;
        bool operator==(const Run&) const = default;
    } run;
    /// fit, train, valid; each in the order of `Action`. The row `between` of fit is the passes' time outside of steps.
    std::vector<SummaryRow> rows;

    /// The parts of the counted draws of both phases; the first four add up to the rows `draw`.
    struct Draw {
        double callbacks_s = 0, starved_s = 0, handoff_s = 0, transfer_s = 0;
        /// The part of starved_s during which a complete batch of the pass waited behind an older one. 0 if batches are
        /// delivered as they are finished.
        double order_s = 0;
        std::optional<double> order_share;   ///< share of the wall time
        bool operator==(const Draw&) const = default;
    } draw;
    std::optional<std::vector<BlameSummary>> blame;   ///< largest first
    std::vector<StageSummary> stages;
    std::vector<WorkerSummary> workers;

    /// Finished batches of the first loader that wait to be drawn, during its passes; excludes the time of folded
    /// steps.
    struct Queue {
        double mean_ready = 0;   ///< number of batches, averaged over time
        double occupancy = 0;    ///< share of the time with at least one batch: 1 - empty_share
        double empty_share = 0;
        bool operator==(const Queue&) const = default;
    };
    std::optional<Queue> queue;

    struct Memory {
        std::optional<std::int64_t> planned_bytes, loader_peak_bytes, slots_bytes, peak_bytes, slots_replaced;
        std::optional<double> allocations_per_batch, minor_faults_per_batch;
        bool operator==(const Memory&) const = default;
    } memory;

    /// The caches of samples of both loaders together; absent if there is none.
    struct Cache {
        std::int64_t hits = 0, misses = 0, samples = 0, bytes = 0, budget_bytes = 0;
        std::string origin;
        [[nodiscard]] std::optional<double> hit_share() const noexcept {   ///< absent before the first sample
            return hits + misses > 0 ? std::optional{static_cast<double>(hits) / static_cast<double>(hits + misses)}
                                     : std::nullopt;
        }
        bool operator==(const Cache&) const = default;
    };
    std::optional<Cache> cache;

    /// Reads ahead of the workers, over the samples recorded one by one; absent without reads ahead and repeated reads.
    struct Reading {
        std::optional<double> ahead_share;   ///< share of the samples that were read ahead
        double mean_s = 0;                   ///< mean duration of a read ahead
        /// Mean number of concurrent reads ahead, from the start of the first to the end of the last.
        std::optional<double> mean_in_flight;
        std::int64_t retries = 0;   ///< repeated reads
        bool operator==(const Reading&) const = default;
    };
    std::optional<Reading> reading;

    struct Conservation {
        std::size_t steps = 0;   ///< all steps, none dropped
        std::int64_t max_residual_ns = 0;
        std::optional<double> other_share_of_batch;
        bool operator==(const Conservation&) const = default;
    } conservation;

    /// Over all draws, none dropped.
    struct Headroom {
        double draw_s = 0;
        std::optional<double> draw_share;                          ///< share of the wall time
        std::optional<double> throughput_gain_if_draw_were_zero;   ///< wall / (wall - draw) - 1
        bool operator==(const Headroom&) const = default;
    } headroom;

    /// The caller fills in `file`, `bytes` and `error`, which the ledger does not know.
    struct Recording {
        std::string file;   ///< empty: none
        std::optional<std::int64_t> bytes, events;
        std::uint64_t dropped = 0;
        std::uint32_t thinned_to = 1;
        std::optional<double> ns_per_event, share_of_cpu;
        std::optional<std::string> error;               ///< why the file ends early
        std::optional<double> percentile_error_share;   ///< relative error of medians and percentiles; absent: exact
        bool operator==(const Recording&) const = default;
    } recording;

    struct Model {
        std::optional<double> loss_first, loss_last;   ///< of the first and the last training step
        std::optional<double> accuracy;
        bool operator==(const Model&) const = default;
    } model;
    std::vector<ErrorSummary> errors;
    std::optional<TrustSummary> trust;
    Machine machine;

    /// Steps that are not in the rows.
    struct LeftOut {
        std::size_t first_batches = 0;   ///< first batches of a phase, if the options say so and it is not the only one
        double first_draws_s = 0;        ///< time of their draws
        std::size_t failed = 0, not_drawn = 0;
        bool operator==(const LeftOut&) const = default;
    } left_out;

    bool operator==(const Summary&) const = default;
};

struct SummaryOptions {
    bool drop_first_batch = true;   ///< leaves the first batch of each phase out of its rows
};
static_assert(std::is_trivially_destructible_v<SummaryOptions>);

/// Computes the report of a sorted ledger. A step counts in its phase's rows if it was drawn and ended neither by a
/// cancel of a higher level nor by an exception. Sums are exact in nanoseconds: draw + batch = step, and forward (or
/// predict) + loss + backward + opt_step + zero_grad + callbacks + other = batch. Folded steps and samples are
/// included; they change only `queue` and, by at most 1 %, the quantiles. Takes a few passes over the ledger and one
/// sort. Any thread.
[[nodiscard]] Summary summarize(const Ledger&, SummaryOptions = {});

}   // namespace drawpoint
