#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

/// An accelerator for tests, registered as LibTorch's PrivateUse1. It has no threads: when work is enqueued, its begin
/// and end are computed at once, on a clock of its own. Its effects on memory happen as late as they may: when the host
/// next calls the device at a time at or after theirs. So memory that is written too early holds wrong data in every
/// run, not in some.
namespace drawpoint::fake_accelerator {

struct Settings {
    // Virtual time, in nanoseconds.
    std::int64_t call_ns = 0;      ///< what a call takes the host: record, wait, launch
    std::int64_t query_ns = 0;     ///< what a query of an event takes the host; > 0, or a loop of queries never ends
    std::int64_t nap_ns = 0;       ///< and what passes after one that says no, before the caller asks again
    std::int64_t copy_ns = 0;      ///< a copy to the device
    std::int64_t to_host_ns = 0;   ///< a copy from it, which takes another engine
    std::int64_t op_ns = 0;        ///< an operator
    std::int64_t tick_ns = 1;      ///< resolution of events
    std::size_t launch_queue = 1024;   ///< work of a stream that is enqueued and not done; with more, the host waits
    std::uint64_t capacity = std::uint64_t{1} << 40;   ///< bytes of device memory
    std::size_t devices = 1;
    bool one_stream = false;         ///< a new stream is the default stream, and there is no host allocator, as on MPS
    bool is_capturing = false;       ///< the current stream captures a graph
    bool effects = true;             ///< whether copies write; without, no call allocates host memory
    std::int64_t fails_after = -1;   ///< this many calls succeed, every later one fails; -1: none fails
    std::function<void(std::int64_t ns)> on_advance{};   ///< told of each advance of the host's time
    /// The host's time, if others make it pass, too; from 0 on. `on_advance` then lets it pass.
    std::function<std::int64_t()> clock{};
    /// Told of what a stream does: a kernel or an operator, or waiting for another stream (`waits`). Not of copies.
    std::function<void(std::int64_t stream, std::int64_t begin_ns, std::int64_t end_ns, bool waits)> on_work{};
};

struct Counters {
    std::uint64_t calls = 0;   ///< of the device; the sum of the following
    std::uint64_t records = 0, waits = 0, queries = 0, synchronises = 0, elapsed = 0, captures = 0, copies = 0,
                  kernels = 0, streams = 0;
    std::uint64_t host_waits = 0;                        ///< times that the host waited for the device
    std::uint64_t device_blocks = 0, device_bytes = 0;   ///< allocated now
    std::uint64_t host_blocks = 0;                       ///< pinned, allocated now
    std::uint64_t device_allocations = 0;                ///< in all
};

/// Begins anew: no work, time 0. Memory that is allocated stays so.
void reset(const Settings& settings = {});
/// Changes settings; what is enqueued stays as it is.
[[nodiscard]] Settings& settings() noexcept;
[[nodiscard]] Counters counters() noexcept;

/// The host's time, and what the host does by itself.
[[nodiscard]] std::int64_t now_ns();
void advance(std::int64_t ns);
/// When the current stream has done what it has been given.
[[nodiscard]] std::int64_t stream_end_ns();
/// A kernel on the current stream. `look` is called as it begins and as it ends, if it is not empty.
void kernel(std::int64_t ns, std::function<void(bool at_end)> look = {});
/// Waits until everything is done.
void synchronize();
/// Waits until the current stream has done what it has been given, as one does who reads a number from the device.
void synchronize_stream();

[[nodiscard]] inline c10::Device device(c10::DeviceIndex index = 0) { return {c10::DeviceType::PrivateUse1, index}; }

}   // namespace drawpoint::fake_accelerator
