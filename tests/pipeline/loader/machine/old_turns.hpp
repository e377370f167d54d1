#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <utility>

#include <drawpoint/pipeline/loader/machine/loader_machine.hpp>

namespace drawpoint::test {

/// The loader's decisions as they stood in PrefetchCore before LoaderMachine, for comparison.
struct OldTurns {
    static constexpr std::uint64_t slot_bits = (std::uint64_t{1} << 56) - 1, waits = std::uint64_t{1} << 63;
    static constexpr std::uint64_t nobody = 127;
    static std::uint64_t threshold(std::uint64_t gate) { return gate >> 56 & 127; }
    static std::uint64_t with_threshold(std::uint64_t gate, std::uint64_t at) {
        return (gate & ~(nobody << 56)) | at << 56;
    }
    static std::uint64_t first_slots(std::size_t count) { return (std::uint64_t{1} << count) - 1; }

    LoaderPolicy policy_;
    LiveLimits held_to_, all_;
    std::size_t slot_count_;
    std::uint64_t gate_ = nobody << 56;
    bool armed_ = false, next_wanted_ = false, order_busy_ = false, next_prepared_ = false;
    std::size_t benched_ = 0, leaving_ = 0;
    std::uint64_t retiring_ = 0, order_epoch_ = 0, settled_at_ = 0;
    bool waits_for_room_ = false;
    std::uint64_t most_workers_bytes_, most_slots_bytes_ = 0, past_peak_bytes_ = 0;
    std::uint64_t largest_samples_bytes_ = 0, largest_rest_bytes_ = 0;

    // What the test keeps for both.
    LoaderMachine::HeldBytes* held = nullptr;
    std::uint64_t position_ = 0, unclaimed_ = 0, slots_bytes = 0;
    std::uint32_t batch_size = 1;
    std::uint64_t pass_first = 0, pass_samples = 0;
    bool inline_ = false;

    // Effects of the last turn.
    LoaderMachine::Effects effects;
    std::uint64_t trimmed = 0;
    bool prepare = false;
    std::size_t recalled = 0;

    OldTurns(const PolicyOptions& options, const LiveLimits& limits)
        : policy_{options},
          held_to_{limits},
          all_{limits},
          slot_count_{limits.prefetch_depth + 1},
          most_workers_bytes_{limits.worker_bytes * limits.num_workers},
          batch_size{static_cast<std::uint32_t>(options.batch_size)} {}

    bool give(std::uint32_t slot) {
        const std::uint64_t gate = gate_;
        std::uint64_t next = gate + (std::uint64_t{1} << slot);
        if (threshold(gate) != nobody)
            next = threshold(gate) == 1 || (gate & waits) != 0 ? next | nobody << 56 : next - (std::uint64_t{1} << 56);
        gate_ = next;
        return threshold(gate) != nobody && threshold(next) == nobody;
    }
    bool work_is_open() const { return unclaimed_ != 0; }
    bool may_leave_slots() const {
        return !armed_ && policy_.claims_whole_batches() && policy_.parked() == 0 && work_is_open();
    }
    std::uint64_t take_up() {
        const std::uint64_t gate = gate_;
        if ((gate & slot_bits) != 0) {
            std::uint64_t next = gate & ~slot_bits;
            if (armed_ && threshold(gate) != nobody)
                next = with_threshold(next, policy_.wake_threshold());
            gate_ = next;
        }
        if (armed_ && threshold(gate) == nobody) {
            armed_ = false;
            policy_.woken(1);
        }
        return gate;
    }
    bool is_armed() const {
        if (!armed_)
            return false;
        const std::uint64_t left = threshold(gate_);
        return left == nobody || left <= policy_.wake_threshold();
    }
    bool arm() {
        if ((gate_ & slot_bits) != 0)
            return false;
        if (armed_ && threshold(gate_) <= policy_.wake_threshold())
            return true;
        gate_ = with_threshold(gate_, policy_.wake_threshold());
        armed_ = true;
        return true;
    }
    void retire_slots() {
        for (std::uint64_t left = retiring_ & ~(policy_.in_flight() | policy_.handed()); left != 0; left &= left - 1) {
            const auto i = static_cast<std::uint32_t>(std::countr_zero(left));
            trim(i);
            if (policy_.counts_bytes())
                policy_.holds(i, 0);
            retiring_ &= ~(std::uint64_t{1} << i);
        }
    }
    void trim(std::uint32_t slot) {
        (*held)[slot] = {};
        trimmed |= std::uint64_t{1} << slot;
    }
    void trim_slots() {
        for (std::uint64_t left = policy_.trims(); left != 0; left &= left - 1)
            trim(static_cast<std::uint32_t>(std::countr_zero(left)));
    }
    void count_bytes() {
        for (const bool grown : {false, true})
            for (std::uint32_t slot = 0; slot < slot_count_; ++slot) {
                const std::uint64_t samples = (*held)[slot].passing, all = (*held)[slot].all;
                if ((all >= policy_.bytes_of(slot)) == grown)
                    policy_.holds(slot, all, samples);
                largest_samples_bytes_ = std::max(largest_samples_bytes_, samples);
                largest_rest_bytes_ = std::max(largest_rest_bytes_, all - samples);
            }
        most_slots_bytes_ = std::max(most_slots_bytes_, policy_.batches_bytes());
    }
    void turn(bool loop_waits, bool leaves, std::size_t asked_wakes) {
        effects.open.clear();
        effects.hand_over.clear();
        effects.wake = 0;
        trimmed = 0;
        do {
            const std::uint64_t gate = !loop_waits && may_leave_slots() ? 0 : take_up();
            for (std::uint64_t back = gate & slot_bits; back != 0; back &= back - 1)
                policy_.release(static_cast<std::uint32_t>(std::countr_zero(back)));
            if (retiring_ != 0)
                retire_slots();
            const bool counts = policy_.counts_bytes();
            if (counts)
                count_bytes();
            std::uint64_t samples = 0;
            while (const auto admission =
                       policy_.admit(inline_ || loop_waits ? position_ : 0, counts ? unclaimed_ : 0)) {
                if (counts)
                    trim_slots();
                const std::uint64_t first = (admission->batch - pass_first) * batch_size;
                const auto size = static_cast<std::uint32_t>(std::min<std::uint64_t>(batch_size, pass_samples - first));
                effects.open.push_back({admission->batch, admission->slot, size});
                ++unclaimed_;
                samples += size;
            }
            if (counts)
                trim_slots();
            while (const auto batch = policy_.hand_over())
                effects.hand_over.push_back(*batch);
            effects.wake += policy_.wake(samples);
            const std::size_t at_least = std::max<std::size_t>(asked_wakes, (loop_waits || leaves) && work_is_open());
            if (effects.wake < at_least) {
                const std::size_t more = std::min(at_least - effects.wake, policy_.parked());
                policy_.woken(more);
                effects.wake += more;
            }
            if (armed_ && policy_.parked() == 0) {
                if (threshold(std::exchange(gate_, gate_ | nobody << 56)) == nobody)
                    --effects.wake;
                armed_ = false;
            }
        } while (policy_.parked() > 0 && !is_armed() && !arm());
        prepare = !loop_waits && next_wanted_ && !order_busy_ && policy_.admitted() == policy_.limit() &&
                  !policy_.stopped() && !work_is_open();
    }
    bool sleeps() {
        if (work_is_open() || prepare || policy_.begun() > policy_.wanted_workers())
            return false;
        policy_.park();
        if (!arm()) {
            policy_.woken(1);
            return false;
        }
        return true;
    }
    void count_workers() {
        for (; benched_ != 0 && policy_.begun() + leaving_ < policy_.wanted_workers(); --benched_, ++recalled)
            policy_.begin();
    }
    void observe(std::uint64_t samples, std::uint64_t ns, const WorkerUse& use) {
        policy_.observe(samples, ns);
        if (use.claims != 0) {
            policy_.observe_use(use);
            count_workers();
        }
    }
    bool arrive() {
        if (policy_.begun() + leaving_ < policy_.wanted_workers()) {
            policy_.begin();
            return true;
        }
        ++benched_;
        return false;
    }
    bool leave() {
        if (policy_.begun() <= policy_.wanted_workers())
            return false;
        policy_.end();
        ++leaving_;
        count_workers();
        return true;
    }
    void rest() {
        --leaving_;
        ++benched_;
        count_workers();
    }
    std::size_t reconfigure(const LiveLimits& asked, BatchOrder order, std::size_t max_overtakes, bool holds_back) {
        policy_.reorder(order, max_overtakes);
        all_ = asked;
        if (!waits_for_room_)
            settled_at_ = policy_.next_position() + static_cast<std::uint64_t>(std::popcount(policy_.wanted()));
        hold_to(!holds_back ? all_ : least(held_to_, all_));
        const std::size_t begun = policy_.begun(), left = policy_.wanted_workers();
        return std::min(begun > left ? begun - left : 0, policy_.parked());
    }
    void hold_to(const LiveLimits& numbers) {
        held_to_ = numbers;
        past_peak_bytes_ = std::max(past_peak_bytes_, most_workers_bytes_ + most_slots_bytes_);
        most_workers_bytes_ = all_.worker_bytes * std::max(policy_.begun() + leaving_, numbers.num_workers);
        most_slots_bytes_ = policy_.counts_bytes() ? policy_.batches_bytes() : slots_bytes;
        slot_count_ = std::max(slot_count_, numbers.prefetch_depth + 1);
        retiring_ = first_slots(slot_count_) & ~first_slots(numbers.prefetch_depth + 1);
        policy_.retarget(numbers.num_workers, numbers.prefetch_depth);
        policy_.rebudget(numbers.batches_budget_bytes);
        waits_for_room_ = numbers != all_;
        count_workers();
    }
    bool has_room(std::uint64_t reads) const {
        if (policy_.begun() + leaving_ > all_.num_workers)
            return false;
        if (!policy_.counts_bytes() && (retiring_ & ~first_slots(all_.prefetch_depth + 1)) != 0)
            return false;
        return position_ > settled_at_ ||
               ((all_.reads_bytes == 0 || reads <= all_.reads_bytes) &&
                (!policy_.counts_bytes() || policy_.batches_bytes() <= all_.batches_budget_bytes));
    }
};

}   // namespace drawpoint::test
