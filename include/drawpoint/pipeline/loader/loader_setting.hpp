#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <drawpoint/instrumentation/ledger/order_rule.hpp>

namespace drawpoint {

struct PipelineRow;   // ledger.hpp
struct SettingRow;

/// The numbers of a loader that can be chosen, compared and predicted.
struct LoaderSetting {
    std::size_t num_workers = 1, prefetch_depth = 2, batch_size = 1;
    OrderRule order{};
    std::size_t read_concurrency = 0;
    std::uint64_t memory_budget = 0;   ///< bytes; 0: none
    bool operator==(const LoaderSetting&) const = default;
};

/// The largest numbers that a loader takes, and with it the command line, a replay and whatever gives advice.
namespace loader_limits {
inline constexpr std::size_t most_workers = 256;
inline constexpr std::size_t most_prefetch_depth = 55;   // the give-back word has a bit for each slot
inline constexpr std::size_t most_batch_size = std::size_t{1} << 20;
inline constexpr std::size_t most_read_concurrency = 4096;
inline constexpr std::size_t most_read_retries = 100;
/// That is advised: a loader takes any, the command line less than 10^18.
inline constexpr std::uint64_t most_memory_budget = std::uint64_t{1} << 59;
}   // namespace loader_limits

/// "num_workers must be at most 256, got 300": what keeps a field from `least` … `most`. Empty: nothing does.
[[nodiscard]] std::string out_of_range(const char* field, std::size_t value, std::size_t least, std::size_t most);
/// The first number that no loader takes, as `out_of_range` says it. Empty: a loader takes it, if its memory_budget suffices.
[[nodiscard]] std::string out_of_range(const LoaderSetting&);

/// The numbers that a recording says a loader began with.
[[nodiscard]] LoaderSetting setting_of(const PipelineRow&) noexcept;
/// What `setting` is from the row's time on.
[[nodiscard]] LoaderSetting changed_by(const SettingRow&, LoaderSetting setting) noexcept;
[[nodiscard]] PipelineRow pipeline_row(std::string name, std::vector<std::string> stages, const LoaderSetting&);

}   // namespace drawpoint
