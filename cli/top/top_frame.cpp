#include "cli/top/top_frame.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/top/screen_line.hpp"
#include <drawpoint/diagnosis/verdict/verdict_report.hpp>
#include <drawpoint/instrumentation/text/format.hpp>
#include <drawpoint/instrumentation/text/printable.hpp>

namespace drawpoint::cli {
namespace {

constexpr std::size_t label_width = 11;   // of the column with the rows' names

std::string percent(std::optional<double> share) {
    return share ? fmt::format("{:.1f} %", 100 * *share) : std::string{"-"};
}

std::string rate(double per_s) {
    return per_s < 99.95 ? fmt::format("{:.1f}", per_s) : format_count(std::llround(per_s));
}

/// "4:05", "1:02:03"
std::string clock_text(double seconds) {
    const auto s = static_cast<std::int64_t>(std::max(seconds, 0.0));
    return s < 3600 ? fmt::format("{}:{:02}", s / 60, s % 60)
                    : fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
}

double rate_of(const Summary& summary) {
    return summary.run.wall_s > 0 ? static_cast<double>(summary.run.samples) / summary.run.wall_s : 0;
}

/// What the run is: "small_cnn on photos · batch 64 · 4 workers · depth 4".
std::string title_of(const Summary::Run& run) {
    const auto option = [&](std::string_view name) {
        const auto found = std::ranges::find(run.options, name, &std::pair<std::string, std::string>::first);
        return found == run.options.end() ? std::string{} : printable(found->second);
    };
    std::vector<std::string> parts;
    if (const std::string data = option("data"); !data.empty())
        parts.push_back(fmt::format("{} on {}", option("model"), data));
    if (run.batch_size > 0) {
        parts.push_back(fmt::format("batch {}", run.batch_size));
        parts.push_back(run.num_workers == 0   ? "no workers"
                        : run.num_workers == 1 ? "1 worker"
                                               : fmt::format("{} workers", run.num_workers));
        parts.push_back(fmt::format("depth {}", run.prefetch_depth));
        if (run.order != "in")
            parts.push_back("order " + printable(run.order));
    }
    return fmt::format("{}", fmt::join(parts, " · "));
}

std::string state_text(const TopView& view, bool paused) {
    switch (view.state) {
    case TopView::State::running: return paused ? "paused" : "running";
    case TopView::State::ended: return "ended";
    case TopView::State::cut: return "ended without its last records";
    }
    return {};
}

std::string progress_text(const TopProgress& progress) {
    const auto of = [](std::uint64_t number, std::uint64_t all) {
        return all > 0 ? fmt::format("{}/{}", format_count(static_cast<std::int64_t>(number)),
                                     format_count(static_cast<std::int64_t>(all)))
                       : format_count(static_cast<std::int64_t>(number));
    };
    return fmt::format("{}  epoch {}  batch {}", progress.phase == Phase::train ? "train" : "valid",
                       of(progress.epoch, progress.epochs), of(progress.batch, progress.batches));
}

/// Composes the lines of a screen.
class Frame {
public:
    Frame(const TopView& view, const TopFrame& options)
        : view_{view},
          options_{options},
          width_{std::max<std::size_t>(options.width, 1)},
          height_{std::max<std::size_t>(options.height, 1)} {}

    std::string text() {
        head();
        switch (options_.page) {
        case TopPage::run: run_page(); break;
        case TopPage::draws: draws_page(); break;
        case TopPage::workers: workers_page(); break;
        case TopPage::samples: samples_page(); break;
        case TopPage::verdict: verdict_page(); break;
        case TopPage::help: help_page(); break;
        }
        if (lines_.size() > height_ - 1)
            lines_.resize(height_ - 1);
        if (options_.has_keys) {
            lines_.resize(height_ - 1);
            keys();
        }
        return fmt::format("{}", fmt::join(lines_, "\n"));
    }

private:
    [[nodiscard]] ScreenLine line() const { return {width_, options_.colour}; }
    /// A row with a name.
    [[nodiscard]] ScreenLine row(std::string_view label) const {
        ScreenLine at = line();
        at.add(label, TextStyle::bold).to(label_width);
        return at;
    }
    void put(const ScreenLine& line) { lines_.push_back(line.text()); }
    void blank() { lines_.emplace_back(); }
    /// How many more lines there is room for, the last line of keys excepted.
    [[nodiscard]] std::size_t room() const { return lines_.size() < height_ - 1 ? height_ - 1 - lines_.size() : 0; }

    void head() {
        const bool distrusted = view_.diagnosis && !view_.diagnosis->diagnosis.trust.trusted;
        const std::string state =
            fmt::format("{}{}{}", distrusted ? "DISTRUST · " : "",
                        view_.earlier_s ? fmt::format("{:.0f} s earlier · ", *view_.earlier_s) : std::string{},
                        state_text(view_, options_.paused));
        const std::size_t columns = columns_of(state);
        put(line()
                .add(cut(title_of(view_.run.run), width_ > columns + 2 ? width_ - columns - 2 : 0), TextStyle::bold)
                .before_last(columns)
                .add(state, distrusted ? TextStyle::red : TextStyle::cyan));
        ScreenLine second = line();
        if (!view_.progress) {
            put(second.add("no step has ended yet", TextStyle::dim));
            blank();
            return;
        }
        const TopProgress& progress = *view_.progress;
        const std::string times =
            view_.state == TopView::State::running && progress.left_s
                ? fmt::format("{}, {} left", clock_text(view_.run.run.wall_s), clock_text(*progress.left_s))
                : clock_text(view_.run.run.wall_s);
        second.add(progress_text(progress)).add("  ");
        const std::size_t room_for_bar = second.left() > times.size() + 2 ? second.left() - times.size() - 2 : 0;
        if (progress.batches > 0 && room_for_bar > 4) {
            const double done = static_cast<double>(progress.batch) / static_cast<double>(progress.batches);
            second.add(bar_text(done, std::min<std::size_t>(room_for_bar, 40)), TextStyle::cyan);
        }
        put(second.before_last(times.size()).add(times));
        blank();
    }

    void rates() {
        ScreenLine at = row("samples/s");
        at.add("now ").add(rate(rate_of(view_.now)), TextStyle::bold).add("  mean ").add(rate(rate_of(view_.run)));
        const std::string over = " over " + clock_text(view_.rates_s);
        if (!view_.rates.empty() && at.left() > over.size() + 6)
            at.add("  ")
                .add(sparkline(view_.rates, std::min<std::size_t>(at.left() - over.size(), 60)), TextStyle::cyan)
                .add(over);
        put(at);
    }

    void draw() {
        const auto share = view_.now.headroom.draw_share;
        ScreenLine at = row("draw");
        at.add("now ")
            .add(percent(share), style_of_draw(share.value_or(0)))
            .add("  mean ")
            .add(percent(view_.run.headroom.draw_share));
        at.add(" of the time");
        if (const auto gain = view_.run.headroom.throughput_gain_if_draw_were_zero)
            at.add(fmt::format("; if {} were free: ×{:.2f}", view_.run.device ? "data" : "the draw", 1 + *gain));
        put(at);
    }

    void causes(std::size_t most) {
        if (view_.now_s <= 0)
            return;
        for (std::size_t i = 0; i < std::min(most, view_.causes.size()); ++i) {
            const auto& [name, seconds] = view_.causes[i];
            ScreenLine at = line();
            const double share = seconds / view_.now_s;
            at.to(2)
                .add(printable(name))
                .to(std::min<std::size_t>(34, width_ / 2))
                .add(fmt::format("{:>8}  ", percent(share)));
            put(at.add(bar_text(share, at.left() > 4 ? std::min<std::size_t>(at.left() - 2, 50) : 0),
                       TextStyle::yellow));
        }
    }

    /// What the signs in the workers' bars mean.
    static constexpr std::array<std::string_view, 4> fills{"█", "▓", "▒", "░"};
    static constexpr std::array fill_styles{TextStyle::cyan, TextStyle::yellow, TextStyle::green, TextStyle::red};

    void workers(std::size_t most) {
        ScreenLine legend = row("workers");
        for (std::size_t i = 0; i < view_.stages.size(); ++i)
            legend.add(fills[i % fills.size()], fill_styles[i % fills.size()])
                .add(fmt::format(" {}  ", printable(view_.stages[i])));
        put(legend.add("+ collate  - waits for a core  · idle"));
        std::size_t shown = 0, left = view_.workers.size();
        for (const WorkerBlame& worker : view_.workers) {
            if (shown == most)
                break;
            if (shown + 1 == most && left > 1) {
                put(line().to(2).add(fmt::format("and {} more", left), TextStyle::dim));
                return;
            }
            worker_bar(worker);
            ++shown;
            --left;
        }
        if (view_.workers.empty())
            put(line().to(2).add("none: the loop loads by itself, or nothing was recorded in this window",
                                 TextStyle::dim));
    }

    void worker_bar(const WorkerBlame& worker) {
        ScreenLine at = line();
        const double span = static_cast<double>(std::max<std::int64_t>(worker.span_ns, 1));
        const std::int64_t idle_ns = worker.idle_ns + worker.idle_no_slot_ns + worker.unknown_ns;
        at.add(fmt::format("{:>4} ", worker.worker));
        const std::string busy = fmt::format("{:>6} busy", percent(1 - static_cast<double>(idle_ns) / span));
        const std::size_t width = at.left() > busy.size() + 2 ? at.left() - busy.size() - 2 : 0;
        double sum = 0;
        std::size_t filled = 0;
        const auto fill = [&](std::int64_t ns, std::string_view sign, TextStyle style) {
            sum += static_cast<double>(ns) / span * static_cast<double>(width);
            std::string part;
            for (; filled < std::min(width, static_cast<std::size_t>(sum + 0.5)); ++filled)
                part += sign;
            at.add(part, style);
        };
        for (std::size_t i = 0; i < worker.stages_ns.size(); ++i)
            fill(worker.stages_ns[i], fills[i % fills.size()], fill_styles[i % fills.size()]);
        fill(worker.collate_ns + worker.sampler_ns, "+", TextStyle::plain);
        fill(worker.run_queue_ns + worker.overhead_ns, "-", TextStyle::red);
        fill(idle_ns, "·", TextStyle::dim);
        put(at.before_last(busy.size()).add(busy));
    }

    void queue() {
        const auto& queue = view_.now.queue;
        put(row("queue").add(queue ? fmt::format("{:.2f} batches ready, empty {} of the time", queue->mean_ready,
                                                 percent(queue->empty_share))
                                   : "-"));
    }

    void memory() {
        const auto& memory = view_.run.memory;
        std::vector<std::string> parts;
        if (view_.resident_bytes)
            parts.push_back(format_bytes(static_cast<double>(*view_.resident_bytes)) + " resident");
        if (memory.loader_peak_bytes)
            parts.push_back("loaders held up to " + format_bytes(static_cast<double>(*memory.loader_peak_bytes)));
        if (memory.planned_bytes)
            parts.push_back("planned for loaders " + format_bytes(static_cast<double>(*memory.planned_bytes)));
        put(row("memory").add(parts.empty() ? "-" : fmt::format("{}", fmt::join(parts, ", "))));
    }

    void trust() {
        if (!view_.diagnosis)
            return put(row("trust").add("-"));
        const Trust& trust = view_.diagnosis->diagnosis.trust;
        if (trust.trusted)
            return put(row("trust").add("nothing speaks against these numbers"));
        for (const std::string& reason : trust.texts())
            put(row("DISTRUST").add(printable(reason), TextStyle::red));
    }

    void verdict() {
        ScreenLine at = row("verdict");
        if (!view_.diagnosis)
            return put(at.add("none yet", TextStyle::dim));
        const Diagnosis& diagnosis = view_.diagnosis->diagnosis;
        put(at.add(verdict_text(diagnosis), diagnosis.abstained ? TextStyle::dim : TextStyle::bold));
        if (!diagnosis.abstained)
            put(row("").add(advice_text(diagnosis),
                            diagnosis.advice ? style_of_gain(diagnosis.advice->gain) : TextStyle::dim));
    }

    void slow(std::size_t most) {
        if (!view_.diagnosis || view_.diagnosis->slow_samples.empty() || most == 0)
            return;
        std::string_view label = "slow";
        for (std::size_t i = 0; i < std::min(most, view_.diagnosis->slow_samples.size()); ++i) {
            const TopSample& sample = view_.diagnosis->slow_samples[i];
            put(row(std::exchange(label, ""))
                    .add(fmt::format("sample {} held up {}{}{}{}", sample.index, format_duration(sample.stall_s),
                                     sample.times > 1 ? fmt::format(" in {} times", sample.times) : "",
                                     sample.stage.empty() ? "" : ", in " + printable(sample.stage),
                                     sample.path.empty() ? "" : ": " + printable(sample.path))));
        }
    }

    void run_page() {
        // Rows besides causes, workers and samples.
        const std::size_t others =
            8 + (view_.diagnosis ? std::max<std::size_t>(view_.diagnosis->diagnosis.trust.reasons.size(), 1) : 1);
        const std::size_t spare = room() > others ? room() - others : 0;
        const std::size_t slow_rows = std::min<std::size_t>(spare / 5, 8);
        const std::size_t cause_rows = std::min<std::size_t>({(spare - slow_rows) / 2, view_.causes.size(), 10});
        rates();
        draw();
        causes(cause_rows);
        queue();
        workers(std::max<std::size_t>(spare - slow_rows - cause_rows, 1));
        memory();
        trust();
        verdict();
        slow(slow_rows);
    }

    void draws_page() {
        rates();
        draw();
        const auto part = [&](std::string_view name, double now_s, double run_s) {
            const auto share = [](double seconds, double wall_s) {
                return wall_s > 0 ? percent(seconds / wall_s) : std::string{"-"};
            };
            put(row("")
                    .add(name)
                    .to(label_width + 20)
                    .add(fmt::format("now {:>7}  mean {:>7}  of the time", share(now_s, view_.now.run.wall_s),
                                     share(run_s, view_.run.run.wall_s))));
        };
        part("starved", view_.now.draw.starved_s, view_.run.draw.starved_s);
        part("handoff", view_.now.draw.handoff_s, view_.run.draw.handoff_s);
        part("transfer", view_.now.draw.transfer_s, view_.run.draw.transfer_s);
        part("callbacks", view_.now.draw.callbacks_s, view_.run.draw.callbacks_s);
        if (view_.run.draw.order_s > 0)
            part("lost to order", view_.now.draw.order_s, view_.run.draw.order_s);
        blank();
        put(row("causes").add(fmt::format("of the draws of the last {}", format_duration(view_.now_s))));
        causes(view_.causes.size());
        blank();
        put(line().add(fmt::format("{:<7}{:<12}{:>9}{:>10}{:>10}{:>10}{:>10}{:>9}", "phase", "action", "calls", "mean",
                                   "median", "p90", "p99", "share"),
                       TextStyle::bold));
        for (const SummaryRow& each : view_.run.rows)
            put(line().add(fmt::format("{:<7}{:<12}{:>9}{:>10}{:>10}{:>10}{:>10}{:>9}", each.phase,
                                       name_of(each.action), format_count(static_cast<std::int64_t>(each.calls)),
                                       format_duration(each.mean_s), format_duration(each.median_s),
                                       format_duration(each.p90_s), format_duration(each.p99_s),
                                       percent(each.share_of_total))));
    }

    void workers_page() {
        queue();
        memory();
        const std::size_t stage_rows = view_.run.stages.size() + 2;
        workers(room() > stage_rows + 2 ? room() - stage_rows - 1 : 1);
        blank();
        put(line().add(
            fmt::format("{:<28}{:>9}{:>10}{:>10}{:>10}{:>9}", "stage", "calls", "mean", "p90", "p99", "failed"),
            TextStyle::bold));
        for (const StageSummary& stage : view_.run.stages)
            put(line()
                    .add(printable(stage.stage))
                    .to(27)
                    .add(fmt::format(" {:>9}{:>10}{:>10}{:>10}{:>9}",
                                     format_count(static_cast<std::int64_t>(stage.calls)),
                                     format_duration(stage.mean_s), format_duration(stage.p90_s),
                                     format_duration(stage.p99_s), stage.failures)));
    }

    void samples_page() {
        if (!view_.diagnosis || view_.diagnosis->slow_samples.empty())
            put(line().add("no sample has held the loop up", TextStyle::dim));
        const std::size_t errors = std::min(view_.run.errors.size(), room() / 2);
        slow(room() > errors + 1 ? room() - errors - 1 : 0);
        for (std::size_t i = 0; i < errors; ++i) {
            const ErrorSummary& error = view_.run.errors[view_.run.errors.size() - 1 - i];
            put(row(i == 0 ? "failed" : "")
                    .add(fmt::format("sample {} {}: {}: {}", error.index, printable(error.path), printable(error.stage),
                                     printable(error.message)),
                         TextStyle::red));
        }
    }

    void verdict_page() {
        verdict();
        trust();
        if (!view_.diagnosis)
            return;
        const Diagnosis& diagnosis = view_.diagnosis->diagnosis;
        blank();
        for (const std::string& sentence : diagnosis.evidence)
            paragraph("- ", sentence);
        blank();
        for (const Intervention& change : diagnosis.interventions) {
            if (room() < (diagnosis.how_to_refute.empty() ? 1 : 4))
                break;
            const std::string gain = gain_text(change.gain), name = change.change + (change.can_be_set() ? "" : " *");
            const std::size_t columns = columns_of(gain);
            put(line()
                    .to(2)
                    .add(cut(printable(name), width_ > columns + 4 ? width_ - columns - 4 : 0))
                    .before_last(columns)
                    .add(gain, style_of_gain(change.gain)));
        }
        if (room() > 0 && std::ranges::any_of(diagnosis.interventions, std::not_fn(&Intervention::can_be_set)))
            put(line().to(2).add("* no setting does this", TextStyle::dim));
        if (!diagnosis.how_to_refute.empty()) {
            blank();
            paragraph("to refute it: ", diagnosis.how_to_refute);
        }
    }

    void paragraph(std::string_view mark, std::string_view text) {
        const std::string all = std::string{mark} + printable(text);
        const std::size_t indent = std::min<std::size_t>(mark.size() > 2 ? 2 : mark.size(), width_ / 4);
        bool first = true;
        for (const std::string& part : wrapped(all, width_ - indent)) {
            ScreenLine at = line();
            put(at.to(std::exchange(first, false) ? 0 : indent).add(part));
        }
    }

    void help_page() {
        for (const auto& [key, what] : std::array<std::pair<std::string_view, std::string_view>, 9>{
                 {{"q", "quits; the run goes on"},
                  {"p", "pauses this view; the run goes on"},
                  {"1", "the run"},
                  {"2", "draws: parts, causes, and the times of all actions"},
                  {"3", "workers and stages"},
                  {"4", "samples that held the loop up, and samples that failed"},
                  {"5", "the verdict: evidence, and the predicted gain of each change"},
                  {"left, right", "an earlier moment, a later one: as far back as rows are kept"},
                  {"?", "this page"}}})
            put(line().to(2).add(key, TextStyle::bold).to(16).add(what));
        blank();
        paragraph("", fmt::format("\"now\" is the last {} of the recording, and so are causes, workers and the queue. "
                                  "The verdict is of the rows kept, all else of the whole run. A recording is written "
                                  "about once a second.",
                                  view_.now_s > 0 ? format_duration(view_.now_s) : "5 s"));
    }

    void keys() {
        ScreenLine at = line();
        for (const auto& [key, what] :
             std::array<std::pair<std::string_view, std::string_view>, 9>{{{"q", "quit"},
                                                                           {"p", options_.paused ? "go on" : "pause"},
                                                                           {"?", "help"},
                                                                           {"1", "run"},
                                                                           {"2", "draws"},
                                                                           {"3", "workers"},
                                                                           {"4", "samples"},
                                                                           {"5", "verdict"},
                                                                           {"←→", "time"}}}) {
            if (at.left() < columns_of(key) + what.size() + 3)
                break;
            at.add(key, TextStyle::bold).add(" ").add(what, TextStyle::dim).add("  ");
        }
        put(at);
    }

    const TopView& view_;
    const TopFrame& options_;
    std::size_t width_, height_;
    std::vector<std::string> lines_;
};

}   // namespace

std::string frame_text(const TopView& view, const TopFrame& options) { return Frame{view, options}.text(); }

std::string line_text(const TopView& view) {
    std::string line = view.progress ? progress_text(*view.progress) : std::string{"no step has ended yet"};
    if (view.progress) {
        line += fmt::format("  {} samples/s  draw {} of the time", rate(rate_of(view.now)),
                            percent(view.now.headroom.draw_share));
        if (!view.causes.empty() && view.now_s > 0)
            line += fmt::format(" ({} {})", printable(view.causes.front().first),
                                percent(view.causes.front().second / view.now_s));
        if (view.state == TopView::State::running && view.progress->left_s)
            line += fmt::format("  {} left", clock_text(*view.progress->left_s));
        if (view.diagnosis)
            line += fmt::format("  {}{}", view.diagnosis->diagnosis.trust.trusted ? "" : "DISTRUST ",
                                verdict_text(view.diagnosis->diagnosis));
    }
    if (view.state != TopView::State::running)
        line += "  " + state_text(view, false);
    return line + "\n";
}

}   // namespace drawpoint::cli
