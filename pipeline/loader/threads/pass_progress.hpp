#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include <drawpoint/pipeline/loader/machine/detail/loader_policy.hpp>

namespace drawpoint {

/// Which batches of a pass are drawn, where they may come out of order: all below end() but the undrawn ones. For the
/// loop's thread.
class PassProgress {
public:
    PassProgress() { undrawn_.reserve(LoaderPolicy::max_slots); }   // undrawn ones are admitted, so they have a slot

    void begin(std::uint64_t epoch, std::uint64_t end, const std::vector<std::uint64_t>& undrawn) {
        epoch_ = epoch;
        end_ = end;
        undrawn_.assign(undrawn.begin(), undrawn.end());
    }
    /// The first `count` batches are drawn.
    void reach(std::uint64_t count) noexcept { end_ = count; }
    void draw(std::uint64_t number) noexcept {
        if (number < end_) {
            undrawn_.erase(std::ranges::lower_bound(undrawn_, number));
            return;
        }
        for (; end_ < number; ++end_)
            undrawn_.push_back(end_);
        ++end_;
    }

    [[nodiscard]] std::uint64_t epoch() const noexcept { return epoch_; }
    [[nodiscard]] std::uint64_t end() const noexcept { return end_; }
    [[nodiscard]] std::uint64_t drawn() const noexcept { return end_ - undrawn_.size(); }
    [[nodiscard]] const std::vector<std::uint64_t>& undrawn() const noexcept { return undrawn_; }   // ascending

private:
    std::uint64_t epoch_ = 0, end_ = 0;
    std::vector<std::uint64_t> undrawn_;
};

}   // namespace drawpoint
