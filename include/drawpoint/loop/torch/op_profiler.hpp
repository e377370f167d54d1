#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

#include <drawpoint/instrumentation/recorder/recorder.hpp>

namespace drawpoint {

struct OpProfilerOptions {
    bool record_shapes = false;      ///< the sizes of each operator's inputs: "[[16, 3, 16, 16], [8], []]"
    bool profile_memory = false;     ///< every allocation and release of tensor memory
    bool with_stack = false;         ///< the C++ frames that called each operator; a few microseconds per operator
    bool with_flops = false;         ///< floating-point operations of matrix products and 2-D convolutions
    std::uint32_t max_frames = 64;   ///< innermost frames kept per stack, 1 … 256
};
static_assert(std::is_trivially_destructible_v<OpProfilerOptions>);

/// Records every operator that LibTorch runs, through LibTorch's `RecordFunction` observers: those of the thread that
/// called `start`, and of LibTorch's threads that work for it (backward passes on a device). Rows, names and counts are
/// those of PyTorch's profiler. While it is stopped no observer is registered and operators cost nothing extra. While
/// it is started an operator costs two clock readings and two look-ups; nothing is allocated for an operator seen
/// before. Only one profiler of LibTorch, PyTorch's own included, can observe a thread at a time. The recorder must
/// outlive it.
class OpProfiler {
public:
    /// Throws std::invalid_argument when `max_frames` is out of range.
    explicit OpProfiler(Recorder&, const OpProfilerOptions& = {});
    OpProfiler(const OpProfiler&) = delete;
    OpProfiler& operator=(const OpProfiler&) = delete;
    /// Stops, on the thread that called start().
    ~OpProfiler();

    /// Observes the calling thread from now on. Throws std::logic_error if it is started already, or another profiler
    /// observes this thread.
    void start();
    /// Ends the operators still open on this thread and removes the observers. No effect unless started. Throws
    /// std::logic_error on a thread other than that of `start`.
    void stop();
    [[nodiscard]] bool started() const noexcept;

    /// Pauses or resumes the recording of operators, while that of memory continues; no effect unless started. On the
    /// thread of `start`.
    void collect_operators(bool);

    /// While it exists, the thread that made it is observed too. Make and destroy it on one thread, while the profiler
    /// is started.
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
    /// Observes the calling thread too: for users' own worker threads that run operators. Throws as `start` does.
    [[nodiscard]] ObservedThread observe_thread();

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}   // namespace drawpoint
