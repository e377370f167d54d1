#include "pipeline/stages/counted_new.hpp"

#include <cstdlib>
#include <new>

namespace {
thread_local std::size_t calls = 0;

void* counted_or_null(std::size_t size) noexcept {
    ++calls;
    return std::malloc(size != 0 ? size : 1);
}

void* counted(std::size_t size) {
    if (void* memory = counted_or_null(size))
        return memory;
    throw std::bad_alloc{};
}
}   // namespace

std::size_t calls_of_operator_new() noexcept { return calls; }

void* operator new(std::size_t size) { return counted(size); }
void* operator new[](std::size_t size) { return counted(size); }
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return counted_or_null(size); }
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept { return counted_or_null(size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
