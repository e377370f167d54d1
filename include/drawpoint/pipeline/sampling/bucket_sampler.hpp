#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <drawpoint/pipeline/sampling/sampler.hpp>

namespace drawpoint {

struct BucketOptions {
    /// Batches whose samples are sorted by length together, ≥ 1. More give less padding, fewer give more random
    /// batches.
    std::size_t bucket_batches = 50;
    bool shuffle = true;   ///< false: index order, and buckets and batches in their own order
};

/// Orders samples so that batches hold samples of similar length and need little padding: a random order, keyed by
/// (seed, epoch), is cut into buckets of `bucket_batches` batches, each bucket is sorted by length, and then whole
/// batches are put into a random order. Samples left over from full batches come last and are not particularly long.
/// Each index appears once. For a DataLoader of the same `batch_size`.
class BucketSampler final : public Sampler {
public:
    /// `lengths[i]` is the length of sample i, in any unit. Throws std::invalid_argument naming batch_size or
    /// bucket_batches if it is 0.
    BucketSampler(std::span<const std::uint32_t> lengths, std::size_t batch_size, std::uint64_t seed,
                  BucketOptions options = {});
    [[nodiscard]] std::size_t size() const noexcept override { return lengths_.size(); }
    void order(std::size_t epoch, std::span<std::uint64_t> order) const override;

private:
    std::vector<std::uint32_t> lengths_;
    std::size_t batch_size_;
    std::uint64_t seed_;
    BucketOptions options_;
};

/// The share of a pass that is padding when every batch is padded to its longest sample: 0 … 1. Throws
/// std::out_of_range for indices beyond `lengths`, std::invalid_argument for a batch_size of 0. O(order).
[[nodiscard]] double padding_share(std::span<const std::uint64_t> order, std::span<const std::uint32_t> lengths,
                                   std::size_t batch_size);

}   // namespace drawpoint
