#include "support/count_allocations.hpp"

#include <link.h>
#include <sys/resource.h>

#include <atomic>
#include <cerrno>
#include <cstddef>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define DRAWPOINT_COUNTS 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define DRAWPOINT_COUNTS 0
#endif
#endif
#ifndef DRAWPOINT_COUNTS
#define DRAWPOINT_COUNTS 1
#endif

namespace drawpoint::test {

namespace {

// Plain thread-locals of the initial-exec model: malloc may not allocate to find them.
__attribute__((tls_model("initial-exec"))) thread_local bool counting = false;
std::atomic<std::uint64_t> counted{0}, apart{0};
std::atomic<std::uintptr_t> library_begin{0}, library_size{0};

#if DRAWPOINT_COUNTS
void note(const void* caller) noexcept {
    if (!counting)
        return;
    const std::uintptr_t offset =
        reinterpret_cast<std::uintptr_t>(caller) - library_begin.load(std::memory_order_relaxed);
    const bool in_library = offset < library_size.load(std::memory_order_relaxed);
    (in_library ? apart : counted).fetch_add(1, std::memory_order_relaxed);
}
#endif

/// Sets library_begin and library_size if the object at hand holds the address in `data`; then ends the walk.
int find_library(dl_phdr_info* object, std::size_t, void* data) {
    const auto address = reinterpret_cast<std::uintptr_t>(data);
    for (int i = 0; i < object->dlpi_phnum; ++i) {
        const auto& segment = object->dlpi_phdr[i];
        const std::uintptr_t begin = object->dlpi_addr + segment.p_vaddr;
        if (segment.p_type == PT_LOAD && (segment.p_flags & PF_X) != 0 && address - begin < segment.p_memsz) {
            library_begin = begin;
            library_size = segment.p_memsz;
            return 1;
        }
    }
    return 0;
}

}   // namespace

bool counts_allocations() noexcept { return DRAWPOINT_COUNTS != 0; }
void count_this_thread(bool count) noexcept { counting = count; }
std::uint64_t counted_allocations() noexcept { return counted.load(std::memory_order_relaxed); }

bool count_library_apart(const void* address) noexcept {
    return dl_iterate_phdr(find_library, const_cast<void*>(address)) == 1;
}
std::uint64_t allocations_counted_apart() noexcept { return apart.load(std::memory_order_relaxed); }

std::uint64_t minor_faults() noexcept {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return static_cast<std::uint64_t>(usage.ru_minflt);
}

}   // namespace drawpoint::test

#if DRAWPOINT_COUNTS
// libstdc++'s operator new calls malloc, so counting malloc counts both.
extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);

void* malloc(std::size_t bytes) {
    drawpoint::test::note(__builtin_return_address(0));
    return __libc_malloc(bytes);
}
void* calloc(std::size_t n, std::size_t bytes) {
    drawpoint::test::note(__builtin_return_address(0));
    return __libc_calloc(n, bytes);
}
void* realloc(void* old, std::size_t bytes) {
    drawpoint::test::note(__builtin_return_address(0));
    return __libc_realloc(old, bytes);
}
void* memalign(std::size_t alignment, std::size_t bytes) {
    drawpoint::test::note(__builtin_return_address(0));
    return __libc_memalign(alignment, bytes);
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
    drawpoint::test::note(__builtin_return_address(0));
    return __libc_memalign(alignment, bytes);
}
int posix_memalign(void** to, std::size_t alignment, std::size_t bytes) {
    drawpoint::test::note(__builtin_return_address(0));
    *to = __libc_memalign(alignment, bytes);
    return *to ? 0 : ENOMEM;
}
}
#endif
