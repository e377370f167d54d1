#include <drawpoint/pipeline/loader/machine/loader_setting.hpp>

#include <algorithm>
#include <utility>

#include <drawpoint/instrumentation/ledger/rows.hpp>

namespace drawpoint {
namespace {

/// What a PipelineRow and a SettingRow both have; only the former says the batch size.
template <class Row>
LoaderSetting numbers_of(const Row& row, std::size_t batch_size) noexcept {
    return {.num_workers = row.num_workers,
            .prefetch_depth = row.prefetch_depth,
            .batch_size = batch_size,
            .order = row.order,
            .read_concurrency = row.read_concurrency,
            .memory_budget = row.memory_budget};
}

}   // namespace

std::string out_of_range(const char* field, std::size_t value, std::size_t least, std::size_t most) {
    if (value >= least && value <= most)
        return {};
    return std::string{field} + (value < least ? " must be at least " : " must be at most ") +
           std::to_string(value < least ? least : most) + ", got " + std::to_string(value);
}

std::string out_of_range(const LoaderSetting& setting) {
    using namespace loader_limits;
    std::string found = out_of_range("batch_size", setting.batch_size, 1, most_batch_size);
    if (found.empty())
        found = out_of_range("num_workers", setting.num_workers, 0, most_workers);
    if (found.empty())
        found = out_of_range("prefetch_depth", setting.prefetch_depth, 1, most_depth(setting));
    if (found.empty())
        found = out_of_range("read_concurrency", setting.read_concurrency, 0, most_read_concurrency);
    return found;
}

std::size_t prefetch_of(const LoaderSetting& setting) noexcept {
    constexpr std::size_t usual = 2;
    if (setting.kind != LoaderKind::pytorch)
        return setting.prefetch_depth;
    return setting.num_workers == 0 ? usual : std::max<std::size_t>(setting.prefetch_depth / setting.num_workers, 1);
}

LoaderSetting with_workers(LoaderSetting setting, std::size_t num_workers) noexcept {
    const std::size_t batches = prefetch_of(setting);
    setting.num_workers = num_workers;
    return with_prefetch(setting, batches);
}

LoaderSetting with_prefetch(LoaderSetting setting, std::size_t batches) noexcept {
    if (setting.kind == LoaderKind::pytorch)
        batches = std::max<std::size_t>(batches * setting.num_workers, 1);
    setting.prefetch_depth = batches;
    return setting;
}

LoaderSetting setting_of(const PipelineRow& row) noexcept {
    LoaderSetting setting = numbers_of(row, row.batch_size);
    setting.kind = row.kind;
    return setting;
}

LoaderSetting changed_by(const SettingRow& row, LoaderSetting setting) noexcept {
    const LoaderKind kind = setting.kind;
    setting = numbers_of(row, setting.batch_size);
    setting.kind = kind;
    return setting;
}

PipelineRow pipeline_row(std::string name, std::vector<std::string> stages, const LoaderSetting& setting) {
    return {.name = std::move(name),
            .stages = std::move(stages),
            .batch_size = static_cast<std::uint32_t>(setting.batch_size),
            .num_workers = static_cast<std::uint32_t>(setting.num_workers),
            .prefetch_depth = static_cast<std::uint32_t>(setting.prefetch_depth),
            .order = setting.order,
            .read_concurrency = static_cast<std::uint32_t>(setting.read_concurrency),
            .memory_budget = setting.memory_budget,
            .kind = setting.kind};
}

}   // namespace drawpoint
