#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <drawpoint/instrumentation/report/operators.hpp>
#include <drawpoint/instrumentation/schedule.hpp>
#include <drawpoint/loop/profilers/profiler.hpp>
#include <drawpoint/loop/torch/torch_profiler.hpp>

namespace drawpoint {

/// The options of Lightning's PyTorchProfiler, with its names and defaults; `profiler` holds those of torch.profiler.
struct PyTorchProfilerOptions {
    bool group_by_input_shapes = false;   ///< takes effect with `record_shapes`
    bool emit_nvtx = false;               ///< refused: NVTX ranges are for CUDA's own profilers
    bool export_to_chrome = true;
    std::int64_t row_limit = 20;                                     ///< rows of the table; -1: all
    std::string sort_by_key;                                         ///< empty: cpu_time_total
    bool record_module_names = false;                                ///< refused: C++ modules have no forward hooks
    std::vector<std::pair<std::string, std::string>> table_kwargs;   ///< arguments of `set_table_option`
    /// Actions recorded as regions, by the word after their last ".".
    std::vector<std::string> record_functions{"training_step", "backward", "validation_step", "test_step",
                                              "predict_step"};
    bool export_to_flame_graph = false;           ///< write a `.stack` file per cycle; sets `with_stack`
    std::string metric = "self_cpu_time_total";   ///< of the flame graph
    /// Number of steps in the run, if known: below 5, everything is recorded instead of the default schedule's steps.
    std::optional<std::int64_t> total_steps;
    /// Absent: `default_schedule`. An empty function is refused.
    std::optional<Schedule> schedule;
    /// activities, record_shapes, profile_memory, with_stack, with_flops, on_trace_ready, …; no `schedule`, no
    /// `execution_trace`.
    TorchProfilerOptions profiler;
};

/// Lightning's PyTorchProfiler: records LibTorch's operators as a schedule says, and reports them as a table and as a
/// Chrome trace for each cycle. A step ends where one of the actions training_step, validation_step, test_step and
/// predict_step stops; each kind is counted separately. Operators take longer than without a profiler, so use
/// SimpleProfiler for total times. One thread, the one that runs the model. The recorder must outlive it.
class PyTorchProfiler final : public Profiler {
public:
    /// Throws std::invalid_argument naming the option that is wrong.
    explicit PyTorchProfiler(Recorder&, ProfilerFiles = {}, PyTorchProfilerOptions = {});
    ~PyTorchProfiler() override;

    /// The first action starts the profiler.
    void start(std::string_view action) override;
    void stop(std::string_view action) override;
    /// Ends the profiler and returns the table of its last cycle; empty if there was none.
    [[nodiscard]] std::string summary() override;
    void teardown(std::string_view stage) override;

    /// The valid values of `sort_by_key`. Static storage.
    [[nodiscard]] static std::span<const std::string_view> available_sort_keys() noexcept;

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}   // namespace drawpoint
