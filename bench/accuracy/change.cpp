#include "change.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>

#include <fmt/format.h>

#include <drawpoint/pipeline/loader/machine/memory_plan.hpp>

namespace drawpoint::bench {
namespace {

constexpr std::string_view stage_prefix = "stage:";

bool varies(const Variation& variation) noexcept {
    return !variation.constant && (variation.sigma > 0 || (variation.rare_share > 0 && variation.rare_factor > 1));
}

/// Applies the setting that `key` stands for; false: it is no setting, or not one that this setting can take.
bool change_setting(LoaderSetting& setting, std::string_view key) {
    const LoaderSetting before = setting;
    if (key == "num_workers")
        setting.num_workers = std::min(setting.num_workers * 2, loader_limits::most_workers);
    else if (key == "num_workers/2" && setting.num_workers >= 2)
        setting.num_workers /= 2;
    else if (key == "prefetch_depth")
        setting.prefetch_depth = std::min(setting.prefetch_depth * 2, loader_limits::most_prefetch_depth);
    else if (key == "order")
        setting.order = OrderRule::out_of_order();
    else if (key == "read_concurrency")
        setting.read_concurrency = std::min(setting.read_concurrency * 4, loader_limits::most_read_concurrency);
    else if (key == "memory_budget")
        setting.memory_budget = std::min(setting.memory_budget * 2, loader_limits::most_memory_budget);
    return !(setting == before);
}

constexpr std::array<std::string_view, 6> settings{"num_workers", "num_workers/2",    "prefetch_depth",
                                                   "order",       "read_concurrency", "memory_budget"};

/// Whether it made a difference, and one that the loader takes.
bool change(Case& of, std::string_view key) {
    const Case before = of;
    if (can_be_set(key)) {
        change_setting(of.setting, key);
        if (key == "read_concurrency" && !of.read.any())
            of = before;
    } else if (key.starts_with(stage_prefix)) {
        for (CaseStage& stage : of.stages)
            if (stage.name == key.substr(stage_prefix.size())) {
                stage.work_us /= 2;
                stage.wait_us /= 2;
                stage.jpeg_decodes /= 2;
            }
    } else if (key == "read" && of.read.any()) {
        of.read.latency_us /= 2;
        of.read.megabytes_per_s *= 2;
    } else if (key == "collate") {
        of.collate_us /= 2;
    } else if (key == "transfer") {
        of.transfer_us /= 2;
    } else if (key == "compute") {
        of.consumer.wait_us /= 2;
        of.consumer.work_us /= 2;
    } else if (key == "variance") {
        for (CaseStage& stage : of.stages)
            stage.variation.constant |= varies(stage.variation);
        of.read.variation.constant |= of.read.any() && varies(of.read.variation);
        of.consumer.jitter = 0;
        of.consumer.burst_length = 0;
    } else if (key == "waiting") {
        if (of.read.any())
            of.read.latency_us = of.read.megabytes_per_s = 0;
        for (CaseStage& stage : of.stages)
            stage.wait_us = 0;
    }
    return !(of == before) && fits_memory(of);
}

}   // namespace

bool fits_memory(const Case& of) {
    const LoaderSetting& setting = of.setting;
    constexpr std::uint64_t contents_bytes = std::uint64_t{256} << 10;   // of a source that knows no sizes
    if (setting.memory_budget == 0)
        return true;
    return plan_memory({.sample_bytes = of.sample_bytes,
                        .collates = of.collate_us > 0,
                        .batch_size = setting.batch_size,
                        .num_workers = setting.num_workers,
                        .prefetch_depth = setting.prefetch_depth,
                        .read_concurrency = setting.read_concurrency,
                        .encoded_bytes = of.read.any() ? contents_bytes : 0,
                        .dataset_size = of.steps * setting.batch_size,
                        .memory_budget = setting.memory_budget})
               .missing_bytes == 0;
}

std::vector<Case> grid_of(const Case& of) {
    std::vector<Case> cells;
    for (const std::size_t workers : of.grid_workers)
        for (const std::size_t depth : of.grid_depths) {
            Case cell = of;
            cell.setting.num_workers = workers;
            cell.setting.prefetch_depth = depth;
            if (fits_memory(cell))
                cells.push_back(std::move(cell));
        }
    return cells;
}

std::string_view canonical(std::string_view key) noexcept { return key == "stage:read" ? "read" : key; }

bool can_be_set(std::string_view key) noexcept { return std::ranges::find(settings, key) != settings.end(); }

std::vector<std::string> change_keys(const Case& of) {
    std::vector<std::string> keys;
    const auto add = [&](std::string key) {
        Case copy = of;
        if (change(copy, key))
            keys.push_back(std::move(key));
    };
    add("read");
    for (const CaseStage& stage : of.stages)
        add(fmt::format("{}{}", stage_prefix, stage.name));
    for (const char* const key : {"collate", "transfer", "compute", "variance", "waiting"})
        add(key);
    for (const std::string_view key : settings)
        add(std::string{key});
    return keys;
}

Case changed(const Case& of, std::string_view key) {
    Case result = of;
    if (!change(result, canonical(key)))
        throw std::invalid_argument{fmt::format("case {}: '{}' changes nothing", of.name, key)};
    return result;
}

std::set<std::string> verdicts_of(const Case& of, std::string_view any_key) {
    const std::string_view key = canonical(any_key);
    // A line that is the limit: passing it takes a sample longer than the latency that the readers share.
    const double readers = static_cast<double>(std::max(of.setting.num_workers, of.setting.read_concurrency));
    const bool line = of.read.line_us() > 0 && of.read.line_us() >= of.read.latency_us / readers;
    const std::string reading = line ? "read-bandwidth" : "read-latency";
    const bool bursty = of.consumer.burst_length > 0 || of.consumer.jitter >= 0.5;
    if (key == "read" || key == "waiting" || key == "read_concurrency")
        return {reading};
    if (key == "prefetch_depth")
        return bursty ? std::set<std::string>{"prefetch-depth", "bursty-consumer"}
                      : std::set<std::string>{"prefetch-depth"};
    if (key == "variance")
        return bursty ? std::set<std::string>{"stragglers", "bursty-consumer"} : std::set<std::string>{"stragglers"};
    constexpr std::array<std::pair<std::string_view, const char*>, 7> words{{{"collate", "collate"},
                                                                             {"transfer", "transfer"},
                                                                             {"compute", "compute-bound"},
                                                                             {"num_workers", "workers"},
                                                                             {"num_workers/2", "oversubscription"},
                                                                             {"order", "order"},
                                                                             {"memory_budget", "memory"}}};
    for (const auto& [known, word] : words)
        if (key == known)
            return {word};
    if (key.starts_with(stage_prefix))
        for (const CaseStage& stage : of.stages)
            if (stage.name == key.substr(stage_prefix.size())) {
                if (stage.name.find("decode") != std::string::npos)
                    return {"decode"};
                return {stage.jpeg_decodes == 0 && stage.wait_us > stage.work_us ? "read-latency" : "transform"};
            }
    return {};
}

std::optional<std::string> key_of(const LoaderSetting& base, const LoaderSetting& other) {
    for (const std::string_view key : settings) {
        LoaderSetting candidate = base;
        if (change_setting(candidate, key) && candidate == other)
            return std::string{key};
    }
    return std::nullopt;
}

std::string to_string(const LoaderSetting& setting) {
    std::string text = fmt::format("workers {}, depth {}, {}", setting.num_workers, setting.prefetch_depth,
                                   setting.order == OrderRule::in_order()       ? "in order"
                                   : setting.order == OrderRule::out_of_order() ? "out of order"
                                                                                : "bounded order");
    if (setting.read_concurrency > 0)
        text += fmt::format(", {} reads", setting.read_concurrency);
    if (setting.memory_budget > 0)
        text += fmt::format(", {} bytes", setting.memory_budget);
    return text;
}

}   // namespace drawpoint::bench
