#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace drawpoint {

/// Yields the order in which a pass visits the data set: a pure function of the epoch. const and thread-safe.
class Sampler {
public:
    virtual ~Sampler() = default;
    /// How many indices a pass draws.
    [[nodiscard]] virtual std::size_t size() const noexcept = 0;
    /// Writes the order of `epoch` into `order`, whose size is size(). O(size()); allocates nothing but what the
    /// sampler owns.
    virtual void order(std::size_t epoch, std::span<std::uint64_t> order) const = 0;
};

/// 0, 1, … n - 1.
class SequentialSampler final : public Sampler {
public:
    explicit SequentialSampler(std::size_t n) noexcept : n_{n} {}
    [[nodiscard]] std::size_t size() const noexcept override { return n_; }
    void order(std::size_t epoch, std::span<std::uint64_t> order) const override;

private:
    std::size_t n_;
};

/// A permutation of 0 … n - 1 keyed by (seed, epoch).
class RandomSampler final : public Sampler {
public:
    RandomSampler(std::size_t n, std::uint64_t seed) noexcept : n_{n}, seed_{seed} {}
    [[nodiscard]] std::size_t size() const noexcept override { return n_; }
    void order(std::size_t epoch, std::span<std::uint64_t> order) const override;

private:
    std::size_t n_;
    std::uint64_t seed_;
};

/// `draws` indices with replacement, index i with a probability proportional to weights[i], keyed by (seed, epoch).
class WeightedSampler final : public Sampler {
public:
    /// Weights ≥ 0 and finite, not all 0. Throws std::invalid_argument naming the first that is not.
    WeightedSampler(std::span<const double> weights, std::size_t draws, std::uint64_t seed);
    [[nodiscard]] std::size_t size() const noexcept override { return draws_; }
    void order(std::size_t epoch, std::span<std::uint64_t> order) const override;

private:
    std::vector<double> cumulative_;
    std::size_t draws_;
    std::uint64_t seed_;
};

/// Every rank's share of another sampler's order: indices rank, rank + ranks, … after padding the order (by repeating
/// it from its begin) or, with `drop_last`, cutting it to a multiple of `ranks`. The other sampler outlives this one.
class DistributedSampler final : public Sampler {
public:
    /// rank < ranks, ranks ≥ 1. Throws std::invalid_argument naming the value.
    DistributedSampler(const Sampler& of, std::size_t rank, std::size_t ranks, bool drop_last = false);
    [[nodiscard]] std::size_t size() const noexcept override;
    void order(std::size_t epoch, std::span<std::uint64_t> order) const override;

private:
    const Sampler* of_;
    std::size_t rank_, ranks_;
    bool drop_last_;
};

/// For data in shards that are read forward: the shards in random order, the indices of each shuffled within a window
/// that moves through it, as through a buffer of `window` samples; keyed by (seed, epoch). Of a shard, what is drawn at
/// place p lies below p + window. Shards follow one another in the data set's numbering, as in TarShards.
class ShardSampler final : public Sampler {
public:
    /// window ≥ 1; 1 draws each shard in its own order. Throws std::invalid_argument naming the value.
    ShardSampler(std::span<const std::uint64_t> shard_sizes, std::uint64_t seed, std::size_t window = 512);
    [[nodiscard]] std::size_t size() const noexcept override { return ends_.empty() ? 0 : ends_.back(); }
    void order(std::size_t epoch, std::span<std::uint64_t> order) const override;

private:
    std::vector<std::size_t> ends_;   // of each shard that is not empty, in the numbering
    std::uint64_t seed_;
    std::size_t window_;
};

/// The same list every epoch.
class FixedSampler final : public Sampler {
public:
    explicit FixedSampler(std::vector<std::uint64_t> indices) noexcept : indices_{std::move(indices)} {}
    [[nodiscard]] std::size_t size() const noexcept override { return indices_.size(); }
    void order(std::size_t epoch, std::span<std::uint64_t> order) const override;

private:
    std::vector<std::uint64_t> indices_;
};

/// Epoch 0 is another sampler's first, as far as it fits, or several times over. Each later one is a block of that,
/// `times` over, the next with each epoch: what is measured of one turn and of another is of the same samples, and over
/// epochs of all. A block that would be short is left out. Keeps nothing of `of`.
class RepeatedSampler final : public Sampler {
public:
    /// samples (of a block; of less than that, all) and times ≥ 1. Throws std::invalid_argument naming the value.
    RepeatedSampler(const Sampler& of, std::size_t samples, std::size_t times);
    [[nodiscard]] std::size_t size() const noexcept override { return block_ * times_; }
    void order(std::size_t epoch, std::span<std::uint64_t> order) const override;

private:
    std::vector<std::uint64_t> all_;
    std::size_t block_, times_;
};

}   // namespace drawpoint
