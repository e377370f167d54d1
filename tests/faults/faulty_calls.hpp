#pragma once

#include <cstdint>

namespace drawpoint::faults {

// This program replaces open, read, pread, write, writev, fstat, fsync, rename and linkat of the C library by versions
// that can fail.

/// Lets one of the next calls that work on files, of any thread, fail: the `nth`, from 1.
/// `error`: an errno value; 0: it is cut short, if it reads or writes more than one byte.
void fail_call(std::uint64_t nth, int error) noexcept;
/// From here on none fails. Returns whether one has.
bool fail_no_call() noexcept;
/// How often fsync was called so far.
std::uint64_t fsyncs() noexcept;

}   // namespace drawpoint::faults
