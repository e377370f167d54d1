#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

namespace drawpoint::test {

/// A reader of files that may hold anything.
struct FuzzTarget {
    std::string_view name;
    std::array<std::string_view, 2> endings;   ///< of the names of files that are its; empty: none
    /// Lets the reader read the bytes as a file. Its documented errors are fine; any other exception is passed on.
    void (*run)(std::span<const std::byte>);
};

/// All of them.
[[nodiscard]] std::span<const FuzzTarget> fuzz_targets() noexcept;

/// The target of this name; null if there is none.
[[nodiscard]] const FuzzTarget* fuzz_target(std::string_view name) noexcept;

}   // namespace drawpoint::test
