#include <drawpoint/diagnosis/verdict/detail/refutation.hpp>

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <drawpoint/instrumentation/facts.hpp>
#include <drawpoint/instrumentation/text/printable.hpp>

#include <drawpoint/instrumentation/text/detail/shell.hpp>

namespace drawpoint {
namespace {

/// The recorded `drawpoint profile` command, without the option `without` and without defaults. Empty: another program
/// made the recording, or an option's value cannot be shown in a terminal.
std::string recorded_command(const Ledger& ledger, std::string_view without, const OptionValues& defaults) {
    const auto command = ledger.fact(facts::command);
    const auto options = recorded_options(ledger);
    if (options.empty() || !command || !command->starts_with("drawpoint profile"))
        return {};
    std::string line = "drawpoint profile";
    for (const auto& option : options) {
        const auto& [name, value] = option;
        if (name == without || std::ranges::find(defaults, option) != defaults.end())
            continue;
        if (printable(value) != value)
            return {};
        line += " " + shell_word(fmt::format("--{}={}", name, value));
    }
    return line;
}

/// What makes the setting, as arguments of PyTorch's DataLoader.
std::string pytorch_arguments(const Intervention& advice) {
    if (advice.lever == Lever::out_of_order)
        return "in_order=False";
    if (advice.lever == Lever::sampler)
        return "persistent_workers=True";
    const std::string workers = fmt::format("num_workers={}", advice.setting.num_workers);
    return advice.setting.num_workers == 0
               ? workers
               : fmt::format("{}, prefetch_factor={}", workers, prefetch_of(advice.setting));
}

}   // namespace

OptionValues recorded_options(const Ledger& ledger) {
    constexpr std::array<std::string_view, 31> known{"allow-inexact",
                                                     "batch-size",
                                                     "cache",
                                                     "compute-ms",
                                                     "data",
                                                     "device",
                                                     "device-memory-budget",
                                                     "device-prefetch",
                                                     "drop-last",
                                                     "epochs",
                                                     "format",
                                                     "image-size",
                                                     "inject",
                                                     "jpeg-decoder",
                                                     "learning-rate",
                                                     "max-errors",
                                                     "memory-budget",
                                                     "model",
                                                     "num-workers",
                                                     "on-error",
                                                     "optimizer",
                                                     "order",
                                                     "precision",
                                                     "prefetch-depth",
                                                     "read-concurrency",
                                                     "record",
                                                     "resize-filter",
                                                     "seed",
                                                     "steps",
                                                     "targets",
                                                     "valid"};
    OptionValues options;
    bool has_data = false;
    for (const auto& [key, value] : ledger.facts) {
        if (!key.starts_with(facts::option_prefix))
            continue;
        const std::string name = key.substr(facts::option_prefix.size());
        if (std::ranges::find(known, name) == known.end())
            continue;
        has_data = has_data || name == "data";
        if (name != "inject") {
            options.emplace_back(name, value);
            continue;
        }
        const auto list = nlohmann::json::parse(value, nullptr, false);
        for (const auto& entry : list.is_array() ? list : nlohmann::json::array())
            if (entry.is_string())
                options.emplace_back(name, entry.get<std::string>());
    }
    if (!has_data)
        options.clear();
    return options;
}

std::string option_of(const Intervention& change) {
    const LoaderSetting& setting = change.setting;
    const auto option = [&](const auto& value) { return fmt::format("--{} {}", words_of(change.lever).option, value); };
    switch (change.lever) {
    case Lever::fewer_workers:
    case Lever::more_workers: return option(setting.num_workers);
    case Lever::more_depth: return option(setting.prefetch_depth);
    case Lever::device_prefetch: return option(change.what.device_buffers - 1);
    case Lever::out_of_order: return option(to_string(setting.order));
    case Lever::more_reads: return option(setting.read_concurrency);
    case Lever::more_memory: return option(setting.memory_budget);
    default: return {};
    }
}

std::string how_to_refute(const Ledger& ledger, const Intervention& advice, const OptionValues& defaults) {
    const std::string expected = fmt::format("throughput should rise by {:.0f} % ({:.0f} … {:.0f} %)",
                                             advice.gain.median * 100, advice.gain.low * 100, advice.gain.high * 100);
    const bool starts_workers = advice.lever == Lever::sampler && advice.what.sampler == 0;
    if (advice.setting.kind == LoaderKind::pytorch && (advice.can_be_set() || starts_workers))
        return fmt::format("write DataLoader(…, {}) and record again: {}", pytorch_arguments(advice), expected);
    const std::string option = option_of(advice);
    if (option.empty())
        return fmt::format("with {}, recorded anew, {}", advice.change, expected);
    const std::string command = recorded_command(ledger, words_of(advice.lever).option, defaults);
    if (!command.empty())
        return fmt::format("{} {} -o refute.pftrace: {}", command, option, expected);
    return fmt::format("alternate runs with {} and with the current setting: {}", advice.change, expected);
}

}   // namespace drawpoint
