#include <drawpoint/pipeline/loader/machine/loader_setting.hpp>

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
        found = out_of_range("prefetch_depth", setting.prefetch_depth, 1, most_prefetch_depth);
    if (found.empty())
        found = out_of_range("read_concurrency", setting.read_concurrency, 0, most_read_concurrency);
    return found;
}

LoaderSetting setting_of(const PipelineRow& row) noexcept { return numbers_of(row, row.batch_size); }

LoaderSetting changed_by(const SettingRow& row, LoaderSetting setting) noexcept {
    return numbers_of(row, setting.batch_size);
}

PipelineRow pipeline_row(std::string name, std::vector<std::string> stages, const LoaderSetting& setting) {
    return {.name = std::move(name),
            .stages = std::move(stages),
            .batch_size = static_cast<std::uint32_t>(setting.batch_size),
            .num_workers = static_cast<std::uint32_t>(setting.num_workers),
            .prefetch_depth = static_cast<std::uint32_t>(setting.prefetch_depth),
            .order = setting.order,
            .read_concurrency = static_cast<std::uint32_t>(setting.read_concurrency),
            .memory_budget = setting.memory_budget};
}

}   // namespace drawpoint
