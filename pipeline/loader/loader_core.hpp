#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include <drawpoint/pipeline/loader/batch_slots.hpp>
#include <drawpoint/pipeline/loader/collate.hpp>

#include "pipeline/loader/give_back_gate.hpp"

namespace drawpoint {

/// Two of x86's 64-byte lines: its prefetcher pulls them in pairs.
inline constexpr std::size_t line_bytes = 128;

/// A sample of a batch that could not be made.
struct SampleFailure {
    std::uint64_t index = 0;
    std::string path, stage;
    std::exception_ptr cause;
};

/// What a slot has besides where samples are collated: they are made here, then their batch.
struct SlotCollation {
    std::unique_ptr<SampleBuffer[]> samples;   // batch_size of them, while the batch is made; then others may take them
    std::atomic<std::uint64_t> samples_held{0};   // bytes of those
    std::uint64_t samples_taken = 0;              // running number of that, under the loader's mutex
    std::atomic<bool> making{false};   // set under the loader's mutex: from the first claim until the batch is complete
    CollatedBatch batch;
    std::uint64_t released = 0;   // bytes that samples gave up, and `samples_held` still counts
    // Read early when a batch is given up:
    std::atomic<std::int64_t> begin_ns{no_stamp}, end_ns{no_stamp};
    std::atomic<std::int32_t> worker{-1};     // who collates, as the recorder numbers them
    std::atomic<std::uint64_t> bytes{0};      // of the batch's arrays, once there are any
    std::atomic<bool> lacks_samples{false};   // given up before all were made

    void begin() noexcept {   // a batch
        begin_ns.store(no_stamp, std::memory_order_relaxed);
        end_ns.store(no_stamp, std::memory_order_relaxed);
        worker.store(-1, std::memory_order_relaxed);
        bytes.store(0, std::memory_order_relaxed);
        lacks_samples.store(false, std::memory_order_relaxed);
    }
};

/// One batch's place. Its plain fields belong to whoever opens it (under the loader's mutex), then to the workers that
/// claimed from it, then to the loop, then to the user until the batch is given back: each hand-over is an
/// acquire/release pair.
struct alignas(line_bytes) Slot {
    std::atomic<std::uint64_t> claim{0};   // samples << 32 | next unclaimed; a claim describes itself
    alignas(line_bytes) std::atomic<std::uint32_t> remaining{0};
    std::atomic<std::int64_t> first_claim_ns{no_stamp}, last_done_ns{no_stamp};   // read early when a batch is given up

    // Seldom written: both sides keep this line while batches come and go.
    alignas(line_bytes) SlotMemory* memory = nullptr;
    SlotAttachment attachment{};
    std::unique_ptr<std::uint64_t[]> indices;
    std::vector<SampleFailure> failures;   // with `failed` under the loader's mutex until complete
    bool failed = false;
    std::unique_ptr<SlotCollation> collation;   // null: samples are made in `memory`
    std::atomic<std::uint64_t> held{0};         // bytes, by all of these but the samples of `collation`

    alignas(line_bytes) std::uint32_t size = 0, number = 0;
    std::uint64_t epoch = 0;
    BatchDetail detail{};
    std::int64_t admitted_ns = no_stamp, offered_ns = no_stamp, taken_ns = no_stamp;
};

/// The slots of a loader and the gate through which batches come back, from any thread. Counted intrusively: the loader, each
/// pass, a wake-up under way and, after close(), all batches still out together hold one reference.
class LoaderCore {
public:
    /// `most_slots`: so many there may ever be; `slots`, if that is more.
    LoaderCore(const SampleLayout&, std::size_t batch_size, std::size_t slots, bool collates,
               std::size_t most_slots = 0);
    LoaderCore(const LoaderCore&) = delete;
    LoaderCore& operator=(const LoaderCore&) = delete;

    void retain() noexcept { references_.fetch_add(1, std::memory_order_relaxed); }
    [[nodiscard]] bool try_retain() noexcept;   // false: it is being destroyed
    void release() noexcept;

    [[nodiscard]] const SampleLayout& layout() const noexcept { return layout_; }
    /// Of a slot's memory; 0 where samples are collated.
    [[nodiscard]] std::size_t sample_bytes() const noexcept { return sample_bytes_; }
    [[nodiscard]] Slot& slot(std::uint32_t i) noexcept { return slots_[i]; }

    /// Takes slot i back from the user. Any thread.
    void give_back(std::uint32_t i) noexcept;
    /// From here on the last of the batches still `out` (a bit each) ends this. The caller still holds a reference.
    void close(std::uint64_t out) noexcept;

    [[nodiscard]] std::uint64_t slots_replaced() const noexcept { return replaced_.load(std::memory_order_relaxed); }
    [[nodiscard]] std::uint64_t slots_bytes() const noexcept;

    /// Makes ready what `slots` ≤ most_slots need before their first batch; count_slots(slots) then makes them count.
    /// One thread at a time. Throws std::bad_alloc.
    void prepare_slots(std::size_t slots);
    /// Under the loader's mutex, like whatever goes through all slots.
    void count_slots(std::size_t slots) noexcept { slot_count_ = std::max(slot_count_, slots); }

    /// Makes sure that the slot has memory. Throws std::bad_alloc.
    void furnish(Slot&);
    /// Bytes of the slot's memory: of its samples, as they are made, and of its arrays too where samples are collated.
    [[nodiscard]] std::uint64_t held_bytes(std::uint32_t i) const noexcept { return held_bytes(i, samples_bytes(i)); }
    [[nodiscard]] std::uint64_t held_bytes(std::uint32_t i, std::uint64_t samples_bytes) const noexcept {
        const std::uint64_t held = slots_[i].held.load(std::memory_order_relaxed) + samples_bytes;
        return held == 0 ? 0 : held + batch_size_ * sizeof(std::uint64_t);   // the indices
    }
    /// Of these, the buffers of samples that are, or were last, collated here. Moves while they are made.
    [[nodiscard]] std::uint64_t samples_bytes(std::uint32_t i) const noexcept {
        return slots_[i].collation ? slots_[i].collation->samples_held.load(std::memory_order_relaxed) : 0;
    }
    /// Frees the memory of a slot that nobody uses: furnish() takes new.
    void trim(std::uint32_t i) noexcept;
    /// Before the first sample of a batch that will be collated: gives the slot buffers for them, those that were used
    /// longest ago by a batch that is made, or new ones until there are `sample_sets_`. Under the loader's mutex.
    /// Throws std::bad_alloc where no idle ones could be taken over either.
    void take_samples(Slot&);
    /// Slots with buffers for samples. Under the loader's mutex, like the next.
    [[nodiscard]] std::size_t sample_sets() const noexcept;
    /// Of a slot where none is being made: take_samples() gives others.
    void free_samples(Slot&) noexcept;

protected:
    virtual ~LoaderCore();

    /// Batches are asked whether somebody still holds their memory. Off for memory that is never written again.
    virtual bool asks_holder() const noexcept { return true; }
    [[nodiscard]] Batch lend(std::uint32_t i) noexcept { return Batch{this, i}; }

    alignas(line_bytes) GiveBackGate gate_;
    alignas(line_bytes) std::atomic<std::uint32_t> tokens_{0};   // wakes for sleeping workers
    std::atomic<std::uint64_t> user_wakes_{0};                   // by give-backs

    alignas(line_bytes) SampleLayout layout_;
    std::size_t sample_bytes_, batch_size_;
    std::size_t slot_count_;        // those ever used
    std::size_t sample_sets_ = 1;   // batches that are made at the same time, hardly ever more
    std::unique_ptr<Slot[]> slots_;

private:
    void leave_held(Slot&) noexcept;   // of a collated batch: what others retain
    void give_back_announced(std::uint32_t slot) noexcept;

    std::atomic<std::uint32_t> references_{1};
    std::atomic<std::uint32_t> visitors_{0};   // give-backs that may still touch this after their slot is back
    std::atomic<std::uint32_t> outstanding_{0};
    std::atomic<std::uint64_t> replaced_{0};
    std::uint64_t sample_takes_ = 0;
    bool collates_;
};

}   // namespace drawpoint
