#pragma once
#include <algorithm>
#include <bit>
#include <cstddef>
#include <memory>
#include <new>

namespace drawpoint {

/// What to ask a buffer of bytes for: what the whole image would need, so that no crop of it allocates again; pages
/// that are never touched cost nothing. Address space does, and rows of few pixels are padded to many times their
/// size: beyond a bound only what the crop needs.
constexpr std::size_t reserved_bytes(std::size_t of_crop, std::size_t of_whole) noexcept {
    constexpr std::size_t most_for_any_crop = std::size_t{256} << 20;
    return of_whole <= most_for_any_crop ? of_whole : of_crop;
}

/// Memory for trivial T that only grows: aligned to 64 bytes, not initialised, contents lost on growth.
template <class T, std::size_t FirstBytes>
class ScratchBuffer {
public:
    /// At least `count` elements. Allocates in powers of two from FirstBytes on, so that sizes that vary a little from
    /// image to image stop allocating soon.
    T* get(std::size_t count) {
        const std::size_t bytes = count * sizeof(T);
        if (bytes > bytes_) {
            memory_.reset();
            bytes_ = 0;
            const std::size_t grown = std::bit_ceil(std::max(bytes, FirstBytes));
            memory_.reset(static_cast<T*>(::operator new(grown, alignment)));
            bytes_ = grown;
        }
        return memory_.get();
    }

private:
    static constexpr std::align_val_t alignment{64};
    struct Free {
        void operator()(T* memory) const noexcept { ::operator delete(memory, alignment); }
    };
    std::unique_ptr<T, Free> memory_;
    std::size_t bytes_ = 0;
};

}   // namespace drawpoint
