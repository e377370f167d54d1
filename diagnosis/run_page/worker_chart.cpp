#include <algorithm>
#include <array>

#include <fmt/format.h>

#include <drawpoint/instrumentation/text/format.hpp>

#include "diagnosis/blame/worker_timeline.hpp"
#include "diagnosis/run_page/charts.hpp"

namespace drawpoint {
namespace {

constexpr double left = 110, width = 840, row_height = 26, queue_height = 60;
constexpr std::size_t columns = 210, shown_workers = 16;

/// What a worker may be doing: the stages of all loaders, then the others.
enum Other : std::size_t { collate, sampler, run_queue, overhead, idle_no_slot, idle, unknown, others };
constexpr std::array<std::string_view, others> other_names{
    "collate", "sampler", "waiting for a core", "between samples", "idle: all slots taken", "idle", "not recorded"};
constexpr std::array<std::string_view, others> other_styles{"k8", "k9", "w3", "w5", "", "", "w4"};   // "": left empty

/// Sums of time by column of a range.
class Columns {
public:
    explicit Columns(TimeRange range) : range_{range}, ns_(columns, 0) {}
    void add(std::int64_t begin_ns, std::int64_t end, double weight = 1) {
        const double scale = static_cast<double>(columns) / static_cast<double>(std::max<std::int64_t>(length(), 1));
        const double from = std::clamp(static_cast<double>(length_ns(range_.from_ns, begin_ns)) * scale, 0.0,
                                       double{columns}),
                     to =
                         std::clamp(static_cast<double>(length_ns(range_.from_ns, end)) * scale, from, double{columns});
        for (auto column = static_cast<std::size_t>(from); column < columns && static_cast<double>(column) < to;
             ++column)
            ns_[column] +=
                weight * (std::min(to, static_cast<double>(column + 1)) - std::max(from, static_cast<double>(column)));
    }
    [[nodiscard]] double operator[](std::size_t column) const { return ns_[column]; }   ///< share of the column's time
    [[nodiscard]] bool is_seen() const {
        return std::ranges::any_of(ns_, [](double share) { return share > 0.004; });
    }
    [[nodiscard]] double most() const { return std::ranges::max(ns_); }

private:
    [[nodiscard]] std::int64_t length() const { return length_ns(range_.from_ns, range_.to_ns); }
    TimeRange range_;
    std::vector<double> ns_;
};

/// A curve of steps, closed below, between two heights.
std::string area(const std::vector<double>& low, const std::vector<double>& high, double bottom, double tall) {
    const auto x = [](std::size_t column) {
        return coordinate(left + width * static_cast<double>(column) / static_cast<double>(columns));
    };
    const auto y = [&](double share) { return coordinate(bottom - tall * std::clamp(share, 0.0, 1.0)); };
    std::string shape = fmt::format("M{} {}", x(0), y(high[0]));
    for (std::size_t i = 0; i < columns; ++i)
        shape += fmt::format("V{}H{}", y(high[i]), x(i + 1));
    for (std::size_t i = columns; i-- > 0;)
        shape += fmt::format("V{}H{}", y(low[i]), x(i));
    return shape + "Z";
}

class WorkerChart {
public:
    WorkerChart(const Ledger& ledger, TimeRange range) : ledger_{ledger}, range_{range} {
        for (const PipelineRow& loader : ledger.pipelines) {
            first_stage_.push_back(names_.size());
            for (const std::string& stage : loader.stages) {
                styles_.push_back(fmt::format("k{}", names_.size() % 8));
                names_.push_back(stage);
            }
        }
        stages_ = names_.size();
        for (std::size_t i = 0; i < others; ++i) {
            names_.emplace_back(other_names[i]);
            styles_.emplace_back(other_styles[i]);
        }
        seen_.resize(names_.size());
    }

    [[nodiscard]] Svg picture(const std::vector<WorkerTimeline>& workers) {
        const std::size_t shown = std::min(workers.size(), shown_workers);
        const double bottom = 10 + row_height * static_cast<double>(shown);
        Svg svg{960, bottom + queue_height + 90,
                fmt::format("What {} of {} workers did over {}, and how many batches were ready.", shown,
                            workers.size(),
                            format_duration(static_cast<double>(length_ns(range_.from_ns, range_.to_ns)) / 1e9))};
        for (std::size_t i = 0; i < shown; ++i)
            row(svg, workers[i], 10 + row_height * static_cast<double>(i));
        if (shown < workers.size())
            svg.text(left - 6, bottom + 12, fmt::format("of {}", workers.size()), "end small");
        queue(svg, bottom + 20);
        const double axis = bottom + 20 + queue_height;
        const double length = static_cast<double>(length_ns(range_.from_ns, range_.to_ns));
        for (int i = 0; i <= 6; ++i)
            svg.text(left + width * i / 6.0, axis + 18, i == 0 ? "0" : format_duration(length * i / 6.0 / 1e9),
                     i == 6 ? "end" : "mid");
        std::vector<std::pair<std::string, std::string>> meanings;
        for (std::size_t i = 0; i < names_.size(); ++i)
            if (seen_[i] && !styles_[i].empty())
                meanings.emplace_back(styles_[i], names_[i]);
        meanings.emplace_back("paper", "empty: idle");
        svg.legend(left, axis + 44, meanings);
        return svg;
    }

private:
    [[nodiscard]] std::size_t kind_of(const WorkerPart& part) const {
        using What = WorkerPart::What;
        switch (part.what) {
        case What::stage:   // a stage that its loader does not name is work without a name
            return part.pipeline < first_stage_.size() && part.stage < ledger_.pipelines[part.pipeline].stages.size()
                       ? first_stage_[part.pipeline] + part.stage
                       : stages_ + overhead;
        case What::collate: return stages_ + collate;
        case What::sampler: return stages_ + sampler;
        case What::overhead: return stages_ + overhead;
        case What::idle_no_slot: return stages_ + idle_no_slot;
        case What::idle: return stages_ + idle;
        case What::unknown: break;
        }
        return stages_ + unknown;
    }

    void row(Svg& svg, const WorkerTimeline& worker, double y) {
        std::vector<Columns> shares(names_.size(), Columns{range_});
        for (const WorkerPart& part : worker.parts) {
            const std::int64_t end = end_ns(part.begin_ns, part.ns);
            const double queued =
                part.ns > 0 ? static_cast<double>(part.run_queue_ns) / static_cast<double>(part.ns) : 0.0;
            shares[kind_of(part)].add(part.begin_ns, end, 1 - queued);
            if (queued > 0)
                shares[stages_ + run_queue].add(part.begin_ns, end, queued);
        }
        svg.text(left - 6, y + row_height - 9, fmt::format("worker {}", worker.worker), "end");
        std::vector<double> low(columns, 0), high(columns, 0);
        for (std::size_t kind = 0; kind < names_.size(); ++kind) {
            if (styles_[kind].empty() || !shares[kind].is_seen())
                continue;
            seen_[kind] = true;
            for (std::size_t i = 0; i < columns; ++i)
                high[i] = low[i] + shares[kind][i];
            const std::string shape = area(low, high, y + row_height - 4, row_height - 6);
            svg.path(shape, styles_[kind], names_[kind]);
            if (styles_[kind].starts_with('w'))
                svg.path(shape, "_" + styles_[kind], names_[kind]);
            low = high;
        }
        svg.line(left, y + row_height - 4, left + width, y + row_height - 4, "grid");
    }

    void queue(Svg& svg, double y) const {
        Columns ready{range_};
        for (const BatchRow& batch : ledger_.batches)
            if (batch.pipeline == 0 && batch.offered_ns != no_stamp && batch.taken_ns != no_stamp)
                ready.add(batch.offered_ns, batch.taken_ns);
        const double most = std::max(ready.most(), 1.0);
        std::vector<double> curve(columns, 0);
        for (std::size_t i = 0; i < columns; ++i)
            curve[i] = ready[i] / most;
        svg.text(left - 6, y + queue_height / 2, "ready", "end");
        svg.text(left - 6, y + queue_height / 2 + 15, "batches", "end");
        svg.text(left + width, y + 10, fmt::format("{:.3g}", most), "end small");
        svg.path(area(std::vector<double>(columns, 0), curve, y + queue_height, queue_height - 14), "k2",
                 "batches that were ready");
        svg.line(left, y + queue_height, left + width, y + queue_height, "axis");
    }

    const Ledger& ledger_;
    TimeRange range_;
    std::vector<std::size_t> first_stage_;   // by loader
    std::vector<std::string> names_, styles_;
    std::vector<bool> seen_;
    std::size_t stages_ = 0;
};

}   // namespace

std::optional<Svg> worker_chart(const Ledger& ledger, const LoaderRows& rows) {
    if (ledger.steps.empty() || ledger.pipelines.empty())
        return std::nullopt;
    const TimeRange range{ledger.steps.front().draw_begin_ns, end_ns(ledger.steps.back())};
    const std::vector<WorkerTimeline> workers = worker_timelines(ledger, rows, range);
    if (workers.empty())
        return std::nullopt;
    return WorkerChart{ledger, range}.picture(workers);
}

}   // namespace drawpoint
