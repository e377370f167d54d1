#include <drawpoint/diagnosis/run_page/run_page.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include <drawpoint/diagnosis/verdict/verdict_report.hpp>
#include <drawpoint/instrumentation/text/format.hpp>
#include <drawpoint/instrumentation/text/printable.hpp>

#include "diagnosis/blame/draw_timeline.hpp"
#include "diagnosis/run_page/charts.hpp"
#include "diagnosis/page/page.hpp"
#include "diagnosis/whatif/whatif_chart.hpp"

namespace drawpoint {
namespace {

constexpr std::size_t pictured_draws = 3, listed_samples = 20, listed_errors = 20;

PageCell duration(std::optional<double> s) { return {s, format_duration(s.value_or(0))}; }
PageCell bytes(std::optional<double> count) { return {count, format_bytes(count.value_or(0))}; }
template <class T>
PageCell bytes(std::optional<T> count) {
    return count ? bytes(std::optional{static_cast<double>(*count)}) : bytes(std::optional<double>{});
}
PageCell percent(std::optional<double> share) { return {share, fmt::format("{:.1f} %", share.value_or(0) * 100)}; }
PageCell rate(std::optional<double> per_s) {
    const double value = per_s.value_or(0);
    return {per_s, std::abs(value) < 99.95 ? fmt::format("{:.1f}", value) : format_count(std::llround(value))};
}
PageCell count(std::uint64_t number) {
    return {static_cast<double>(number), format_count(static_cast<std::int64_t>(number))};
}

class Page {
public:
    Page(const Ledger& ledger, const Summary& summary, const RunPage& page)
        : ledger_{ledger}, summary_{summary}, page_{page} {}

    std::string text() {
        if (page_.live)
            live(*page_.live);
        verdict();
        keys();
        if (page_.diagnosis)
            evidence(*page_.diagnosis);
        steps();
        draws();
        workers();
        if (page_.diagnosis) {
            longest_draws(*page_.diagnosis);
            slow_samples(*page_.diagnosis);
        }
        if (page_.whatif)
            settings(*page_.whatif);
        actions();
        stages();
        flames();
        device();
        memory();
        errors();
        run();
        return page_of(page_.title, html_, page_.live && page_.live->is_running);
    }

private:
    void add(const std::string& piece) { html_ += piece; }
    void figure(const std::optional<Svg>& picture, std::string_view caption) {
        if (picture)
            add(figure_of(*picture, caption));
    }

    void live(const LivePage& live) {
        add(fmt::format("<p id=\"state\">{}</p>\n<p>Of this run: <a href=\"perfetto\">the timeline in Perfetto</a>, "
                        "<a href=\"run.pftrace\">the recording</a>, <a href=\"report.json\">the report as JSON</a>, "
                        "<a href=\"metrics\">metrics for Prometheus</a>.</p>\n",
                        printable_markup(live.state)));
    }

    void verdict() {
        if (!page_.diagnosis) {
            add(paragraph_of(ledger_.pipelines.empty() ? "No verdict: the recording has no records of a loader."
                                                       : "No verdict.",
                             "verdict"));
            return;
        }
        const Diagnosis& found = *page_.diagnosis;
        add(fmt::format("<p class=\"verdict\">Why the draw waits: <strong>{}</strong></p>\n",
                        printable_markup(found.abstained ? to_string(found.verdict) : verdict_text(found))));
        if (found.abstained)
            add(paragraph_of("No verdict: " + *found.abstained));
        for (const std::string& reason : found.trust.texts())
            add(fmt::format("<p class=\"bad\"><strong>Not to be trusted</strong>: {}</p>\n", printable_markup(reason)));
        if (!found.abstained)
            add(fmt::format("<p>Advice: <strong>{}</strong></p>\n", printable_markup(advice_text(found))));
        if (!found.how_to_refute.empty())
            add(paragraph_of("To refute it: " + found.how_to_refute));
    }

    void keys() {
        std::vector<std::pair<std::string_view, PageCell>> keys;
        keys.emplace_back("samples/s", rate(summary_.run.samples_per_s()));
        keys.emplace_back("of the time in draws", percent(summary_.headroom.draw_share));
        keys.emplace_back("more throughput if draws took no time",
                          percent(summary_.headroom.throughput_gain_if_draw_were_zero));
        keys.emplace_back("steps", count(summary_.run.steps));
        keys.emplace_back("samples", count(summary_.run.samples));
        keys.emplace_back("of wall time", duration(summary_.run.wall_s));
        add("<ul class=\"keys\">\n");
        for (const auto& [name, value] : keys)
            add(fmt::format("<li><b>{}</b> {}</li>\n", value.value ? number_of(*value.value, value.text) : value.text,
                            name));
        add("</ul>\n");
    }

    void evidence(const Diagnosis& found) {
        if (!found.evidence.empty()) {
            add(heading_of("Evidence") + "<ul>\n");
            for (const std::string& sentence : found.evidence)
                add(fmt::format("<li>{}</li>\n", printable_markup(sentence)));
            add("</ul>\n");
        }
        if (found.interventions.empty())
            return;
        PageTable table{.caption = "What one change alone is predicted to do (90 % interval)",
                        .titles = {"change", "a setting", "throughput", "low", "high"},
                        .rows = {}};
        for (const Intervention& change : found.interventions) {
            const auto gain = [](double share) {
                return PageCell{std::optional{share}, fmt::format("{:+.1f} %", share * 100 + 0.0)};
            };
            table.rows.push_back({change.change, change.can_be_set() ? "yes" : "no", gain(change.gain.median),
                                  gain(change.gain.low), gain(change.gain.high)});
        }
        add(element_of(table));
    }

    void steps() {
        add(heading_of("Steps"));
        if (summary_.run.steps > ledger_.steps.size())
            add(paragraph_of(
                fmt::format("Of the first {} steps only totals are kept: they are in the numbers, but in no "
                            "picture.",
                            format_count(static_cast<std::int64_t>(summary_.run.steps - ledger_.steps.size()))),
                "dim"));
        figure(step_chart(ledger_, page_.diagnosis ? &page_.diagnosis->blame : nullptr),
               "Mean time of a step over the run. Hatched: the draw, by what it waited for.");
    }

    void draws() {
        add(heading_of("Draws"));
        if (page_.diagnosis) {
            std::vector<BlameRow> rows = page_.diagnosis->blame_rows;
            std::erase_if(rows, [](const BlameRow& row) { return row.ns <= 0; });
            if (!rows.empty()) {
                figure(blame_chart(rows), "What the steady training draws waited for.");
                PageTable table{.caption = "The same in numbers", .titles = {"cause", "time", "share"}, .rows = {}};
                for (const BlameRow& row : rows)
                    table.rows.push_back({row.cause, duration(static_cast<double>(row.ns) / 1e9), percent(row.share)});
                add(element_of(table));
            }
        }
        figure(draw_histogram(summary_), "How many draws took how long.");
        const Summary::Draw& parts = summary_.draw;
        PageTable table{.caption = "Parts of all draws", .titles = {"part", "time"}, .rows = {}};
        for (const auto& [name, s] : {std::pair{"starved: the batch did not exist yet", parts.starved_s},
                                      {"handoff: it existed, the loop had not resumed", parts.handoff_s},
                                      {"transfer: waiting for the copy to the device", parts.transfer_s},
                                      {"callbacks of before_draw", parts.callbacks_s},
                                      {"of starved: a later batch was complete (order)", parts.order_s}})
            table.rows.push_back({name, duration(s)});
        add(element_of(table));
    }

    void workers() {
        const LoaderRows rows{ledger_};
        const auto chart = worker_chart(ledger_, rows);
        if (!chart && summary_.workers.empty())
            return;
        add(heading_of("Workers and queue"));
        figure(chart, "What the workers did over the run, and how many batches were ready.");
        PageTable table{.caption = "Workers", .titles = {"worker", "busy", "samples"}, .rows = {}};
        for (const WorkerSummary& worker : summary_.workers)
            table.rows.push_back({fmt::format("{}", worker.worker), percent(worker.busy_share), count(worker.samples)});
        add(element_of(table));
        if (summary_.queue)
            add(fmt::format("<p>Ready batches: {} on average; none for {} of the time.</p>\n",
                            number_of(summary_.queue->mean_ready, fmt::format("{:.2f}", summary_.queue->mean_ready)),
                            number_of(summary_.queue->empty_share, percent(summary_.queue->empty_share).text)));
    }

    void longest_draws(const Diagnosis& found) {
        std::vector<const DrawBlame*> draws;
        for (const DrawBlame& draw : found.blame.draws)
            if (const StepRow& step = ledger_.steps[draw.step];
                kind_of(draw) == DrawKind::steady && step.draw_ns > step.batch_ns / 20)   // shorter ones do not matter
                draws.push_back(&draw);
        const std::size_t shown = std::min(draws.size(), pictured_draws);
        std::ranges::partial_sort(draws, draws.begin() + static_cast<std::ptrdiff_t>(shown), std::ranges::greater{},
                                  [&](const DrawBlame* draw) { return ledger_.steps[draw->step].draw_ns; });
        if (shown == 0)
            return;
        add(heading_of("The longest draws"));
        const LoaderRows rows{ledger_};
        for (std::size_t i = 0; i < shown; ++i) {
            const StepRow& step = ledger_.steps[draws[i]->step];
            figure(draw_picture(ledger_, rows, *draws[i]),
                   fmt::format("Step {}: the draw took {}. {}", step.step,
                               format_duration(static_cast<double>(step.draw_ns) / 1e9),
                               draw_sentence(ledger_, found.blame, *draws[i])));
        }
    }

    void slow_samples(const Diagnosis& found) {
        const auto& slow = found.blame.slow_samples;
        if (slow.empty())
            return;
        add(heading_of("Samples that held the loop up"));
        PageTable table{.caption = "By how much earlier their batches would have been complete without them",
                        .titles = {"sample", "stall", "times", "longest stage", "from"},
                        .rows = {}};
        for (std::size_t i = 0; i < std::min(slow.size(), listed_samples); ++i) {
            const SampleRow& row = ledger_.samples[slow[i].sample];
            const auto stages = row.pipeline < ledger_.pipelines.size() ? ledger_.pipelines[row.pipeline].stages
                                                                        : std::vector<std::string>{};
            table.rows.push_back({fmt::format("{}", row.index), duration(static_cast<double>(slow[i].stall_ns) / 1e9),
                                  count(slow[i].times),
                                  slow[i].stage < stages.size() ? stages[slow[i].stage] : std::string{"-"},
                                  path_of(ledger_, slow[i]).value_or("-")});
        }
        add(element_of(table));
    }

    void settings(const Whatif& found) {
        add(heading_of("Other settings"));
        add(whatif_body(found));
    }

    void actions() {
        add(heading_of("Actions"));
        PageTable table{
            .caption = "What the loop did",
            .titles = {"phase", "action", "calls", "mean", "median", "p90", "p99", "total", "share", "samples/s"},
            .rows = {}};
        for (const SummaryRow& row : summary_.rows)
            table.rows.push_back({row.phase, name_of(row.action), count(row.calls), duration(row.mean_s),
                                  duration(row.median_s), duration(row.p90_s), duration(row.p99_s),
                                  duration(row.total_s), percent(row.share_of_total), rate(row.samples_per_s)});
        add(element_of(table));
    }

    void stages() {
        if (summary_.stages.empty())
            return;
        add(heading_of("Stages"));
        PageTable table{.caption = "What workers did with samples and batches",
                        .titles = {"stage", "calls", "mean", "median", "p90", "p99", "total", "CPU", "read", "failed"},
                        .rows = {}};
        for (const StageSummary& stage : summary_.stages)
            table.rows.push_back({stage.stage, count(stage.calls), duration(stage.mean_s), duration(stage.median_s),
                                  duration(stage.p90_s), duration(stage.p99_s), duration(stage.total_s),
                                  duration(stage.cpu_s), bytes(std::optional{static_cast<double>(stage.bytes)}),
                                  count(stage.failures)});
        add(element_of(table));
    }

    void flames() {
        add(heading_of(ledger_.stack_samples.empty() ? "Where the loop's time went" : "Functions"));
        figure(stack_flame(ledger_), ledger_.stack_samples.empty()
                                         ? "Every piece of the loop's time, by what it is part of."
                                         : "Call stacks by thread and action.");
        if (const auto operators = operator_flame(ledger_)) {
            add(heading_of("Operators"));
            figure(operators, "Operators by their callers.");
        }
    }

    void device() {
        if (!summary_.device)
            return;
        const Summary::Device& device = *summary_.device;
        add(heading_of("Device"));
        PageTable table{.caption = "What the device did in the steps that were timed there",
                        .titles = {"part", "time"},
                        .rows = {{"all of these steps", duration(device.time_s)},
                                 {"dry: it had nothing to do", duration(device.dry_s)},
                                 {"of that, while the loop drew (exposed)", duration(device.exposed_s)},
                                 {"of that, while the loop worked in a step", duration(device.step_s)},
                                 {"of that, between steps", duration(device.between_s)},
                                 {"of that, while a command was on its way", duration(device.launch_s)},
                                 {"waiting for a copy", duration(device.copy_wait_s)},
                                 {"draws while it had work (hidden)", duration(device.hidden_s)}}};
        add(element_of(table));
    }

    void memory() {
        const Summary::Memory& memory = summary_.memory;
        add(heading_of("Memory"));
        PageTable table{.caption = "Memory",
                        .titles = {"what", "size"},
                        .rows = {{"planned for loaders", bytes(memory.planned_bytes)},
                                 {"held by loaders at most", bytes(memory.loader_peak_bytes)},
                                 {"of batches", bytes(memory.slots_bytes)},
                                 {"of the process at most", bytes(memory.peak_bytes)}}};
        add(element_of(table));
    }

    void errors() {
        if (summary_.errors.empty())
            return;
        add(heading_of("Samples that failed"));
        PageTable table{.caption = summary_.errors.size() > listed_errors ? "The first 20" : "All",
                        .titles = {"sample", "path", "stage", "message", "then"},
                        .rows = {}};
        for (std::size_t i = 0; i < std::min(summary_.errors.size(), listed_errors); ++i) {
            const ErrorSummary& error = summary_.errors[i];
            table.rows.push_back({fmt::format("{}", error.index), error.path, error.stage, error.message,
                                  error.handling.empty() ? "raised" : error.handling});
        }
        add(element_of(table));
    }

    void run() {
        const Summary::Run& run = summary_.run;
        add(heading_of("Run and machine"));
        std::vector<std::vector<PageCell>> rows{
            {"batch_size", fmt::format("{}", run.batch_size)},
            {"num_workers", fmt::format("{}", run.num_workers)},
            {"prefetch_depth", fmt::format("{}", run.prefetch_depth)},
            {"order", run.order},
            {"stopped",
             run.ended ? run.stopped.value_or("no: it ended by itself") : "the recording stops inside the run"},
            {"digest of what was trained on", run.digest.value_or("-")},
            {"machine", summary_.machine.cpu},
            {"usable cores", summary_.machine.cores_usable ? fmt::format("{}", *summary_.machine.cores_usable) : "-"},
            {"kernel", summary_.machine.kernel},
            {"compiler", summary_.machine.compiler}};
        for (const auto& [name, version] : summary_.machine.libraries)
            rows.push_back({name, version});
        rows.push_back({"drawpoint", page_.version});
        rows.push_back({"command", page_.command});
        for (const auto& [name, value] : run.options)
            rows.push_back({"--" + name, value});
        add(element_of({.caption = "Settings", .titles = {"name", "value"}, .rows = std::move(rows)}));
        const Summary::Recording& recording = summary_.recording;
        add(fmt::format(
            "<p>Of {} steps the pieces add up to the measured time within {} ns; {} records were lost.</p>\n",
            number_of(static_cast<double>(summary_.conservation.steps),
                      format_count(static_cast<std::int64_t>(summary_.conservation.steps))),
            number_of(static_cast<double>(summary_.conservation.max_residual_ns),
                      format_count(summary_.conservation.max_residual_ns)),
            number_of(static_cast<double>(recording.dropped),
                      format_count(static_cast<std::int64_t>(recording.dropped)))));
    }

    const Ledger& ledger_;
    const Summary& summary_;
    const RunPage& page_;
    std::string html_;
};

}   // namespace

std::string to_html(const Ledger& ledger, const Summary& summary, const RunPage& page) {
    return Page{ledger, summary, page}.text();
}

std::string_view name_of(RunPicture picture) noexcept {
    constexpr std::array<std::string_view, run_picture_count> names{"steps", "draws", "workers", "flame"};
    return names[static_cast<std::size_t>(picture)];
}

std::optional<std::string> to_svg(const Ledger& ledger, const Summary& summary, const Diagnosis* diagnosis,
                                  RunPicture picture) {
    const auto drawn = [&]() -> std::optional<Svg> {
        switch (picture) {
        case RunPicture::steps: return step_chart(ledger, diagnosis ? &diagnosis->blame : nullptr);
        case RunPicture::draws: return draw_histogram(summary);
        case RunPicture::workers: return worker_chart(ledger, LoaderRows{ledger});
        case RunPicture::flame: {
            auto operators = ledger.stack_samples.empty() ? operator_flame(ledger) : std::nullopt;
            return operators ? std::move(operators) : stack_flame(ledger);
        }
        }
        return std::nullopt;
    }();
    return drawn ? std::optional{drawn->alone()} : std::nullopt;
}

std::string explain_svg(const Ledger& ledger, const Blame& blame, std::optional<std::uint32_t> step) {
    return draw_picture(ledger, LoaderRows{ledger}, explained_draw(ledger, blame, step)).alone();
}

}   // namespace drawpoint
