#include <drawpoint/pipeline/loader/core/sample_buffer.hpp>

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <new>
#include <stdexcept>
#include <string>

#include <drawpoint/pipeline/loader/machine/detail/slot_bytes.hpp>

namespace drawpoint {

namespace {

static_assert(sizeof(SampleBuffer) == sample_buffer_bytes);   // as plan_memory() counts it

constexpr std::align_val_t alignment{64};
constexpr std::size_t excess = 4;   // multiple of what is needed

}   // namespace

void SampleBuffer::Free::operator()(std::byte* memory) const noexcept {
    if (mapped != 0)
        ::munmap(memory, mapped);
    else
        ::operator delete(memory, alignment);
}

std::size_t SampleBuffer::held() const noexcept {
    return memory_.get_deleter().mapped != 0 ? round_up_to(largest_, memory_page) : capacity_;
}

std::span<std::byte> SampleBuffer::reshape(const SampleLayout& layout) {
    constexpr std::size_t most = std::size_t{1} << 46, first_capacity = 256;
    std::size_t bytes = size_of(layout.type);
    for (std::size_t dimension = 0; dimension < layout.rank; ++dimension) {
        const std::int64_t size = layout.shape[dimension];
        if (size < 0 || static_cast<std::uint64_t>(size) > most / std::max<std::size_t>(bytes, 1))
            throw std::invalid_argument{"a sample's shape[" + std::to_string(dimension) +
                                        "] must be at least 0 and fit into memory, got " + std::to_string(size)};
        bytes *= static_cast<std::size_t>(size);
    }
    if (bytes > capacity_) {
        const std::size_t grown = std::bit_ceil(std::max(bytes, first_capacity));
        memory_.reset();
        bytes_ = capacity_ = largest_ = 0;
        has_layout_ = false;
        void* const pages = grown < mapped_from
                                ? MAP_FAILED
                                : ::mmap(nullptr, grown, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (pages != MAP_FAILED)
            ::madvise(pages, grown, MADV_NOHUGEPAGE);   // with huge pages, held() would not be right
        if (pages != MAP_FAILED)
            memory_ = {static_cast<std::byte*>(pages), Free{grown}};
        else   // small, or the process has reached its limit of mappings
            memory_ = {static_cast<std::byte*>(::operator new(grown, alignment)), Free{0}};
        capacity_ = grown;
    }
    largest_ = std::max(largest_, bytes);
    needed_ = std::max(needed_, bytes);
    bytes_ = bytes;
    layout_ = layout;
    has_layout_ = true;
    return data();
}

void SampleBuffer::clear() noexcept {
    bytes_ = needed_ = 0;
    has_layout_ = false;
}

std::size_t SampleBuffer::release_excess() noexcept {
    const std::size_t bytes = held();
    if (bytes < mapped_from || bytes / excess <= needed_)
        return 0;
    memory_.reset();
    capacity_ = largest_ = 0;
    clear();
    return bytes;
}

}   // namespace drawpoint
