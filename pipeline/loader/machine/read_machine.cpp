#include <drawpoint/pipeline/loader/machine/detail/read_machine.hpp>

#include <algorithm>

namespace drawpoint {

void ReadMachine::withdraw(std::uint32_t slot, std::uint32_t first) noexcept {
    const auto end = wanted_.begin() + static_cast<std::ptrdiff_t>(wanted_count_);
    const auto found = std::find_if(wanted_.begin(), end, [&](const Wanted& one) { return one.slot == slot; });
    if (found == end)
        return;
    found->size = std::min(found->size, first);
    if (first == 0) {
        std::move(found + 1, end, found);
        --wanted_count_;
    }
}

std::optional<ReadMachine::Place> ReadMachine::next() noexcept {
    while (wanted_count_ != 0) {
        Wanted& oldest = wanted_[0];
        if (oldest.next < oldest.size)
            return Place{oldest.slot, oldest.next++};
        std::move(wanted_.begin() + 1, wanted_.begin() + static_cast<std::ptrdiff_t>(wanted_count_--), wanted_.begin());
    }
    return std::nullopt;
}

ReadMachine::Act ReadMachine::act(const Buffer& next) noexcept {
    if (!has_room(next) || held_ - late_ + coming_ >= policy_.wake_below() ||
        active_ + coming_ >= policy_.in_flight() || wanted_count_ == 0)
        return Act::none;
    if (asleep_ != 0) {
        --asleep_;
        ++coming_;
        return Act::wake;
    }
    if (refused_ || coming_ != 0 || started_ >= std::min(policy_.in_flight() + late_, 2 * most_))
        return Act::none;
    ++started_;
    return Act::start;
}

void ReadMachine::ended(std::uint64_t ns, bool blocked, bool was_late, std::uint64_t grown) noexcept {
    bytes_ += grown;
    most_bytes_ = std::max(most_bytes_, bytes_);
    policy_.observe_reads(1, ns, blocked ? ns : 0);
    --(was_late ? late_ : active_);
}

}   // namespace drawpoint
