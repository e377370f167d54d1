#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
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
    /// Whole cores that affinity and cgroup allow, as the program recorded them (`facts::machine_cores`).
    std::optional<std::int64_t> cores_usable;
    std::vector<std::pair<std::string, std::string>> libraries;   ///< name and version
    bool operator==(const Machine&) const = default;
};

/// One row: statistics of an action of a phase, over the calls that count (see `summarize`).
struct SummaryRow {
    std::string_view phase;   ///< "fit", "train" or "valid"; static storage
    Action action{};
    std::size_t calls = 0;
    double mean_s = 0, std_s = 0, median_s = 0, p90_s = 0, p99_s = 0, total_s = 0;   ///< std: of the population
    std::optional<double> share_of_total;                                            ///< share of `Run::wall_s`
    /// The mean over the steps of (samples of the batch / duration of the action). For `draw` it is what drawing costs:
    /// the mean of (rate of the step - rate of the batch), never above 0. For the passes `train` and `valid`: the mean
    /// rate of all their counted steps, with the first batch. Absent for other actions, or if not finite.
    std::optional<double> samples_per_s;
    bool operator==(const SummaryRow&) const = default;
};

/// A stage of the loaders, over the recorded samples. Stages with the same name in several loaders are merged. If one
/// call made several samples, each counts as a call with an equal part of its duration. For `collate`: over the
/// batches.
struct StageSummary {
    std::string stage;
    std::size_t calls = 0;
    double mean_s = 0, median_s = 0, p90_s = 0, p99_s = 0, total_s = 0;
    /// The part of total_s that was CPU time, extrapolated from the calls for which it is known; absent if those are
    /// less than a tenth of `calls`.
    std::optional<double> cpu_s;
    /// The same for waiting for a core; also absent unless the stage is the only one of its loaders.
    std::optional<double> run_queue_s;
    std::uint64_t bytes = 0, failures = 0;   ///< read from storage (counted at a loader's first stage); failed samples
    bool operator==(const StageSummary&) const = default;
};

struct WorkerSummary {
    std::uint32_t worker = 0;   ///< counted over all loaders, from 0
    /// Share of the wall time that it spent making samples and collating. Samples without a record (thinned or lost)
    /// are assumed to have taken as long as the recorded ones.
    double busy_share = 0;
    std::uint64_t samples = 0;   ///< recorded ones
    bool operator==(const WorkerSummary&) const = default;
};

/// A sample that could not be loaded; members as in `FailureRow`.
struct ErrorSummary {
    std::uint64_t index = 0;
    std::string path, stage, message;
    std::string handling;   ///< "skip" or "substitute" (`facts::on_error_prefix`); empty: its batch was not drawn
    bool operator==(const ErrorSummary&) const = default;
};

/// What the steady training draws waited for, one row per cause. A draw is steady if it is neither in the warm-up nor
/// among the first of a pass (diagnosis/blame/blame.hpp).
struct BlameSummary {
    std::string cause;   ///< a stage's name, "prefetch_depth", "order" …: docs/verdicts.md lists them
    double total_s = 0;
    std::optional<double> share;   ///< share of the steady draws' time
    bool operator==(const BlameSummary&) const = default;
};

/// Whether the measured numbers can be trusted. `interference_share` and `steal_share` are the shares of the usable
/// cores that other processes and the hypervisor took.
struct TrustSummary {
    bool trusted = true;
    double interference_share = 0, steal_share = 0;
    std::vector<std::string> reasons;   ///< sentences that say why not; empty if trusted
    bool operator==(const TrustSummary&) const = default;
};

/// The contents of drawpoint's own report, computed from a ledger only. Absent values are unknown. Times are seconds,
/// shares are 0 … 1. The caller fills in `blame` and `trust` from a diagnosis.
struct Summary {
    struct Run {
        /// The setting that the first loader (`Ledger::pipelines`) was made with, its depth as reduced by a memory
        /// budget. Changes during the run (`Ledger::settings`) do not show here. 0 without a loader.
        std::uint32_t batch_size = 0, num_workers = 0, prefetch_depth = 0;
        std::size_t epochs = 0, steps = 0;   ///< begun; steps of both phases, including incomplete ones
        std::uint64_t samples = 0;           ///< in the batches drawn
        double wall_s = 0;          ///< total time of the outermost passes, which are the fits where there are any
        bool ended = true;          ///< false: the recording stops inside a pass
        std::string order = "in";   ///< or "out", or how many younger batches may overtake one
        /// Why the run ended early (absent: it did not, or nobody said), and 16 hex digits that depend on the indices
        /// and targets trained on and their order.
        std::optional<std::string> stopped, digest;
        /// drawpoint's version, and the name of the clock that all times were read from (`AnyClock::name`).
        std::optional<std::string> version, clock;
        std::vector<std::pair<std::string, std::string>> options;   ///< `facts::option_prefix`: name and value
        /// Of both phases, over the wall time. Absent: it is 0.
        [[nodiscard]] std::optional<double> samples_per_s() const {
            return wall_s > 0 ? std::optional{static_cast<double>(samples) / wall_s} : std::nullopt;
        }
        bool operator==(const Run&) const = default;
    } run;
    /// fit, train, valid; each in the order of `Action`. An action without calls has no row. The row `between` of fit
    /// is the passes' time outside of steps.
    std::vector<SummaryRow> rows;

    /// The parts of the draws in the rows, of both phases together; the first four add up to the rows `draw`.
    struct Draw {
        double callbacks_s = 0, starved_s = 0, handoff_s = 0, transfer_s = 0;   ///< as in `Span`
        /// The part of starved_s during which a complete batch of the pass waited behind an older one. 0 if batches are
        /// delivered as they are finished.
        double order_s = 0;
        std::optional<double> order_share;   ///< share of the wall time
        bool operator==(const Draw&) const = default;
    } draw;
    /// How long the draws of the phase `phase` took: training, or without training steps validation. Of the steps in
    /// the rows, folded ones excepted.
    struct Draws {
        static constexpr int bins_a_decade = 6, shortest_bin = 2 * bins_a_decade;   // of 100 ns
        std::string_view phase;
        std::vector<double> over_run_s;   ///< means of at most 40 equal parts of the steps, in their order
        /// `counts[i]` draws took from 10^((first_bin + i) / 6) ns up to where the next bin begins; the first bin there
        /// can be, that of 100 ns, has all shorter ones, too. Neither first nor last is 0.
        int first_bin = 0;
        std::vector<std::uint64_t> counts;
        /// Where bin `first_bin + i` begins, in seconds: that of 100 ns at 0.
        [[nodiscard]] double begin_s(std::size_t i) const noexcept {
            const int bin = first_bin + static_cast<int>(i);
            return bin <= shortest_bin ? 0 : std::pow(10.0, static_cast<double>(bin) / bins_a_decade) / 1e9;
        }
        [[nodiscard]] std::uint64_t all() const noexcept {   ///< the sum of `counts`
            return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
        }
        bool operator==(const Draws&) const = default;
    };
    std::optional<Draws> draws;                       ///< absent without such steps
    std::optional<std::vector<BlameSummary>> blame;   ///< largest first
    /// What a device did in the steps that were timed there (DeviceStepRow): all, or some chosen at random. Absent
    /// without such steps. Shares are of `time_s`.
    struct Device {
        std::string name;   ///< "cuda:0"; empty: not known
        std::uint64_t steps = 0;
        double time_s = 0;   ///< dry + copy_wait + span; dry: it had nothing to do; copy_wait: waiting for a copy
        double dry_s = 0, copy_wait_s = 0, span_s = 0;
        /// Of dry_s, that during which the loop drew; worked in a step; was between steps, or outside them; had given
        /// its command, which had not arrived.
        double exposed_s = 0, step_s = 0, between_s = 0, launch_s = 0;
        /// Of exposed_s: as `Draw`.
        double starved_s = 0, handoff_s = 0, transfer_s = 0, callbacks_s = 0;
        double hidden_s = 0;                          ///< of the steps' draws, that during which the device had work
        double mean_lag_s = 0;                        ///< by which the device was behind the loop at a step's end
        double mean_forward_lag_s = 0;                ///< likewise where its loss was computed
        double uncertainty_s = 0;                     ///< `DeviceTotals::uncertainty_ns`
        std::uint64_t copies = 0, copied_bytes = 0;   ///< those timed
        double copy_s = 0;                            ///< total of these copies
        /// Whether the device keeps up with the loop: then the loop's thread is what it waits for. Either it gives the
        /// device many small kernels, no faster than they are done, or it waits for the device in each step.
        [[nodiscard]] bool is_paced_by_loop() const noexcept;
        /// Whether it is the latter: the device was behind in the middle of the step, but not at its end.
        [[nodiscard]] bool is_synchronised() const noexcept;
        bool operator==(const Device&) const = default;
    };
    std::optional<Device> device;
    std::vector<StageSummary> stages;     ///< in the loaders' order
    std::vector<WorkerSummary> workers;   ///< by number

    /// Finished batches of the first loader that wait to be drawn, over the time of the training passes (without any,
    /// of the validation passes) after the folded steps. Absent if the ledger has no batch of that loader or no such
    /// pass.
    struct Queue {
        double mean_ready = 0;   ///< number of batches, averaged over time
        double occupancy = 0;    ///< share of the time with at least one batch: 1 - empty_share
        double empty_share = 0;
        bool operator==(const Queue&) const = default;
    };
    std::optional<Queue> queue;

    /// The facts `memory.…`, as the program that trained recorded them; facts.hpp says what each one measures.
    struct Memory {
        std::optional<std::int64_t> planned_bytes, loader_peak_bytes, slots_bytes, peak_bytes, slots_replaced;
        std::optional<double> allocations_per_batch, minor_faults_per_batch;
        bool operator==(const Memory&) const = default;
    } memory;

    /// The caches of decoded samples of all loaders together; absent if there is none. `hits` and `misses` count
    /// look-ups over the whole run; `samples` and `bytes` are what they held at its end.
    struct Cache {
        std::int64_t hits = 0, misses = 0, samples = 0, bytes = 0, budget_bytes = 0;
        std::string origin;   ///< "memory", or the cache's file and what was in it
        [[nodiscard]] std::optional<double> hit_share() const noexcept {   ///< absent before the first sample
            return hits + misses > 0 ? std::optional{static_cast<double>(hits) / static_cast<double>(hits + misses)}
                                     : std::nullopt;
        }
        bool operator==(const Cache&) const = default;
    };
    std::optional<Cache> cache;

    /// Reads ahead of the workers, over the samples that the ledger has rows of (without folded ones). Absent if
    /// nothing was read ahead and no read was repeated.
    struct Reading {
        std::optional<double> ahead_share;   ///< share of the samples that were read ahead
        double mean_s = 0;                   ///< mean duration of a read ahead
        /// Mean number of concurrent reads ahead, from the start of the first to the end of the last.
        std::optional<double> mean_in_flight;
        std::int64_t retries = 0;   ///< repeated reads, over the whole run
        bool operator==(const Reading&) const = default;
    };
    std::optional<Reading> reading;

    /// Whether the recorded pieces add up to the measured time. Over all steps, also those left out of the rows.
    struct Conservation {
        std::size_t steps = 0;
        std::int64_t max_residual_ns = 0;   ///< `drawpoint::max_residual_ns`: 0 unless a piece is missing
        std::int64_t untiled_ns = 0;        ///< `drawpoint::untiled_ns`
        std::int64_t unmarked_ns = 0, clamped_ns = 0, ahead_ns = 0;   ///< sums of the columns of `PassRow`
        std::optional<double> other_share_of_batch;   ///< share of the batches' time that belongs to no action
        bool operator==(const Conservation&) const = default;
    } conservation;

    /// What would be gained if draws took no time. A loader that shares cores with the loop can gain more by using less
    /// CPU. Over all draws, also those left out of the rows and those that found the end of the data.
    struct Headroom {
        double draw_s = 0;                  ///< total
        std::optional<double> draw_share;   ///< share of the wall time
        /// wall / (wall - draw) - 1; with a `device`, whose time is divided exactly, of that:
        /// time_s / (time_s - exposed_s - copy_wait_s) - 1.
        std::optional<double> throughput_gain_if_draw_were_zero;
        bool operator==(const Headroom&) const = default;
    } headroom;

    /// What recording cost and lost. The caller fills in `file`, `bytes` and `error`, which the ledger does not know.
    struct Recording {
        std::string file;                                   ///< empty: none
        std::optional<std::int64_t> bytes, events;          ///< size of the file; `facts::recording_events`
        std::uint64_t dropped = 0;                          ///< records lost (`Ledger::dropped_records`)
        std::uint32_t thinned_to = 1;                       ///< n: samples are kept of every n-th batch only
        std::optional<double> ns_per_event, share_of_cpu;   ///< the facts of these names
        std::optional<std::string> error;                   ///< why the file ends early
        std::optional<double> percentile_error_share;   ///< relative error of medians and percentiles; absent: exact
        bool operator==(const Recording&) const = default;
    } recording;

    struct Model {
        std::optional<double> loss_first, loss_last;   ///< of the first and the last training step that has one
        std::optional<double> accuracy;                ///< `facts::accuracy`
        bool operator==(const Model&) const = default;
    } model;
    std::vector<ErrorSummary> errors;
    std::optional<TrustSummary> trust;
    Machine machine;

    /// Steps that are not in the rows.
    struct LeftOut {
        std::size_t first_batches = 0;   ///< 0 … 2, see `SummaryOptions::drop_first_batch`
        double first_draws_s = 0;        ///< time of their draws
        /// Steps that an exception other than a cancel ended; steps cancelled before they drew a batch.
        std::size_t failed = 0, not_drawn = 0;
        bool operator==(const LeftOut&) const = default;
    } left_out;

    bool operator==(const Summary&) const = default;
};

struct SummaryOptions {
    /// Leaves the first batch of each phase out of its rows: the first in the whole ledger, not in each pass, and not
    /// if it is the phase's only one.
    bool drop_first_batch = true;
};
static_assert(std::is_trivially_destructible_v<SummaryOptions>);

/// Computes the report of a sorted ledger (`Ledger::sort`; of an unsorted one it is wrong). A step counts in its
/// phase's rows if it drew a batch and no exception other than a cancel ended it. Totals are sums of whole nanoseconds
/// before they become seconds: draw + batch = step, and forward (or predict) + loss + backward + opt_step + zero_grad +
/// callbacks + other = batch. Folded steps and samples (`Folded`) are included; they are missing only in `queue` and
/// `reading`, and make quantiles inexact by at most 1 %. O(rows log rows). Any thread.
[[nodiscard]] Summary summarize(const Ledger&, SummaryOptions = {});

}   // namespace drawpoint
