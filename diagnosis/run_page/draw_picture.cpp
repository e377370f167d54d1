#include <algorithm>

#include <fmt/format.h>

#include <drawpoint/instrumentation/text/format.hpp>

#include "diagnosis/blame/draw_timeline.hpp"
#include "diagnosis/blame/stage_spending.hpp"
#include "diagnosis/run_page/charts.hpp"

namespace drawpoint {
namespace {

constexpr double left = 190, width = 750, row_height = 17, top = 52;

std::string duration(std::int64_t ns) { return format_duration(static_cast<double>(ns) / 1e9); }

class DrawPicture {
public:
    DrawPicture(const Ledger& ledger, const DrawBlame& draw, const DrawTimeline& timeline)
        : ledger_{ledger},
          step_{ledger.steps[draw.step]},
          timeline_{timeline},
          scale_{timeline.from_ns, timeline.to_ns, left, width},
          batch_{draw.batch == nothing ? nullptr : &ledger.batches[draw.batch]},
          svg_{960, top + row_height * static_cast<double>(timeline.samples.size() + 2) + 80,
               fmt::format("The draw of step {}, which took {}, and the {} samples of its batch that ended last, on a "
                           "common axis of time.",
                           step_.step, duration(step_.draw_ns), timeline.samples.size())} {
        if (batch_ && batch_->pipeline < ledger.pipelines.size())
            stages_ = ledger.pipelines[batch_->pipeline].stages;
    }

    Svg picture() {
        const double bottom = top + row_height * static_cast<double>(timeline_.samples.size() + (collates() ? 2 : 1));
        double last = -1e9;
        auto moments = timeline_.moments;
        std::ranges::stable_sort(moments, {}, &std::pair<std::string_view, std::int64_t>::second);
        for (const auto& [name, ns] : moments) {
            const double x = scale_.at(ns);
            level_ = x - last < 110 ? level_ + 1 : 0;
            svg_.line(x, top - 16 - 11 * (level_ % 4), x, bottom, "mark");
            last = x;
            const bool at_right = x > left + width - 110;
            svg_.text(at_right ? x - 3 : x + 3, top - 8 - 11 * (level_ % 4), name, at_right ? "end small" : "small");
        }
        row("draw");
        paint(step_.draw_begin_ns, timeline_.to_ns, "w0", "the loop waited " + duration(step_.draw_ns));
        for (const std::uint32_t i : timeline_.samples)
            sample(ledger_.samples[i]);
        if (collates()) {
            row("collate");
            paint(batch_->collate_begin_ns, batch_->collate_end_ns, "k8", "collate");
        }
        const double axis = y_ + row_height;
        svg_.line(left, axis, left + width, axis, "axis");
        for (int i = 0; i <= 5; ++i) {
            const std::int64_t ns = timeline_.from_ns + length_ns(timeline_.from_ns, timeline_.to_ns) / 5 * i;
            const bool is_before = ns < step_.draw_begin_ns;
            svg_.text(left + width * i / 5.0, axis + 16,
                      (is_before ? "-" : "+") +
                          duration(is_before ? length_ns(ns, step_.draw_begin_ns) : length_ns(step_.draw_begin_ns, ns)),
                      i == 5 ? "end" : "mid");
        }
        std::vector<std::pair<std::string, std::string>> meanings{{"w0", "draw"}};
        for (std::size_t i = 0; i < stages_.size(); ++i)
            meanings.emplace_back(style_of(i), stages_[i]);
        if (waits_)
            meanings.emplace_back(style_of(0) + " half", "pale: waiting (I/O, sleep)");
        if (queues_)
            meanings.emplace_back("w3", "waiting for a core");
        if (reads_)
            meanings.emplace_back("w4", "waiting for a read ahead");
        if (collates())
            meanings.emplace_back("k8", "collate");
        svg_.legend(left, axis + 42, meanings);
        return std::move(svg_);
    }

private:
    [[nodiscard]] bool collates() const noexcept {
        return batch_ && batch_->collate_begin_ns != no_stamp && batch_->collate_end_ns != no_stamp;
    }
    static std::string style_of(std::size_t stage) { return fmt::format("k{}", stage % 8); }

    void row(std::string_view label) {
        y_ += row_height;
        svg_.text(left - 8, y_ + 12, label, "end small");
    }

    void paint(std::int64_t from_ns, std::int64_t to_ns, const std::string& style, std::string_view tip) {
        const double x = scale_.at(from_ns), end = scale_.at(to_ns);
        if (to_ns <= from_ns)
            return;
        svg_.rect(x, y_ + 2, std::max(end - x, 0.5), row_height - 4, style, tip);
        if (style.starts_with('w'))
            svg_.rect(x, y_ + 2, std::max(end - x, 0.5), row_height - 4, "_" + style, tip);
    }

    void sample(const SampleRow& sample) {
        row(sample_label(sample));
        const auto stages = ledger_.stages_of(sample);
        const auto spending = spending_of(ledger_, sample);
        for (std::size_t i = 0; i < std::min(stages.size(), max_stages); ++i) {
            const StageSpending& spent = spending[i];
            const std::string name = fmt::format("{}: {} {}", sample_label(sample),
                                                 i < stages_.size() ? stages_[i] : "", duration(stages[i].ns));
            const std::int64_t there_ns = end_ns(stages[i].begin_ns, spent.read_ns),
                               until_ns = end_ns(there_ns, spent.ns);
            reads_ |= spent.read_ns > 0;
            paint(stages[i].begin_ns, there_ns, "w4", name);
            if (spent.cpu_ns == no_stamp) {
                paint(there_ns, until_ns, style_of(i), name);
                continue;
            }
            const std::int64_t computed_ns = end_ns(there_ns, spent.cpu_ns),
                               queued_ns = end_ns(computed_ns, std::max<std::int64_t>(spent.run_queue_ns, 0));
            queues_ |= queued_ns > computed_ns;
            waits_ |= until_ns > queued_ns;
            paint(there_ns, computed_ns, style_of(i), name);
            paint(computed_ns, queued_ns, "w3", name);
            paint(queued_ns, until_ns, style_of(i) + " half", name);
        }
    }

    const Ledger& ledger_;
    const StepRow& step_;
    const DrawTimeline& timeline_;
    PlotScale scale_;
    const BatchRow* batch_;
    std::vector<std::string> stages_;
    Svg svg_;
    double y_ = top - row_height;
    int level_ = 0;
    bool reads_ = false, queues_ = false, waits_ = false;
};

}   // namespace

Svg draw_picture(const Ledger& ledger, const LoaderRows& rows, const DrawBlame& draw) {
    const DrawTimeline timeline = draw_timeline(ledger, rows, draw);
    return DrawPicture{ledger, draw, timeline}.picture();
}

Svg blame_chart(const std::vector<BlameRow>& rows) {
    constexpr double names = 330, bars = 480, bar_height = 24;
    std::int64_t all = 0;
    for (const BlameRow& row : rows)
        all += row.ns;
    Svg svg{960, 10 + bar_height * static_cast<double>(rows.size()),
            fmt::format("What draws waited for, as bars: most of it {}.", rows.front().cause)};
    double at = 0;   // each bar begins where the one above it ends
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const double y = 4 + bar_height * static_cast<double>(i);
        const double length = all > 0 ? bars * static_cast<double>(rows[i].ns) / static_cast<double>(all) : 0;
        const std::string style = fmt::format("w{}", std::min<std::size_t>(i, 5));
        const std::string value = fmt::format("{}, {:.1f} %", duration(rows[i].ns), rows[i].share * 100);
        svg.text(names - 10, y + 15, rows[i].cause, "end");
        for (const std::string& layer : {style, "_" + style})
            svg.rect(names + at, y, std::max(length, 1.0), bar_height - 6, layer, rows[i].cause + ": " + value);
        svg.text(at + length > bars - 30 ? names + at - 6 : names + at + length + 6, y + 15, value,
                 at + length > bars - 30 && at > 130 ? "end" : "");
        at += length;
    }
    return svg;
}

}   // namespace drawpoint
