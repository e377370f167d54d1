#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "pipeline/loader/loader_core.hpp"

namespace drawpoint {

/// Which batches are open to workers, oldest first. A claim takes samples of the oldest without a lock.
class ClaimBoard {
public:
    /// The oldest batch that may have unclaimed samples: a hint, which may lead to a newer batch at worst. What is claimed
    /// says itself what it is.
    struct Oldest {
        std::uint64_t batch;
        std::uint32_t slot;
    };

    // Any thread.
    [[nodiscard]] bool is_open() const noexcept { return unclaimed() != 0; }
    /// Open batches; those of a stale hint, too.
    [[nodiscard]] std::uint64_t unclaimed() const noexcept {
        const std::uint64_t oldest = oldest_.load(std::memory_order_acquire);
        return opened_.load(std::memory_order_acquire) - oldest;
    }
    /// False: nothing is open.
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

    // Whoever turns, one thread at a time.
    /// Offers the batch in the slot, the next after those before.
    void open(std::uint64_t batch, std::uint32_t slot) noexcept {
        slot_of_[batch % slot_of_.size()].store(slot, std::memory_order_relaxed);
        opened_.store(batch + 1, std::memory_order_release);
    }
    void set_claim_size(std::uint32_t samples) noexcept {
        if (samples != claim_size())   // every claim reads the line
            claim_size_.store(samples, std::memory_order_relaxed);
    }

private:
    alignas(line_bytes) std::atomic<std::uint64_t> oldest_{0};
    alignas(line_bytes) std::atomic<std::uint64_t> opened_{0};   // batches
    std::array<std::atomic<std::uint32_t>, 64> slot_of_{};       // by batch
    alignas(line_bytes) std::atomic<std::uint32_t> claim_size_{1};
};

}   // namespace drawpoint
