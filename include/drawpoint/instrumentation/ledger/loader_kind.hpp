#pragma once

#include <cstdint>
#include <string_view>

namespace drawpoint {

/// Whose rule a loader follows. `drawpoint`: any worker takes samples of the oldest open batch. `pytorch`: as a
/// `torch.utils.data.DataLoader`, where a worker makes whole batches, each batch's worker is decided when its indices
/// are sent, and `prefetch_depth` is num_workers x prefetch_factor.
enum class LoaderKind : std::uint8_t { drawpoint, pytorch };

/// The enumerator's name, as in exports. Static storage.
[[nodiscard]] constexpr std::string_view name_of(LoaderKind kind) noexcept {
    return kind == LoaderKind::pytorch ? "pytorch" : "drawpoint";
}

}   // namespace drawpoint
