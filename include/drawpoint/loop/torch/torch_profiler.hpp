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
/// The activities that can be profiled here, and the default of `activities`: CPU only.
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
    std::vector<std::string> experimental_config;              ///< refused, naming each option
    std::filesystem::path execution_trace;                     ///< written for the same windows; empty: none
    bool acc_events = false;                                   ///< keep the events of all cycles, not only the last
    std::optional<bool> use_cuda;                              ///< deprecated: warns, and changes nothing
    std::function<std::string()> custom_trace_id_callback;     ///< called once per cycle; empty: a random UUID
    std::function<void(std::string_view)> warn;                ///< empty: to standard error
};

/// torch.profiler.profile for LibTorch, with its API, names and schedule. It records into `recorder`, so that draws,
/// stages and operators share one ledger and one clock. Unlike PyTorch's, `stop()` is idempotent, a trace can be
/// exported any number of times, and metadata can be added before `start`. Call start(), step() and stop() on the
/// thread that runs the model; the other functions at any time. The recorder must outlive it.
class TorchProfiler {
public:
    /// Throws std::invalid_argument naming an option that is refused.
    explicit TorchProfiler(Recorder&, TorchProfilerOptions = {});
    TorchProfiler(const TorchProfiler&) = delete;
    TorchProfiler& operator=(const TorchProfiler&) = delete;
    /// Calls `stop()`; its exceptions become warnings.
    ~TorchProfiler();

    void start();
    /// Begins the next step. A `TorchProfilerCallback` calls it at each training draw, so that steps cannot be off by
    /// one.
    void step();
    void stop();
    [[nodiscard]] bool running() const noexcept;
    /// Whether a cycle has been recorded, or is being recorded.
    [[nodiscard]] bool recorded() const noexcept;
    [[nodiscard]] std::int64_t step_num() const noexcept;
    [[nodiscard]] ProfilerAction current_action() const noexcept;

    /// The rows of the last cycle (with `acc_events`, of all cycles), also while it is being recorded; valid until the
    /// next call or `step`. The exports below use them. O(rows). All of these throw std::logic_error before the first
    /// `start`.
    [[nodiscard]] const Ledger& ledger();
    [[nodiscard]] std::vector<OperatorEvent> events();
    [[nodiscard]] std::vector<OperatorAverage> key_averages(const KeyAveragesOptions& = {});
    /// Writes the last cycle; compressed if the name ends in `.gz`.
    void export_chrome_trace(const std::filesystem::path&);
    /// Writes collapsed stacks for flame graphs. `metric`: self_cpu_time_total or self_cuda_time_total. Needs
    /// `with_stack`.
    void export_stacks(const std::filesystem::path&, std::string_view metric = "self_cpu_time_total");
    /// Writes `.html`, `.json`, `.json.gz` or `.raw.json.gz`; `device`: "cpu" or "cuda:0". Needs `record_shapes`,
    /// `profile_memory` and `with_stack`; throws std::invalid_argument naming what is missing.
    void export_memory_timeline(const std::filesystem::path&, std::string_view device = "cpu");

    /// Pauses or resumes the recording of these activities during the run. No effect before `start`.
    void toggle_collection_dynamic(bool enable, std::span<const ProfilerActivity> activities);

    /// Adds a text, or a JSON value, under a key of its own to traces exported from now on. Throws
    /// std::invalid_argument if it is not valid JSON.
    void add_metadata(std::string_view key, std::string_view value);
    void add_metadata_json(std::string_view key, std::string_view value);
    /// The same from the start of the next cycle on.
    void preset_metadata_json(std::string_view key, std::string_view value);
    /// Identifier of the current or last cycle; empty before the first.
    [[nodiscard]] const std::string& get_trace_id() const noexcept;

    [[nodiscard]] const TorchProfilerOptions& options() const noexcept;

private:
    friend class TorchProfilerCallback;
    friend class PyTorchProfiler;
    /// Number in the names of steps' ranges, instead of `step_num()`.
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
    /// Calls `stop()`; throws what it throws, unless an exception is in flight.
    ~TorchProfilerScope() noexcept(false);

private:
    TorchProfiler* profiler_;
    int exceptions_ = std::uncaught_exceptions();
};

/// Aligns a profiler's steps with the training draws of a fit: `ProfilerStep#k` contains the k-th draw and the
/// computation on its batch, and nothing of another batch. Starts the profiler with the fit and stops it with the fit,
/// however that ends. Its own work, including exports by `on_trace_ready`, is counted as `callbacks`. The profiler must
/// outlive it.
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
    bool in_step_ = false;   // a draw has begun the current step
    bool drawn_ = false;     // that draw returned a batch
};

/// A function for `on_trace_ready` that writes each cycle as `dir/WORKER.TIME.pt.trace.json`, for TensorBoard. Default
/// of `worker_name`: HOST_PID. The function throws std::runtime_error "Can't create directory: DIR".
[[nodiscard]] std::function<void(TorchProfiler&)>
tensorboard_trace_handler(std::filesystem::path dir, std::string worker_name = {}, bool use_gzip = false);

/// LibTorch's own observer, which writes every operator with its inputs and outputs as a graph that can be replayed (an
/// execution trace). Only one per process. Observes all threads.
class ExecutionTraceObserver {
public:
    /// Throws std::logic_error if there is one already, std::runtime_error naming `file` if it cannot be written.
    explicit ExecutionTraceObserver(const std::filesystem::path& file);
    ExecutionTraceObserver(const ExecutionTraceObserver&) = delete;
    ExecutionTraceObserver& operator=(const ExecutionTraceObserver&) = delete;
    /// Completes the file.
    ~ExecutionTraceObserver();
    void start();
    void stop();

private:
    std::filesystem::path file_, part_;   // written under the name `part_`
    bool started_ = false;
};

}   // namespace drawpoint
