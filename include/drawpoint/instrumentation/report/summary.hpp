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

/// Where a run took place.
struct Machine {
    std::string cpu, kernel, compiler;
    std::optional<std::int64_t> cores_usable;                     ///< under affinity and cgroup
    std::vector<std::pair<std::string, std::string>> libraries;   ///< name and version
    bool operator==(const Machine&) const = default;
};

/// One row: an action of a phase, over the calls that count.
struct SummaryRow {
    std::string_view phase;   ///< "fit", "train" or "valid"
    Action action{};
    std::size_t calls = 0;
    double mean_s = 0, std_s = 0, median_s = 0, p90_s = 0, p99_s = 0, total_s = 0;   ///< std: of the population
    std::optional<double> share_of_total;                                            ///< of the wall
    std::optional<double> samples_per_s;   ///< mean of the batches' rates; of draw: what drawing costs, never above 0
    bool operator==(const SummaryRow&) const = default;
};

/// A stage of the loaders, over the samples recorded; those of a run are calls of equal length. `collate`: over the batches.
struct StageSummary {
    std::string stage;
    std::size_t calls = 0;
    double mean_s = 0, median_s = 0, p90_s = 0, p99_s = 0, total_s = 0;
    /// Of total_s, what its threads spent computing, if that is known of at least a tenth of the calls: the share it was of
    /// those, times total_s.
    std::optional<double> cpu_s;
    std::optional<double> run_queue_s;   ///< the same of waiting for a core, which takes pipelines of this one stage
    std::uint64_t bytes = 0, failures = 0;   ///< read from storage (counted at a pipeline's first stage)
    bool operator==(const StageSummary&) const = default;
};

struct WorkerSummary {
    std::uint32_t worker = 0;
    /// Of the wall. Where records of samples are missing, as if they were like the others; collating counts, as it is.
    double busy_share = 0;
    std::uint64_t samples = 0;   ///< recorded
    bool operator==(const WorkerSummary&) const = default;
};

struct ErrorSummary {
    std::uint64_t index = 0;
    std::string path, stage, message;
    bool operator==(const ErrorSummary&) const = default;
};

/// What steady training draws waited for: one row a cause.
struct BlameSummary {
    std::string cause;   ///< a stage's name, or "prefetch_depth", "order" …
    double total_s = 0;
    std::optional<double> share;   ///< of the steady draws
    bool operator==(const BlameSummary&) const = default;
};

/// Whether these numbers mean what they say.
struct TrustSummary {
    bool trusted = true;
    double interference_share = 0,
           steal_share = 0;             ///< of the usable cores: taken by other processes, by a hypervisor
    std::vector<std::string> reasons;   ///< not to trust them
    bool operator==(const TrustSummary&) const = default;
};

/// Everything drawpoint's own report says, computed from a ledger and nothing else. Absent: unknown. Times in seconds.
/// `blame` and `trust` are for the caller to fill in: a diagnosis knows them.
struct Summary {
    struct Run {
        std::uint32_t batch_size = 0, num_workers = 0, prefetch_depth = 0;
        std::size_t epochs = 0, steps = 0;   ///< of all phases, whole or not
        std::uint64_t samples = 0;           ///< drawn
        double wall_s = 0;                   ///< of the fits; without a fit, of the outermost passes
        bool ended = true;                   ///< false: the recording stops inside
        std::string order = "in";            ///< or "out", or how many younger batches may overtake one
        std::optional<std::string> stopped, digest;
        std::optional<std::string> version, clock;
        std::vector<std::pair<std::string, std::string>> options;
        bool operator==(const Run&) const = default;
    } run;
    /// fit, train, valid; each in the order of `Action`. The row `between` of fit is the time around the passes' steps.
    std::vector<SummaryRow> rows;

    /// Where the counted draws of both phases went; the four add up to the rows `draw`.
    struct Draw {
        double callbacks_s = 0, starved_s = 0, handoff_s = 0, transfer_s = 0;
        /// Of starved_s: while a complete batch of the pass waited behind an older one. 0 where batches come as they are
        /// finished.
        double order_s = 0;
        std::optional<double> order_share;   ///< of the wall
        bool operator==(const Draw&) const = default;
    } draw;
    std::optional<std::vector<BlameSummary>> blame;   ///< largest first
    std::vector<StageSummary> stages;
    std::vector<WorkerSummary> workers;

    /// Finished batches waiting to be drawn, of the first loader, over its passes; where steps were folded, from then on.
    struct Queue {
        double mean_ready = 0;   ///< batches, averaged over time
        double occupancy = 0;    ///< share of the time with at least one: 1 - empty_share
        double empty_share = 0;
        bool operator==(const Queue&) const = default;
    };
    std::optional<Queue> queue;

    struct Memory {
        std::optional<std::int64_t> planned_bytes, loader_peak_bytes, slots_bytes, peak_bytes, slots_replaced;
        std::optional<double> allocations_per_batch, minor_faults_per_batch;
        bool operator==(const Memory&) const = default;
    } memory;

    /// A cache of samples, of both loaders together; absent: there is none.
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

    /// Reads ahead of the workers, over the samples recorded one by one; absent: there were none, and nothing was repeated.
    struct Reading {
        std::optional<double> ahead_share;   ///< of the samples
        double mean_s = 0;                   ///< of a read ahead
        std::optional<double>
            mean_in_flight;         ///< reads ahead at a time, from the first one's begin to the last one's end
        std::int64_t retries = 0;   ///< reads repeated
        bool operator==(const Reading&) const = default;
    };
    std::optional<Reading> reading;

    struct Conservation {
        std::size_t steps = 0;   ///< all, none dropped
        std::int64_t max_residual_ns = 0;
        std::optional<double> other_share_of_batch;
        bool operator==(const Conservation&) const = default;
    } conservation;

    /// Over all draws, none dropped.
    struct Headroom {
        double draw_s = 0;
        std::optional<double> draw_share;                          ///< of the wall
        std::optional<double> throughput_gain_if_draw_were_zero;   ///< wall / (wall - draw) - 1
        bool operator==(const Headroom&) const = default;
    } headroom;

    /// What the ledger cannot know of its own file (`file`, `bytes`, `error`) is for the caller to fill in.
    struct Recording {
        std::string file;   ///< empty: none
        std::optional<std::int64_t> bytes, events;
        std::uint64_t dropped = 0;
        std::uint32_t thinned_to = 1;
        std::optional<double> ns_per_event, share_of_cpu;
        std::optional<std::string> error;               ///< why the file ends early
        std::optional<double> percentile_error_share;   ///< of medians and percentiles; absent: they are exact
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

    /// Steps that the rows leave out.
    struct LeftOut {
        std::size_t first_batches = 0;   ///< the first of a phase, if asked for and if it is not the only one
        double first_draws_s = 0;        ///< the draws of those
        std::size_t failed = 0, not_drawn = 0;
        bool operator==(const LeftOut&) const = default;
    } left_out;

    bool operator==(const Summary&) const = default;
};

struct SummaryOptions {
    bool drop_first_batch = true;   ///< leaves the first batch of each phase out of its rows
};
static_assert(std::is_trivially_destructible_v<SummaryOptions>);

/// Computes the report of a sorted ledger. A step counts in its phase's rows when it was drawn and left neither by a cancel
/// of a higher level nor by an exception. Sums are exact in nanoseconds: draw + batch = step, and forward (or predict) + loss
/// + backward + opt_step + zero_grad + callbacks + other = batch. Folded steps and samples count as if
/// they were there: only quantiles, then within 1 %, and `queue` differ from those of the whole ledger. A few passes over
/// the ledger and one sort. Any thread.
[[nodiscard]] Summary summarize(const Ledger&, SummaryOptions = {});

}   // namespace drawpoint
