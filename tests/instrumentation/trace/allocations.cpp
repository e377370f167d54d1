#include "instrumentation/trace/allocations.hpp"

#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <new>

namespace {
thread_local std::size_t count = 0;
std::atomic<std::size_t> bytes_held = 0;

void* try_allocate(std::size_t bytes, std::size_t alignment) noexcept {
    ++count;
    const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
    void* memory = std::aligned_alloc(alignment, rounded == 0 ? alignment : rounded);
    bytes_held += ::malloc_usable_size(memory);
    return memory;
}

void release(void* memory) noexcept {
    bytes_held -= ::malloc_usable_size(memory);
    std::free(memory);
}

void* allocate(std::size_t bytes, std::size_t alignment) {
    if (void* memory = try_allocate(bytes, alignment))
        return memory;
    throw std::bad_alloc{};
}
}   // namespace

std::size_t allocations() noexcept { return count; }
std::size_t allocated_bytes() noexcept { return bytes_held; }

void* operator new(std::size_t bytes) { return allocate(bytes, __STDCPP_DEFAULT_NEW_ALIGNMENT__); }
void* operator new[](std::size_t bytes) { return allocate(bytes, __STDCPP_DEFAULT_NEW_ALIGNMENT__); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
    return allocate(bytes, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t bytes, std::align_val_t alignment) {
    return allocate(bytes, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
    return try_allocate(bytes, __STDCPP_DEFAULT_NEW_ALIGNMENT__);
}
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
    return try_allocate(bytes, __STDCPP_DEFAULT_NEW_ALIGNMENT__);
}
void operator delete(void* memory) noexcept { release(memory); }
void operator delete[](void* memory) noexcept { release(memory); }
void operator delete(void* memory, std::size_t) noexcept { release(memory); }
void operator delete[](void* memory, std::size_t) noexcept { release(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { release(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { release(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { release(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { release(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { release(memory); }
void operator delete[](void* memory, const std::nothrow_t&) noexcept { release(memory); }
