#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace drawpoint {

/// A slot's buffers for the samples of a batch that will be collated.
struct SampleSet {
    bool exists = false, is_busy = false;   ///< busy: a batch is being made in them
    std::uint64_t taken = 0;                ///< running number of the batch that took them last
};

struct SampleSetChoice {
    bool makes_new = false;              ///< a new set for the slot, or `from` where there is no memory for one
    std::optional<std::uint32_t> from;   ///< the slot whose set is exchanged for its own; empty: it keeps its own
};

/// Which buffers a batch in slot `to` takes: those that were used longest ago, so that all of them soon have seen the largest
/// samples, or new ones while there are fewer than `most` sets. `set_of(slot)` gives each SampleSet of `slots` many. Pure.
template <class SetOf>
[[nodiscard]] SampleSetChoice choose_sample_set(std::uint32_t slots, std::uint32_t to, std::size_t most, SetOf set_of) {
    std::optional<std::uint32_t> oldest;
    std::uint64_t oldest_taken = 0;
    std::size_t sets = 0;
    for (std::uint32_t slot = 0; slot < slots; ++slot) {
        const SampleSet set = set_of(slot);
        sets += set.exists;
        if (set.exists && !set.is_busy && (!oldest || set.taken < oldest_taken)) {
            oldest = slot;
            oldest_taken = set.taken;
        }
    }
    const bool makes_new = !oldest || (!set_of(to).exists && sets < most);
    if (makes_new || (oldest && sets < most))
        return {.makes_new = makes_new, .from = makes_new ? oldest : std::nullopt};
    return {.makes_new = false, .from = oldest == to ? std::nullopt : oldest};
}

}   // namespace drawpoint
