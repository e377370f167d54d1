#include <drawpoint/instrumentation/report/operators.hpp>

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace drawpoint;

namespace {

/// Builds a ledger by hand; times in microseconds since its start.
struct Run {
    Ledger ledger;

    Run() { ledger.threads = {{.tid = 1, .name = "main"}, {.tid = 2, .name = "backward"}, {.tid = 7, .device = 0}}; }

    std::uint32_t name(std::string_view text) {
        const auto found = std::ranges::find(ledger.names, text);
        if (found == ledger.names.end())
            ledger.names.emplace_back(text);
        return static_cast<std::uint32_t>(std::ranges::find(ledger.names, text) - ledger.names.begin());
    }
    OperatorRow& call(std::string_view what, std::int64_t begin, std::int64_t length, std::uint32_t thread = 0) {
        ledger.operators.push_back({.kind = thread == 2 ? OperatorKind::kernel : OperatorKind::cpu_op,
                                    .name = name(what),
                                    .thread = thread,
                                    .begin_ns = begin * 1000,
                                    .ns = length * 1000});
        return ledger.operators.back();
    }
    void allocate(std::int64_t at, std::int64_t bytes, std::int32_t device = -1) {
        ledger.allocations.push_back({.at_ns = at * 1000, .device = device, .bytes = bytes});
    }
    std::uint32_t stack(std::vector<std::string_view> outermost_first) {
        std::uint32_t parent = nothing;
        for (const std::string_view function : outermost_first) {
            ledger.frames.push_back({.function = name(function)});
            ledger.stacks.push_back({parent, static_cast<std::uint32_t>(ledger.frames.size() - 1)});
            parent = static_cast<std::uint32_t>(ledger.stacks.size() - 1);
        }
        return parent;
    }
    [[nodiscard]] OperatorAverage average(std::string_view key, const KeyAveragesOptions& options = {}) const {
        const std::vector<OperatorAverage> all = key_averages(ledger, options);
        const auto found = std::ranges::find(all, key, &OperatorAverage::key);
        BOOST_TEST_REQUIRE((found != all.end()), key);
        return *found;
    }
};

std::vector<std::string> keys_of(const Ledger& ledger) {
    std::vector<std::string> keys;
    for (const OperatorAverage& row : key_averages(ledger))
        keys.push_back(row.key);
    return keys;
}

std::vector<std::string> names_in(const std::string& table) {
    std::vector<std::string> names;
    for (std::size_t line = 0, number = 0; line < table.size(); line = table.find('\n', line) + 1, ++number)
        if (number > 2 && table[line] != '-' && table.compare(line, 4, "Self") != 0) {
            const std::size_t from = table.find_first_not_of(' ', line);
            names.push_back(table.substr(from, table.find("  ", from) - from));
        }
    return names;
}

auto says(std::string_view words) {
    return [words](const std::exception& error) {
        BOOST_TEST_MESSAGE(error.what());
        return std::string_view{error.what()}.find(words) != std::string_view::npos;
    };
}

using Names = std::vector<std::string>;
const auto each = boost::test_tools::per_element();

}   // namespace

BOOST_AUTO_TEST_SUITE(operators)

BOOST_AUTO_TEST_CASE(self_time_is_without_the_direct_calls_on_the_same_thread) {
    Run run;
    run.call("outer", 0, 100);
    run.call("middle", 10, 50);
    run.call("inner", 20, 20);
    run.call("second", 70, 5);
    run.call("elsewhere", 30, 40, 1);
    BOOST_TEST(run.average("outer").cpu_ns == 100'000);
    BOOST_TEST(run.average("outer").self_cpu_ns == 45'000);
    BOOST_TEST(run.average("middle").self_cpu_ns == 30'000);
    BOOST_TEST(run.average("inner").self_cpu_ns == 20'000);
    BOOST_TEST(run.average("elsewhere").self_cpu_ns == 40'000);
    BOOST_TEST(run.average("elsewhere").top_level);
    BOOST_TEST(!run.average("inner").top_level);
}

BOOST_AUTO_TEST_CASE(self_times_sum_to_the_outermost_calls) {
    Run run;
    for (int i = 0; i < 50; ++i) {
        run.call("step", 100 * i, 90);
        for (int j = 0; j < 4; ++j) {
            run.call("op" + std::to_string((i + j) % 5), 100 * i + 20 * j, 18);
            run.call("leaf", 100 * i + 20 * j + 2, 3 + j);
        }
    }
    std::int64_t self = 0;
    for (const OperatorAverage& row : key_averages(run.ledger))
        self += row.self_cpu_ns;
    BOOST_TEST(self == 50 * 90'000);
}

BOOST_AUTO_TEST_CASE(calls_that_only_overlap_are_not_nested) {
    Run run;
    run.call("a", 0, 50);
    run.call("b", 40, 20);
    run.call("c", 60, 10);   // begins where b ends
    for (const OperatorEvent& event : events(run.ledger))
        BOOST_TEST(event.parent == nothing);
}

BOOST_AUTO_TEST_CASE(averages_stand_in_the_order_of_first_appearance_and_steps_share_a_key) {
    Run run;
    run.call("b", 11, 1);
    run.call("a", 12, 1);
    run.call("b", 13, 1);
    run.call("ProfilerStep#3", 10, 50);
    run.call("ProfilerStep#4", 70, 50);
    BOOST_TEST(keys_of(run.ledger) == (Names{"ProfilerStep*", "b", "a"}), each);
    BOOST_TEST(run.average("b").count == 2u);
    BOOST_TEST(run.average("ProfilerStep*").cpu_ns == 100'000);
}

BOOST_AUTO_TEST_CASE(an_operator_and_a_region_of_one_name_are_two_rows) {
    Run run;
    run.call("x", 0, 10);
    run.call("x", 20, 10).kind = OperatorKind::user_annotation;
    BOOST_TEST(keys_of(run.ledger) == (Names{"x", "x"}), each);
}

BOOST_AUTO_TEST_CASE(a_recursive_call_counts_at_each_level_and_an_only_call_of_the_same_name_is_left_out) {
    Run run;
    run.call("f", 0, 100);
    run.call("f", 10, 30);
    run.call("g", 50, 10);
    BOOST_TEST(run.average("f").cpu_ns == 130'000);
    BOOST_TEST(run.average("f").self_cpu_ns == 90'000);
    Run doubled;
    doubled.call("f", 0, 100);
    doubled.call("f", 10, 80);
    doubled.call("f", 20, 60);
    doubled.call("g", 30, 10);
    BOOST_TEST(doubled.average("f").count == 1u);
    BOOST_TEST(doubled.average("f").self_cpu_ns == 90'000);
    BOOST_TEST(events(doubled.ledger).at(1).parent == 0u);
}

BOOST_AUTO_TEST_CASE(profiling_helpers_are_left_out_and_their_time_stays_with_the_caller) {
    Run run;
    run.call("aten::mm", 0, 10);
    run.call("aten::is_leaf", 2, 4);
    run.call("profiler::_record_function_exit", 7, 1);
    BOOST_TEST(keys_of(run.ledger) == (Names{"aten::mm"}), each);
    BOOST_TEST(run.average("aten::mm").self_cpu_ns == 10'000);
}

BOOST_AUTO_TEST_CASE(memory_counts_in_every_call_around_it_and_alone_where_there_is_none) {
    Run run;
    run.call("outer", 0, 100);
    run.call("inner", 10, 20);
    run.allocate(15, 1000);
    run.allocate(50, 24);
    run.allocate(60, -500);
    run.allocate(70, 4096, 0);
    run.allocate(200, 7);
    BOOST_TEST(run.average("outer").cpu_bytes == 524);
    BOOST_TEST(run.average("outer").self_cpu_bytes == -476);
    BOOST_TEST(run.average("inner").self_cpu_bytes == 1000);
    BOOST_TEST(run.average("outer").device_bytes == 4096);
    const OperatorAverage alone = run.average("[memory]");
    BOOST_TEST(alone.cpu_bytes == 7);
    BOOST_TEST(alone.count == 1u);
    BOOST_TEST(alone.cpu_ns == 0);
}

BOOST_AUTO_TEST_CASE(sizes_and_stamps_that_no_run_has_add_up_modulo_2_to_the_64) {
    constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
    Run run;
    run.call("op", 0, 100);
    run.call("late", 0, 0).begin_ns = most;
    run.ledger.operators.back().ns = most;
    run.ledger.start_ns = -most;
    for (const std::int32_t device : {-1, 0})
        for (int i = 0; i < 3; ++i)
            run.allocate(15, most, device);
    BOOST_TEST(run.average("op").cpu_bytes == most - 2);
    BOOST_TEST(run.average("op").device_bytes == most - 2);
    BOOST_TEST(run.average("late").cpu_ns == most);
}

BOOST_AUTO_TEST_CASE(a_kernel_is_booked_with_the_operator_that_launched_it_and_its_callers) {
    Run run;
    run.call("linear", 0, 100);
    run.call("addmm", 10, 50);
    OperatorRow& launch = run.call("cudaLaunchKernel", 20, 5);
    launch.kind = OperatorKind::runtime;
    launch.correlation = 42;
    run.call("gemm", 200, 300, 2).correlation = 42;
    run.call("unlinked", 600, 10, 2).correlation = 43;
    BOOST_TEST(run.average("addmm").self_device_ns == 300'000);
    BOOST_TEST(run.average("linear").device_ns == 300'000);
    BOOST_TEST(run.average("linear").self_device_ns == 0);
    BOOST_TEST(run.average("cudaLaunchKernel").device_ns == 0);
    const OperatorAverage kernel = run.average("gemm");
    BOOST_TEST(kernel.device == 0);
    BOOST_TEST(kernel.device_ns == 300'000);
    BOOST_TEST(kernel.cpu_ns == 0);
    const std::string text = table(key_averages(run.ledger), {.sort_by = "cuda_time_total"});
    BOOST_TEST(names_in(text) == (Names{"linear", "addmm", "gemm", "unlinked", "cudaLaunchKernel"}), each);
    BOOST_TEST(text.find("Self CUDA   Self CUDA %    CUDA total  CUDA time avg    # of Calls") != std::string::npos);
    BOOST_TEST(text.find("Self CUDA time total: 310.000us\n") != std::string::npos);
    BOOST_TEST(text.find("96.77%") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(shapes_are_grouped_and_lists_of_tensors_are_one_input) {
    Run run;
    run.call("cat", 0, 1).shapes = run.name("[[[2, 3], [4, 3]], []]");
    run.call("cat", 2, 1).shapes = run.name("[[], []]");
    run.call("cat", 4, 1).shapes = run.name("[[2, 3], []]");
    run.call("cat", 6, 1);
    const auto rows = key_averages(run.ledger, {.group_by_input_shape = true});
    BOOST_TEST_REQUIRE(rows.size() == 3u);
    BOOST_TEST(rows[0].shapes == "[[], []]");
    BOOST_TEST(rows[0].count == 2u);
    BOOST_TEST(rows[1].shapes == "[[2, 3], []]");
    BOOST_TEST(rows[2].shapes == "[]");
    BOOST_TEST(run.average("cat").shapes.empty());
}

BOOST_AUTO_TEST_CASE(callers_are_grouped_innermost_first_without_the_wrappers_of_autograd) {
    Run run;
    const std::uint32_t first = run.stack({"main", "torch/autograd/__init__.py(255): backward", "a"});
    const std::uint32_t second = run.stack({"other", "a"});
    run.call("mm", 0, 1).stack = first;
    run.call("mm", 2, 1).stack = second;
    run.call("mm", 4, 1).stack = first;
    const auto rows = key_averages(run.ledger, {.group_by_stack_n = 2});
    BOOST_TEST_REQUIRE(rows.size() == 2u);
    BOOST_TEST(rows[0].stack == (Names{"a", "main"}), each);
    BOOST_TEST(rows[0].count == 2u);
    BOOST_TEST(rows[1].stack == (Names{"a", "other"}), each);
    BOOST_TEST(key_averages(run.ledger, {.group_by_stack_n = 1}).size() == 1u);
    BOOST_TEST(run.average("mm").stack.empty());
}

BOOST_AUTO_TEST_CASE(a_backward_function_and_what_it_calls_have_their_forward_operators_stack) {
    Run run;
    OperatorRow& forward = run.call("aten::mm", 0, 10);
    forward.stack = run.stack({"train", "model"});
    forward.sequence = 5;
    OperatorRow& backward = run.call("MmBackward0", 20, 10, 1);
    backward.sequence = 5;
    backward.forward_thread = 1;
    run.call("aten::t", 22, 2, 1);
    for (const OperatorEvent& event : events(run.ledger))
        BOOST_TEST(event.stack == run.ledger.operators[0].stack);
}

BOOST_AUTO_TEST_CASE(folded_stacks_stand_outermost_first_with_whole_microseconds) {
    Run run;
    run.call("a", 0, 30).stack = run.stack({"file.py(3): main loop", "f;g"});
    run.call("b", 5, 10).stack = run.ledger.operators[0].stack;
    run.call("short", 50, 0).stack = run.ledger.operators[0].stack;
    run.call("no stack", 60, 10);
    BOOST_TEST(export_stacks(run.ledger) == "file.py(3):_main_loop;f_g 20\nfile.py(3):_main_loop;f_g 10\n");
    BOOST_TEST(export_stacks(run.ledger, "self_cuda_time_total") == "");
    BOOST_CHECK_EXCEPTION((void)export_stacks(run.ledger, "count"), std::invalid_argument,
                          says("metric should be one of: ['self_cpu_time_total', "));
    BOOST_CHECK_EXCEPTION((void)export_stacks(Run{}.ledger), std::invalid_argument, says("requires with_stack=True"));
}

BOOST_AUTO_TEST_CASE(the_table_shows_memory_operations_and_callers_where_there_are_any) {
    OperatorAverage row{.key = "aten::mm", .count = 3, .cpu_us = 30.5, .self_cpu_us = 30.5};
    BOOST_TEST(table({&row, 1}) ==
               "------------  ------------  ------------  ------------  ------------  ------------  ------------  \n"
               "        Name    Self CPU %      Self CPU   CPU total %     CPU total  CPU time avg    # of Calls  \n"
               "------------  ------------  ------------  ------------  ------------  ------------  ------------  \n"
               "    aten::mm       100.00%      30.500us       100.00%      30.500us      10.167us             3  \n"
               "------------  ------------  ------------  ------------  ------------  ------------  ------------  \n"
               "Self CPU time total: 30.500us\n");
    BOOST_TEST(table({&row, 1}, {.profile_memory = true}).find("           0 B") != std::string::npos);
    row.cpu_bytes = 3 * 1024 * 1024;
    row.self_cpu_bytes = -1536;
    row.flops = 2'500'000;
    row.stack = {"model.py(3): forward", "train.py(1): main"};
    const std::string text = table({&row, 1});
    BOOST_TEST(text.find("       CPU Mem  Self CPU Mem    # of Calls  Total MFLOPs  Source Location") !=
               std::string::npos);
    BOOST_TEST(text.find("     3.00 MB      -1.50 KB             3         2.500  model.py(3): forward") !=
               std::string::npos);
    BOOST_TEST(text.find("                  train.py(1): main") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(the_table_has_the_originals_header_lines_limit_units_and_top_level) {
    std::vector<OperatorAverage> rows{{.key = "a", .count = 1, .cpu_us = 2e6, .self_cpu_us = 2e6},
                                      {.key = "b", .count = 1, .cpu_us = 1500, .self_cpu_us = 1500, .top_level = false},
                                      {.key = "c", .count = 1, .cpu_us = 3, .self_cpu_us = 3}};
    const std::string line(89, '=');   // a column of 5, six of 12, and the gaps between them
    BOOST_TEST(table(rows, {.header = "CPU only"}).starts_with(line + "\nCPU only\n-----  "));
    const std::string top = table(rows, {.top_level_events_only = true});
    BOOST_TEST(top.starts_with(line + "\nThis report only display top-level ops statistics\n-----"));
    BOOST_TEST(top.find("\n    b") == std::string::npos);
    BOOST_TEST(names_in(table(rows, {.sort_by = "cpu_time", .row_limit = 2})) == (Names{"a", "b"}), each);
    BOOST_TEST(names_in(table(rows, {.row_limit = -1})).size() == 3u);
    BOOST_TEST(names_in(table(rows, {.row_limit = 0})).empty());
    const std::string text = table(rows);
    for (const char* time : {"2.000s", "1.500ms", "3.000us", "Self CPU time total: 2.002s"})
        BOOST_TEST(text.find(time) != std::string::npos, time);
    BOOST_TEST(table(rows, {.time_unit = TimeUnit::ms}).find("2001.503ms") != std::string::npos);
    BOOST_TEST(table({}).empty());
}

BOOST_AUTO_TEST_CASE(long_names_are_cut_by_letters_not_bytes_and_cannot_break_a_line) {
    std::vector<OperatorAverage> rows{{.key = std::string(60, 'x'), .count = 1}};
    BOOST_TEST(table(rows).find("\n" + std::string(52, 'x') + "...  ") != std::string::npos);
    rows[0].key.clear();
    for (int i = 0; i < 60; ++i)
        rows[0].key += "ä";
    const std::string text = table(rows, {.max_name_column_width = 10});
    BOOST_TEST(text.find("\näääääää...  ") != std::string::npos);
    rows[0].key = "a\nb\x1b[2J";
    BOOST_TEST(table(rows).find("a\\nb\\x1b[2J") != std::string::npos);
    BOOST_TEST(table(rows).find("NaN") != std::string::npos);   // a share of a total of 0
}

BOOST_AUTO_TEST_CASE(every_sort_key_sorts_by_its_column_descending_and_keeps_the_order_of_equals) {
    std::vector<OperatorAverage> rows(3);
    std::int64_t value = 1;
    for (OperatorAverage& row : rows) {
        row.key = std::to_string(value);
        row.count = 1;
        row.cpu_us = row.self_cpu_us = static_cast<double>(value);
        row.cpu_ns = row.self_cpu_ns = row.device_ns = row.self_device_ns = value * 1000;
        row.cpu_bytes = row.self_cpu_bytes = row.device_bytes = row.self_device_bytes = value;
        row.flops = static_cast<std::uint64_t>(value++);
    }
    for (const std::string_view key : sort_keys())
        BOOST_TEST(names_in(table(rows, {.sort_by = key})) ==
                       (key == "count" ? Names{"1", "2", "3"} : Names{"3", "2", "1"}),
                   key);
    BOOST_TEST(sort_value(rows[1], "self_cuda_time_total") == sort_value(rows[1], "self_device_time_total"));
    BOOST_TEST(sort_value({.count = 4, .cpu_us = 10}, "cpu_time") == 2.5);
    BOOST_CHECK_EXCEPTION((void)table(rows, {.sort_by = "nonsense"}), std::invalid_argument,
                          says("Found sort_by_key: nonsense. Should be within {'cpu_time', 'cuda_time', "));
    BOOST_CHECK_THROW((void)table({}, {.sort_by = "nonsense"}), std::invalid_argument);
}

BOOST_AUTO_TEST_CASE(rows_of_no_known_time_stand_below_all_others) {
    constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
    std::vector<OperatorAverage> rows;
    for (const auto& [name, us] :
         {std::pair{"one", 1.0}, {"unknown", unknown}, {"three", 3.0}, {"unknown", unknown}, {"two", 2.0}})
        rows.push_back({.key = name, .count = 1, .cpu_us = us});
    const std::string text = table(rows, {.sort_by = "cpu_time_total"});
    std::size_t last = 0;
    for (const char* const name : {" three ", " two ", " one ", " unknown "}) {
        const std::size_t at = text.find(name);
        BOOST_TEST((at != std::string::npos && at > last), name);
        last = at;
    }
}

BOOST_AUTO_TEST_CASE(table_options_by_name_are_checked) {
    TableOptions options;
    set_table_option(options, "header", "hello");
    set_table_option(options, "max_name_column_width", "20");
    set_table_option(options, "max_src_column_width", "None");
    set_table_option(options, "max_shapes_column_width", "7");
    set_table_option(options, "top_level_events_only", "True");
    BOOST_TEST(options.header.value() == "hello");
    BOOST_TEST(options.max_name_column_width.value() == 20u);
    BOOST_TEST(!options.max_src_column_width.has_value());
    BOOST_TEST(options.max_shapes_column_width.value() == 7u);
    BOOST_TEST(options.top_level_events_only);
    const auto refused = [&](std::string_view key, std::string_view value, std::string_view words) {
        BOOST_CHECK_EXCEPTION(set_table_option(options, key, value), std::invalid_argument, says(words));
    };
    refused("sort_by", "count", "Found invalid table option: sort_by. It has an option of its own");
    refused("row_limit", "1", "Found invalid table option: row_limit");
    refused("colour", "red", "Should be within {'header', 'max_src_column_width', ");
    refused("max_src_column_width", "wide", "'wide' is not None or a width");
    refused("top_level_events_only", "2", "'2' is not True or False");
}

BOOST_AUTO_TEST_CASE(the_report_of_a_ledger_is_its_table_sorted_by_total_time) {
    Run run;
    BOOST_TEST(to_op_report(run.ledger) == "No operator was recorded.\n");
    run.call("short", 0, 1);
    run.call("long", 10, 100);
    BOOST_TEST(names_in(to_op_report(run.ledger)) == (Names{"long", "short"}), each);
    BOOST_TEST(names_in(to_op_report(run.ledger, {.table = {.sort_by = "count"}})) == (Names{"short", "long"}), each);
    run.call("kernel", 0, 5, 2);
    BOOST_TEST(names_in(to_op_report(run.ledger)).front() == "kernel");
}

BOOST_AUTO_TEST_CASE(rows_that_name_what_is_not_there_do_no_harm) {
    Run run;
    OperatorRow& row = run.call("a", 0, 1);
    row.name = row.thread = row.shapes = row.stack = 1000;
    BOOST_TEST(key_averages(run.ledger, {.group_by_input_shape = true, .group_by_stack_n = 3}).size() == 1u);
}

BOOST_AUTO_TEST_SUITE_END()
