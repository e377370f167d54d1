#include "instrumentation/report/text_sentences.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include <drawpoint/instrumentation/text/printable.hpp>
#include <drawpoint/instrumentation/text/terminal.hpp>

namespace drawpoint::sentences {
namespace {

std::string small_percent(double share) { return fmt::format("{:.2g} %", share * 100); }

std::optional<std::string> option(const Summary& summary, std::string_view name) {
    const auto found = std::ranges::find(summary.run.options, name, &std::pair<std::string, std::string>::first);
    return found == summary.run.options.end() ? std::nullopt : std::optional{found->second};
}

/// The five largest causes, and the sum of the others.
std::vector<std::string> blame_parts(const std::vector<BlameSummary>& blame) {
    constexpr std::size_t shown = 5;
    std::vector<std::string> parts;
    for (std::size_t i = 0; i < std::min(shown, blame.size()); ++i)
        parts.push_back(fmt::format("{} {} ({})", printable(blame[i].cause), format_duration(blame[i].total_s),
                                    percent(blame[i].share)));
    double rest_s = 0;
    for (std::size_t i = shown; i < blame.size(); ++i)
        rest_s += blame[i].total_s;
    if (rest_s > 0)
        parts.push_back("others " + format_duration(rest_s));
    return parts;
}

/// As a share of the device's time.
std::string share_of(double seconds, const Summary::Device& device) {
    return percent(device.time_s > 0 ? std::optional{seconds / device.time_s} : std::nullopt);
}

/// Where the device's time went.
Sentences device_sentences(const Summary::Device& device, std::size_t steps) {
    const auto share = [&](double seconds) { return share_of(seconds, device); };
    Sentences said{printable(device.name.empty() ? "device" : device.name) + ": span " + share(device.span_s),
                   fmt::format("dry {} (draws {}, steps {}, between {}, launch {})", share(device.dry_s),
                               share(device.exposed_s), share(device.step_s), share(device.between_s),
                               share(device.launch_s)),
                   "copy wait " + share(device.copy_wait_s), "lag " + format_duration(device.mean_lag_s)};
    if (device.is_synchronised())
        said.push_back("synchronised: the loop waits for it in each step");
    else if (device.is_paced_by_loop())
        said.push_back("launch-bound: the loop gives it work no faster than it is done");
    said.push_back(fmt::format("± {} a step", format_duration(device.uncertainty_s)));
    if (device.steps < steps)
        said.push_back(fmt::format("of {} timed steps", format_count(static_cast<std::int64_t>(device.steps))));
    return said;
}

Sentences copies_sentences(const Summary::Device& device) {
    const auto mean = [&](double all) { return all / static_cast<double>(device.copies); };
    Sentences said{format_bytes(mean(static_cast<double>(device.copied_bytes))) + " a batch",
                   format_duration(mean(device.copy_s))};
    if (device.copy_s > 0)
        said.push_back(format_bytes(static_cast<double>(device.copied_bytes) / device.copy_s) + "/s");
    return said;
}

/// The cost of drawing and its parts.
Sentences draw_sentences(const Summary& summary, TextOptions options) {
    Sentences draw{
        fmt::format("{} of wall ({})",
                    styled(percent(summary.headroom.draw_share),
                           summary.headroom.draw_share ? style_of_draw(*summary.headroom.draw_share) : TextStyle::plain,
                           options.colour),
                    format_duration(summary.headroom.draw_s))};
    if (summary.device) {
        const Summary::Device& device = *summary.device;
        const bool is_all = device.steps >= summary.run.steps;   // else the seconds are of the timed steps alone
        const auto said = [&](double seconds) {
            return share_of(seconds, device) + " of the device's time" +
                   (is_all ? " (" + format_duration(seconds) + ")" : "");
        };
        draw.push_back("exposed " + said(device.exposed_s));
        draw.push_back("hidden behind the device " + said(device.hidden_s));
    }
    const double split_s =
        summary.draw.starved_s + summary.draw.handoff_s + summary.draw.transfer_s + summary.draw.callbacks_s;
    const auto part = [&](std::string_view name, double seconds, bool always) {
        if (always || seconds > 0)
            draw.push_back(fmt::format("{} {} ({})", name, format_duration(seconds),
                                       percent(split_s > 0 ? std::optional{seconds / split_s} : std::nullopt)));
    };
    part("starved", summary.draw.starved_s, true);
    part("handoff", summary.draw.handoff_s, true);
    part("transfer", summary.draw.transfer_s, false);
    part("callbacks", summary.draw.callbacks_s, false);
    if (summary.draw.order_s > 0)
        draw.push_back(fmt::format("{} of starved lost to order", format_duration(summary.draw.order_s)));
    if (summary.left_out.first_draws_s > 0)
        draw.push_back(fmt::format("first {} {}", summary.left_out.first_batches == 1 ? "draw" : "draws",
                                   format_duration(summary.left_out.first_draws_s)));
    return draw;
}

std::string bytes_of(std::int64_t bytes) { return format_bytes(static_cast<double>(bytes)); }

/// Adds `sentence(value)` if the value is known.
void add(Sentences& sentences, const auto& value, auto sentence) {
    if (value)
        sentences.push_back(sentence(*value));
}

Sentences workers_sentences(const Summary& summary) {
    Sentences sentences;
    for (const WorkerSummary& worker : summary.workers)
        sentences.push_back(fmt::format("{}: {} busy, {}", worker.worker, percent(worker.busy_share),
                                        counted(worker.samples, "sample")));
    return sentences;
}

Sentences queue_sentences(const Summary& summary) {
    if (!summary.queue)
        return {};
    return {fmt::format("{:.2f} batches ready on average", summary.queue->mean_ready),
            fmt::format("empty {} of the time", percent(summary.queue->empty_share))};
}

Sentences memory_sentences(const Summary& summary) {
    const Summary::Memory& memory = summary.memory;
    Sentences sentences;
    add(sentences, memory.planned_bytes, [](std::int64_t bytes) { return "planned " + bytes_of(bytes); });
    add(sentences, memory.loader_peak_bytes, [](std::int64_t bytes) { return "loaders " + bytes_of(bytes); });
    add(sentences, memory.slots_bytes, [](std::int64_t bytes) { return "batches " + bytes_of(bytes); });
    add(sentences, memory.peak_bytes, [](std::int64_t bytes) { return "peak " + bytes_of(bytes); });
    add(sentences, memory.slots_replaced, [](std::int64_t slots) { return counted(slots, "slot") + " replaced"; });
    add(sentences, memory.allocations_per_batch,
        [](double allocations) { return fmt::format("{:.1f} allocations a batch", allocations); });
    add(sentences, memory.minor_faults_per_batch,
        [](double faults) { return fmt::format("{:.1f} minor faults a batch", faults); });
    return sentences;
}

Sentences reading_sentences(const Summary& summary) {
    const auto& reading = summary.reading;
    if (!reading)
        return {};
    Sentences sentences;
    if (reading->ahead_share)
        sentences = {percent(reading->ahead_share) + " of samples read ahead",
                     format_duration(reading->mean_s) + " each",
                     fmt::format("{:.1f} at a time", reading->mean_in_flight.value_or(0))};
    if (reading->retries > 0)
        sentences.push_back(counted(reading->retries, "read") + " repeated");
    return sentences;
}

Sentences cache_sentences(const Summary& summary) {
    const auto& cache = summary.cache;
    if (!cache)
        return {};
    return {"hits " + percent(cache->hit_share()) + " of samples",
            fmt::format("{} in {} of {}", counted(cache->samples, "sample"), bytes_of(cache->bytes),
                        bytes_of(cache->budget_bytes)),
            printable(cache->origin)};
}

Sentences account_sentences(const Summary& summary) {
    const Summary::Conservation& account = summary.conservation;
    Sentences sentences{fmt::format("{} of {} recorded: {} ns unaccounted for",
                                    account.max_residual_ns == 0 && account.untiled_ns == 0 ? "every piece" : "pieces",
                                    counted(account.steps, "step"),
                                    std::max(account.max_residual_ns, account.untiled_ns)),
                        "other " + percent(account.other_share_of_batch) + " of batch"};
    const auto add = [&](std::int64_t ns, std::string_view what) {
        if (static_cast<double>(ns) > 1e6 * summary.run.wall_s)   // above 0.1 %
            sentences.push_back(format_duration(static_cast<double>(ns) / 1e9) + std::string{what});
    };
    add(account.unmarked_ns, " that no mark tells from what came next");
    add(account.clamped_ns, " of stamps before the last one");
    add(account.ahead_ns, " of stamps from the future");
    return sentences;
}

Sentences trust_sentences(const Summary& summary) {
    const auto& trust = summary.trust;
    if (!trust)
        return {};
    return {trust->trusted ? "nothing speaks against these numbers" : "see DISTRUST above",
            "others took " + percent(trust->interference_share) + " of the cores",
            "a hypervisor " + percent(trust->steal_share)};
}

Sentences left_out_sentences(const Summary& summary) {
    std::string text;
    const auto add_steps = [&](std::size_t count, std::string_view noun, std::string_view why) {
        if (count > 0)
            text += fmt::format("{}{}{}", text.empty() ? "" : ", ", counted(count, noun), why);
    };
    add_steps(summary.left_out.first_batches, "first batch", " (warm-up)");
    add_steps(summary.left_out.not_drawn, "step", " skipped before the draw");
    add_steps(summary.left_out.failed, "step", " left by an error or a stop");
    return text.empty() ? Sentences{} : Sentences{text + ", of the rows train and valid"};
}

Sentences clock_sentences(const Summary& summary) {
    Sentences sentences;
    add(sentences, summary.run.clock, [](const std::string& clock) {
        return printable(clock) + " of the host";   // does not wait for work queued on a device
    });
    add(sentences, summary.recording.ns_per_event, [](double ns) { return fmt::format("{:.1f} ns an event", ns); });
    add(sentences, summary.recording.share_of_cpu,
        [](double share) { return "recording took " + small_percent(share) + " of the run's CPU"; });
    return sentences;
}

Sentences machine_sentences(const Summary& summary) {
    const Machine& machine = summary.machine;
    Sentences sentences;
    const auto add_name = [&](const std::string& name) {
        if (!name.empty())
            sentences.push_back(printable(name));
    };
    add_name(machine.cpu);
    add(sentences, machine.cores_usable, [](std::int64_t cores) { return counted(cores, "core") + " usable"; });
    add_name(machine.kernel);
    add_name(machine.compiler);
    for (const auto& [name, version] : machine.libraries)
        sentences.push_back(printable(name) + " " + printable(version));
    return sentences;
}

Sentences digest_sentences(const Summary& summary) {
    Sentences sentences;
    add(sentences, summary.run.digest,
        [](const std::string& digest) { return printable(digest) + " of the indices and targets trained on"; });
    return sentences;
}

/// A line of background information below the numbers; omitted if `say` returns nothing.
struct FootingLine {
    std::string_view label;
    Sentences (*say)(const Summary&);
};
constexpr std::array footing_lines{
    FootingLine{"workers", workers_sentences},     FootingLine{"queue", queue_sentences},
    FootingLine{"memory", memory_sentences},       FootingLine{"reading", reading_sentences},
    FootingLine{"cache", cache_sentences},         FootingLine{"account", account_sentences},
    FootingLine{"trust", trust_sentences},         FootingLine{"left out", left_out_sentences},
    FootingLine{"recording", recording_sentences}, FootingLine{"", damage_sentences},
    FootingLine{"clock", clock_sentences},         FootingLine{"machine", machine_sentences},
    FootingLine{"digest", digest_sentences}};

}   // namespace

std::string percent(std::optional<double> share) {
    if (!share)
        return std::string{unknown};
    const double value = *share * 100;
    return fmt::format("{:.{}f} %", value, std::abs(value) < 9.95 && value != 0 ? 1 : 0);
}

std::string rate(std::optional<double> per_s) {
    if (!per_s)
        return std::string{unknown};
    return std::abs(*per_s) < 99.95 ? fmt::format("{:.1f}", *per_s) : format_count(std::llround(*per_s));
}

std::vector<Line> headline(const Summary& summary, TextOptions options) {
    const Summary::Run& run = summary.run;
    std::vector<Line> lines;
    std::vector<std::string> what;
    if (const auto data = option(summary, "data"))
        what.push_back(printable(option(summary, "model").value_or("model")) + " on " + printable(*data));
    if (run.batch_size > 0) {
        what.push_back(fmt::format("batch {}", run.batch_size));
        what.push_back(run.num_workers == 0 ? "no workers: loaded by the loop itself"
                                            : counted(run.num_workers, "worker"));
        if (run.num_workers > 0)
            what.push_back(fmt::format("depth {}", run.prefetch_depth));
        if (run.order != "in")
            what.push_back("order " + printable(run.order));
    }
    if (!what.empty())
        lines.push_back({"run", what});
    if (run.stopped)
        lines.push_back({"stopped", {printable(*run.stopped)}});
    if (!run.ended)
        lines.push_back({"cut", {"the recording stops inside the run: what follows is about the time before"}});

    lines.push_back({"wall",
                     {format_duration(run.wall_s), counted(run.epochs, "epoch"), counted(run.steps, "step"),
                      counted(run.samples, "sample"),
                      run.samples_per_s() ? rate(*run.samples_per_s()) + " samples/s" : "- samples/s"}});
    lines.push_back({"draw", draw_sentences(summary, options)});
    if (summary.device) {
        lines.push_back({"device", device_sentences(*summary.device, summary.run.steps)});
        if (summary.device->copies > 0)
            lines.push_back({"copies", copies_sentences(*summary.device)});
    }
    if (summary.blame && !summary.blame->empty())
        lines.push_back({"blame", blame_parts(*summary.blame)});
    if (summary.trust && !summary.trust->trusted)
        for (std::size_t i = 0; i < summary.trust->reasons.size(); ++i)
            lines.push_back({i == 0 ? "DISTRUST" : "", {printable(summary.trust->reasons[i])}});
    if (const auto gain = summary.headroom.throughput_gain_if_draw_were_zero)
        lines.push_back({"headroom",
                         {fmt::format("if {} were free: ×{:.{}f}", summary.device ? "data" : "the draw", 1 + *gain,
                                      *gain < 1 ? 3 : 2)}});
    if (summary.model.loss_first) {
        std::vector<std::string> model{
            fmt::format("loss {:.4g} → {:.4g}", *summary.model.loss_first, *summary.model.loss_last)};
        if (summary.model.accuracy)
            model.push_back("accuracy " + percent(summary.model.accuracy));
        lines.push_back({"model", model});
    }
    return lines;
}

std::vector<Line> footing(const Summary& summary) {
    std::vector<Line> lines;
    for (const FootingLine& line : footing_lines)
        if (Sentences sentences = line.say(summary); !sentences.empty())
            lines.emplace_back(line.label, std::move(sentences));
    return lines;
}

std::vector<Line> error_lines(const Summary& summary) {
    constexpr std::size_t shown = 10;
    std::vector<Line> lines;
    for (std::size_t i = 0; i < std::min(shown, summary.errors.size()); ++i) {
        const ErrorSummary& error = summary.errors[i];
        const std::string_view handling = error.handling == "skip"         ? ", skipped"
                                          : error.handling == "substitute" ? ", substituted"
                                                                           : "";
        lines.push_back({i == 0 ? "errors" : "",
                         {fmt::format("sample {} ({}): {}: {}{}", error.index, printable(error.path),
                                      printable(error.stage), printable(error.message), handling)}});
    }
    if (summary.errors.size() > shown)
        lines.push_back(
            {"", {fmt::format("and {} more, {} in all", summary.errors.size() - shown, summary.errors.size())}});
    return lines;
}

Sentences recording_sentences(const Summary& summary) {
    const Summary::Recording& recording = summary.recording;
    Sentences sentences;
    if (!recording.file.empty())
        sentences.push_back(printable(recording.file));
    add(sentences, recording.bytes, bytes_of);
    add(sentences, recording.events, [](std::int64_t events) { return counted(events, "event"); });
    sentences.push_back(recording.dropped == 0 ? "none dropped" : counted(recording.dropped, "event") + " DROPPED");
    if (recording.thinned_to > 1)
        sentences.push_back(
            fmt::format("thinned to the samples of every {} batch", format_ordinal(recording.thinned_to)));
    add(sentences, recording.percentile_error_share, [](double share) {
        return fmt::format("old steps folded (percentiles within {}, queue of the steps kept)", small_percent(share));
    });
    return sentences;
}

Sentences damage_sentences(const Summary& summary) {
    Sentences sentences;
    add(sentences, summary.recording.error,
        [](const std::string& error) { return "the file ends early: " + printable(error); });
    return sentences;
}

}   // namespace drawpoint::sentences
