#include <drawpoint/instrumentation/report/advanced.hpp>

#include <algorithm>
#include <cctype>
#include <span>
#include <stdexcept>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include <drawpoint/instrumentation/ledger/attribution.hpp>
#include <drawpoint/instrumentation/facts.hpp>
#include <drawpoint/instrumentation/text/printable.hpp>

namespace drawpoint {
namespace {

/// Numbers the distinct places of the frames, where a place is file, line of the declaration and function.
class Places {
public:
    explicit Places(const Ledger& ledger) : ledger_{&ledger} {
        std::unordered_map<std::string, std::uint32_t> known;
        for (const FrameRow& frame : ledger.frames) {
            const auto [at, fresh] = known.try_emplace(place_of(frame), static_cast<std::uint32_t>(texts_.size()));
            if (fresh)
                texts_.push_back(at->first);
            of_frame_.push_back(at->second);
        }
    }

    [[nodiscard]] std::uint32_t of_frame(std::uint32_t frame) const { return of_frame_.at(frame); }
    [[nodiscard]] const std::string& text(std::uint32_t place) const { return texts_[place]; }

private:
    [[nodiscard]] std::string_view name(std::uint32_t at) const {
        return at < ledger_->names.size() ? std::string_view{ledger_->names[at]} : std::string_view{};
    }

    [[nodiscard]] std::string place_of(const FrameRow& frame) const {
        std::string_view file = name(frame.file);
        file.remove_prefix(file.rfind('/') + 1);
        std::string text{file};
        if (frame.line != 0)
            text += ":" + std::to_string(frame.line);
        if (text.empty())
            return "{" + printable(name(frame.function)) + "}";
        return printable(text) + "(" + printable(name(frame.function)) + ")";
    }

    const Ledger* ledger_;
    std::vector<std::string> texts_;
    std::vector<std::uint32_t> of_frame_;
};

/// The number of `lines` that the restriction leaves, computed as in Python's pstats.
std::size_t restricted(std::size_t lines, const LineRestriction& restriction) {
    if (const auto* count = std::get_if<std::int64_t>(&restriction))
        return std::min(lines, static_cast<std::size_t>(*count));
    const double share = std::get<double>(restriction);
    return share < 1.0 ? static_cast<std::size_t>(static_cast<double>(lines) * share + 0.5) : lines;
}

void check(const LineRestriction& restriction) {
    const bool holds = std::visit([](auto value) { return value >= 0; }, restriction) &&
                       (std::holds_alternative<std::int64_t>(restriction) || std::get<double>(restriction) <= 1.0);
    if (!holds)
        throw std::invalid_argument{std::visit(
            [](auto value) {
                return fmt::format("line_count_restriction must be a count or a share between 0 and 1, got {}", value);
            },
            restriction)};
}

std::string count_text(const FunctionProfile& function) {
    return function.calls == function.primitive_calls ? fmt::format("{}", function.calls)
                                                      : fmt::format("{}/{}", function.calls, function.primitive_calls);
}

double seconds(std::int64_t ns) { return static_cast<double>(ns) * 1e-9; }

void append_action(std::string& text, const ActionProfile& profile, const AdvancedOptions& options) {
    const auto out = std::back_inserter(text);
    fmt::format_to(out, "Profile stats for: {}", printable(profile.action));
    if (options.rank)
        fmt::format_to(out, " rank: {}", *options.rank);
    fmt::format_to(out, "\n         {} samples in {:.3f} seconds\n\n   Ordered by: cumulative time\n", profile.samples,
                   seconds(profile.ns));
    const std::size_t all = profile.functions.size();
    const std::size_t shown = restricted(all, options.line_count_restriction);
    if (shown != all)
        fmt::format_to(out, "   List reduced from {} to {} due to restriction <{}>\n", all, shown,
                       std::visit([](auto value) { return fmt::format("{}", value); }, options.line_count_restriction));
    text += "\n   ncalls  tottime  percall  cumtime  percall filename:lineno(function)\n";
    for (const FunctionProfile& function : std::span{profile.functions}.first(shown)) {
        const double total = seconds(function.total_ns), cumulative = seconds(function.cumulative_ns);
        fmt::format_to(out, "{:>9} {:8.3f} {:8.3f} {:8.3f} {:8.3f} {}\n", count_text(function), total,
                       total / static_cast<double>(function.calls), cumulative,
                       cumulative / static_cast<double>(function.primitive_calls), function.place);
    }
    text += "\n\n";
}

/// Appends the activity and cost of the profiler itself, separate from what it measured.
void append_own_cost(std::string& text, const Ledger& ledger) {
    static constexpr std::pair<std::string_view, std::string_view> rows[]{
        {"back end", facts::sampling_backend},
        {"perf_event refused", facts::sampling_refused},
        {"time in the kernel", facts::sampling_kernel},
        {"rate asked (Hz)", facts::sampling_rate_asked_hz},
        {"rate obtained (Hz)", facts::sampling_rate_hz},
        {"samples", facts::sampling_samples},
        {"samples lost", facts::sampling_lost},
        {"threads sampled", facts::sampling_threads},
        {"threads not sampled", facts::sampling_unsampled},
        {"own CPU time (s)", facts::sampling_cpu_s},
        {"own share of CPU", facts::sampling_share_of_cpu}};
    if (!ledger.fact(facts::sampling_backend))
        return;
    text += "\nProfiler's own cost\n";
    for (const auto& [label, key] : rows) {
        if (const auto value = ledger.fact(key))
            fmt::format_to(std::back_inserter(text), "   {:<20} {}\n", label, printable(*value));
    }
}

}   // namespace

std::vector<ActionProfile> advanced_profiles(const Ledger& ledger) {
    const Attribution attribution{ledger};
    const Places places{ledger};
    std::unordered_map<std::string, std::size_t> known;
    struct Sums {
        std::unordered_map<std::uint32_t, std::size_t> functions;   // by place
    };
    std::vector<ActionProfile> profiles;
    std::vector<Sums> sums;
    std::vector<std::uint32_t> seen;
    for (const StackSampleRow& sample : ledger.stack_samples) {
        std::string action = attribution.action_of(attribution.at(sample.thread, sample.at_ns));
        if (action.empty())
            action = "(no action)";
        const auto [at, fresh] = known.try_emplace(std::move(action), profiles.size());
        if (fresh) {
            profiles.push_back({.action = at->first});
            sums.emplace_back();
        }
        ActionProfile& profile = profiles[at->second];
        Sums& sum = sums[at->second];
        ++profile.samples;
        profile.ns += sample.weight_ns;
        seen.clear();
        bool innermost = true;
        for (std::uint32_t stack = sample.stack; stack < ledger.stacks.size(); stack = ledger.stacks[stack].parent) {
            const std::uint32_t place = places.of_frame(ledger.stacks[stack].frame);
            const auto [function_at, new_function] = sum.functions.try_emplace(place, profile.functions.size());
            if (new_function)
                profile.functions.push_back({.place = places.text(place)});
            FunctionProfile& function = profile.functions[function_at->second];
            ++function.calls;
            if (std::exchange(innermost, false))
                function.total_ns += sample.weight_ns;
            if (std::find(seen.begin(), seen.end(), place) == seen.end()) {
                seen.push_back(place);
                ++function.primitive_calls;
                function.cumulative_ns += sample.weight_ns;
            }
        }
    }
    for (ActionProfile& profile : profiles)
        std::stable_sort(profile.functions.begin(), profile.functions.end(), [](const auto& a, const auto& b) {
            return a.cumulative_ns != b.cumulative_ns ? a.cumulative_ns > b.cumulative_ns : a.total_ns > b.total_ns;
        });
    return profiles;
}

std::string advanced_report(const Ledger& ledger, const AdvancedOptions& options) {
    check(options.line_count_restriction);
    std::string text;
    for (const char c : options.stage)
        text += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    text += options.stage.empty() ? "Profiler Report" : " Profiler Report";
    for (const ActionProfile& profile : advanced_profiles(ledger)) {
        text += "\n";
        append_action(text, profile, options);
    }
    append_own_cost(text, ledger);
    return text;
}

}   // namespace drawpoint
