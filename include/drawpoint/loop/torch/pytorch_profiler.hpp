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

/// Lightning's options of its PyTorchProfiler, by its names and with its defaults; `profiler` are those it hands on.
struct PyTorchProfilerOptions {
    bool group_by_input_shapes = false;   ///< takes effect with `record_shapes`
    bool emit_nvtx = false;               ///< refused: NVTX ranges are for CUDA's own profilers
    bool export_to_chrome = true;
    std::int64_t row_limit = 20;                                     ///< rows of the table; -1: all
    std::string sort_by_key;                                         ///< empty: cpu_time_total
    bool record_module_names = false;                                ///< refused: modules of C++ have no forward hooks
    std::vector<std::pair<std::string, std::string>> table_kwargs;   ///< as `set_table_option` takes them
    /// Actions recorded as regions, by the word after their last "."
    std::vector<std::string> record_functions{"training_step", "backward", "validation_step", "test_step",
                                              "predict_step"};
    bool export_to_flame_graph = false;           ///< a `.stack` file a cycle; sets `with_stack`
    std::string metric = "self_cpu_time_total";   ///< of the flame graph
    /// Steps of the run, where known: with fewer than 5 the default schedule is given up and everything recorded.
    std::optional<std::int64_t> total_steps;
    /// Absent: `default_schedule`. An empty function is refused.
    std::optional<Schedule> schedule;
    /// activities, record_shapes, profile_memory, with_stack, with_flops, on_trace_ready, …; no `schedule`, no
    /// `execution_trace`.
    TorchProfilerOptions profiler;
};

/// Lightning's PyTorchProfiler: LibTorch's operators while a schedule says so, a table of them, and a Chrome trace for
/// each cycle. Steps end where the actions training_step, validation_step, test_step and predict_step stop; each kind
/// counts for itself. Times of operators are longer than without a profiler: take SimpleProfiler for those of the
/// whole. One thread, the one that runs the model. The recorder outlives it.
class PyTorchProfiler final : public Profiler {
public:
    /// Throws std::invalid_argument naming the option that is wrong.
    explicit PyTorchProfiler(Recorder&, ProfilerFiles = {}, PyTorchProfilerOptions = {});
    ~PyTorchProfiler() override;

    /// The first action starts the profiler.
    void start(std::string_view action) override;
    void stop(std::string_view action) override;
    /// Ends the profiler and tabulates its last cycle; empty when there was none.
    [[nodiscard]] std::string summary() override;
    void teardown(std::string_view stage) override;

    /// The keys `sort_by_key` may be. Static storage.
    [[nodiscard]] static std::span<const std::string_view> available_sort_keys() noexcept;

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}   // namespace drawpoint
