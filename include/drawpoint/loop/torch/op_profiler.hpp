#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

#include <drawpoint/instrumentation/recorder/recorder.hpp>

namespace drawpoint {

struct OpProfilerOptions {
    bool record_shapes = false;      ///< the sizes of each operator's inputs: "[[16, 3, 16, 16], [8], []]"
    bool profile_memory = false;     ///< every allocation and release of tensor memory
    bool with_stack = false;         ///< the C++ frames that called each operator; some microseconds an operator
    bool with_flops = false;         ///< floating-point operations of matrix products and 2-D convolutions
    std::uint32_t max_frames = 64;   ///< innermost frames kept of a stack, 1 … 256
};
static_assert(std::is_trivially_destructible_v<OpProfilerOptions>);

/// Writes every operator that LibTorch runs into a recorder, through LibTorch's own `RecordFunction` observers: those
/// of the thread that `start`ed it and of LibTorch's threads that work for it (backward passes on a device). Rows,
/// names and counts are those of PyTorch's profiler. While it is not started nothing is registered, and operators cost
/// what they cost without it. Started, an operator costs two clock readings and two look-ups; nothing is allocated for
/// an operator seen before. One profiler of LibTorch at a time observes a thread, PyTorch's own included. The recorder
/// outlives it.
class OpProfiler {
public:
    /// Throws std::invalid_argument when `max_frames` is out of range.
    explicit OpProfiler(Recorder&, const OpProfilerOptions& = {});
    OpProfiler(const OpProfiler&) = delete;
    OpProfiler& operator=(const OpProfiler&) = delete;
    /// Stops, on the thread that started it.
    ~OpProfiler();

    /// Observes the calling thread from here on. Throws std::logic_error when it is started already, or another
    /// profiler observes this thread.
    void start();
    /// Ends the operators still open on this thread and removes the observers. No effect unless started. Throws
    /// std::logic_error on another thread than `start`'s.
    void stop();
    [[nodiscard]] bool started() const noexcept;

    /// Leaves operators out, or takes them in again, while memory goes on; no effect unless started. On `start`'s
    /// thread.
    void collect_operators(bool);

    /// While it lives, the thread that made it is observed too. Made and destroyed on one thread, while the profiler is
    /// started.
    class ObservedThread {
    public:
        ObservedThread(ObservedThread&&) noexcept;
        ObservedThread& operator=(ObservedThread&&) = delete;
        ~ObservedThread();

    private:
        friend class OpProfiler;
        struct Impl;
        explicit ObservedThread(std::unique_ptr<Impl>) noexcept;
        std::unique_ptr<Impl> impl_;
    };
    /// Observes the calling thread too: for workers of the user's own that run operators. Throws as `start` does.
    [[nodiscard]] ObservedThread observe_thread();

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}   // namespace drawpoint
