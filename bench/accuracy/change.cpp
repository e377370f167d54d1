#include "change.hpp"

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>

#include <drawpoint/pipeline/loader/machine/memory_plan.hpp>

#include "diagnosis/verdict/interventions.hpp"

namespace drawpoint::bench {
namespace {

std::string_view stage_of(std::string_view key) { return key.substr(words_of(Lever::stage).key.size()); }

/// What a stage of this name is to be called.
Verdict verdict_of_stage(const CaseStage& stage) {
    return says_decode(stage.name)                                                         ? Verdict::decode
           : says_read(stage.name) && !stage.jpeg_decodes && stage.wait_us > stage.work_us ? Verdict::read_latency
                                                                                           : Verdict::transform;
}

/// Whether a twentieth of the samples waits longer in this stage than all the others together.
bool waits_rarely(const CaseStage& stage) {
    const Variation& variation = stage.variation;
    return variation.rare_share <= 0.05 && variation.rare_share * variation.rare_factor > 1 - variation.rare_share;
}

bool varies(const Variation& variation) noexcept {
    return variation.spread > 0 && (variation.sigma > 0 || (variation.rare_share > 0 && variation.rare_factor > 1));
}

/// Whether it made a difference, and one that the loader accepts.
bool change(Case& of, std::string_view key) {
    const Case before = of;
    const std::optional<Lever> lever = lever_of(key);
    if (!lever)
        return false;
    if (const auto setting = moved(*lever, of.setting); setting && (*lever != Lever::more_reads || of.read.any()))
        of.setting = *setting;
    switch (*lever) {
    case Lever::stage:
        for (CaseStage& stage : of.stages)
            if (stage.name == stage_of(key)) {
                stage.work_us /= 2;
                stage.wait_us /= 2;
                stage.jpeg_decodes /= 2;
            }
        break;
    case Lever::read:
        if (of.read.any()) {
            of.read.latency_us /= 2;
            of.read.megabytes_per_s *= 2;
        }
        break;
    case Lever::collate: of.collate_us /= 2; break;
    case Lever::transfer: of.transfer_us /= 2; break;
    case Lever::compute:
        of.consumer.wait_us /= 2;
        of.consumer.work_us /= 2;
        break;
    case Lever::variance:
        for (CaseStage& stage : of.stages)
            stage.variation.spread /= varies(stage.variation) ? 2 : 1;
        of.read.variation.spread /= of.read.any() && varies(of.read.variation) ? 2 : 1;
        of.consumer.jitter /= 2;
        if (of.consumer.burst_length > 0)
            of.consumer.burst_factor = 1 + (of.consumer.burst_factor - 1) / 2;
        break;
    case Lever::waiting:
        if (of.read.any()) {
            of.read.latency_us /= 2;
            of.read.megabytes_per_s *= 2;
        }
        for (CaseStage& stage : of.stages)
            stage.wait_us /= 2;
        break;
    default: break;   // a setting, or nothing that can be changed for real
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
                        .order_bytes = 2 * sizeof(std::uint64_t) * of.steps * setting.batch_size,
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

bool can_be_set(std::string_view key) noexcept {
    const std::optional<Lever> lever = lever_of(key);
    return lever && words_of(*lever).is_setting();
}

std::vector<std::string> change_keys(const Case& of) {
    std::vector<std::string> keys;
    std::optional<Case> reads;   // with the change `read`
    const auto add = [&](std::string key) {
        Case copy = of;
        if (!change(copy, key) || (reads && copy == *reads))   // where nothing else waits, `waiting` is `read`
            return;
        if (key == words_of(Lever::read).key)
            reads = copy;
        keys.push_back(std::move(key));
    };
    add(std::string{words_of(Lever::read).key});
    for (const CaseStage& stage : of.stages)
        add(fmt::format("{}{}", words_of(Lever::stage).key, stage.name));
    for (const LeverWords& words : levers)
        if (words.lever != Lever::stage && words.lever != Lever::read)
            add(std::string{words.key});
    return keys;
}

Case changed(const Case& of, std::string_view key) {
    Case result = of;
    if (!change(result, canonical(key)))
        throw std::invalid_argument{fmt::format("case {}: '{}' changes nothing", of.name, key)};
    return result;
}

std::set<Verdict> verdicts_of(const Case& of, std::string_view any_key) {
    const std::string_view key = canonical(any_key);
    const std::optional<Lever> lever = lever_of(key);
    if (!lever)
        return {};
    if (const std::optional<Verdict> always = words_of(*lever).verdict)
        return {*always};
    // A line that is the limit: passing it takes a sample longer than the latency that the readers share.
    const double readers = static_cast<double>(std::max(of.setting.num_workers, of.setting.read_concurrency));
    const bool line = of.read.line_us() > 0 && of.read.line_us() >= of.read.latency_us / readers;
    const bool bursty = of.consumer.burst_length > 0 || of.consumer.jitter >= 0.5;
    const auto or_bursty = [bursty](Verdict verdict) {
        return bursty ? std::set{verdict, Verdict::bursty_consumer} : std::set{verdict};
    };
    switch (*lever) {
    case Lever::more_depth: return or_bursty(Verdict::prefetch_depth);
    case Lever::variance: return or_bursty(Verdict::stragglers);
    case Lever::stage:
        for (const CaseStage& stage : of.stages)
            if (stage.name == stage_of(key))
                return {verdict_of_stage(stage)};
        return {};
    default:   // read, waiting, more_reads
        std::set<Verdict> right;
        if (of.read.any())
            right.insert(line ? Verdict::read_bandwidth : Verdict::read_latency);
        for (const CaseStage& stage : of.stages)
            if (*lever == Lever::waiting && stage.wait_us > 0) {
                right.insert(says_read(stage.name) && line ? Verdict::read_bandwidth : verdict_of_stage(stage));
                if (waits_rarely(stage))
                    right.insert(Verdict::stragglers);
            }
        return right;
    }
}

std::optional<std::string> key_of(const LoaderSetting& base, const LoaderSetting& other) {
    for (const LeverWords& words : levers)
        if (moved(words.lever, base) == other)
            return std::string{words.key};
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
