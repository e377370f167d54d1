#include <drawpoint/diagnosis/blame/explain.hpp>

#include <algorithm>
#include <cctype>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include <drawpoint/instrumentation/text/format.hpp>
#include <drawpoint/instrumentation/text/printable.hpp>

#include "diagnosis/blame/blame_parts.hpp"
#include "diagnosis/blame/draw_timeline.hpp"
#include "diagnosis/blame/stage_spending.hpp"
#include "diagnosis/rows/time_axis.hpp"

namespace drawpoint {
namespace {

std::string duration(std::int64_t ns) { return format_duration(static_cast<double>(ns) * 1e-9); }

/// A time relative to `origin_ns`: "+1.20 ms".
std::string moment(std::int64_t ns, std::int64_t origin_ns) {
    return ns < origin_ns ? "-" + duration(length_ns(ns, origin_ns)) : "+" + duration(length_ns(origin_ns, ns));
}

std::string percent(std::int64_t part, std::int64_t whole) {
    const auto tenths =
        static_cast<std::int64_t>(1000.0 * static_cast<double>(part) / static_cast<double>(whole) + 0.5);
    return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " %";
}

/// One letter per stage, its first one if that is free. 'C' stands for collating.
std::string letters_for(const std::vector<std::string>& stages) {
    std::string letters;
    const auto is_free = [&](char letter) { return letter != 'C' && letters.find(letter) == std::string::npos; };
    for (const std::string& stage : stages) {
        const auto first = stage.empty() ? 'A' : static_cast<char>(std::toupper(static_cast<unsigned char>(stage[0])));
        char letter = first >= 'A' && first <= 'Z' && is_free(first) ? first : 'A';
        while (letter < 'Z' && !is_free(letter))
            ++letter;
        letters += letter;
    }
    return letters;
}

class Explanation {
public:
    Explanation(const Ledger& ledger, const Blame& blame, const DrawBlame& draw, TextOptions options)
        : ledger_{ledger},
          blame_{blame},
          draw_{draw},
          step_{ledger.steps[draw.step]},
          rows_{ledger},
          width_{std::max<std::size_t>(options.width, 60)},
          colour_{options.colour} {
        if (draw.batch != nothing)
            batch_ = &ledger.batches[draw.batch];
        if (batch_ && batch_->pipeline < ledger.pipelines.size())
            stages_ = ledger.pipelines[batch_->pipeline].stages;
        letters_ = letters_for(stages_);
    }

    std::string text() {
        head();
        if (batch_)
            timeline();
        pieces();
        line("");
        for (const std::string& part : wrapped(draw_sentence(ledger_, blame_, draw_), width_))
            line(styled(part, TextStyle::bold, colour_));
        return std::move(out_);
    }

private:
    void line(std::string_view text) { (out_ += text) += '\n'; }

    /// A sentence, wrapped to the width.
    void prose(std::string_view text) {
        for (const std::string& part : wrapped(text, width_))
            line(part);
    }

    void head() {
        std::string text = "step " + std::to_string(step_.step) + " (" + std::string{name_of(step_.phase)} +
                           ", epoch " + std::to_string(step_.epoch) + ", batch " + std::to_string(step_.batch) +
                           "): the draw took " + duration(length_ns(step_.draw_begin_ns, draw_end_ns(step_))) +
                           ", the rest of the step " + duration(step_.batch_ns);
        if (kind_of(draw_) == DrawKind::warm_up)
            text += "; it is warm-up";
        else if (draw_.first_of_pass)
            text += "; a pass begins with it";
        prose(text);
    }

    void timeline() {
        const DrawTimeline timeline = draw_timeline(ledger_, rows_, draw_);
        std::size_t label_width = std::string_view{"stamps"}.size();
        for (const std::uint32_t i : timeline.samples)
            label_width = std::max(label_width, sample_label(ledger_.samples[i]).size());
        const std::size_t cells = std::max<std::size_t>(width_ - std::min(width_, label_width + 2), 20);
        TimeAxis axis{timeline.from_ns, timeline.to_ns, cells};
        const auto row = [&](std::string_view label, TextStyle style = TextStyle::plain) {
            line(padded(label, label_width) + " |" + styled(axis.take(), style, colour_));
        };

        const std::string left = moment(timeline.from_ns, step_.draw_begin_ns),
                          right = moment(timeline.to_ns, step_.draw_begin_ns);
        line("");
        line(padded("", label_width + 2) + left + padded(right, cells - std::min(cells, left.size()), true));
        axis.paint(step_.draw_begin_ns, timeline.to_ns, "█");
        row("draw", TextStyle::yellow);
        for (const std::uint32_t i : timeline.samples) {
            paint(axis, ledger_.samples[i]);
            row(sample_label(ledger_.samples[i]));
        }
        if (batch_->collate_begin_ns != no_stamp && batch_->collate_end_ns != no_stamp) {
            axis.paint(batch_->collate_begin_ns, batch_->collate_end_ns, "C");
            row("collate");
        }
        for (const auto& [name, ns] : timeline.moments)
            axis.mark(ns, name.substr(0, 1));
        row("stamps");
        legend(timeline);
    }

    void paint(TimeAxis& axis, const SampleRow& sample) const {
        const auto stages = ledger_.stages_of(sample);
        const auto spending = spending_of(ledger_, sample);
        if (sample.read_begin_ns != no_stamp && sample.read_end_ns != no_stamp)
            axis.paint(sample.read_begin_ns, std::min(sample.read_end_ns, sample.begin_ns), "·");
        for (std::size_t i = 0; i < std::min(stages.size(), max_stages); ++i) {
            const StageSpending& spent = spending[i];
            const char letter = i < letters_.size() ? letters_[i] : 'A';
            const std::int64_t there_ns = end_ns(stages[i].begin_ns, spent.read_ns),
                               until_ns = end_ns(there_ns, spent.ns);
            if (spent.read_ns > 0)
                axis.paint(stages[i].begin_ns, there_ns, "~");
            if (spent.cpu_ns == no_stamp) {
                axis.paint(there_ns, until_ns, {&letter, 1});
                continue;
            }
            const auto small = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
            const std::int64_t computed_ns = end_ns(there_ns, spent.cpu_ns),
                               queued_ns = end_ns(computed_ns, std::max<std::int64_t>(spent.run_queue_ns, 0));
            axis.paint(there_ns, computed_ns, {&letter, 1});
            axis.paint(computed_ns, queued_ns, "░");
            axis.paint(queued_ns, until_ns, {&small, 1});
        }
    }

    void legend(const DrawTimeline& timeline) {
        std::string words;
        const auto flush = [&] {
            columns_of(words) > width_ ? prose(words) : line(words);
            words.clear();
        };
        const auto add = [&](const std::string& word) {
            if (!words.empty() && columns_of(words) + columns_of(word) + 3 > width_)
                flush();
            words += (words.empty() ? "" : "   ") + word;
        };
        for (const auto& [name, ns] : timeline.moments)
            add(std::string{name.substr(0, 1)} + " " + std::string{name} + " " + moment(ns, step_.draw_begin_ns));
        flush();
        for (std::size_t i = 0; i < stages_.size(); ++i)
            add(std::string{letters_[i]} + " " + printable(stages_[i]));
        for (const char* sign : {"C collate", "lower case: waiting (I/O, sleep)", "░ waiting for a core",
                                 "~ waiting for a read ahead", "· read ahead"})
            add(sign);
        flush();
        const std::size_t all = timeline.all_samples, shown = timeline.samples.size();
        if (all == 0)
            line("The samples of this batch are not recorded.");
        else if (shown < all)
            line("Of " + std::to_string(all) + " records of samples, the " + std::to_string(shown) +
                 " that ended last.");
        if (!rows_.whole(draw_.batch) && all > 0)
            line("Not all samples of this batch are recorded.");
    }

    void pieces() {
        line("");
        const auto all = pieces_of(blame_, draw_);
        const std::int64_t draw_ns = length_ns(step_.draw_begin_ns, draw_end_ns(step_));
        std::size_t name_width = std::string_view{"draw"}.size(), ns_width = 0;
        for (const BlamePiece& piece : all) {
            name_width = std::max(name_width, columns_of(printable(name_of(ledger_, draw_, piece))));
            ns_width = std::max(ns_width, format_count(piece.ns).size());
        }
        name_width = std::min(name_width, width_ - (ns_width + 14));
        for (const BlamePiece& piece : all) {
            std::string name = printable(name_of(ledger_, draw_, piece));
            if (columns_of(name) > name_width)
                prose(std::exchange(name, {}));
            std::string text = padded(name, name_width) + "  " +
                               padded(format_count(piece.ns) + " ns", ns_width + 3, true) + "  " +
                               padded(percent(piece.ns, draw_ns), 7, true);
            std::string where;
            if (piece.sample != nothing)
                where = "sample " + std::to_string(ledger_.samples[piece.sample].index);
            if (const std::string_view spent = words_of(piece.spent); !spent.empty())
                (where += where.empty() ? "" : ", ") += spent;
            if (!where.empty() && columns_of(text) + 2 + columns_of(where) > width_)
                line(std::exchange(text, {}));
            line(where.empty() ? text : text + "  " + where);
        }
        line(padded("draw", name_width) + "  " + format_count(draw_ns) + " ns");
        if (draw_.order_ns > 0)
            line("Of these, for " + format_count(draw_.order_ns) + " ns a later batch was already complete (order).");
    }

    const Ledger& ledger_;
    const Blame& blame_;
    const DrawBlame& draw_;
    const StepRow& step_;
    LoaderRows rows_;
    std::size_t width_;
    bool colour_;
    const BatchRow* batch_ = nullptr;
    std::vector<std::string> stages_;
    std::string letters_, out_;
};

}   // namespace

std::string explain(const Ledger& ledger, const Blame& blame, std::optional<std::uint32_t> step, TextOptions options) {
    return Explanation{ledger, blame, explained_draw(ledger, blame, step), options}.text();
}

}   // namespace drawpoint
