#include "pipeline/loader/core/loader_core.hpp"

#include <cstdio>
#include <exception>
#include <new>
#include <numeric>
#include <thread>
#include <utility>

#include <drawpoint/pipeline/loader/machine/detail/sample_sets.hpp>

namespace drawpoint {

namespace {

[[noreturn]] void end_of_program(const char* why) noexcept {
    std::fprintf(stderr, "drawpoint: %s\n", why);
    std::terminate();
}

}   // namespace

LoaderCore::LoaderCore(const SampleLayout& layout, std::size_t batch_size, std::size_t slots, bool collates,
                       std::size_t most_slots, const SlotAllocator* slot_memory)
    : layout_{layout},
      sample_bytes_{collates ? 0 : layout.bytes()},
      batch_size_{batch_size},
      slot_count_{slots},
      slots_{std::make_unique<Slot[]>(std::max(slots, most_slots))},
      collates_{collates},
      slot_memory_{collates ? nullptr : slot_memory} {
    std::iota(loans_.begin(), loans_.end(), std::uint64_t{0});
    prepare_slots(slots);
}

void LoaderCore::prepare_slots(std::size_t slots) {
    for (std::size_t i = 0; i < slots; ++i) {
        if (!slots_[i].indices)
            slots_[i].indices = std::make_unique<std::uint64_t[]>(batch_size_);
        if (collates_ && !slots_[i].collation)
            slots_[i].collation = std::make_unique<SlotCollation>();
    }
    if (slot_memory_ != nullptr && slots > furnished_)
        for (SlotMemory* const memory :
             SlotMemory::allocate(*slot_memory_, slots - furnished_, batch_size_ * sample_bytes_, batch_size_))
            take_memory(slots_[furnished_++], memory);
}

LoaderCore::~LoaderCore() {
    for (std::size_t i = 0; i < std::max(slot_count_, furnished_); ++i)
        trim(static_cast<std::uint32_t>(i));
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
    take_memory(slot, SlotMemory::allocate(batch_size_ * sample_bytes_, batch_size_));
}

void LoaderCore::take_memory(Slot& slot, SlotMemory* memory) noexcept {
    slot.memory = memory;
    slot.held.fetch_add(memory->bytes(), std::memory_order_relaxed);
}

void LoaderCore::take_samples(Slot& slot) {
    const auto number = static_cast<std::uint32_t>(&slot - slots_.get());
    SlotCollation& to = *slot.collation;
    SampleSetChoice choice = choose_sample_set(
        static_cast<std::uint32_t>(slot_count_), number, sample_sets_, [this](std::uint32_t i) -> SampleSet {
            const SlotCollation& set = *slots_[i].collation;
            return {set.samples != nullptr, set.making.load(std::memory_order_relaxed), set.samples_taken};
        });
    if (choice.makes_new) {
        try {
            to.samples = std::make_unique<SampleBuffer[]>(batch_size_);
            to.samples_held.store(batch_size_ * sizeof(SampleBuffer), std::memory_order_relaxed);
            choice.from.reset();
        } catch (const std::bad_alloc&) {
            if (!choice.from)
                throw;
        }
    }
    if (choice.from) {
        SlotCollation& from = *slots_[*choice.from].collation;
        std::swap(to.samples, from.samples);
        std::swap(to.samples_taken, from.samples_taken);
        to.samples_held.store(
            from.samples_held.exchange(to.samples_held.load(std::memory_order_relaxed), std::memory_order_relaxed),
            std::memory_order_relaxed);
    }
    to.samples_taken = ++sample_takes_;
}

std::size_t LoaderCore::sample_sets() const noexcept {
    std::size_t sets = 0;
    for (std::size_t i = 0; i < slot_count_; ++i)
        sets += slots_[i].collation->samples ? 1 : 0;
    return sets;
}

void LoaderCore::free_samples(Slot& slot) noexcept {
    slot.collation->samples.reset();
    slot.collation->samples_held.store(0, std::memory_order_relaxed);
}

void LoaderCore::trim(std::uint32_t i) noexcept {
    Slot& slot = slots_[i];
    if (const SlotAttachment attached = std::exchange(slot.attachment, {}); attached.destroy)
        attached.destroy(attached.object);
    if (slot.memory)
        std::exchange(slot.memory, nullptr)->release();
    if (slot.collation) {
        free_samples(slot);
        slot.collation->batch.release_memory();
    }
    slot.held.store(0, std::memory_order_relaxed);
}

std::uint64_t LoaderCore::slots_bytes() const noexcept {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < slot_count_; ++i)
        sum += held_bytes(static_cast<std::uint32_t>(i));
    return sum;
}

void LoaderCore::leave_held(Slot& slot) noexcept {
    bool left = false;
    if (slot.memory && slot.memory->is_shared()) {   // the targets
        slot.held.fetch_sub(slot.memory->bytes(), std::memory_order_relaxed);
        std::exchange(slot.memory, nullptr)->release();
        left = true;
    }
    CollatedBatch& batch = slot.collation->batch;
    const std::uint64_t before = batch.bytes();
    left |= batch.release_shared() != 0;
    if (left) {
        slot.held.fetch_sub(before - batch.bytes(), std::memory_order_relaxed);
        replaced_.fetch_add(1, std::memory_order_relaxed);
    }
}

void LoaderCore::leave_memory(Slot& slot) noexcept {
    if (slot.attachment.destroy)
        slot.attachment.destroy(slot.attachment.object);
    slot.attachment = {};
    slot.held.fetch_sub(slot.memory->bytes(), std::memory_order_relaxed);
    std::exchange(slot.memory, nullptr)->release();
    replaced_.fetch_add(1, std::memory_order_relaxed);
}

KeptMemory LoaderCore::keep_memory(std::uint64_t loan) {
    Slot& slot = lent(loan);
    const auto parts = slot.collation ? slot.collation->batch.parts() : std::span<const BatchPart>{};
    KeptMemory kept;
    kept.memories_.reserve(1 + parts.size());
    const auto retain = [&](SlotMemory& memory) {
        memory.retain();
        kept.memories_.emplace_back(&memory);
    };
    retain(*slot.memory);
    for (const BatchPart& part : parts)
        retain(part.memory());
    if (!slot.collation && asks_holder())   // give_back() sees that the memory of a collated batch is retained
        leave_memory(slot);
    return kept;
}

void LoaderCore::give_back(std::uint64_t loan) noexcept {
    const std::uint32_t i = slot_of(loan);
    if (loans_[i] != loan) [[unlikely]]
        end_of_program("a Batch was given back twice. g++ 12 destroys temporaries of `c ? x : co_await pass.next()` "
                       "twice: give the draw's result a name first");
    loans_[i] = loan + loan_step;
    Slot& slot = slots_[i];
    if (slot.attachment.held && asks_holder() && slot.attachment.held(slot.attachment.object))
        leave_memory(slot);
    if (slot.collation && asks_holder())
        leave_held(slot);
    // Once the slot is back, this core may be destroyed: a quiet give-back must end with the exchange. One that has
    // more to do registers as a visitor first, so that close() waits for it.
    if (!gate_.give_quietly(i))
        give_back_announced(i);
}

void LoaderCore::give_back_announced(std::uint32_t i) noexcept {
    visitors_.fetch_add(1, std::memory_order_relaxed);
    const GiveBackGate::Then then = gate_.give(i);
    if (then == GiveBackGate::Then::wake_worker) {
        tokens_.give(1);
        user_wakes_.fetch_add(1, std::memory_order_relaxed);
    }
    visitors_.fetch_sub(1, std::memory_order_release);
    if (then == GiveBackGate::Then::note_closed && outstanding_.fetch_sub(1, std::memory_order_acq_rel) == 1)
        release();
}

void LoaderCore::close(std::uint64_t out) noexcept {
    std::uint64_t word = gate_.word(), left;
    retain();
    do {
        left = GiveBackGate::still_out(word, out);
        outstanding_.store(static_cast<std::uint32_t>(std::popcount(left)), std::memory_order_relaxed);
    } while (!gate_.close(word));
    if (left == 0)
        release();
    // A give-back that wakes a worker uses this core for some nanoseconds after its exchange.
    while (visitors_.load(std::memory_order_acquire) != 0)
        std::this_thread::yield();
}

}   // namespace drawpoint
