#pragma once
#include <algorithm>
#include <bit>
#include <cstddef>
#include <memory>
#include <new>

namespace drawpoint {

/// How many bytes to reserve: the needs of the whole image, so that no other crop of it allocates again, since
/// untouched pages cost nothing. They do take address space, and rows of few pixels are padded to many times their
/// size: above a bound, only what the crop needs.
constexpr std::size_t reserved_bytes(std::size_t of_crop, std::size_t of_whole) noexcept {
    constexpr std::size_t most_for_any_crop = std::size_t{256} << 20;
    return of_whole <= most_for_any_crop ? of_whole : of_crop;
}

/// Memory for trivial T that only grows: aligned to 64 bytes, not initialised, contents lost on growth.
template <class T, std::size_t FirstBytes>
class ScratchBuffer {
public:
    /// A buffer of at least `count` elements. Allocates powers of two, at least FirstBytes, so that sizes that vary a
    /// little from image to image soon stop allocating.
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
