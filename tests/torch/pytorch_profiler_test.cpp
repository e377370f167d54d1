#include <drawpoint/loop/torch/pytorch_profiler.hpp>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include <ATen/ops/exp.h>
#include <ATen/ops/ones.h>
#include <ATen/record_function.h>
#include <boost/test/unit_test.hpp>

#include "support/temporary_folder.hpp"

BOOST_AUTO_TEST_SUITE(pytorch_profiler)

using namespace drawpoint;

namespace {

std::string refusal(PyTorchProfilerOptions options) {
    Recorder recorder;
    try {
        const PyTorchProfiler profiler{recorder, {}, std::move(options)};
    } catch (const std::invalid_argument& error) {
        return error.what();
    }
    return "taken";
}

PyTorchProfilerOptions quiet(PyTorchProfilerOptions options = {}) {
    options.profiler.warn = [](std::string_view) {};
    return options;
}

void step(Profiler& profiler, std::string_view action = "training_step") {
    profiler.start(action);
    (void)at::exp(at::ones({2, 3}));
    profiler.stop(action);
}

std::size_t calls(const Ledger& ledger, std::string_view name) {
    return static_cast<std::size_t>(
        std::ranges::count_if(ledger.operators, [&](const auto& row) { return ledger.names[row.name] == name; }));
}

}   // namespace

BOOST_AUTO_TEST_CASE(wrong_options_are_refused_in_lightnings_words) {
    BOOST_TEST(
        refusal({.sort_by_key = "nonsense"}) ==
        "Found sort_by_key: nonsense. Should be within {'cpu_time', 'cuda_time', 'cpu_time_total', 'cuda_time_total', "
        "'cpu_memory_usage', 'cuda_memory_usage', 'self_cpu_memory_usage', 'self_cuda_memory_usage', 'count'}.");
    for (const std::string_view key : PyTorchProfiler::available_sort_keys())
        BOOST_TEST(refusal({.sort_by_key = std::string{key}}) == "taken");
    for (const char* key : {"sort_by", "row_limit"})
        BOOST_TEST(refusal({.table_kwargs = {{key, "1"}}}) ==
                   std::string{"Found invalid table_kwargs key: "} + key +
                       ". This is already a positional argument of the Profiler.");
    BOOST_TEST(refusal({.table_kwargs = {{"colour", "red"}}}) ==
               "Found invalid table_kwargs key: colour. Should be within {'header', 'max_src_column_width', "
               "'max_name_column_width', 'max_shapes_column_width', 'top_level_events_only'}.");
    BOOST_TEST(refusal({.table_kwargs = {{"max_name_column_width", "wide"}}}) != "taken");
    BOOST_TEST(refusal({.table_kwargs = {{"header", "Hello"}, {"max_name_column_width", "20"}}}) == "taken");
    BOOST_TEST(refusal({.schedule = Schedule{}}) == "Schedule should be a callable. Found: an empty function");
    BOOST_TEST(refusal({.emit_nvtx = true}).starts_with("emit_nvtx: "));
    BOOST_TEST(refusal({.record_module_names = true}).starts_with("record_module_names: "));
    BOOST_TEST(refusal({.profiler = {.with_modules = true}}).starts_with("with_modules: "));
    BOOST_TEST(refusal({.profiler = {.execution_trace = "graph.json"}}).starts_with("execution_trace: "));
}

BOOST_AUTO_TEST_CASE(the_default_schedule_records_three_training_steps_and_saves_once) {
    const test::TemporaryFolder folder;
    Recorder recorder;
    PyTorchProfiler profiler{
        recorder, {.dirpath = folder.path() / "logs", .filename = "perf"}, quiet({.export_to_flame_graph = true})};
    profiler.setup("fit", 3);
    profiler.start("on_fit_start");
    profiler.stop("on_fit_start");
    for (int i = 0; i < 12; ++i)
        step(profiler, "[Strategy]SingleDeviceStrategy.training_step");
    BOOST_TEST(!at::hasCallbacks());   // its only cycle is over
    const Ledger ledger = recorder.ledger();
    BOOST_TEST(calls(ledger, "aten::exp") == 3u);
    BOOST_TEST(calls(ledger, "[pl][profile][Strategy]SingleDeviceStrategy.training_step") >= 3u);
    BOOST_TEST(calls(ledger, "[pl][profile]on_fit_start") == 0u);
    std::size_t traces = 0, stacks = 0;
    for (const auto& entry : std::filesystem::directory_iterator{folder.path() / "logs"}) {
        const std::string name = entry.path().filename();
        BOOST_TEST(name.starts_with("fit-perf-3-[Strategy]SingleDeviceStrategy.training_step"));
        traces += name.ends_with(".pt.trace.json") ? 1 : 0;
        stacks += name.ends_with(".stack") ? 1 : 0;
    }
    BOOST_TEST(traces == 1u);
    BOOST_TEST(stacks == 1u);
}

BOOST_AUTO_TEST_CASE(the_summary_is_the_table_of_the_operators_recorded) {
    Recorder recorder;
    PyTorchProfiler profiler{recorder,
                             {},
                             quiet({.group_by_input_shapes = true,
                                    .row_limit = 1,
                                    .sort_by_key = "count",
                                    .table_kwargs = {{"header", "All of it"}},
                                    .total_steps = 2,
                                    .profiler = {.record_shapes = true}})};
    profiler.setup("fit");
    for (int i = 0; i < 2; ++i)
        step(profiler);
    const std::string summary = profiler.summary();
    BOOST_TEST(summary.starts_with("FIT Profiler Report\nProfile stats for: records rank: 0\n"));
    BOOST_TEST(summary.find("All of it") != summary.npos);
    BOOST_TEST(summary.find("Self CPU time total: ") != summary.npos);
    BOOST_TEST(summary.find("Input Shapes") != summary.npos);
    BOOST_TEST(summary.find("# of Calls") != summary.npos);
    BOOST_TEST(profiler.summary().empty());   // profiling is over
}

BOOST_AUTO_TEST_CASE(too_few_steps_for_the_default_schedule_are_all_recorded_with_a_warning) {
    Recorder recorder;
    std::vector<std::string> warnings;
    PyTorchProfilerOptions options{.total_steps = 4};
    options.profiler.warn = [&](std::string_view text) { warnings.emplace_back(text); };
    PyTorchProfiler profiler{recorder, {}, options};
    BOOST_TEST(warnings.size() == 1u);
    for (int i = 0; i < 4; ++i)
        step(profiler);
    BOOST_TEST(!profiler.summary().empty());
    BOOST_TEST(calls(recorder.ledger(), "aten::exp") == 4u);
    const std::string last = warnings.back();
    BOOST_TEST(last == "The PyTorchProfiler failed to export trace as `dirpath` is None");
}

BOOST_AUTO_TEST_CASE(each_kind_of_step_has_a_cycle_of_its_own_and_the_sanity_check_none) {
    Recorder recorder;
    PyTorchProfiler profiler{recorder, {}, quiet({.schedule = schedule({.wait = 1, .active = 1})})};
    profiler.setup("fit");
    profiler.start("on_fit_start");
    profiler.stop("on_fit_start");
    for (int i = 0; i < 3; ++i)
        step(profiler, "validation_step");
    BOOST_TEST(calls(recorder.ledger(), "aten::exp") == 0u);
    for (int i = 0; i < 4; ++i)
        step(profiler, "training_step");
    BOOST_TEST(calls(recorder.ledger(), "aten::exp") == 1u);
    for (int i = 0; i < 4; ++i)
        step(profiler, "validation_step");
    BOOST_TEST(calls(recorder.ledger(), "aten::exp") == 2u);
}

BOOST_AUTO_TEST_CASE(destroyed_while_it_records_it_hands_its_trace_over_under_the_last_steps_name) {
    const test::TemporaryFolder folder;
    Recorder recorder;
    {
        PyTorchProfiler profiler{recorder, {.dirpath = folder.path(), .filename = "perf"}, quiet({.total_steps = 1})};
        step(profiler, "[Strategy]SingleDeviceStrategy.training_step");
    }
    BOOST_TEST(!at::hasCallbacks());
    std::size_t traces = 0;
    for (const auto& entry : std::filesystem::directory_iterator{folder.path()}) {
        const std::string name = entry.path().filename();
        BOOST_TEST(name.starts_with("perf-[Strategy]SingleDeviceStrategy.training_step."));
        ++traces;
    }
    BOOST_TEST(traces == 1u);
}

BOOST_AUTO_TEST_CASE(only_the_functions_asked_for_become_regions) {
    Recorder recorder;
    PyTorchProfiler profiler{recorder, {}, quiet({.record_functions = {"augment"}, .total_steps = 1})};
    step(profiler, "augment");
    step(profiler, "[Callback]EMA.augment");
    step(profiler, "training_step");
    const Ledger ledger = recorder.ledger();
    BOOST_TEST(calls(ledger, "[pl][profile]augment") == 1u);
    BOOST_TEST(calls(ledger, "[pl][profile][Callback]EMA.augment") == 1u);
    BOOST_TEST(calls(ledger, "[pl][profile]training_step") == 0u);
}

BOOST_AUTO_TEST_SUITE_END()
