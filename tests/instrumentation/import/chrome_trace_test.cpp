#include <drawpoint/instrumentation/import/chrome_trace.hpp>

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "instrumentation/import/chrome_event.hpp"

#include "instrumentation/import/chrome_trace_text.hpp"

using namespace drawpoint;
using namespace drawpoint::test;

namespace {

std::vector<std::string> stack_of(const Ledger& ledger, const OperatorRow& row) {
    std::vector<std::string> functions;
    for (std::uint32_t at = row.stack; at != nothing; at = ledger.stacks[at].parent)
        functions.push_back(ledger.names[ledger.frames[ledger.stacks[at].frame].function]);
    return functions;
}

const OperatorRow& row_named(const Ledger& ledger, std::string_view name) {
    const auto found =
        std::ranges::find_if(ledger.operators, [&](const OperatorRow& row) { return ledger.names[row.name] == name; });
    BOOST_TEST_REQUIRE((found != ledger.operators.end()));
    return *found;
}

std::string pieces_of(const Ledger& ledger, const StepRow& step) {
    std::string text;
    for (const SpanRow& piece : ledger.spans_of(step))
        if (piece.ns > 0)
            text += std::string{name_of(piece.span)} + " " + std::to_string(piece.ns / 1000) + ", ";
    return text;
}

}   // namespace

BOOST_AUTO_TEST_SUITE(chrome_trace)

BOOST_AUTO_TEST_CASE(microseconds_become_nanoseconds_exactly) {
    BOOST_TEST(nanoseconds_of("4413107645100.947").value() == 4'413'107'645'100'947);
    BOOST_TEST(nanoseconds_of("1790857026000123.001").value() == 1'790'857'026'000'123'001);
    BOOST_TEST(nanoseconds_of("0").value() == 0);
    BOOST_TEST(nanoseconds_of("7.5").value() == 7'500);
    BOOST_TEST(nanoseconds_of("-7.001").value() == -7'001);
    BOOST_TEST(nanoseconds_of("0.0005").value() == 1);
    BOOST_TEST(nanoseconds_of("0.00049").value() == 0);
    BOOST_TEST(nanoseconds_of("1.5e3").value() == 1'500'000);
    for (const char* wrong : {"", "-", "x", "1.2.3", "1,5", "99999999999999999999", "1e400", ".5", "1e"})
        BOOST_TEST(!nanoseconds_of(wrong).has_value(), wrong);
}

BOOST_AUTO_TEST_CASE(a_complete_event_is_an_operator_with_all_it_says) {
    const std::string names =
        R"x({"ph": "M", "name": "process_name", "pid": 5, "tid": 0, "ts": 0, "args": {"name": "python"}},
            {"ph": "M", "name": "thread_name", "pid": 5, "tid": 7, "ts": 0, "args": {"name": "thread 7 (main loop)"}},)x";
    const std::string args = R"("Sequence number": 100, "Fwd thread id": 3, "correlation": 9,
                                "Input Dims": [[16,3,16,16],[[2],[3, 4]],[]], "Concrete Inputs": ["", "[1]"])";
    const ImportedTrace imported =
        import(trace(names + without_last_comma(complete("cpu_op", "aten::conv2d", 10, 20, args))));
    const Ledger& ledger = imported.ledger;
    BOOST_TEST(imported.warnings.empty());
    BOOST_TEST(imported.events == 3u);
    BOOST_TEST_REQUIRE(ledger.operators.size() == 1u);
    const OperatorRow& row = ledger.operators[0];
    BOOST_TEST(ledger.names[row.name] == "aten::conv2d");
    BOOST_TEST((row.kind == OperatorKind::cpu_op));
    BOOST_TEST(row.begin_ns == 1'000'000'010'000);
    BOOST_TEST(row.ns == 20'000);
    BOOST_TEST(row.sequence == 100);
    BOOST_TEST(row.forward_thread == 3u);
    BOOST_TEST(row.correlation == 9u);
    BOOST_TEST(ledger.names[row.shapes] == "[[16, 3, 16, 16], [[2], [3, 4]], []]");
    BOOST_TEST((ledger.threads[row.thread] == ThreadRow{.tid = 7, .name = "main loop"}));
    BOOST_TEST(ledger.fact("process.id").value() == "5");
    BOOST_TEST(ledger.fact("process.name").value() == "python");
}

BOOST_AUTO_TEST_CASE(categories_say_the_kind_and_device_work_stands_on_its_stream) {
    using enum OperatorKind;
    const std::string launch = R"("correlation": 4)", on_device = R"("device": 1, "stream": 20, "correlation": 4)";
    const Ledger ledger =
        import(trace(without_last_comma(
                   complete("operator", "a", 0, 1) + complete("user_annotation", "b", 1, 1) +
                   complete("python_function", "c", 2, 1) + complete("cuda_runtime", "d", 3, 1, launch) +
                   complete("cuda_driver", "e", 4, 1) + complete("overhead", "f", 5, 1) +
                   complete("Trace", "PyTorch Profiler (0)", -3, 100) + complete("kernel", "g", 6, 1, on_device, 20) +
                   complete("gpu_memcpy", "h", 7, 1, on_device, 20) + complete("gpu_memset", "i", 8, 1, on_device, 20) +
                   complete("gpu_user_annotation", "j", 9, 1, R"("stream": 20, "device": 1)", 20))))
            .ledger;
    const std::vector<std::pair<std::string, OperatorKind>> expected{
        {"a", cpu_op}, {"b", user_annotation}, {"c", python_function}, {"d", runtime}, {"e", runtime},
        {"f", other},  {"g", kernel},          {"h", memcpy},          {"i", memset},  {"j", user_annotation}};
    BOOST_TEST_REQUIRE(ledger.operators.size() == expected.size());
    for (const auto& [name, kind] : expected) {
        const OperatorRow& row = row_named(ledger, name);
        BOOST_TEST((row.kind == kind), name);
        BOOST_TEST(ledger.threads[row.thread].device == (name >= "g" ? 1 : -1));
        BOOST_TEST(ledger.threads[row.thread].tid == (name >= "g" ? 20u : 7u));
    }
    BOOST_TEST(row_named(ledger, "g").correlation == row_named(ledger, "d").correlation);
    BOOST_TEST(ledger.start_ns == 999'999'997'000);   // when the recording says that it began
}

BOOST_AUTO_TEST_CASE(memory_instants_are_allocations) {
    const Ledger ledger =
        import(
            trace(
                R"({"ph": "i", "s": "t", "name": "[memory]", "pid": 5, "tid": 7, "ts": 1.5, "args": {"Total Reserved": 0,
               "Total Allocated": 4096, "Bytes": 1024, "Addr": 94083475, "Device Id": -1, "Device Type": 0}},
             {"ph": "i", "s": "t", "name": "[memory]", "pid": 5, "tid": 7, "ts": 2, "args": {"Bytes": -512, "Device Id": 1,
               "Device Type": 1}},
             {"ph": "i", "s": "g", "name": "Record Window End", "pid": "", "tid": "", "ts": 3})"))
            .ledger;
    BOOST_TEST_REQUIRE(ledger.allocations.size() == 2u);
    BOOST_TEST(
        (ledger.allocations[0] ==
         AllocationRow{.at_ns = 1'000'000'001'500, .bytes = 1024, .address = 94083475, .total_allocated = 4096}));
    BOOST_TEST(ledger.allocations[1].device == 1);
    BOOST_TEST(ledger.allocations[1].bytes == -512);
}

BOOST_AUTO_TEST_CASE(other_members_are_facts_and_a_base_that_comes_last_counts_too) {
    const Ledger ledger = import(R"({"with_stack": 1, "loader": {"workers": 2}, "traceEvents": [)" +
                                 without_last_comma(complete("cpu_op", "a", 1, 1)) +
                                 R"(], "note": "x", "distributedInfo": {"backend": "gloo", "rank": 3, "world_size": 4},
                                    "schemaVersion": 1, "baseTimeNanoseconds": 5000})")
                              .ledger;
    BOOST_TEST(ledger.fact("trace.metadata.with_stack").value() == "1");
    BOOST_TEST(ledger.fact("trace.metadata.loader").value() == R"({"workers": 2})");
    BOOST_TEST(ledger.fact("trace.metadata.note").value() == R"("x")");
    BOOST_TEST(ledger.fact("distributed.rank").value() == "3");
    BOOST_TEST(ledger.fact("distributed.backend").value() == "gloo");
    BOOST_TEST(!ledger.fact("trace.metadata.schemaVersion").has_value());
    BOOST_TEST(ledger.operators.at(0).begin_ns == 6000);
}

BOOST_AUTO_TEST_CASE(stack_frames_are_stacks_wherever_they_stand_and_a_broken_chain_ends) {
    const auto call = [](const std::string& name, const std::string& frame, int tid) {
        std::string event = complete("cpu_op", name, 0, 1, "", tid);
        return event.insert(event.find(R"("args")"), R"("sf": )" + frame + ", ");
    };
    const std::string frames = R"("stackFrames": {
        "2": {"category": "", "name": "lib/a.py(12): inner", "parent": "main"}, "main": {"name": "main"},
        "3": {"name": "numbered", "parent": 2},
        "4": {"name": "round", "parent": "5"}, "5": {"name": "about", "parent": "4"},
        "6": {"name": "itself", "parent": "6"}, "7": {"name": "orphan", "parent": "nobody"}, "8": 1}, )";
    const std::string events =
        without_last_comma(call("a", "2", 1) + call("b", R"("3")", 2) + call("c", "4", 3) + call("d", "5", 4) +
                           call("e", "6", 5) + call("f", "7", 6) + call("g", "8", 7) + call("h", "nobody", 8) +
                           complete("python_function", "around", 0, 5, "", 9) + complete("cpu_op", "i", 1, 1, "", 9));
    const std::string before = trace(events, frames);
    const std::string after = R"({"traceEvents": [)" + events + "], " + frames + R"("schemaVersion": 1})";
    using Names = std::vector<std::string>;
    for (const std::string& text : {before, after}) {
        const Ledger ledger = import(text).ledger;
        const auto stack = [&](const char* name) { return stack_of(ledger, row_named(ledger, name)); };
        BOOST_TEST((stack("a") == Names{"inner", "main"}));
        BOOST_TEST((stack("b") == Names{"numbered", "inner", "main"}));
        BOOST_TEST((stack("c") == Names{"round", "about"}));
        BOOST_TEST(stack("d").front() == "about");
        BOOST_TEST((stack("e") == Names{"itself"}));
        BOOST_TEST((stack("f") == Names{"orphan"}));
        for (const char* none : {"g", "h", "i"})
            BOOST_TEST(stack(none).empty());
        for (std::uint32_t i = 0; i < ledger.stacks.size(); ++i)
            BOOST_TEST((ledger.stacks[i].parent == nothing || ledger.stacks[i].parent < i));
        const auto inner = std::ranges::find_if(ledger.frames, [](const FrameRow& row) { return row.line == 12; });
        BOOST_TEST_REQUIRE((inner != ledger.frames.end()));
        BOOST_TEST(ledger.names.at(inner->file) == "lib/a.py");
    }
}

BOOST_AUTO_TEST_CASE(slices_of_our_own_loop_and_loader_are_no_operators) {
    const std::string events = without_last_comma(complete("user_annotation", "ProfilerStep#4", 0, 10) +
                                                  complete("cpu_op", "enumerate(DataLoader)#x.__next__", 0, 3) +
                                                  complete("user_annotation", "forward", 3, 4) +
                                                  complete("dataloader", "sample", 0, 5, "", 4194305) +
                                                  complete("cpu_op", "aten::linear", 4, 2, R"("Ev Idx": 0)"));
    const ImportedTrace ours = import(trace(events, R"("drawpoint": {"a": "b"}, )"));
    BOOST_TEST_REQUIRE(ours.ledger.operators.size() == 1u);
    BOOST_TEST(ours.ledger.names.at(ours.ledger.operators[0].name) == "aten::linear");
    BOOST_TEST_REQUIRE(ours.ledger.steps.size() == 1u);
    BOOST_TEST(ours.ledger.steps[0].step == 4u);
    BOOST_TEST(ours.ledger.steps[0].draw_ns == 3000);
    BOOST_TEST(std::ranges::any_of(ours.warnings, [](const std::string& warning) {
        return warning.starts_with("1 slices of drawpoint's loader are left out");
    }));
    BOOST_TEST(import(trace(events)).ledger.operators.size() == 5u);   // written by another program
}

BOOST_AUTO_TEST_CASE(the_python_functions_around_a_call_are_its_stack) {
    const Ledger ledger =
        import(trace(without_last_comma(
                   complete("python_function", "train.py(3): <module>", 0, 100) +
                   complete("python_function", "nn.Module: Linear_0", 10, 50) +
                   complete("cpu_op", "aten::linear", 20, 10) + complete("cpu_op", "aten::addmm", 21, 5) +
                   complete("cpu_op", "aten::later", 70, 5) + complete("cpu_op", "aten::elsewhere", 20, 5, "", 8))))
            .ledger;
    using Names = std::vector<std::string>;
    BOOST_TEST((stack_of(ledger, row_named(ledger, "aten::addmm")) == Names{"nn.Module: Linear_0", "<module>"}));
    BOOST_TEST((stack_of(ledger, row_named(ledger, "nn.Module: Linear_0")) == Names{"<module>"}));
    BOOST_TEST((stack_of(ledger, row_named(ledger, "aten::later")) == Names{"<module>"}));
    BOOST_TEST(stack_of(ledger, row_named(ledger, "aten::elsewhere")).empty());
    const FrameRow& frame = ledger.frames.at(0);
    BOOST_TEST(ledger.names.at(frame.file) == "train.py");
    BOOST_TEST(frame.line == 3u);
    BOOST_TEST(ledger.stacks.size() == 2u);
}

BOOST_AUTO_TEST_CASE(a_profiler_step_is_a_step_whose_pieces_tile_the_pass) {
    const auto mark = [](const std::string& name, int ts, int dur) {
        return complete("user_annotation", name, ts, dur);
    };
    const std::string draw = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__";
    const Ledger ledger =
        import(trace(without_last_comma(
                         mark("ProfilerStep#2", 100, 100) + mark(draw, 103, 20) + complete("cpu_op", draw, 104, 2) +
                         mark("forward", 130, 20) + complete("cpu_op", "aten::mm", 131, 5) + mark("backward", 155, 15) +
                         mark("optimizer", 172, 20) + mark("Optimizer.step#SGD.step", 173, 10) +
                         mark("Optimizer.zero_grad#SGD.zero_grad", 185, 5) + mark("ProfilerStep#3", 210, 50) +
                         mark(draw, 215, 5) + mark("ProfilerStep#4", 270, 30)),
                     R"("loader": {"batch_size": 16}, )"))
            .ledger;
    BOOST_TEST_REQUIRE(ledger.steps.size() == 3u);
    const StepRow& step = ledger.steps[0];
    BOOST_TEST(step.step == 2u);
    BOOST_TEST(step.size == 16u);
    BOOST_TEST(step.draw_begin_ns == 1'000'000'103'000);
    BOOST_TEST(step.draw_ns == 20'000);
    BOOST_TEST(step.batch_ns == 77'000);
    BOOST_TEST(pieces_of(ledger, step) ==
               "starved 20, other 7, forward 20, other 5, backward 15, other 3, opt_step 10, "
               "other 2, zero_grad 5, other 10, between 15, ");
    BOOST_TEST(duration_of(ledger, step, Action::forward).value() == 20'000);
    // ends where the optimizer's step begins
    BOOST_TEST(duration_of(ledger, step, Action::backward).value() == 18'000);
    BOOST_TEST(duration_of(ledger, step, Action::opt_step).value() == 10'000);
    BOOST_TEST(duration_of(ledger, step, Action::zero_grad).value() == 7'000);
    BOOST_TEST(!duration_of(ledger, step, Action::loss).has_value());
    BOOST_TEST(pieces_of(ledger, ledger.steps[1]) == "starved 5, other 40, between 10, ");
    BOOST_TEST(ledger.steps[2].size == 0u);   // it had no draw
    BOOST_TEST(pieces_of(ledger, ledger.steps[2]) == "other 30, ");
    BOOST_TEST_REQUIRE(ledger.passes.size() == 1u);
    BOOST_TEST(ledger.passes[0].end_ns - ledger.passes[0].begin_ns == 200'000);
    BOOST_TEST(max_residual_ns(ledger) == 0);
}

BOOST_AUTO_TEST_CASE(annotations_in_another_order_still_tile) {
    const auto mark = [](const std::string& name, int ts, int dur) {
        return complete("user_annotation", name, ts, dur);
    };
    const std::string draw = "enumerate(DataLoader)#X.__next__";
    const ImportedTrace imported = import(trace(without_last_comma(
        mark("ProfilerStep#0", 0, 100) + mark("Optimizer.zero_grad#A", 1, 1) + mark(draw, 5, 5) +
        mark("Optimizer.zero_grad#A", 11, 2) + mark("forward", 14, 5) + mark("loss", 20, 5) + mark("backward", 26, 5) +
        mark(draw, 40, 5) + mark("forward", 46, 5) + mark("backward", 52, 5) + mark("Optimizer.step#A", 60, 5))));
    const Ledger& ledger = imported.ledger;
    const StepRow& step = ledger.steps.at(0);
    BOOST_TEST(step.draw_begin_ns == 1'000'000'005'000);
    BOOST_TEST(step.size == 1u);
    BOOST_TEST_REQUIRE(imported.warnings.size() == 1u);
    BOOST_TEST(imported.warnings[0].find("batch size") != std::string::npos);
    BOOST_TEST(duration_of(ledger, step, Action::forward).value() == 5'000);
    BOOST_TEST(duration_of(ledger, step, Action::loss).value() == 6'000);
    BOOST_TEST(max_residual_ns(ledger) == 0);
}

BOOST_AUTO_TEST_CASE(without_operators_only_what_steps_are_made_of_is_kept) {
    const auto mark = [](const std::string& name, int ts, int dur) {
        return complete("user_annotation", name, ts, dur);
    };
    const std::string text = trace(
        R"x({"ph": "M", "name": "thread_name", "pid": 5, "tid": 7, "ts": 0, "args": {"name": "thread 7 (main loop)"}},
            {"ph": "i", "s": "t", "name": "[memory]", "pid": 5, "tid": 7, "ts": 1, "args": {"Bytes": 1024}},)x" +
            mark("ProfilerStep#2", 100, 100) + mark("enumerate(DataLoader)#_X.__next__", 103, 20) +
            mark("forward", 130, 20) + complete("cpu_op", "aten::mm", 131, 5, R"("name": "loss-like")") +
            mark("my own", 140, 2) + mark("Optimizer.step#SGD.step", 173, 10) +
            complete("overhead", "Activity Buffer Request", 150, 7) + complete("overhead", "Instrumentation", 160, 3) +
            complete("kernel", "k", 131, 5) + without_last_comma(mark("ProfilerStep#3", 210, 50)),
        R"("loader": {"batch_size": 16}, "stackFrames": {"1": {"name": "a"}}, "large": ")" + std::string(70'000, 'x') +
            "\", ");
    const ImportedTrace all = import(text), few = import(text, {.operators = false});
    BOOST_TEST(few.events == all.events);
    BOOST_TEST((few.ledger.steps == all.ledger.steps));
    BOOST_TEST((few.ledger.spans == all.ledger.spans));
    BOOST_TEST((few.ledger.passes == all.ledger.passes));
    BOOST_TEST((few.ledger.threads == std::vector{ThreadRow{.tid = 7, .name = "main loop"}}));
    BOOST_TEST(all.ledger.operators.size() == 10u);
    BOOST_TEST(few.ledger.operators.size() == 5u);
    BOOST_TEST(few.ledger.names.size() == 5u);
    BOOST_TEST(few.ledger.allocations.empty());
    BOOST_TEST(few.ledger.fact("process.loop_tid").value() == "7");
    BOOST_TEST(few.ledger.fact("trace.metadata.loader").has_value());
    BOOST_TEST(!few.ledger.fact("trace.metadata.large").has_value());
    BOOST_TEST(all.ledger.fact("trace.metadata.large").has_value());
    for (const ImportedTrace* one : {&all, &few})
        BOOST_TEST(one->ledger.fact("trace.overhead_ns").value() == "10000");
}

BOOST_AUTO_TEST_CASE(no_way_to_write_an_event_hides_it_from_the_filter) {
    const std::vector<std::string> same{
        R"({"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#2", "pid": 5, "tid": 7, "ts": 1, "dur": 2})",
        R"({"name":"ProfilerStep#2","ph":"X","cat":"user_annotation","ts":1,"dur":2,"pid":5,"tid":7})",
        "{\r\n\t\"args\" : {\"name\" : \"a{[\", \"name2\": \"}\"},\r\n\t\"name\"\r\n:\r\n\t\"ProfilerStep#2\"  ,\r\n"
        " \"ph\"\t:\t\"X\",\"cat\":\"user_annotation\",\"ts\":1,\"dur\":2,\"pid\":5,\"tid\":7\r\n}",
        R"({"\u006eame": "ProfilerStep#2", "ph": "X", "cat": "user_annotation", "pid": 5, "tid": 7, "ts": 1, "dur": 2})",
        R"({"name": "\u0050rofilerStep#2", "ph": "X", "cat": "user_annotation", "pid": 5, "tid": 7, "ts": 1, "dur": 2})",
        R"({"cat": "name", "ph": "X", "name": "ProfilerStep#2", "pid": 5, "tid": 7, "ts": 1e0, "dur": 2.000})"};
    for (const std::string& event : same) {
        const Ledger ledger = import(trace(event), {.operators = false}).ledger;
        BOOST_TEST_CONTEXT(event) {
            BOOST_TEST_REQUIRE(ledger.steps.size() == 1u);
            BOOST_TEST(ledger.steps[0].step == 2u);
            BOOST_TEST(ledger.steps[0].batch_ns == 2000);
        }
    }
    // The parser recognises what only looks like a wanted event. Invalid JSON is skipped where nothing wanted is in it.
    const std::string others =
        R"({"ph": "X", "cat": "cpu_op", "name": "aten::a", "pid": 5, "tid": 7, "ts": 1, "dur": 2, "args": {"name": "forward"}},
           {"ph": "X", "cat": "cpu_op", "name": "a\"b", "pid": 5, "tid": 7, "ts": 1, "dur": 2},
           {"ph": "X" "cat" "cpu_op"})";
    BOOST_TEST(import(trace(others), {.operators = false}).ledger.operators.empty());
    BOOST_CHECK_THROW(import(trace(R"({"ph": "X" "name": "forward"})"), {.operators = false}), std::runtime_error);
}

BOOST_AUTO_TEST_CASE(an_epochs_last_next_is_not_the_draw_of_the_step_it_stands_in) {
    const std::string draw = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__";
    const auto mark = [](const std::string& name, int ts, int dur) {
        return complete("user_annotation", name, ts, dur);
    };
    const std::string second =
        mark("ProfilerStep#1", 100, 100) + mark(draw, 101, 5) + mark(draw, 150, 20) + mark("forward", 175, 10);
    const Ledger epochs = import(trace(mark("ProfilerStep#0", 0, 100) + mark(draw, 1, 20) + mark("forward", 30, 10) +
                                       without_last_comma(second)))
                              .ledger;
    BOOST_TEST_REQUIRE(epochs.steps.size() == 2u);
    BOOST_TEST(epochs.steps[1].draw_begin_ns == 1'000'000'150'000);
    BOOST_TEST(epochs.steps[1].draw_ns == 20'000);
    BOOST_TEST(pieces_of(epochs, epochs.steps[0]) == "starved 20, other 9, forward 10, other 60, between 50, ");
    BOOST_TEST(max_residual_ns(epochs) == 0);
    // If every step draws twice, both draws belong to it.
    const Ledger twice = import(trace(without_last_comma(second))).ledger;
    BOOST_TEST(twice.steps.at(0).draw_begin_ns == 1'000'000'101'000);
    BOOST_TEST(max_residual_ns(twice) == 0);
}

BOOST_AUTO_TEST_CASE(steps_of_another_thread_are_left_out_with_a_warning) {
    const ImportedTrace imported =
        import(trace(without_last_comma(complete("user_annotation", "ProfilerStep#0", 0, 10) +
                                        complete("user_annotation", "ProfilerStep#9", 5, 10, "", 8))),
               {.batch_size = 4});
    BOOST_TEST(imported.ledger.steps.size() == 1u);
    BOOST_TEST_REQUIRE(imported.warnings.size() == 1u);
    BOOST_TEST(imported.warnings[0].starts_with("1 ProfilerStep"));
}

BOOST_AUTO_TEST_SUITE_END()
