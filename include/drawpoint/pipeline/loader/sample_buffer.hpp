#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include <drawpoint/pipeline/loader/sample_source.hpp>

namespace drawpoint {

/// One sample whose shape is known only once it is made, in memory that is used again for the next. Not thread-safe.
class SampleBuffer {
public:
    /// Memory for a sample like this: one that takes no more bytes than the largest so far keeps its first bytes, and nothing is
    /// allocated; else contents are undefined. Sizes ≥ 0. Throws std::invalid_argument naming a negative size or one
    /// beyond memory, std::bad_alloc.
    std::span<std::byte> reshape(const SampleLayout&);
    /// Forgets the sample, not the memory: there is no layout until the next reshape().
    void clear() noexcept;
    /// Gives the memory up, and with it the sample, where it is at least 64 KiB and more than four times what was needed since
    /// the last clear(): so that one large sample does not take memory for ever. The bytes given up.
    std::size_t release_excess() noexcept;

    [[nodiscard]] bool has_layout() const noexcept { return has_layout_; }   ///< somebody called reshape()
    [[nodiscard]] const SampleLayout& layout() const noexcept { return layout_; }
    [[nodiscard]] std::span<std::byte> data() noexcept { return {memory_.get(), bytes_}; }
    [[nodiscard]] std::span<const std::byte> data() const noexcept { return {memory_.get(), bytes_}; }
    [[nodiscard]] std::size_t capacity() const noexcept {
        return capacity_;
    }   ///< bytes of the largest sample without another
    /// Bytes of memory taken: of large buffers the pages that the largest sample so far needed.
    [[nodiscard]] std::size_t held() const noexcept;

private:
    struct Free {
        std::size_t mapped;   // bytes; 0: of the heap
        void operator()(std::byte* memory) const noexcept;
    };
    std::unique_ptr<std::byte, Free> memory_{nullptr, Free{0}};
    std::size_t bytes_ = 0, capacity_ = 0, largest_ = 0;   // largest_: in this memory
    std::size_t needed_ = 0;                               // the most since clear()
    SampleLayout layout_;
    bool has_layout_ = false;
};

}   // namespace drawpoint
