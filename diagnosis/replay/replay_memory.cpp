// The simulated loader's memory, as in pipeline/loader_core.cpp.
#include <algorithm>
#include <bit>
#include <utility>

#include "diagnosis/replay/replay_loader.hpp"

namespace drawpoint {

/// As LoaderCore::take_samples: each set as large as the largest batch that was made with it.
void ReplayLoader::take_samples(Slot& to) noexcept {
    to.making = true;
    Slot* from = nullptr;
    std::size_t sets = 0;
    for (Slot& other : slots_)
        if (other.samples != 0) {
            ++sets;
            if (&other != &to && other.making)
                continue;
            if (from == nullptr || other.samples_taken < from->samples_taken)
                from = &other;
        }
    if (from != nullptr && from != &to && sets >= plan_.sample_sets) {
        std::swap(to.samples, from->samples);
        std::swap(to.samples_taken, from->samples_taken);
    }
    to.samples = std::max(to.samples, demands_.batch_at(to.position, to.size).bytes);
    to.samples_taken = ++sample_takes_;
}

void ReplayLoader::count_bytes() noexcept {
    const std::uint64_t indices = options_.setting.batch_size * sizeof(std::uint64_t);
    for (const bool grown : {false, true})   // else what went to another slot would count in both for a moment
        for (std::uint32_t slot = 0; slot < policy_.slots(); ++slot) {
            const Slot& s = slots_[slot];
            const std::uint64_t held = s.arrays + s.samples, all = held == 0 ? 0 : held + indices;
            if (all != policy_.bytes_of(slot) && (all >= policy_.bytes_of(slot)) == grown)
                policy_.holds(slot, all, s.samples);
        }
    most_slots_bytes_ = std::max(most_slots_bytes_, policy_.batches_bytes());
}

void ReplayLoader::trim_slots() noexcept {
    for (std::uint64_t left = policy_.trims(); left != 0; left &= left - 1) {
        Slot& s = slots_[static_cast<std::size_t>(std::countr_zero(left))];
        s.arrays = s.samples = 0;
    }
}

std::uint64_t ReplayLoader::peak_bytes() const noexcept {
    return plan_.workers_bytes + run_.other_bytes + most_slots_bytes_ + reads_.bytes();
}

}   // namespace drawpoint
