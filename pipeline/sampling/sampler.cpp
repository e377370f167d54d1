#include <drawpoint/pipeline/sampling/sampler.hpp>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <stdexcept>
#include <string>

#include <drawpoint/pipeline/rng.hpp>

#include "pipeline/sampling/keyed_permutation.hpp"

namespace drawpoint {

namespace {

// Streams of their own, apart from the samples' numbers, which use the data set's indices.
constexpr std::uint64_t permutation_stream = ~std::uint64_t{0};
constexpr std::uint64_t weighted_stream = ~std::uint64_t{1};
constexpr std::uint64_t shard_stream = ~std::uint64_t{2};

constexpr std::size_t most_shuffled = std::size_t{1} << 17;   // samples; shuffling them takes about a millisecond

/// A uniform number below `bound`, without bias (Lemire, "Fast random integer generation in an interval", 2019).
std::uint64_t below(CounterRng& rng, std::uint64_t bound) noexcept {
    if (bound >> 32 == 0) {
        std::uint64_t product = std::uint64_t{rng.next_u32()} * bound;
        if (static_cast<std::uint32_t>(product) < bound) {
            const auto refused = static_cast<std::uint32_t>((std::uint64_t{1} << 32) % bound);
            while (static_cast<std::uint32_t>(product) < refused)
                product = std::uint64_t{rng.next_u32()} * bound;
        }
        return product >> 32;
    }
    const std::uint64_t accepted = ~std::uint64_t{0} / bound * bound;
    for (;;) {
        const std::uint64_t high = rng.next_u32();
        const std::uint64_t number = high << 32 | rng.next_u32();
        if (number < accepted)
            return number % bound;
    }
}

}   // namespace

void SequentialSampler::order(std::size_t epoch, std::span<std::uint64_t> order) const { part(epoch, 0, 1, order); }

void SequentialSampler::part(std::size_t, std::uint64_t first, std::uint64_t stride,
                             std::span<std::uint64_t> part) const noexcept {
    for (std::uint64_t& index : part) {
        index = first;
        first += stride;
    }
}

const OrderParts* RandomSampler::parts() const noexcept { return n_ > most_shuffled ? this : nullptr; }

void RandomSampler::part(std::size_t epoch, std::uint64_t first, std::uint64_t stride,
                         std::span<std::uint64_t> part) const noexcept {
    const KeyedPermutation permutation{n_, CounterRng{seed_, static_cast<std::uint32_t>(epoch), permutation_stream}};
    for (std::uint64_t& index : part) {
        index = permutation(first);
        first += stride;
    }
}

void RandomSampler::order(std::size_t epoch, std::span<std::uint64_t> order) const {
    if (n_ > most_shuffled)
        return part(epoch, 0, 1, order);
    std::iota(order.begin(), order.end(), std::uint64_t{0});
    CounterRng rng{seed_, static_cast<std::uint32_t>(epoch), permutation_stream};
    for (std::size_t left = order.size(); left > 1; --left)
        std::swap(order[left - 1], order[below(rng, left)]);
}

WeightedSampler::WeightedSampler(std::span<const double> weights, std::size_t draws, std::uint64_t seed)
    : draws_{draws}, seed_{seed} {
    if (draws > most_draws)
        throw std::invalid_argument{"draws must be at most " + std::to_string(most_draws) + ", got " +
                                    std::to_string(draws)};
    cumulative_.reserve(weights.size());
    double sum = 0.0;
    for (std::size_t i = 0; i < weights.size(); ++i) {
        if (!std::isfinite(weights[i]) || weights[i] < 0.0)
            throw std::invalid_argument{"weights[" + std::to_string(i) + "] must be finite and at least 0, got " +
                                        std::to_string(weights[i])};
        cumulative_.push_back(sum += weights[i]);
    }
    if (!(sum > 0.0) || !std::isfinite(sum))
        throw std::invalid_argument{"weights must have a finite sum above 0, got " + std::to_string(sum)};
}

void WeightedSampler::order(std::size_t epoch, std::span<std::uint64_t> order) const { part(epoch, 0, 1, order); }

void WeightedSampler::part(std::size_t epoch, std::uint64_t first, std::uint64_t stride,
                           std::span<std::uint64_t> part) const noexcept {
    CounterRng rng{seed_, static_cast<std::uint32_t>(epoch), weighted_stream};
    rng.discard(2 * first);   // uniform() takes two numbers
    // Rounding may put a number on the sum itself: the last index with a weight is meant.
    const auto last = std::lower_bound(cumulative_.begin(), cumulative_.end(), cumulative_.back());
    for (std::uint64_t& index : part) {
        const double at = rng.uniform() * cumulative_.back();
        const auto found = std::upper_bound(cumulative_.begin(), cumulative_.end(), at);
        index = static_cast<std::uint64_t>(std::distance(cumulative_.begin(), std::min(found, last)));
        if (stride != 1)
            rng.discard(2 * (stride - 1));
    }
}

DistributedSampler::DistributedSampler(const Sampler& of, std::size_t rank, std::size_t ranks, bool drop_last)
    : of_{&of}, rank_{rank}, ranks_{ranks}, drop_last_{drop_last} {
    if (ranks < 1)
        throw std::invalid_argument{"ranks must be at least 1, got 0"};
    if (rank >= ranks)
        throw std::invalid_argument{"rank must be below ranks = " + std::to_string(ranks) + ", got " +
                                    std::to_string(rank)};
}

std::size_t DistributedSampler::size() const noexcept {
    const std::size_t n = of_->size();
    return drop_last_ ? n / ranks_ : n / ranks_ + (n % ranks_ != 0);
}

void DistributedSampler::part(std::size_t epoch, std::uint64_t first, std::uint64_t stride,
                              std::span<std::uint64_t> part) const noexcept {
    const std::uint64_t all = of_->size(), step = stride * ranks_;
    for (std::uint64_t at = rank_ + first * ranks_; !part.empty();) {
        at %= all;   // the padding repeats the order
        const std::size_t here = std::min<std::uint64_t>(part.size(), (all - at + step - 1) / step);
        of_->parts()->part(epoch, at, step, part.first(here));
        part = part.subspan(here);
        at += here * step;
    }
}

void DistributedSampler::order(std::size_t epoch, std::span<std::uint64_t> order) const {
    if (of_->parts() != nullptr)
        return part(epoch, 0, 1, order);
    std::vector<std::uint64_t> all(of_->size());
    of_->order(epoch, all);
    for (std::size_t i = 0; i < order.size(); ++i)
        order[i] = all[(rank_ + i * ranks_) % all.size()];
}

ShardSampler::ShardSampler(std::span<const std::uint64_t> shard_sizes, std::uint64_t seed, std::size_t window)
    : seed_{seed}, window_{window} {
    if (window < 1)
        throw std::invalid_argument{"window must be at least 1, got 0"};
    std::size_t end = 0;
    for (const std::uint64_t size : shard_sizes)
        if (size > 0)
            ends_.push_back(end += static_cast<std::size_t>(size));
}

void ShardSampler::order(std::size_t epoch, std::span<std::uint64_t> order) const {
    CounterRng rng{seed_, static_cast<std::uint32_t>(epoch), shard_stream};
    // The shards' own order lies at the end of `order` until it is used up: a shard has an index at least, so what is
    // written in front never reaches the numbers of shards to come.
    const std::span<std::uint64_t> shards = order.last(ends_.size());
    std::iota(shards.begin(), shards.end(), std::uint64_t{0});
    for (std::size_t left = shards.size(); left > 1; --left)
        std::swap(shards[left - 1], shards[below(rng, left)]);
    std::size_t done = 0;
    for (std::size_t turn = 0; turn < ends_.size(); ++turn) {
        const auto shard = static_cast<std::size_t>(order[order.size() - ends_.size() + turn]);
        const std::size_t begin = shard == 0 ? 0 : ends_[shard - 1];
        const std::span<std::uint64_t> of_shard = order.subspan(done, ends_[shard] - begin);
        std::iota(of_shard.begin(), of_shard.end(), std::uint64_t{begin});
        for (std::size_t place = 0; place < of_shard.size(); ++place)
            std::swap(of_shard[place], of_shard[place + below(rng, std::min(window_, of_shard.size() - place))]);
        done += of_shard.size();
    }
}

void FixedSampler::order(std::size_t epoch, std::span<std::uint64_t> order) const { part(epoch, 0, 1, order); }

void FixedSampler::part(std::size_t, std::uint64_t first, std::uint64_t stride,
                        std::span<std::uint64_t> part) const noexcept {
    for (std::uint64_t& index : part) {
        index = indices_[first];
        first += stride;
    }
}

RepeatedSampler::RepeatedSampler(const Sampler& of, std::size_t samples, std::size_t times)
    : all_(of.size()), block_{std::min(samples, all_.size())}, times_{times} {
    if (samples == 0 || times == 0)
        throw std::invalid_argument{std::string{samples == 0 ? "samples" : "times"} + " must be at least 1, got 0"};
    of.order(0, all_);
}

void RepeatedSampler::order(std::size_t epoch, std::span<std::uint64_t> order) const { part(epoch, 0, 1, order); }

void RepeatedSampler::part(std::size_t epoch, std::uint64_t first, std::uint64_t stride,
                           std::span<std::uint64_t> part) const noexcept {
    if (block_ == 0)
        return;   // of no samples, none
    const std::size_t turn = epoch == 0 ? all_.size() : block_, blocks = all_.size() / block_;
    const std::size_t from = epoch == 0 ? 0 : (epoch - 1) % blocks * block_;
    for (std::uint64_t& index : part) {
        index = all_[from + first % turn];
        first += stride;
    }
}

}   // namespace drawpoint
