#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include <drawpoint/pipeline/loader/machine/detail/loader_machine.hpp>

namespace drawpoint {

/// The gate of a loader in virtual time: counts the slots that come back, and fires after a given number to wake a
/// sleeping worker.
class ReplayGate {
public:
    /// A slot comes back. True: the gate fires, and one worker must be woken.
    [[nodiscard]] bool give(std::uint32_t slot) noexcept {
        back_ |= std::uint64_t{1} << slot;
        if (state_ != LoaderMachine::Gate::counting || --left_ != 0)
            return false;
        state_ = LoaderMachine::Gate::fired;
        return true;
    }
    [[nodiscard]] bool has_slots() const noexcept { return back_ != 0; }
    [[nodiscard]] bool is_armed() const noexcept { return state_ != LoaderMachine::Gate::off; }
    /// Moves the slots that came back to `seen`. If there are any, a counting gate starts again from `threshold`.
    void take_up(std::size_t threshold, LoaderMachine::Seen& seen) noexcept {
        if (state_ == LoaderMachine::Gate::counting && back_ != 0)
            left_ = threshold;
        seen.given_back = std::exchange(back_, 0);
        seen.gate = state_;
        seen.left = left_;
        if (state_ == LoaderMachine::Gate::fired)
            state_ = LoaderMachine::Gate::off;
    }
    /// False: a slot has come back.
    [[nodiscard]] bool arm(std::size_t threshold) noexcept {
        if (back_ != 0)
            return false;
        if (state_ != LoaderMachine::Gate::counting || left_ > threshold)
            left_ = threshold;
        state_ = LoaderMachine::Gate::counting;
        return true;
    }
    void disarm() noexcept { state_ = LoaderMachine::Gate::off; }

private:
    std::uint64_t back_ = 0;
    std::size_t left_ = 0;
    LoaderMachine::Gate state_ = LoaderMachine::Gate::off;
};

}   // namespace drawpoint
