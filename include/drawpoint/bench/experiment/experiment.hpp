#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <drawpoint/bench/experiment/contender.hpp>
#include <drawpoint/diagnosis/replay/prediction.hpp>
#include <drawpoint/instrumentation/host/detail/host_counters.hpp>

namespace drawpoint::bench {

struct ExperimentOptions {
    /// A turn is as many runs as take this long together; a longer run is a turn of its own.
    std::chrono::nanoseconds least_turn = std::chrono::milliseconds{200};
    std::uint64_t seed = 0;   ///< of the orders
    /// Whether a contender other than the first one that fails is left out from then on, with its reason in
    /// `Measurements::not_run`.
    bool leaves_out = false;
    /// Whether all turns have the same number of runs, however long those of one take. Of turns with other numbers, the
    /// noise differs, so that the ratio of equal contenders is not as often above 1 as below.
    bool has_equal_turns = false;
    double most_foreign = 0.4;   ///< see Measurements
};

/// One turn of each contender.
struct Round {
    /// The contenders, in the order of their turns; of turns in slices, of the first slice.
    std::vector<std::size_t> order;
    std::vector<std::vector<double>> values;   ///< [contender][metric], for a run; NaN: it does not measure that
    /// [contender][metric]: log(value / value of the first contender); of a metric by item the median of the items'.
    std::vector<std::vector<double>> log_ratios;
    double seconds = 0;   ///< wall time of the round
    /// Cores that other processes used, on average, to 0.01 s / `seconds`: of a short round it may be below 0; and the
    /// share of the time that the hypervisor gave to other guests; absent: the system does not say.
    std::optional<double> foreign_cores, steal;
};

/// All that an experiment has measured, for reports and verdicts.
struct Measurements {
    std::vector<std::string> contenders;       ///< names; the first one is what the others are compared with
    std::vector<std::string> descriptions;     ///< of each: its command line
    std::vector<std::string> not_run;          ///< of each: why it is left out; empty: it takes part
    std::vector<std::string> flaws;            ///< of each: why its times mean nothing, or ""
    std::vector<std::vector<Part>> parts;      ///< of each
    std::vector<Metric> metrics;               ///< of all contenders together
    std::vector<std::vector<bool>> measures;   ///< [contender][metric]: whether it measures that
    std::vector<std::size_t> runs;             ///< of each contender in a turn
    std::vector<Round> rounds;
    std::string
        failure;   ///< why they give no verdict although there may be rounds, e.g. that a contender failed; or ""
    std::uint64_t seed = 0;
    double cores = 1;            ///< that this process may use
    double most_foreign = 0.4;   ///< share of the cores that others may take: then the machine is a place to measure

    /// Whether every round has a value of a contender, and of the first one, by a metric.
    [[nodiscard]] bool has(std::size_t contender, std::size_t metric) const;
    /// log(value of the contender / value of the first one), round by round.
    [[nodiscard]] std::vector<double> log_ratios(std::size_t contender, std::size_t metric) const;
    /// A contender's values of a metric, round by round.
    [[nodiscard]] std::vector<double> values(std::size_t contender, std::size_t metric) const;
    [[nodiscard]] double seconds() const;   ///< wall time of all rounds
    /// The first contender and another one alone.
    [[nodiscard]] Measurements pair(std::size_t contender) const;
};

/// Measures contenders in rounds: in each of them every contender has one turn, in an order drawn anew. So drift, and
/// what depends on the place in the round, raise the ratio of two contenders as often as they lower it. Contenders that
/// can pause have their turns in slices of about 10 ms, which have orders of their own. All methods but cancel() are
/// for one thread.
class Experiment {
public:
    /// The first contender is the base. Throws std::invalid_argument without a contender, or if two have the same name.
    Experiment(std::vector<std::unique_ptr<Contender>>, const ExperimentOptions& = {});

    /// Called once, first: prepares all contenders, after which the metrics are known. Throws NotRun if one fails or
    /// has no compared metric in common with the first one, Cancelled after cancel().
    void prepare();
    /// Warms every contender up, and chooses how many runs its turns have, by turns that grow. Those whose runs take up
    /// to four times as long as the first one's, or a quarter, have as many. Throws as run_round().
    void calibrate();
    /// A round that does not end is not counted. Valid until the next round. Throws NotRun if a contender fails,
    /// Cancelled after cancel().
    const Round& run_round();
    /// Any thread, at any time.
    void cancel() noexcept;

    [[nodiscard]] const Measurements& measurements() const noexcept { return measured_; }

private:
    /// Calls `action`; if it throws NotRun, leaves the contender out, if that is allowed.
    template <class F>
    void attempt(std::size_t contender, F&& action);
    std::size_t calibrated_runs(Contender&) const;
    /// One turn of each contender: in slices if all can pause, else one whole turn after the other.
    void take_turns(std::vector<std::size_t> order, std::vector<Turn>& turns);
    /// Of the processes of all contenders, ended or running.
    [[nodiscard]] double contenders_cpu_seconds() const;
    [[nodiscard]] bool takes_part(std::size_t contender) const { return measured_.not_run[contender].empty(); }

    std::vector<std::unique_ptr<Contender>> contenders_;
    std::vector<std::vector<std::size_t>> places_;   // [contender]: where each of its metrics is among all
    ExperimentOptions options_;
    Measurements measured_;
    std::mt19937_64 random_;
    HostCounters host_;
};

/// What can be said of a ratio. `no_common_ratio`: it changed while it was measured.
enum class Finding : std::uint8_t { faster, slower, no_difference_shown, too_few_rounds, no_common_ratio };

/// A contender beside the first one, by one metric.
struct Comparison {
    std::size_t contender = 0, metric = 0;
    double base = 0, value = 0;   ///< medians of the rounds
    Interval ratio;               ///< of the rounds, with the bounds that hold for all comparisons together
    Finding finding = Finding::too_few_rounds;
    bool is_failure = false;   ///< for what shows tests: if it is slower, unless the caller knows better
};

/// Compares every contender with the first one by every compared metric. With probability 1 - `error` all intervals
/// hold, at whatever round one looks: for equal contenders whose turns have as many runs, whatever the noise; for
/// others, if the ratio's noise is symmetric.
[[nodiscard]] std::vector<Comparison> compare(const Measurements&, double error = 0.01);

/// Why a contender does not do the same as the ones before it, a sentence each: a part has another output, or cannot
/// run here and can run in the first contender. Empty: nothing is known against it.
[[nodiscard]] std::vector<std::string> differing_parts(const Measurements&, std::size_t contender);

/// Why the figures mean nothing: `Measurements::failure`, a contender's flaw, or "other processes used 1.2 of 2 cores";
/// empty: nothing is known against them. Others may take more than `Measurements::most_foreign` in less than half of
/// the time.
[[nodiscard]] std::string unfit(const Measurements&);
/// The number of rounds during which others used more than a twentieth of the cores, as far as the kernel's ticks of 10
/// ms tell, or 2 % were stolen.
[[nodiscard]] std::size_t disturbed_rounds(const Measurements&);

}   // namespace drawpoint::bench
