#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include <drawpoint/pipeline/loader/core/batch_source.hpp>
#include <drawpoint/pipeline/loader/core/sample_source.hpp>

namespace drawpoint {

class BatchPart;    // an array of a collated batch; collate.hpp
class LoaderCore;   // a loader's slots and how they come back; pipeline/loader/core/loader_core.hpp

/// A block of memory from a SlotAllocator.
struct SlotBlock {
    std::byte* data = nullptr;   ///< aligned to a page; null: there is none
    void* owner = nullptr;       ///< the allocator's own
};

/// Where a loader's batch memory comes from, if not from the system (`LoaderOptions::slot_memory`).
struct SlotAllocator {
    SlotBlock (*allocate)(std::size_t bytes) noexcept;   ///< called by the loop's thread
    void (*free)(SlotBlock) noexcept;                    ///< called by any thread
};

/// Reference-counted memory of one batch: the samples, then the targets. For a collated batch, the targets alone; each
/// of its arrays has a SlotMemory of its own. Not initialised; samples and targets each begin at a multiple of 128
/// bytes. From 2 MiB on it consists of whole, aligned huge pages if the system gives them (transparent huge pages).
/// Shared by the slot and whoever retains it, e.g. a tensor; the last release() frees it. Once the batch is given back,
/// the slot's next batch is written into the same memory, retained or not, unless an attachment's `held` forbids it;
/// of a collated batch, memory that is retained is not written again. retain(), release() and is_shared(): any thread.
class SlotMemory {
public:
    /// New memory with one reference. Throws std::bad_alloc.
    [[nodiscard]] static SlotMemory* allocate(std::size_t data_bytes, std::size_t targets);
    /// `count` of them in one block, which is freed with the last: an allocator may round blocks up to powers of two.
    /// Throws std::bad_alloc.
    [[nodiscard]] static std::vector<SlotMemory*> allocate(const SlotAllocator&, std::size_t count,
                                                           std::size_t data_bytes, std::size_t targets);
    void retain() noexcept;
    void release() noexcept;
    [[nodiscard]] bool is_shared() const noexcept;   ///< whether there is more than one reference
    [[nodiscard]] std::byte* data() const noexcept;
    [[nodiscard]] std::int64_t* targets() const noexcept;
    [[nodiscard]] std::size_t bytes() const noexcept;   ///< of samples, targets and padding; what is allocated
    [[nodiscard]] bool is_from_allocator() const noexcept { return block_ != nullptr; }

private:
    SlotMemory() = default;
    ~SlotMemory() = default;
    std::atomic<std::uint32_t> references_{1};
    bool mapped_ = false;
    std::shared_ptr<const SlotBlock> block_;   // null: memory of its own
    std::byte* data_ = nullptr;
    std::size_t targets_at_ = 0, bytes_ = 0;
};

/// An object that belongs to a slot and stays with its memory from batch to batch, e.g. a tensor over the memory.
/// Whoever gives a batch back calls `held(object)` first. True means that others still use the object: then
/// `destroy(object)` drops the slot's own reference to it, the slot releases the memory, and a worker allocates new
/// memory for the next batch (if that fails, the batch's samples fail: SampleError of stage "batch memory"). Freeing
/// the slot's memory, never while its batch is held, also calls `destroy`, on any thread. After either the attachment
/// is empty. A null `held` counts as false. Assigning another attachment does not destroy the one before.
struct SlotAttachment {
    void* object = nullptr;
    bool (*held)(void* object) noexcept = nullptr;
    void (*destroy)(void* object) noexcept = nullptr;
};

/// A batch that is ready to be drawn: see DataLoader::Pass::peek(). Refers to the loader's memory.
struct ReadyBatch {
    std::size_t size = 0;     ///< samples, ≥ 1
    std::size_t number = 0;   ///< as Batch::number()
    SlotMemory* memory = nullptr;
    std::span<const std::byte> data;   ///< as Batch::data(), targets(), indices() and parts()
    std::span<const std::int64_t> targets;
    std::span<const std::uint64_t> indices;
    std::span<const BatchPart> parts;
};

/// Memory of a batch that was given back without it: see Batch::keep_memory(). Frees it, unless others retain it. Any
/// thread.
class KeptMemory {
public:
    KeptMemory() noexcept = default;
    KeptMemory(KeptMemory&&) noexcept = default;
    KeptMemory& operator=(KeptMemory&&) noexcept = default;
    ~KeptMemory() = default;

private:
    friend class LoaderCore;
    struct Release {
        void operator()(SlotMemory* memory) const noexcept { memory->release(); }
    };
    std::vector<std::unique_ptr<SlotMemory, Release>> memories_;
};

/// A drawn batch, on loan from the loader: it occupies one of the loader's slots (memory for a batch, see
/// LoaderOptions) until it is destroyed or reset(); what it refers to is valid until then. Move-only, 16 bytes. May
/// outlive its pass, its loader and the runtime. Data and targets may be changed. One thread at a time may use it, any
/// thread may give it back. Once reset() or moved from, it may only be assigned to, reset() or destroyed.
class Batch {
public:
    Batch(Batch&& other) noexcept;
    Batch& operator=(Batch&& other) noexcept;
    ~Batch();

    [[nodiscard]] std::size_t size() const noexcept;             ///< samples, ≥ 1
    [[nodiscard]] std::size_t epoch() const noexcept;            ///< of its pass
    [[nodiscard]] std::size_t number() const noexcept;           ///< in the order of samples of its pass, from 0
    [[nodiscard]] const SampleLayout& layout() const noexcept;   ///< of one sample, as the source states it
    /// size() × layout().bytes() bytes; of a collated batch, its first array.
    [[nodiscard]] std::span<std::byte> data() const noexcept;
    [[nodiscard]] std::span<std::int64_t> targets() const noexcept;          ///< size() targets
    [[nodiscard]] std::span<const std::uint64_t> indices() const noexcept;   ///< size() indices in the data set
    /// All no_stamp unless `RuntimeOptions::record`.
    [[nodiscard]] DrawStamps draw_stamps() const noexcept;

    /// The arrays that the loader's collate function made; empty without one.
    [[nodiscard]] std::span<const BatchPart> parts() const noexcept;
    /// The array of this name. Throws std::out_of_range listing the names there are.
    [[nodiscard]] const BatchPart& part(std::string_view name) const;

    /// The slot's memory and attachment. They let a tensor outlive the batch without a copy: see `data_of()` in
    /// pipeline/torch/tensors.hpp.
    [[nodiscard]] SlotMemory& memory() const noexcept;
    [[nodiscard]] SlotAttachment& attachment() const noexcept;

    /// Gives the batch back now. Any thread; one atomic exchange and, if there are any, the calls of SlotAttachment and
    /// a wake-up of a worker that waits for the slot. Ends the program with a message if the same batch is given back
    /// twice, which only a wrong copy of its bytes can do: see next().
    void reset() noexcept;
    /// Gives the batch back now, but not its memory: what data(), targets() and the data of parts() referred to stays
    /// as it is until the result is destroyed, and the slot takes new memory for its next batch, as
    /// `LoaderCounters::slots_replaced` counts. For programs that keep more than prefetch_depth + 1 batches. indices()
    /// and the parts themselves are gone. Throws std::bad_alloc; then nothing has changed.
    [[nodiscard]] KeptMemory keep_memory();

private:
    friend class LoaderCore;
    Batch(LoaderCore* core, std::uint64_t loan) noexcept : core_{core}, loan_{loan} {}
    LoaderCore* core_;
    std::uint64_t loan_;   // the slot, and how often it was lent before
};

}   // namespace drawpoint
