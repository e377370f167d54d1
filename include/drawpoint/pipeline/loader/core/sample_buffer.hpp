#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include <drawpoint/pipeline/loader/core/sample_source.hpp>

namespace drawpoint {

/// One sample of a batch that will be collated, in memory that is reused by later samples. Not thread-safe. Without a
/// layout, data() is empty. Moved from, it may only be assigned to or destroyed.
class SampleBuffer {
public:
    /// Sets the sample's type and sizes (≥ 0) and returns its memory, which begins at a multiple of 64 bytes. Within
    /// the capacity the bytes stay as they are and nothing is allocated; else they are undefined and capacity grows to
    /// a power of two. Throws std::invalid_argument naming a size that is negative or does not fit into memory, and
    /// keeps the sample; std::bad_alloc, and then there is no sample.
    std::span<std::byte> reshape(const SampleLayout&);
    /// Removes the sample but keeps the memory: there is no layout until the next reshape().
    void clear() noexcept;
    /// Frees the memory, and with it the sample, if held() is at least 64 KiB and more than four times the largest
    /// sample since the last clear(), so that one large sample does not hold memory for ever. The loader calls it after
    /// a sample is used, before the clear() for the next. Returns the bytes freed, as held() counted them, or 0.
    std::size_t release_excess() noexcept;

    [[nodiscard]] bool has_layout() const noexcept { return has_layout_; }   ///< reshape() was called since clear()
    [[nodiscard]] const SampleLayout& layout() const noexcept { return layout_; }   ///< if has_layout()
    [[nodiscard]] std::span<std::byte> data() noexcept { return {memory_.get(), bytes_}; }
    [[nodiscard]] std::span<const std::byte> data() const noexcept { return {memory_.get(), bytes_}; }
    /// Bytes that a sample may have without another allocation.
    [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }
    /// Bytes of memory in use: below 64 KiB the capacity, from there on the pages that the largest sample so far
    /// touched.
    [[nodiscard]] std::size_t held() const noexcept;

private:
    struct Free {
        std::size_t mapped;   // bytes mapped; 0: the memory is from the heap
        void operator()(std::byte* memory) const noexcept;
    };
    std::unique_ptr<std::byte, Free> memory_{nullptr, Free{0}};
    std::size_t bytes_ = 0, capacity_ = 0, largest_ = 0;   // largest_: sample ever in this memory
    std::size_t needed_ = 0;                               // largest sample since clear()
    SampleLayout layout_;
    bool has_layout_ = false;
};

}   // namespace drawpoint
