#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "pipeline/loader/core/loader_core.hpp"

namespace drawpoint {

/// The batches that are open to workers. A claim takes samples of the oldest one, without a lock.
class ClaimBoard {
public:
    /// The oldest batch that may have unclaimed samples. Only a hint: its slot may hold a newer batch by now, and
    /// `Slot::claim` says what was claimed.
    struct Oldest {
        std::uint64_t batch;
        std::uint32_t slot;
    };

    // Any thread.
    [[nodiscard]] bool is_open() const noexcept { return unclaimed() != 0; }
    /// Number of open batches; may be too high for a moment.
    [[nodiscard]] std::uint64_t unclaimed() const noexcept {
        const std::uint64_t oldest = oldest_.load(std::memory_order_acquire);
        return opened_.load(std::memory_order_acquire) - oldest;
    }
    /// Finds the oldest open batch. False: nothing is open.
    [[nodiscard]] bool find(Oldest& found) const noexcept {
        found.batch = oldest_.load(std::memory_order_acquire);
        if (found.batch >= opened_.load(std::memory_order_acquire))
            return false;
        found.slot = slot_of_[found.batch % slot_of_.size()].load(std::memory_order_relaxed);
        return true;
    }
    /// All samples of the batch are claimed.
    void pass_by(std::uint64_t batch) noexcept {
        oldest_.compare_exchange_strong(batch, batch + 1, std::memory_order_acq_rel);
    }
    [[nodiscard]] std::uint32_t claim_size() const noexcept { return claim_size_.load(std::memory_order_relaxed); }

    // The thread that turns, under the loader's mutex.
    /// Offers the next batch, which is in `slot`, to the workers.
    void open(std::uint64_t batch, std::uint32_t slot) noexcept {
        slot_of_[batch % slot_of_.size()].store(slot, std::memory_order_relaxed);
        opened_.store(batch + 1, std::memory_order_release);
    }
    void set_claim_size(std::uint32_t samples) noexcept {
        if (samples != claim_size())   // every claim reads this cache line
            claim_size_.store(samples, std::memory_order_relaxed);
    }

private:
    alignas(line_bytes) std::atomic<std::uint64_t> oldest_{0};
    alignas(line_bytes) std::atomic<std::uint64_t> opened_{0};   // number of batches opened so far
    std::array<std::atomic<std::uint32_t>, 64> slot_of_{};       // by batch modulo 64
    alignas(line_bytes) std::atomic<std::uint32_t> claim_size_{1};
};

}   // namespace drawpoint
