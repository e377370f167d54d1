#include "pipeline/loader_core.hpp"

#include <thread>

namespace drawpoint {

LoaderCore::LoaderCore(const SampleLayout& layout, std::size_t batch_size, std::size_t slots)
    : layout_{layout},
      sample_bytes_{layout.bytes()},
      batch_size_{batch_size},
      slot_count_{slots},
      slots_{std::make_unique<Slot[]>(slots)} {
    for (std::size_t i = 0; i < slots; ++i)
        slots_[i].indices = std::make_unique<std::uint64_t[]>(batch_size);
}

LoaderCore::~LoaderCore() {
    for (std::size_t i = 0; i < slot_count_; ++i) {
        Slot& slot = slots_[i];
        if (slot.attachment.destroy)
            slot.attachment.destroy(slot.attachment.object);
        if (slot.memory)
            slot.memory->release();
    }
}

bool LoaderCore::try_retain() noexcept {
    std::uint32_t now = references_.load(std::memory_order_relaxed);
    while (now != 0)
        if (references_.compare_exchange_weak(now, now + 1, std::memory_order_relaxed))
            return true;
    return false;
}

void LoaderCore::release() noexcept {
    if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1)
        delete this;
}

void LoaderCore::furnish(Slot& slot) {
    if (slot.memory)
        return;
    slot.memory = SlotMemory::allocate(batch_size_ * sample_bytes_, batch_size_);
    bytes_.fetch_add(slot.memory->bytes(), std::memory_order_relaxed);
}

void LoaderCore::give_back(std::uint32_t i) noexcept {
    Slot& slot = slots_[i];
    if (slot.attachment.held && asks_holder() && slot.attachment.held(slot.attachment.object)) {
        slot.attachment.destroy(slot.attachment.object);
        slot.attachment = {};
        bytes_.fetch_sub(slot.memory->bytes(), std::memory_order_relaxed);
        slot.memory->release();
        slot.memory = nullptr;
        replaced_.fetch_add(1, std::memory_order_relaxed);
    }
    // Once the slot is back, this core may be gone: such a give-back must end with the exchange. One that has more to do
    // announces itself first, so that close() waits for it.
    const std::uint64_t slot_bit = std::uint64_t{1} << i;
    std::uint64_t gate = gate_.load(std::memory_order_relaxed);
    for (;;) {
        const std::uint64_t left = threshold(gate);
        std::uint64_t next = gate + slot_bit;
        if (left != nobody) {
            if (left == closed || left == 1 || (gate & waits) != 0)
                return give_back_to_sleepers(gate, slot_bit);
            next -= one_threshold;
        }
        if (gate_.compare_exchange_weak(gate, next, std::memory_order_acq_rel, std::memory_order_relaxed))
            return;
    }
}

void LoaderCore::give_back_to_sleepers(std::uint64_t gate, std::uint64_t slot_bit) noexcept {
    visitors_.fetch_add(1, std::memory_order_relaxed);
    std::uint64_t next;
    do {
        next = gate + slot_bit;
        if (threshold(gate) < closed)
            // Whoever makes the threshold `nobody` has decided to wake one worker; the policy counts it at its next turn.
            next = threshold(gate) == 1 || (gate & waits) != 0 ? next | nobody << 56 : next - one_threshold;
    } while (!gate_.compare_exchange_weak(gate, next, std::memory_order_acq_rel, std::memory_order_relaxed));
    if (threshold(gate) < closed && threshold(next) == nobody) {
        tokens_.fetch_add(1, std::memory_order_release);
        tokens_.notify_one();
        user_wakes_.fetch_add(1, std::memory_order_relaxed);
    }
    visitors_.fetch_sub(1, std::memory_order_release);
    if (threshold(gate) == closed && outstanding_.fetch_sub(1, std::memory_order_acq_rel) == 1)
        release();
}

void LoaderCore::close(std::uint64_t out) noexcept {
    std::uint64_t gate = gate_.load(std::memory_order_acquire);
    retain();
    for (;;) {
        const std::uint64_t left = out & ~gate;
        outstanding_.store(static_cast<std::uint32_t>(std::popcount(left)), std::memory_order_relaxed);
        const std::uint64_t next = (gate & slot_bits) | closed << 56;
        if (gate_.compare_exchange_weak(gate, next, std::memory_order_acq_rel, std::memory_order_acquire)) {
            if (left == 0)
                release();
            break;
        }
    }
    // A give-back that found sleepers is between its exchange and its last touch for some nanoseconds.
    while (visitors_.load(std::memory_order_acquire) != 0)
        std::this_thread::yield();
}

}   // namespace drawpoint
