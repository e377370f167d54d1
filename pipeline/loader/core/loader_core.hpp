#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <drawpoint/pipeline/loader/core/batch_slots.hpp>
#include <drawpoint/pipeline/loader/core/collate.hpp>

#include "pipeline/loader/core/give_back_gate.hpp"
#include "pipeline/loader/core/wake_tokens.hpp"

namespace drawpoint {

/// Two of x86's 64-byte lines: its prefetcher pulls them in pairs.
inline constexpr std::size_t line_bytes = 128;

/// Why a sample of a batch could not be made.
struct SampleFailure {
    static constexpr std::uint32_t whole_batch = ~std::uint32_t{0};

    std::uint32_t at = 0;   ///< position in the batch, or whole_batch
    std::uint64_t index = 0;
    std::string path, stage;
    std::exception_ptr cause;
};

/// The part of a slot that only collating loaders have: the samples are made here, then the batch's arrays.
struct SlotCollation {
    /// batch_size buffers while the batch is made; afterwards another slot may take them.
    std::unique_ptr<SampleBuffer[]> samples;
    std::atomic<std::uint64_t> samples_held{0};   // bytes held by `samples`
    std::uint64_t samples_taken = 0;   // running number of the last take_samples() here; under the loader's mutex
    /// From the first claim until the batch is complete. Set under the loader's mutex.
    std::atomic<bool> making{false};
    CollatedBatch batch;
    std::uint64_t released = 0;   // bytes that `samples` have freed, and `samples_held` still counts
    // Atomic, because a batch that is abandoned is recorded while workers still write:
    std::atomic<std::int64_t> begin_ns{no_stamp}, end_ns{no_stamp};
    std::atomic<std::int64_t> cpu_ns{no_stamp}, run_queue_ns{no_stamp};   // of collating, if it is measured
    std::atomic<std::int32_t> worker{-1};     // the worker that collates, by the recorder's numbers
    std::atomic<std::uint64_t> bytes{0};      // size of the batch's arrays, once they are made
    std::atomic<bool> lacks_samples{false};   // the batch was abandoned before all samples were made

    /// A new batch begins in the slot.
    void begin() noexcept {
        begin_ns.store(no_stamp, std::memory_order_relaxed);
        end_ns.store(no_stamp, std::memory_order_relaxed);
        cpu_ns.store(no_stamp, std::memory_order_relaxed);
        run_queue_ns.store(no_stamp, std::memory_order_relaxed);
        worker.store(-1, std::memory_order_relaxed);
        bytes.store(0, std::memory_order_relaxed);
        lacks_samples.store(false, std::memory_order_relaxed);
    }
};

/// The place of one batch. Its plain members belong to the thread that opens the batch (under the loader's mutex), then
/// to the workers that claim samples of it, then to the loop, then to the user until the batch is given back. Each
/// hand-over is an acquire/release pair.
struct alignas(line_bytes) Slot {
    /// Number of samples << 32 | next unclaimed sample: a claim is one fetch_add and learns both from its result.
    std::atomic<std::uint64_t> claim{0};
    alignas(line_bytes) std::atomic<std::uint32_t> remaining{0};   // samples not made yet
    // Atomic, because a batch that is abandoned is recorded while workers still write.
    std::atomic<std::int64_t> first_claim_ns{no_stamp}, last_done_ns{no_stamp};

    // Rarely written, so that this cache line stays shared while batches come and go.
    alignas(line_bytes) SlotMemory* memory = nullptr;
    SlotAttachment attachment{};
    std::unique_ptr<std::uint64_t[]> indices;
    std::vector<SampleFailure> failures;   // like `failed` under the loader's mutex until the batch is complete
    bool failed = false;
    bool lost_failures = false;   // `failures` lacks some
    /// Of a failed batch: the samples left once the failed ones are skipped or substituted; nullopt: that is not
    /// possible. Written by the worker that completes the batch.
    std::optional<std::uint32_t> kept;
    std::unique_ptr<SlotCollation> collation;   // null: samples are made in `memory`
    std::atomic<std::uint64_t> held{0};         // bytes held by the slot, without the samples of `collation`

    alignas(line_bytes) std::uint32_t size = 0, number = 0;
    std::uint64_t epoch = 0;
    std::int64_t admitted_ns = no_stamp, offered_ns = no_stamp, taken_ns = no_stamp;
};

/// A loader's slots, and the gate through which they come back from any thread. Reference-counted: the loader, each
/// pass and each pending wake-up hold one reference; after close(), so do the batches still out, all together.
class LoaderCore {
public:
    /// `most_slots`: the most slots there may ever be; at least `slots`.
    LoaderCore(const SampleLayout&, std::size_t batch_size, std::size_t slots, bool collates,
               std::size_t most_slots = 0, const SlotAllocator* slot_memory = nullptr);
    LoaderCore(const LoaderCore&) = delete;
    LoaderCore& operator=(const LoaderCore&) = delete;

    void retain() noexcept { references_.fetch_add(1, std::memory_order_relaxed); }
    [[nodiscard]] bool try_retain() noexcept;   // false: this is being destroyed
    void release() noexcept;

    [[nodiscard]] const SampleLayout& layout() const noexcept { return layout_; }
    /// Bytes of one sample in a slot's memory; 0 where samples are collated.
    [[nodiscard]] std::size_t sample_bytes() const noexcept { return sample_bytes_; }
    [[nodiscard]] Slot& slot(std::uint32_t i) noexcept { return slots_[i]; }

    [[nodiscard]] Slot& lent(std::uint64_t loan) noexcept { return slots_[slot_of(loan)]; }

    /// Retains the memory of a lent slot, so that later batches are written elsewhere. Throws std::bad_alloc.
    [[nodiscard]] KeptMemory keep_memory(std::uint64_t loan);
    /// Takes the slot back from the user. Any thread. Ends the program with a message if this loan is back already.
    void give_back(std::uint64_t loan) noexcept;
    /// The loader is gone: the last of the batches still `out` (bit set of slots) to come back releases this core. The
    /// caller still holds a reference of its own.
    void close(std::uint64_t out) noexcept;

    [[nodiscard]] std::uint64_t slots_replaced() const noexcept { return replaced_.load(std::memory_order_relaxed); }
    [[nodiscard]] std::uint64_t slots_bytes() const noexcept;

    /// Allocates what the first `slots` ≤ most_slots slots need before their first batch; they are used only after
    /// count_slots(slots). One thread at a time. Throws std::bad_alloc.
    void prepare_slots(std::size_t slots);
    /// Under the loader's mutex, like everything that visits all slots.
    void count_slots(std::size_t slots) noexcept { slot_count_ = std::max(slot_count_, slots); }

    /// Gives the slot memory, if it has none. Throws std::bad_alloc.
    void furnish(Slot&);
    /// Bytes that the slot holds: samples, targets, indices, and arrays where samples are collated.
    [[nodiscard]] std::uint64_t held_bytes(std::uint32_t i) const noexcept { return held_bytes(i, samples_bytes(i)); }
    [[nodiscard]] std::uint64_t held_bytes(std::uint32_t i, std::uint64_t samples_bytes) const noexcept {
        const std::uint64_t held = slots_[i].held.load(std::memory_order_relaxed) + samples_bytes;
        return held == 0 ? 0 : held + batch_size_ * sizeof(std::uint64_t);   // the indices
    }
    /// The part of held_bytes() in sample buffers; 0 without collating. Changes while samples are made.
    [[nodiscard]] std::uint64_t samples_bytes(std::uint32_t i) const noexcept {
        return slots_[i].collation ? slots_[i].collation->samples_held.load(std::memory_order_relaxed) : 0;
    }
    /// Frees the memory of a slot that nobody uses.
    void trim(std::uint32_t i) noexcept;
    /// Gives the slot sample buffers before the first sample of a batch is made: see choose_sample_set(). Under the
    /// loader's mutex. Throws std::bad_alloc if there is neither memory nor an idle set.
    void take_samples(Slot&);
    /// Number of slots that have sample buffers. Under the loader's mutex, like free_samples().
    [[nodiscard]] std::size_t sample_sets() const noexcept;
    /// Frees the sample buffers of a slot in which no sample is being made.
    void free_samples(Slot&) noexcept;

protected:
    virtual ~LoaderCore();

    /// Whether a give-back asks if somebody still holds the slot's memory. Not needed for memory that is never written
    /// again.
    virtual bool asks_holder() const noexcept { return true; }
    [[nodiscard]] Batch lend(std::uint32_t i) noexcept { return Batch{this, loans_[i]}; }
    /// Gives back a slot that is the loop's, not lent.
    void give_back_unlent(std::uint32_t i) noexcept { give_back(loans_[i]); }
    [[nodiscard]] static constexpr std::uint32_t slot_of(std::uint64_t loan) noexcept {
        return static_cast<std::uint32_t>(loan % loan_step);
    }

    alignas(line_bytes) GiveBackGate gate_;
    alignas(line_bytes) WakeTokens tokens_;      // for sleeping workers
    std::atomic<std::uint64_t> user_wakes_{0};   // wake-ups by give-backs

    static constexpr std::uint64_t loan_step = 64;
    static_assert(loan_step >= LoaderPolicy::max_slots);
    /// Of each slot, the next loan: its number, and loan_step for each time it was given back. Beside the slots,
    /// because the loop uses nothing else of most of them.
    alignas(line_bytes) std::array<std::uint64_t, LoaderPolicy::max_slots> loans_{};

    alignas(line_bytes) SampleLayout layout_;
    std::size_t sample_bytes_, batch_size_;
    std::size_t slot_count_;        // slots ever used
    std::size_t sample_sets_ = 1;   // most sets of sample buffers, but for rare moments
    std::unique_ptr<Slot[]> slots_;

private:
    void take_memory(Slot&, SlotMemory*) noexcept;
    void leave_memory(Slot&) noexcept;
    void leave_held(Slot&) noexcept;   // releases the memory of a collated batch that others retain
    void give_back_announced(std::uint32_t slot) noexcept;

    std::atomic<std::uint32_t> references_{1};
    std::atomic<std::uint32_t> visitors_{0};   // give-backs that may still use this after their slot is back
    std::atomic<std::uint32_t> outstanding_{0};
    std::atomic<std::uint64_t> replaced_{0};
    std::uint64_t sample_takes_ = 0;
    bool collates_;
    const SlotAllocator* slot_memory_;   // null: the system's
    std::size_t furnished_ = 0;          // slots that it has given memory
};

}   // namespace drawpoint
