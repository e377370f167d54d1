#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace drawpoint {

/// How batches are copied to a device.
enum class Copies : std::uint8_t {
    apart,      ///< beside the device's steps and the loop
    pageable,   ///< beside its steps; the loop waits for each
    in_order    ///< as one more work of its only stream
};

inline constexpr std::array<std::string_view, 3> copies_words{"apart", "pageable", "in order"};

/// The word in the fact `facts::device_copies`.
[[nodiscard]] constexpr std::string_view to_string(Copies copies) noexcept {
    return copies_words[static_cast<std::size_t>(copies)];
}
/// What the word means; nullopt: nothing.
[[nodiscard]] constexpr std::optional<Copies> copies_of(std::string_view word) noexcept {
    for (std::size_t i = 0; i < copies_words.size(); ++i)
        if (copies_words[i] == word)
            return static_cast<Copies>(i);
    return std::nullopt;
}

}   // namespace drawpoint
