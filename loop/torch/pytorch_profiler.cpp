#include <drawpoint/loop/torch/pytorch_profiler.hpp>

#include <algorithm>
#include <array>
#include <stdexcept>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <drawpoint/instrumentation/export/file.hpp>

namespace drawpoint {
namespace {

constexpr std::array<std::string_view, 9> sort_by_keys{"cpu_time",
                                                       "cuda_time",
                                                       "cpu_time_total",
                                                       "cuda_time_total",
                                                       "cpu_memory_usage",
                                                       "cuda_memory_usage",
                                                       "self_cpu_memory_usage",
                                                       "self_cuda_memory_usage",
                                                       "count"};
constexpr std::array<std::string_view, 5> table_keys{"header", "max_src_column_width", "max_name_column_width",
                                                     "max_shapes_column_width", "top_level_events_only"};
constexpr std::array<std::string_view, 4> step_functions{"training_step", "validation_step", "test_step",
                                                         "predict_step"};

template <class Texts>
bool has(const Texts& texts, std::string_view text) {
    return std::find(std::begin(texts), std::end(texts), text) != std::end(texts);
}

std::string set_of(std::span<const std::string_view> names) {
    return fmt::format("{{'{}'}}", fmt::join(names, "', '"));
}

/// The part after the last ".": "training_step" of "[Strategy]SingleDeviceStrategy.training_step".
std::string_view last_word(std::string_view action) { return action.substr(action.rfind('.') + 1); }

void check(const PyTorchProfilerOptions& options) {
    const auto refuse = [](std::string text) { throw std::invalid_argument{std::move(text)}; };
    if (options.emit_nvtx)
        refuse("emit_nvtx: NVTX ranges are for CUDA's own profilers, which this build does not drive");
    if (options.record_module_names)
        refuse(
            "record_module_names: LibTorch's modules of C++ have no forward hooks; annotate them with profile_region");
    if (!has(sort_by_keys, options.sort_by_key))
        refuse(fmt::format("Found sort_by_key: {}. Should be within {}.", options.sort_by_key, set_of(sort_by_keys)));
    for (const auto& [key, value] : options.table_kwargs) {
        if (key == "sort_by" || key == "row_limit")
            refuse(fmt::format(
                "Found invalid table_kwargs key: {}. This is already a positional argument of the Profiler.", key));
        if (!has(table_keys, key))
            refuse(fmt::format("Found invalid table_kwargs key: {}. Should be within {}.", key, set_of(table_keys)));
        TableOptions checked;
        set_table_option(checked, key, value);
    }
    if (options.schedule && !*options.schedule)
        refuse("Schedule should be a callable. Found: an empty function");
    if (options.profiler.schedule)
        refuse("profiler.schedule: give PyTorchProfiler's own option schedule");
    if (!options.profiler.execution_trace.empty())
        refuse(
            "execution_trace: each stage would write over the last one's; keep an ExecutionTraceObserver of your own");
}

}   // namespace

struct PyTorchProfiler::Impl {
    struct Region {
        std::string action;
        std::uint32_t ticket;
    };

    Recorder* recorder;
    PyTorchProfilerOptions options;
    std::optional<ScheduleWrapper> schedule;   // none: every step is recorded
    std::optional<TorchProfiler> profiler;     // from the first action to the summary
    std::string last_step;                     // the action that ended the last step
    std::vector<Region> regions;               // open ones, in the order of their start
};

PyTorchProfiler::PyTorchProfiler(Recorder& recorder, ProfilerFiles files, PyTorchProfilerOptions options)
    : Profiler{std::move(files)}, impl_{std::make_unique<Impl>(&recorder)} {
    if (options.sort_by_key.empty())
        options.sort_by_key = "cpu_time_total";
    check(options);
    options.profiler.with_stack |= options.export_to_flame_graph;
    options.group_by_input_shapes &= options.profiler.record_shapes;
    if (!options.profiler.warn)
        options.profiler.warn = [this](std::string_view text) { output() << "drawpoint: " << text << '\n'; };
    if (!options.profiler.on_trace_ready)
        options.profiler.on_trace_ready = [this](TorchProfiler& profiler) {
            const Impl& impl = *impl_;
            if (dirpath().empty()) {
                impl.options.profiler.warn("The PyTorchProfiler failed to export trace as `dirpath` is None");
                return;
            }
            if (impl.options.export_to_chrome)
                tensorboard_trace_handler(dirpath(), file_name(impl.last_step, ""))(profiler);
            if (impl.options.export_to_flame_graph) {
                std::filesystem::create_directories(dirpath());
                profiler.export_stacks(dirpath() / file_name(impl.last_step, ".stack"), impl.options.metric);
            }
        };
    CheckedSchedule chosen{options.schedule.value_or(Schedule{}), {}};
    if (!options.schedule)
        chosen = schedule_for(default_schedule, options.total_steps);
    for (const std::string& warning : chosen.warnings)
        options.profiler.warn(warning);
    if (chosen.schedule)
        impl_->schedule.emplace(std::move(chosen.schedule));
    impl_->options = std::move(options);
    TorchProfiler{recorder, impl_->options.profiler};   // throws for refused options now rather than at the first step
}

// Ends the profiler first: it may call on_trace_ready, which uses the other members.
PyTorchProfiler::~PyTorchProfiler() { impl_->profiler.reset(); }

void PyTorchProfiler::start(std::string_view action) {
    Impl& impl = *impl_;
    if (!impl.profiler) {
        TorchProfilerOptions options = impl.options.profiler;
        if (impl.schedule) {
            impl.schedule->setup(action);
            options.schedule = std::ref(*impl.schedule);
        }
        impl.profiler.emplace(*impl.recorder, std::move(options));
        if (impl.schedule)
            impl.profiler->number_steps([&impl] { return impl.schedule->num_step(); });
        impl.profiler->start();
        impl.profiler->add_metadata("Framework", "pytorch-lightning");
    }
    const auto open = [&](const Impl::Region& region) { return region.action == action; };
    if (has(impl.options.record_functions, last_word(action)) && std::ranges::none_of(impl.regions, open))
        impl.regions.push_back(
            {std::string{action},
             impl.recorder->begin_operator({.name = impl.recorder->add_name(fmt::format("[pl][profile]{}", action))})});
}

void PyTorchProfiler::stop(std::string_view action) {
    Impl& impl = *impl_;
    const auto open = std::ranges::find(impl.regions, action, &Impl::Region::action);
    if (open != impl.regions.end()) {
        impl.recorder->end_operator(open->ticket);
        impl.regions.erase(open);
    }
    if (!impl.profiler || !has(step_functions, last_word(action)))
        return;
    impl.last_step = action;
    if (impl.schedule)
        impl.schedule->pre_step(action);
    impl.profiler->step();
}

std::string PyTorchProfiler::summary() {
    Impl& impl = *impl_;
    if (!impl.profiler)
        return {};
    if (impl.profiler->running())
        impl.profiler->stop();
    std::vector<OperatorAverage> averages;
    if (impl.profiler->recorded())
        averages = impl.profiler->key_averages({.group_by_input_shape = impl.options.group_by_input_shapes});
    impl.profiler.reset();
    impl.regions.clear();
    if (impl.schedule)
        impl.schedule->reset();
    if (averages.empty())
        return {};
    TableOptions options{.sort_by = impl.options.sort_by_key, .row_limit = impl.options.row_limit};
    for (const auto& [key, value] : impl.options.table_kwargs)
        set_table_option(options, key, value);
    std::string upper = stage();
    std::ranges::transform(upper, upper.begin(),
                           [](char c) { return 'a' <= c && c <= 'z' ? static_cast<char>(c - 32) : c; });
    return fmt::format("{}Profiler Report\nProfile stats for: records{}\n{}", upper.empty() ? "" : upper + " ",
                       stage().empty() ? "" : fmt::format(" rank: {}", local_rank()), table(averages, options));
}

void PyTorchProfiler::teardown(std::string_view stage) {
    impl_->profiler.reset();
    impl_->regions.clear();
    if (impl_->schedule)
        impl_->schedule->reset();
    Profiler::teardown(stage);
}

std::span<const std::string_view> PyTorchProfiler::available_sort_keys() noexcept { return sort_by_keys; }

}   // namespace drawpoint
