#pragma once

#include <cstdint>
#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <drawpoint/instrumentation/recorder/recorder.hpp>
#include <drawpoint/instrumentation/report/operators.hpp>
#include <drawpoint/instrumentation/schedule.hpp>
#include <drawpoint/loop/callback.hpp>

namespace drawpoint {

enum class ProfilerActivity : std::uint8_t { cpu, xpu, cuda, hpu, mtia, privateuse1 };

/// "CPU", "XPU", "CUDA", "HPU", "MTIA", "PrivateUse1". Static storage.
[[nodiscard]] std::string_view name_of(ProfilerActivity) noexcept;
/// What can be profiled here, and is where `activities` says nothing: the CPU.
[[nodiscard]] std::vector<ProfilerActivity> supported_activities();

class TorchProfiler;

/// The arguments of torch.profiler.profile, with its names and defaults.
struct TorchProfilerOptions {
    std::optional<std::vector<ProfilerActivity>> activities;   ///< absent: `supported_activities()`
    Schedule schedule;                                         ///< empty: records from `start` to `stop`
    std::function<void(TorchProfiler&)> on_trace_ready;        ///< after each cycle
    bool record_shapes = false;                                ///< sizes of each operator's inputs
    bool profile_memory = false;                               ///< allocations and releases of tensor memory
    bool with_stack = false;                                   ///< C++ frames that called each operator
    bool with_flops = false;                                   ///< of matrix products and 2-D convolutions
    bool with_modules = false;                                 ///< refused: only TorchScript knows its modules
    std::vector<std::string> experimental_config;              ///< refused, each by its name
    std::filesystem::path execution_trace;                     ///< written over the same windows; empty: none
    bool acc_events = false;                                   ///< events of all cycles, not of the last alone
    std::optional<bool> use_cuda;                              ///< deprecated: warns, and changes nothing
    std::function<std::string()> custom_trace_id_callback;     ///< called once a cycle; empty: a random UUID
    std::function<void(std::string_view)> warn;                ///< empty: to standard error
};

/// torch.profiler.profile for LibTorch: its API, its names and its schedule, recording into `recorder`, so that one
/// ledger and one clock hold draws, stages and operators. Where PyTorch's has defects it has none: `stop()` is
/// idempotent, a trace may be exported any number of times, metadata may come before `start`. start(), step() and
/// stop() on one thread, the one that runs the model; the rest when it pleases. The recorder outlives it.
class TorchProfiler {
public:
    /// Throws std::invalid_argument naming the option that is refused.
    explicit TorchProfiler(Recorder&, TorchProfilerOptions = {});
    TorchProfiler(const TorchProfiler&) = delete;
    TorchProfiler& operator=(const TorchProfiler&) = delete;
    /// `stop()`s; what that throws becomes a warning.
    ~TorchProfiler();

    void start();
    /// The next step begins. A `TorchProfilerCallback` calls it at each training draw, which cannot be off by one.
    void step();
    void stop();
    [[nodiscard]] bool running() const noexcept;
    /// A cycle has been recorded, or is being.
    [[nodiscard]] bool recorded() const noexcept;
    [[nodiscard]] std::int64_t step_num() const noexcept;
    [[nodiscard]] ProfilerAction current_action() const noexcept;

    /// The last cycle's rows (of all cycles with `acc_events`), also while it is recorded; until the next call or
    /// `step`. What follows reads it. O(rows). All of these throw std::logic_error before the first `start`.
    [[nodiscard]] const Ledger& ledger();
    [[nodiscard]] std::vector<OperatorEvent> events();
    [[nodiscard]] std::vector<OperatorAverage> key_averages(const KeyAveragesOptions& = {});
    /// The last cycle; compressed where the name ends in `.gz`.
    void export_chrome_trace(const std::filesystem::path&);
    /// Folded stacks for flame graphs. `metric`: self_cpu_time_total or self_cuda_time_total. Needs `with_stack`.
    void export_stacks(const std::filesystem::path&, std::string_view metric = "self_cpu_time_total");
    /// `.html`, `.json`, `.json.gz` or `.raw.json.gz`; device: "cpu" or "cuda:0". Needs `record_shapes`,
    /// `profile_memory` and `with_stack`; throws std::invalid_argument naming what is missing.
    void export_memory_timeline(const std::filesystem::path&, std::string_view device = "cpu");

    /// Leaves what these activities collect out, or takes it in again, in mid-run. Nothing before `start`.
    void toggle_collection_dynamic(bool enable, std::span<const ProfilerActivity> activities);

    /// A text, or a JSON value, under a key of the trace's own; from now on. Throws std::invalid_argument when it is no
    /// JSON.
    void add_metadata(std::string_view key, std::string_view value);
    void add_metadata_json(std::string_view key, std::string_view value);
    /// The same when the next cycle starts.
    void preset_metadata_json(std::string_view key, std::string_view value);
    /// Of the cycle at hand or the last one; empty before the first.
    [[nodiscard]] const std::string& get_trace_id() const noexcept;

    [[nodiscard]] const TorchProfilerOptions& options() const noexcept;

private:
    friend class TorchProfilerCallback;
    friend class PyTorchProfiler;
    /// What a step's range is called by, in place of `step_num()`.
    void number_steps(std::function<std::int64_t()>);
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

/// Profiles until the end of the scope: Python's `with profiler:`.
class TorchProfilerScope {
public:
    explicit TorchProfilerScope(TorchProfiler& profiler) : profiler_{&profiler} { profiler.start(); }
    TorchProfilerScope(const TorchProfilerScope&) = delete;
    TorchProfilerScope& operator=(const TorchProfilerScope&) = delete;
    /// `stop()`s; throws what it throws, unless an exception is under way.
    ~TorchProfilerScope() noexcept(false);

private:
    TorchProfiler* profiler_;
    int exceptions_ = std::uncaught_exceptions();
};

/// Binds a profiler's steps to the training draws of a fit: `ProfilerStep#k` holds the k-th draw, what is computed with
/// its batch and nothing of another, whatever else the loop does. Starts the profiler with the fit and stops it with
/// the fit, whichever way that ends. Its own work, exports of `on_trace_ready` included, is counted as `callbacks`. The
/// profiler outlives it.
class TorchProfilerCallback final : public Callback {
public:
    explicit TorchProfilerCallback(TorchProfiler& profiler) noexcept : profiler_{&profiler} { run_valid = false; }
    [[nodiscard]] std::string_view name() const noexcept override { return "TorchProfilerCallback"; }
    [[nodiscard]] EventSet events() const noexcept override;
    [[nodiscard]] int order() const noexcept override { return -10; }
    void on(Event event, LoopState& state) override;
    bool fit_over() noexcept override;

private:
    void before_draw(const LoopState& state);
    TorchProfiler* profiler_;
    bool in_step_ = false;   // a draw has begun the step at hand
    bool drawn_ = false;     // … and found a batch
};

/// What `on_trace_ready` takes to write each cycle as `dir/WORKER.TIME.pt.trace.json`, for TensorBoard. `worker_name`
/// empty: HOST_PID. The handler throws std::runtime_error "Can't create directory: DIR".
[[nodiscard]] std::function<void(TorchProfiler&)>
tensorboard_trace_handler(std::filesystem::path dir, std::string worker_name = {}, bool use_gzip = false);

/// LibTorch's own observer, which writes every operator with its inputs and outputs as a graph (an execution trace, for
/// replaying). One at a time in a process. Observes all threads.
class ExecutionTraceObserver {
public:
    /// Throws std::logic_error when there is one already, std::runtime_error naming `file` when it cannot be written.
    explicit ExecutionTraceObserver(const std::filesystem::path& file);
    ExecutionTraceObserver(const ExecutionTraceObserver&) = delete;
    ExecutionTraceObserver& operator=(const ExecutionTraceObserver&) = delete;
    /// Now the file is there, whole.
    ~ExecutionTraceObserver();
    void start();
    void stop();

private:
    std::filesystem::path file_, part_;   // written under the name `part_`
    bool started_ = false;
};

}   // namespace drawpoint
