#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <drawpoint/pipeline/sampling/sampler.hpp>

namespace drawpoint {

struct BucketOptions {
    /// Batches whose samples are sorted by length together, ≥ 1. More: less padding. Fewer: batches more random.
    std::size_t bucket_batches = 50;
    bool shuffle = true;   ///< false: index order instead of a random one, buckets and batches in their order
};

/// Orders samples so that batches hold samples of similar length, and little of them is padding: a random order keyed
/// by (seed, epoch), cut into buckets of `bucket_batches` batches, each sorted by length; then whole batches in a
/// random order. What is too few for a batch comes last, and is any samples, not the longest. Each index once. For a
/// DataLoader of the same `batch_size`.
class BucketSampler final : public Sampler {
public:
    /// `lengths[i]` is sample i's, in any unit. batch_size and bucket_batches at least 1: throws std::invalid_argument
    /// naming the value.
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

/// What of a pass is padding when every batch is padded to its longest sample: 0 … 1. Indices beyond `lengths` throw
/// std::out_of_range, a batch_size of 0 std::invalid_argument. O(order).
[[nodiscard]] double padding_share(std::span<const std::uint64_t> order, std::span<const std::uint32_t> lengths,
                                   std::size_t batch_size);

}   // namespace drawpoint
