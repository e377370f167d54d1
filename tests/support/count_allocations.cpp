#include "support/count_allocations.hpp"

#include <link.h>
#include <sys/resource.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <utility>

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

// Plain thread-locals with the initial-exec model, since finding them must not allocate inside malloc.
__attribute__((tls_model("initial-exec"))) thread_local bool counting = false;
__attribute__((tls_model("initial-exec"))) thread_local std::uint64_t calls_to_failure = 0;   // 0: none fails
std::atomic<std::uint64_t> counted{0}, apart{0};
struct Library {
    std::atomic<std::uintptr_t> begin{0}, size{0};
};
std::array<Library, 8> libraries;   // those whose calls are counted separately

#if DRAWPOINT_COUNTS
/// Counts a call. Returns whether it should succeed.
bool note(const void* caller) noexcept {
    if (calls_to_failure != 0 && --calls_to_failure == 0) {
        errno = ENOMEM;
        return false;
    }
    if (!counting)
        return true;
    const auto address = reinterpret_cast<std::uintptr_t>(caller);
    bool in_library = false;
    for (const Library& library : libraries)
        in_library |=
            address - library.begin.load(std::memory_order_relaxed) < library.size.load(std::memory_order_relaxed);
    (in_library ? apart : counted).fetch_add(1, std::memory_order_relaxed);
    return true;
}
#endif

/// Callback of dl_iterate_phdr: if `object` contains the address in `data`, adds it to the libraries (once) and ends
/// the iteration.
int find_library(dl_phdr_info* object, std::size_t, void* data) {
    const auto address = reinterpret_cast<std::uintptr_t>(data);
    for (int i = 0; i < object->dlpi_phnum; ++i) {
        const auto& segment = object->dlpi_phdr[i];
        const std::uintptr_t begin = object->dlpi_addr + segment.p_vaddr;
        if (segment.p_type == PT_LOAD && (segment.p_flags & PF_X) != 0 && address - begin < segment.p_memsz) {
            for (Library& library : libraries)
                if (library.begin == begin || library.size == 0) {
                    library.begin = begin;
                    library.size = segment.p_memsz;
                    return 1;
                }
        }
    }
    return 0;
}

}   // namespace

bool counts_allocations() noexcept { return DRAWPOINT_COUNTS != 0; }
void count_this_thread(bool count) noexcept { counting = count; }
void fail_allocation_after(std::uint64_t calls) noexcept { calls_to_failure = calls + 1; }
std::uint64_t fail_no_allocation() noexcept { return std::exchange(calls_to_failure, 0); }
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
    return drawpoint::test::note(__builtin_return_address(0)) ? __libc_malloc(bytes) : nullptr;
}
void* calloc(std::size_t n, std::size_t bytes) {
    return drawpoint::test::note(__builtin_return_address(0)) ? __libc_calloc(n, bytes) : nullptr;
}
void* realloc(void* old, std::size_t bytes) {
    return drawpoint::test::note(__builtin_return_address(0)) ? __libc_realloc(old, bytes) : nullptr;
}
void* memalign(std::size_t alignment, std::size_t bytes) {
    return drawpoint::test::note(__builtin_return_address(0)) ? __libc_memalign(alignment, bytes) : nullptr;
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
    return drawpoint::test::note(__builtin_return_address(0)) ? __libc_memalign(alignment, bytes) : nullptr;
}
int posix_memalign(void** to, std::size_t alignment, std::size_t bytes) {
    *to = drawpoint::test::note(__builtin_return_address(0)) ? __libc_memalign(alignment, bytes) : nullptr;
    return *to ? 0 : ENOMEM;
}
}
#endif
