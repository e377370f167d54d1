#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <drawpoint/diagnosis/blame/blame.hpp>
#include <drawpoint/diagnosis/verdict/verdict.hpp>
#include <drawpoint/instrumentation/ledger/ledger.hpp>
#include <drawpoint/instrumentation/report/summary.hpp>

namespace drawpoint::cli {

/// Where a running pass is.
struct TopProgress {
    Phase phase{};
    std::uint64_t epoch = 0, epochs = 0;    ///< from 1; 0: not known
    std::uint64_t batch = 0, batches = 0;   ///< of the pass: the last one drawn, from 1; how many; 0: not known
    std::optional<double> left_s;           ///< until training ends, at the mean pace so far
};

/// A sample that made the loop wait, with its stall (SlowSample).
struct TopSample {
    std::uint64_t index = 0;
    std::string stage, path;   ///< its longest stage; where it comes from, if that is known
    std::uint32_t times = 1;
    double stall_s = 0;
};

/// The diagnosis of the rows that were kept when it was made, and what it needs of these rows.
struct TopDiagnosis {
    Diagnosis diagnosis;   ///< without its blame
    std::vector<TopSample> slow_samples;
};
[[nodiscard]] TopDiagnosis top_diagnosis(const Ledger&, Diagnosis);

/// What `drawpoint top` shows of a run: the report of all of it, the report of a window of it, and the diagnosis. For
/// this view alone, it computes the time left and the rates over time.
struct TopView {
    enum class State : std::uint8_t {
        running,
        ended,
        cut   ///< its program was killed, or does not record any more
    } state = State::running;
    Summary run;                           ///< since it began, as `drawpoint report`
    Summary now;                           ///< of the window
    double now_s = 0;                      ///< length of the window
    std::optional<double> earlier_s;       ///< how long before the last record the window ends; absent: it does not
    std::optional<TopProgress> progress;   ///< absent before the first step
    std::vector<double> rates;             ///< samples/s over time, the latest last
    double rates_s = 0;                    ///< that `rates` are of
    std::vector<std::pair<std::string, double>> causes;   ///< in the window, what its draws waited for, in seconds
    std::vector<WorkerBlame> workers;                     ///< in it and as long before, without a warm-up
    std::vector<std::string> stages;                      ///< that the columns of `workers` are of
    std::optional<std::int64_t> resident_bytes;           ///< of the process, by its last record
    std::optional<TopDiagnosis> diagnosis;
};

/// Makes the view of a followed run, without `state`, `rates` and `diagnosis`, which its caller has. `earlier_ns`: how
/// long before the last record the window shall end; at most as long as rows are kept.
[[nodiscard]] TopView top_view(const Ledger&, std::int64_t earlier_ns);

/// Samples drawn so far over time, from which rates are made: at most 512 points, about equally far apart.
class TopRates {
public:
    /// By `at_ns` the run had drawn this number. Times and numbers do not decrease.
    void add(std::int64_t at_ns, std::uint64_t samples);
    /// Samples per second between each two points.
    [[nodiscard]] std::vector<double> rates() const;
    [[nodiscard]] double span_s() const noexcept;   ///< from the first point to the last

private:
    struct Point {
        std::int64_t at_ns = 0;
        std::uint64_t samples = 0;
    };
    std::vector<Point> points_;
    std::int64_t apart_ns_ = 0;
};

}   // namespace drawpoint::cli
