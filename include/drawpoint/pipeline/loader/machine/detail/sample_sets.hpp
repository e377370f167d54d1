#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace drawpoint {

/// A slot's set of sample buffers: one for each sample of a batch that will be collated.
struct SampleSet {
    bool exists = false, is_busy = false;   ///< busy: a batch is being made in it
    std::uint64_t taken = 0;                ///< running number of the batch that took it last
};

/// What choose_sample_set() decided.
struct SampleSetChoice {
    bool makes_new = false;              ///< allocate a new set; if there is no memory for one, use `from`
    std::optional<std::uint32_t> from;   ///< the slot to exchange sets with; empty: the slot keeps its own
};

/// Chooses the sample buffers for a batch in slot `to`: a new set while there are fewer than `most`, else the idle set
/// used longest ago, so that all sets soon have grown to the largest samples. `set_of(i)` gives the SampleSet of slot
/// i < `slots`. Pure; O(slots).
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
