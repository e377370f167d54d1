#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include <drawpoint/pipeline/loader/batch_source.hpp>
#include <drawpoint/pipeline/loader/sample_source.hpp>

namespace drawpoint {

class BatchPart;    // an array of a collated batch; collate.hpp
class LoaderCore;   // a loader's slots and the way back into them; pipeline/loader_core.hpp

/// The memory of one batch: samples, then targets, huge-page aligned; of a collated batch the targets, or one array. Shared by
/// the slot and whoever still holds it (a tensor): reference-counted, freed by the last one. `retain` and `release` are
/// thread-safe.
class SlotMemory {
public:
    [[nodiscard]] static SlotMemory* allocate(std::size_t data_bytes, std::size_t targets);   // one reference
    void retain() noexcept;
    void release() noexcept;
    [[nodiscard]] bool is_shared() const noexcept;   ///< by more than one holder
    [[nodiscard]] std::byte* data() const noexcept;
    [[nodiscard]] std::int64_t* targets() const noexcept;
    [[nodiscard]] std::size_t bytes() const noexcept;   ///< in all

private:
    SlotMemory() = default;
    ~SlotMemory() = default;
    std::atomic<std::uint32_t> references_{1};
    bool mapped_ = false;
    std::byte* data_ = nullptr;
    std::size_t targets_at_ = 0, bytes_ = 0;
};

/// What a user of batches hangs on a slot to use it again with the same memory, e.g. a tensor over it. `held` says whether
/// anybody else still uses it: then the slot leaves this memory to its holder and takes new memory. Called by the thread
/// that gives the batch back.
struct SlotAttachment {
    void* object = nullptr;
    bool (*held)(void* object) noexcept = nullptr;
    void (*destroy)(void* object) noexcept = nullptr;
};

/// One drawn batch: a view of a slot that goes back to the loader when this is destroyed or `reset()`. Move-only, 16 bytes.
/// May outlive its pass and its loader. Used by one thread at a time; given back from any thread.
class Batch {
public:
    Batch(Batch&& other) noexcept;
    Batch& operator=(Batch&& other) noexcept;
    ~Batch();

    [[nodiscard]] std::size_t size() const noexcept;   ///< samples, ≥ 1
    [[nodiscard]] std::size_t epoch() const noexcept;
    [[nodiscard]] std::size_t number() const noexcept;   ///< in its pass, from 0
    [[nodiscard]] const SampleLayout& layout() const noexcept;
    [[nodiscard]] std::span<std::byte> data() const noexcept;         ///< size() × layout().bytes(); or the first part
    [[nodiscard]] std::span<std::int64_t> targets() const noexcept;   ///< size()
    [[nodiscard]] std::span<const std::uint64_t> indices() const noexcept;   ///< size(), of the data set
    [[nodiscard]] DrawStamps draw_stamps() const noexcept;

    /// The arrays that the loader's collate function made; without one, none.
    [[nodiscard]] std::span<const BatchPart> parts() const noexcept;
    /// The one of this name. Throws std::out_of_range saying which there are.
    [[nodiscard]] const BatchPart& part(std::string_view name) const;

    /// The slot's memory (to `retain()` beyond the batch) and its attachment, for pipeline/torch.
    [[nodiscard]] SlotMemory& memory() const noexcept;
    [[nodiscard]] SlotAttachment& attachment() const noexcept;

    /// Gives the batch back now. O(1), one atomic add unless somebody waits.
    void reset() noexcept;

private:
    friend class LoaderCore;
    Batch(LoaderCore* core, std::uint32_t slot) noexcept : core_{core}, slot_{slot} {}
    LoaderCore* core_;
    std::uint32_t slot_;
};

}   // namespace drawpoint
