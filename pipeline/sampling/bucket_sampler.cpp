#include <drawpoint/pipeline/sampling/bucket_sampler.hpp>

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <string>

#include <drawpoint/pipeline/rng.hpp>

namespace drawpoint {

namespace {

constexpr std::uint64_t batch_stream = ~std::uint64_t{3};   // apart from the samples' numbers, which use their indices

std::uint64_t mixed(std::uint64_t value) noexcept {
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9;
    value = (value ^ value >> 27) * 0x94D049BB133111EB;
    return value ^ value >> 31;
}

}   // namespace

BucketSampler::BucketSampler(std::span<const std::uint32_t> lengths, std::size_t batch_size, std::uint64_t seed,
                             BucketOptions options)
    : lengths_(lengths.begin(), lengths.end()), batch_size_{batch_size}, seed_{seed}, options_{options} {
    if (batch_size < 1)
        throw std::invalid_argument{"batch_size must be at least 1, got 0"};
    if (options.bucket_batches < 1)
        throw std::invalid_argument{"bucket_batches must be at least 1, got 0"};
}

void BucketSampler::order(std::size_t epoch, std::span<std::uint64_t> order) const {
    if (options_.shuffle)
        RandomSampler{order.size(), seed_}.order(epoch, order);
    else
        std::iota(order.begin(), order.end(), std::uint64_t{0});
    CounterRng rng{seed_, static_cast<std::uint32_t>(epoch), batch_stream};
    const std::uint64_t high = rng.next_u32(), key = high << 32 | rng.next_u32();
    const std::size_t batches = order.size() / batch_size_;
    const auto shorter = [&](std::uint64_t a, std::uint64_t b) {
        if (lengths_[a] != lengths_[b])
            return lengths_[a] < lengths_[b];
        // Samples of one length stay mixed: sorted by index they would meet the same neighbours in every epoch.
        return options_.shuffle ? mixed(a ^ key) < mixed(b ^ key) : a < b;
    };
    for (std::size_t first = 0; first < batches;) {
        const std::size_t count = std::min(options_.bucket_batches, batches - first);
        std::ranges::sort(order.subspan(first * batch_size_, count * batch_size_), shorter);
        first += count;
    }
    if (!options_.shuffle)
        return;
    for (std::size_t left = batches; left > 1; --left) {
        const auto other = static_cast<std::size_t>(rng.uniform() * static_cast<double>(left));
        if (other != left - 1)
            std::ranges::swap_ranges(order.subspan((left - 1) * batch_size_, batch_size_),
                                     order.subspan(other * batch_size_, batch_size_));
    }
}

double padding_share(std::span<const std::uint64_t> order, std::span<const std::uint32_t> lengths,
                     std::size_t batch_size) {
    if (batch_size < 1)
        throw std::invalid_argument{"padding_share: batch_size must be at least 1, got 0"};
    double samples = 0, padded = 0;
    for (std::size_t begin = 0; begin < order.size(); begin += batch_size) {
        const auto batch = order.subspan(begin, std::min(batch_size, order.size() - begin));
        std::uint32_t longest = 0;
        for (const std::uint64_t index : batch) {
            if (index >= lengths.size())
                throw std::out_of_range{"padding_share: index " + std::to_string(index) + " of " +
                                        std::to_string(lengths.size()) + " lengths"};
            samples += lengths[index];
            longest = std::max(longest, lengths[index]);
        }
        padded += static_cast<double>(longest) * static_cast<double>(batch.size());
    }
    return padded > 0 ? 1 - samples / padded : 0;
}

}   // namespace drawpoint
