#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include <drawpoint/pipeline/loader/core/sample_source.hpp>

#include <drawpoint/pipeline/loader/core/detail/batch_digest.hpp>

struct stat;

namespace drawpoint::detail {

/// A 64-bit hash of everything that cached samples depend on.
class Fingerprint {
public:
    void add(std::span<const std::byte> bytes) noexcept { digest_.add(bytes); }
    void add(std::string_view text) noexcept { add(std::as_bytes(std::span{text})); }
    void add(std::uint64_t number) noexcept { add(std::as_bytes(std::span{&number, 1})); }
    /// Adds size and modification time of the file that contains a sample, and the sample's part of it; `path` is used
    /// where no location is known. False if there is no such file.
    [[nodiscard]] bool add_file(const std::optional<FileRange>& location, std::string_view path);
    [[nodiscard]] std::uint64_t value() const noexcept { return digest_.value(); }

private:
    void add(const struct stat&) noexcept;

    BatchDigest digest_;
    // The previous file's values: consecutive samples often lie in one file.
    const char* path_ = nullptr;
    int descriptor_ = -1;
};

/// The first, middle and last index of a data set: the recipe's results for these stand for the recipe.
[[nodiscard]] std::array<std::uint64_t, 3> probes(std::size_t size) noexcept;

}   // namespace drawpoint::detail
