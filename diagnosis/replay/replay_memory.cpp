// The simulated loader: memory.
#include <algorithm>
#include <utility>

#include "diagnosis/replay/replay_loader.hpp"

#include <drawpoint/pipeline/loader/machine/detail/sample_sets.hpp>

namespace drawpoint {

/// Each set is as large as the largest batch that was made with it.
void ReplayLoader::take_samples(std::uint32_t slot) noexcept {
    Slot& to = slots_[slot];
    const SampleSetChoice choice =
        choose_sample_set(static_cast<std::uint32_t>(machine_.policy().slots()), slot, plan_.sample_sets,
                          [this](std::uint32_t i) -> SampleSet {
                              return {slots_[i].samples != 0, slots_[i].making, slots_[i].samples_taken};
                          });
    to.making = true;
    if (choice.from && !choice.makes_new) {
        std::swap(to.samples, slots_[*choice.from].samples);
        std::swap(to.samples_taken, slots_[*choice.from].samples_taken);
    }
    to.samples = std::max(to.samples, demands_.batch_at(to.position, to.size).bytes);
    to.samples_taken = ++sample_takes_;
}

void ReplayLoader::free_surplus_samples(Slot& s) noexcept {
    const auto sets = std::ranges::count_if(slots_, [](const Slot& other) { return other.samples != 0; });
    if (s.samples == 0 || !machine_.frees_samples(static_cast<std::size_t>(sets)))
        return;
    if (machine_.policy().counts_bytes())
        machine_.count(held_bytes());   // counts the set before it is freed
    s.samples = 0;
}

const LoaderMachine::HeldBytes& ReplayLoader::held_bytes() noexcept {
    const std::uint64_t indices = options_.setting.batch_size * sizeof(std::uint64_t);
    for (std::uint32_t slot = 0; slot < machine_.policy().slots(); ++slot) {
        const std::uint64_t held = slots_[slot].arrays + slots_[slot].samples;
        held_bytes_[slot] = {.all = held == 0 ? 0 : held + indices, .passing = slots_[slot].samples};
    }
    return held_bytes_;
}

std::uint64_t ReplayLoader::peak_bytes() const noexcept {
    return machine_.peak_bytes() + run_.other_bytes + reads_.most_bytes();
}

}   // namespace drawpoint
