#include "faults/faulty_calls.hpp"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>

namespace drawpoint::faults {
namespace {

std::atomic<std::int64_t> left{0};   // calls up to the one that fails; 0: none does
std::atomic<int> errno_value{0};
std::atomic<bool> failed{false};
std::atomic<std::uint64_t> synced{0};

/// Whether this call is the one.
bool is_the_one() noexcept {
    if (left.load(std::memory_order_relaxed) <= 0 || left.fetch_sub(1) != 1)
        return false;
    failed = true;
    return true;
}

/// Whether this call fails with an error, which is set. Only calls that read or write are interrupted or cut short.
bool fails() noexcept {
    if (errno_value == EINTR || errno_value == 0 || !is_the_one())
        return false;
    errno = errno_value;
    return true;
}

/// How many of `bytes` a call that reads or writes may do; SIZE_MAX: it fails.
std::size_t allowed(std::size_t bytes) noexcept {
    if (!is_the_one())
        return bytes;
    errno = errno_value;
    return errno_value != 0 ? SIZE_MAX : bytes > 1 ? bytes / 2 : bytes;
}

template <class Function>
Function original(const char* name) noexcept {
    return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

}   // namespace

void fail_call(std::uint64_t nth, int error) noexcept {
    failed = false;
    errno_value = error;
    left = static_cast<std::int64_t>(nth);
}

bool fail_no_call() noexcept {
    left = 0;
    return failed;
}

std::uint64_t fsyncs() noexcept { return synced; }

}   // namespace drawpoint::faults

using drawpoint::faults::allowed;
using drawpoint::faults::fails;
using drawpoint::faults::original;

extern "C" {

int open(const char* path, int flags, ...) {
    static const auto call = original<int (*)(const char*, int, ...)>("open");
    va_list arguments;
    va_start(arguments, flags);
    const mode_t mode = va_arg(arguments, mode_t);
    va_end(arguments);
    return fails() ? -1 : call(path, flags, mode);
}
int open64(const char* path, int flags, ...) {
    va_list arguments;
    va_start(arguments, flags);
    const mode_t mode = va_arg(arguments, mode_t);
    va_end(arguments);
    return open(path, flags, mode);
}
ssize_t read(int file, void* to, size_t bytes) {
    static const auto call = original<ssize_t (*)(int, void*, size_t)>("read");
    const std::size_t some = allowed(bytes);
    return some == SIZE_MAX ? -1 : call(file, to, some);
}
ssize_t pread(int file, void* to, size_t bytes, off_t at) {
    static const auto call = original<ssize_t (*)(int, void*, size_t, off_t)>("pread");
    const std::size_t some = allowed(bytes);
    return some == SIZE_MAX ? -1 : call(file, to, some, at);
}
ssize_t pread64(int file, void* to, size_t bytes, off64_t at) { return pread(file, to, bytes, at); }
ssize_t write(int file, const void* from, size_t bytes) {
    static const auto call = original<ssize_t (*)(int, const void*, size_t)>("write");
    const std::size_t some = allowed(bytes);
    return some == SIZE_MAX ? -1 : call(file, from, some);
}
ssize_t writev(int file, const iovec* parts, int count) {
    static const auto call = original<ssize_t (*)(int, const iovec*, int)>("writev");
    return fails() ? -1 : call(file, parts, count);
}
int fstat(int file, struct stat* status) noexcept {
    static const auto call = original<int (*)(int, struct stat*)>("fstat");
    return fails() ? -1 : call(file, status);
}
int fstat64(int file, struct stat64* status) noexcept { return fstat(file, reinterpret_cast<struct stat*>(status)); }
int fsync(int file) {
    static const auto call = original<int (*)(int)>("fsync");
    drawpoint::faults::synced.fetch_add(1);
    return fails() ? -1 : call(file);
}
int rename(const char* from, const char* to) noexcept {
    static const auto call = original<int (*)(const char*, const char*)>("rename");
    return fails() ? -1 : call(from, to);
}
int linkat(int from_folder, const char* from, int to_folder, const char* to, int flags) noexcept {
    static const auto call = original<int (*)(int, const char*, int, const char*, int)>("linkat");
    return fails() ? -1 : call(from_folder, from, to_folder, to, flags);
}

}   // extern "C"
