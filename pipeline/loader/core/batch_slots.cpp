#include <drawpoint/pipeline/loader/core/batch_slots.hpp>

#include <sys/mman.h>

#include <cstdlib>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>

#include "pipeline/loader/core/loader_core.hpp"
#include <drawpoint/pipeline/loader/machine/detail/slot_bytes.hpp>

namespace drawpoint {

namespace {

constexpr std::size_t huge_page = slot_huge_page;

/// Maps `bytes` bytes in pages of the default size; null if the system refuses.
std::byte* map_pages(std::size_t bytes) noexcept {
    void* const pages = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return pages == MAP_FAILED ? nullptr : static_cast<std::byte*>(pages);
}

/// Maps `bytes` bytes, a multiple of a huge page, aligned to a huge page; null if the system refuses.
std::byte* map_huge(std::size_t bytes) noexcept {
    void* const whole = ::mmap(nullptr, bytes + huge_page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (whole == MAP_FAILED)
        return nullptr;
    auto* const begin = static_cast<std::byte*>(whole);
    const std::size_t before = (huge_page - reinterpret_cast<std::uintptr_t>(begin) % huge_page) % huge_page;
    if (before != 0)
        ::munmap(begin, before);
    ::munmap(begin + before + bytes, huge_page - before);
    ::madvise(begin + before, bytes, MADV_HUGEPAGE);   // may be refused: small pages work too
    return begin + before;
}

}   // namespace

SlotMemory* SlotMemory::allocate(std::size_t data_bytes, std::size_t targets) {
    static_assert(slot_line == line_bytes);
    auto* const memory = new SlotMemory;
    memory->targets_at_ = targets_offset(data_bytes);
    memory->bytes_ = slot_memory_bytes(data_bytes, targets);
    memory->mapped_ = memory->bytes_ >= mapped_from;
    memory->data_ = memory->bytes_ >= huge_page ? map_huge(memory->bytes_)
                    : memory->mapped_           ? map_pages(memory->bytes_)
                                      : static_cast<std::byte*>(std::aligned_alloc(line_bytes, memory->bytes_));
    if (!memory->data_) {
        delete memory;
        throw std::bad_alloc{};
    }
    return memory;
}

std::vector<SlotMemory*> SlotMemory::allocate(const SlotAllocator& allocator, std::size_t count, std::size_t data_bytes,
                                              std::size_t targets) {
    const std::size_t bytes = round_up_to(targets_offset(data_bytes) + targets * sizeof(std::int64_t), memory_page);
    const auto free = [&allocator](const SlotBlock* block) {
        allocator.free(*block);
        delete block;
    };
    auto whole = std::make_unique<SlotBlock>(allocator.allocate(bytes * count));
    if (whole->data == nullptr)
        throw std::bad_alloc{};
    const std::shared_ptr<const SlotBlock> block{whole.release(), free};
    std::vector<SlotMemory*> memories;
    memories.reserve(count);
    try {
        for (std::size_t i = 0; i < count; ++i) {
            auto* const memory = new SlotMemory;
            memory->block_ = block;
            memory->data_ = block->data + i * bytes;
            memory->targets_at_ = targets_offset(data_bytes);
            memory->bytes_ = bytes;
            memories.push_back(memory);
        }
    } catch (const std::bad_alloc&) {
        for (SlotMemory* const memory : memories)
            memory->release();
        throw;
    }
    return memories;
}

void SlotMemory::retain() noexcept { references_.fetch_add(1, std::memory_order_relaxed); }

void SlotMemory::release() noexcept {
    if (references_.fetch_sub(1, std::memory_order_acq_rel) != 1)
        return;
    if (mapped_)
        ::munmap(data_, bytes_);
    else if (!block_)
        std::free(data_);
    delete this;
}

bool SlotMemory::is_shared() const noexcept { return references_.load(std::memory_order_acquire) > 1; }
std::byte* SlotMemory::data() const noexcept { return data_; }
std::int64_t* SlotMemory::targets() const noexcept { return reinterpret_cast<std::int64_t*>(data_ + targets_at_); }
std::size_t SlotMemory::bytes() const noexcept { return bytes_; }

Batch::Batch(Batch&& other) noexcept : core_{std::exchange(other.core_, nullptr)}, loan_{other.loan_} {}

Batch& Batch::operator=(Batch&& other) noexcept {
    if (this != &other) {
        reset();
        core_ = std::exchange(other.core_, nullptr);
        loan_ = other.loan_;
    }
    return *this;
}

Batch::~Batch() { reset(); }

void Batch::reset() noexcept {
    if (core_)
        std::exchange(core_, nullptr)->give_back(loan_);
}

KeptMemory Batch::keep_memory() {
    KeptMemory memory = core_->keep_memory(loan_);
    reset();
    return memory;
}

std::size_t Batch::size() const noexcept { return core_->lent(loan_).size; }
std::size_t Batch::epoch() const noexcept { return core_->lent(loan_).epoch; }
std::size_t Batch::number() const noexcept { return core_->lent(loan_).number; }
const SampleLayout& Batch::layout() const noexcept { return core_->layout(); }

std::span<std::byte> Batch::data() const noexcept {
    const Slot& slot = core_->lent(loan_);
    if (slot.collation)
        return slot.collation->batch.parts().front().data();
    return {slot.memory->data(), slot.size * core_->sample_bytes()};
}

std::span<std::int64_t> Batch::targets() const noexcept {
    const Slot& slot = core_->lent(loan_);
    return {slot.memory->targets(), slot.size};
}

std::span<const std::uint64_t> Batch::indices() const noexcept {
    const Slot& slot = core_->lent(loan_);
    return {slot.indices.get(), slot.size};
}

DrawStamps Batch::draw_stamps() const noexcept {
    const Slot& slot = core_->lent(loan_);
    return {.offered_ns = slot.offered_ns, .transferred_ns = slot.taken_ns, .taken_ns = slot.taken_ns};
}

std::span<const BatchPart> Batch::parts() const noexcept {
    const Slot& slot = core_->lent(loan_);
    return slot.collation ? slot.collation->batch.parts() : std::span<const BatchPart>{};
}

const BatchPart& Batch::part(std::string_view name) const {
    const Slot& slot = core_->lent(loan_);
    if (slot.collation)
        if (const BatchPart* const found = slot.collation->batch.find(name))
            return *found;
    std::string known;
    for (const BatchPart& part : parts())
        known += (known.empty() ? "" : ", ") + std::string{part.name()};
    throw std::out_of_range{"Batch::part: no part '" + std::string{name} + "'; " +
                            (known.empty() ? "the loader does not collate" : "there are " + known)};
}

SlotMemory& Batch::memory() const noexcept { return *core_->lent(loan_).memory; }
SlotAttachment& Batch::attachment() const noexcept { return core_->lent(loan_).attachment; }

}   // namespace drawpoint
