#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <drawpoint/instrumentation/ledger/loader_kind.hpp>
#include <drawpoint/instrumentation/ledger/order_rule.hpp>

namespace drawpoint {

struct PipelineRow;   // ledger/rows.hpp
struct SettingRow;

/// The numbers of a loader that can be configured, compared and predicted. Ranges: loader_limits, LoaderOptions.
struct LoaderSetting {
    std::size_t num_workers = 1, prefetch_depth = 2, batch_size = 1;
    OrderRule order{};
    std::size_t read_concurrency = 0;
    std::uint64_t memory_budget = 0;   ///< bytes; 0: none
    LoaderKind kind{};                 ///< whose rule it follows; our own loader knows one
    bool operator==(const LoaderSetting&) const = default;
};

/// Whether its samples are made in processes of their own: by PyTorch's workers.
[[nodiscard]] constexpr bool has_worker_processes(const LoaderSetting& setting) noexcept {
    return setting.kind == LoaderKind::pytorch && setting.num_workers != 0;
}

/// The largest numbers that a loader accepts (but for memory_budget); the replay and all advice keep to them too. The
/// smallest are 1 for batch_size and prefetch_depth, else 0.
namespace loader_limits {
inline constexpr std::size_t most_workers = 256;
inline constexpr std::size_t most_prefetch_depth = 55;    // a bit for each slot, and a count, in one atomic word
inline constexpr std::size_t most_pytorch_depth = 4096;   ///< in all, of a PyTorch loader that is replayed
inline constexpr std::size_t most_batch_size = std::size_t{1} << 20;
inline constexpr std::size_t most_read_concurrency = 4096;
inline constexpr std::size_t most_read_retries = 100;
/// The largest that is advised, in bytes; a loader accepts any, the command line less than 10^18.
inline constexpr std::uint64_t most_memory_budget = std::uint64_t{1} << 59;
/// The most batches that a loader of this kind, with these workers, may prefetch in all.
[[nodiscard]] constexpr std::size_t most_depth(const LoaderSetting& setting) noexcept {
    return has_worker_processes(setting) ? most_pytorch_depth : most_prefetch_depth;
}
}   // namespace loader_limits

/// The message for a value outside `least` … `most`, e.g. "num_workers must be at most 256, got 300"; empty if
/// inside.
[[nodiscard]] std::string out_of_range(const char* field, std::size_t value, std::size_t least, std::size_t most);
/// The same for the first number that no loader accepts; empty if the setting is valid. Not checked: whether the
/// memory_budget suffices, and `RuntimeOptions::max_threads`.
[[nodiscard]] std::string out_of_range(const LoaderSetting&);

/// What its users call the batches that a loader prefetches: "prefetch_depth", in all; of a PyTorch loader
/// "prefetch_factor", for each worker.
[[nodiscard]] constexpr std::string_view prefetch_name(LoaderKind kind) noexcept {
    return kind == LoaderKind::pytorch ? "prefetch_factor" : "prefetch_depth";
}
/// Their number; 2, PyTorch's default, of a PyTorch loader without workers.
[[nodiscard]] std::size_t prefetch_of(const LoaderSetting&) noexcept;
[[nodiscard]] LoaderSetting with_prefetch(LoaderSetting, std::size_t batches) noexcept;
/// The setting with other workers, which prefetches as many batches in this sense.
[[nodiscard]] LoaderSetting with_workers(LoaderSetting, std::size_t num_workers) noexcept;

/// The setting with which a recorded loader began, as reduced to the memory_budget.
[[nodiscard]] LoaderSetting setting_of(const PipelineRow&) noexcept;
/// `setting` as it is after the recorded change, which has to be one of the same loader. Only batch_size is kept.
[[nodiscard]] LoaderSetting changed_by(const SettingRow&, LoaderSetting setting) noexcept;
/// The row that records a loader that begins with this setting, which has to be valid.
[[nodiscard]] PipelineRow pipeline_row(std::string name, std::vector<std::string> stages, const LoaderSetting&);

}   // namespace drawpoint
