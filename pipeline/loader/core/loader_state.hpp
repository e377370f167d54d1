#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <drawpoint/pipeline/loader/core/sample_source.hpp>
#include <drawpoint/pipeline/sampling/sampler.hpp>

namespace drawpoint {

/// Where a loader is, and what it is a state of: `DataLoader::state()` as numbers.
struct LoaderState {
    std::uint64_t data = 0, order = 0;   ///< fingerprints
    std::uint64_t seed = 0;              ///< LoaderOptions::seed
    std::uint64_t batch_size = 1;
    bool drop_last = false;
    std::uint64_t rank = 0, ranks = 1;   ///< Sampler::share()
    std::uint64_t batches = 0;           ///< of a pass

    // The position: of this epoch, all batches below `end` are drawn, but for the undrawn ones.
    std::uint64_t epoch = 0, end = 0;
    std::vector<std::uint64_t> undrawn;   ///< ascending, each < end

    [[nodiscard]] std::uint64_t drawn() const noexcept { return end - undrawn.size(); }
    bool operator==(const LoaderState&) const = default;
};

/// At most 256 bytes, unless more than 10^8 batches of a pass are drawn out of order.
[[nodiscard]] std::string to_bytes(const LoaderState&);
/// Throws std::invalid_argument saying what is wrong with the bytes.
[[nodiscard]] LoaderState parse_state(std::string_view bytes);

/// The position of `from` in the terms of `to`, which is a state of the loader that goes on. Throws
/// std::invalid_argument naming what does not fit.
[[nodiscard]] LoaderState continued_by(const LoaderState& from, LoaderState to);

/// A hash of the number of samples, and of the names and sizes of up to 64 of their files, if they have any.
[[nodiscard]] std::uint64_t fingerprint_of(const SampleSource&);
/// A hash of the order that all ranks divide: the whole order of epoch 0, which takes O(size), or, of
/// one with parts and more than 2^17 samples, 64 positions in two epochs. Throws what the sampler throws.
[[nodiscard]] std::uint64_t fingerprint_of(const Sampler&);

}   // namespace drawpoint
