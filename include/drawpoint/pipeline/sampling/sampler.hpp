#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace drawpoint {

/// An order of samples of which any part can be computed by itself. Such an order costs no memory, and nobody waits for
/// it when an epoch begins.
class OrderParts {
public:
    /// Writes positions first, first + stride, first + 2 · stride, … of the order of `epoch` into `part`; each must be
    /// below the sampler's size(). O(part.size()). Any thread, concurrently. Never throws.
    virtual void part(std::size_t epoch, std::uint64_t first, std::uint64_t stride,
                      std::span<std::uint64_t> part) const noexcept = 0;

protected:
    ~OrderParts() = default;
};

class Sampler;

/// One rank's share of an order that ranks divide: positions rank, rank + ranks, rank + 2 · ranks, …
struct OrderShare {
    const Sampler* of;   ///< the sampler of the whole order
    std::size_t rank = 0, ranks = 1;
};

/// Determines the order in which a pass visits the data set: a pure function of the epoch. const calls must be
/// thread-safe: a loader calls them on workers, too, and may compute two orders at the same time.
class Sampler {
public:
    virtual ~Sampler() = default;
    /// The number of indices that a pass draws; the same in every epoch.
    [[nodiscard]] virtual std::size_t size() const noexcept = 0;
    /// Writes the order of `epoch` into `order`, whose size is size(): indices in the data set. One beyond its end
    /// fails like a sample that cannot be made (SampleError). O(size()), and may allocate scratch of that size, unless
    /// the class says otherwise. May throw: the pass's first next() passes it on.
    virtual void order(std::size_t epoch, std::span<std::uint64_t> order) const = 0;
    /// Parts of the same order, for loaders to use instead of order(); the same answer at each call. Null: it has none.
    [[nodiscard]] virtual const OrderParts* parts() const noexcept { return nullptr; }
    /// What this order is a rank's share of, so that other ranks can go on (`DataLoader::state`). By default it is an
    /// order of its own.
    [[nodiscard]] virtual OrderShare share() const noexcept { return {this, 0, 1}; }
};

/// 0, 1, … n - 1.
class SequentialSampler final : public Sampler, public OrderParts {
public:
    explicit SequentialSampler(std::size_t n) noexcept : n_{n} {}
    [[nodiscard]] std::size_t size() const noexcept override { return n_; }
    void order(std::size_t epoch, std::span<std::uint64_t> order) const override;
    [[nodiscard]] const OrderParts* parts() const noexcept override { return this; }
    void part(std::size_t epoch, std::uint64_t first, std::uint64_t stride,
              std::span<std::uint64_t> part) const noexcept override;

private:
    std::size_t n_;
};

/// A permutation of 0 … n - 1 keyed by (seed, epoch). Up to 131,072 samples it is shuffled without bias. Beyond that it
/// is a Feistel network, which has parts: 17 to 46 ns an index and 70 ns more a call, at 10^9 samples too.
class RandomSampler final : public Sampler, public OrderParts {
public:
    RandomSampler(std::size_t n, std::uint64_t seed) noexcept : n_{n}, seed_{seed} {}
    [[nodiscard]] std::size_t size() const noexcept override { return n_; }
    void order(std::size_t epoch, std::span<std::uint64_t> order) const override;
    [[nodiscard]] const OrderParts* parts() const noexcept override;
    void part(std::size_t epoch, std::uint64_t first, std::uint64_t stride,
              std::span<std::uint64_t> part) const noexcept override;

private:
    std::size_t n_;
    std::uint64_t seed_;
};

/// `draws` indices with replacement, index i with a probability proportional to weights[i], keyed by (seed, epoch).
class WeightedSampler final : public Sampler, public OrderParts {
public:
    static constexpr std::size_t most_draws = std::size_t{1} << 33;   ///< of a pass; each takes two random numbers
    /// Weights must be finite and ≥ 0, and their sum finite and > 0. Throws std::invalid_argument naming the first
    /// weight that is not, or the sum, and for more than `most_draws`, after which random numbers would repeat. Keeps 8
    /// bytes a weight; a draw takes O(log weights).
    WeightedSampler(std::span<const double> weights, std::size_t draws, std::uint64_t seed);
    [[nodiscard]] std::size_t size() const noexcept override { return draws_; }
    void order(std::size_t epoch, std::span<std::uint64_t> order) const override;
    [[nodiscard]] const OrderParts* parts() const noexcept override { return this; }
    void part(std::size_t epoch, std::uint64_t first, std::uint64_t stride,
              std::span<std::uint64_t> part) const noexcept override;

private:
    std::vector<double> cumulative_;
    std::size_t draws_;
    std::uint64_t seed_;
};

/// One rank's share of another sampler's order: positions rank, rank + ranks, … after padding the order to a multiple
/// of `ranks` (by repeating it from its beginning, as often as needed) or, with `drop_last`, cutting it to one. All
/// ranks' samplers must be equal, seed included; else shares overlap. The other sampler must outlive this one. Has
/// parts if the other sampler has. If not, order() computes the whole order on each rank: time and memory O(of.size()).
class DistributedSampler final : public Sampler, public OrderParts {
public:
    /// rank < ranks, ranks ≥ 1. Throws std::invalid_argument naming the value.
    DistributedSampler(const Sampler& of, std::size_t rank, std::size_t ranks, bool drop_last = false);
    DistributedSampler(const Sampler&& of, std::size_t rank, std::size_t ranks, bool drop_last = false) = delete;
    [[nodiscard]] std::size_t size() const noexcept override;
    void order(std::size_t epoch, std::span<std::uint64_t> order) const override;
    [[nodiscard]] const OrderParts* parts() const noexcept override { return of_->parts() != nullptr ? this : nullptr; }
    [[nodiscard]] OrderShare share() const noexcept override { return {of_, rank_, ranks_}; }
    void part(std::size_t epoch, std::uint64_t first, std::uint64_t stride,
              std::span<std::uint64_t> part) const noexcept override;

private:
    const Sampler* of_;
    std::size_t rank_, ranks_;
    bool drop_last_;
};

/// For data in shards that are read sequentially. Shards come in random order; within a shard, indices are shuffled as
/// by a shuffle buffer of `window` samples, though no sample is buffered: the one that comes p-th, from 0, is one of
/// the shard's first p + window. Keyed by (seed, epoch). Indices run through the shards in order, as in TarShards.
class ShardSampler final : public Sampler {
public:
    /// Shards may be empty. window ≥ 1; a window of 1 keeps each shard's own order. Throws std::invalid_argument naming
    /// the value.
    ShardSampler(std::span<const std::uint64_t> shard_sizes, std::uint64_t seed, std::size_t window = 512);
    [[nodiscard]] std::size_t size() const noexcept override { return ends_.empty() ? 0 : ends_.back(); }
    void order(std::size_t epoch, std::span<std::uint64_t> order) const override;

private:
    std::vector<std::size_t> ends_;   // one past the last index of each shard that is not empty
    std::uint64_t seed_;
    std::size_t window_;
};

/// The same list every epoch.
class FixedSampler final : public Sampler, public OrderParts {
public:
    explicit FixedSampler(std::vector<std::uint64_t> indices) noexcept : indices_{std::move(indices)} {}
    [[nodiscard]] std::size_t size() const noexcept override { return indices_.size(); }
    void order(std::size_t epoch, std::span<std::uint64_t> order) const override;
    [[nodiscard]] const OrderParts* parts() const noexcept override { return this; }
    void part(std::size_t epoch, std::uint64_t first, std::uint64_t stride,
              std::span<std::uint64_t> part) const noexcept override;

private:
    std::vector<std::uint64_t> indices_;
};

/// For measuring on equal work. Cuts the order of `of`'s epoch 0 into blocks of `samples` consecutive indices; a rest
/// that fills no block is left out. Epochs 1, 2, 3, … are block 0, 1, 2, …, each repeated `times` times, and block 0
/// again after the last. Epoch 0 is `of`'s epoch 0, cut or repeated to the same length, samples · times. `of` is used
/// by the constructor only, which keeps its order: time and memory O(of.size()).
class RepeatedSampler final : public Sampler, public OrderParts {
public:
    /// `samples` per block (or all, if there are fewer) and `times` must be ≥ 1. Throws std::invalid_argument naming
    /// the value, and what `of` throws.
    RepeatedSampler(const Sampler& of, std::size_t samples, std::size_t times);
    [[nodiscard]] std::size_t size() const noexcept override { return block_ * times_; }
    void order(std::size_t epoch, std::span<std::uint64_t> order) const override;
    [[nodiscard]] const OrderParts* parts() const noexcept override { return this; }
    void part(std::size_t epoch, std::uint64_t first, std::uint64_t stride,
              std::span<std::uint64_t> part) const noexcept override;

private:
    std::vector<std::uint64_t> all_;
    std::size_t block_, times_;
};

}   // namespace drawpoint
