#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "tests/instrumentation/export/exported_chrome.hpp"

namespace {

using namespace drawpoint;
using namespace drawpoint::test;

BOOST_AUTO_TEST_SUITE(chrome)

BOOST_AUTO_TEST_CASE(the_draw_is_a_cpu_op_inside_its_profiler_step) {
    const Ledger ledger = hand_made::one_epoch();
    const Trace trace{ledger};
    std::vector<const ChromeSlice*> draws;
    for (const ChromeSlice& slice : trace.slices)
        if (slice.name == "enumerate(DataLoader)#drawpoint.__next__")
            draws.push_back(&slice);
    BOOST_REQUIRE(draws.size() == ledger.steps.size());
    for (std::size_t i = 0; i < draws.size(); ++i) {
        const StepRow& row = ledger.steps[i];
        const ChromeSlice& step = trace.slice("ProfilerStep#" + std::to_string(row.step));
        BOOST_TEST(draws[i]->category == "cpu_op");
        BOOST_TEST(step.category == "user_annotation");
        BOOST_TEST(draws[i]->tid == step.tid);
        BOOST_TEST(draws[i]->begin_ns == step.begin_ns);
        BOOST_TEST(draws[i]->ns == row.draw_ns);
        BOOST_TEST(step.ns == row.draw_ns + row.batch_ns);
        BOOST_TEST(step.args["phase"] == name_of(row.phase));
    }
}

BOOST_AUTO_TEST_CASE(every_nanosecond_survives_as_three_decimals) {
    OperatorRun run;
    run.ledger.start_ns = 1'790'857'026'000'000'123;
    run.ledger.steps.clear();
    run.ledger.passes.clear();
    run.ledger.pipelines.clear();
    const std::uint32_t thread = run.thread(3);
    const std::vector<std::pair<std::int64_t, std::int64_t>> calls{
        {0, 1}, {999, 1'000}, {4'413'107'645'100'947, 1'001}, {4'413'107'646'101'949, 123'456'789'012'345}};
    for (const auto& [begin_ns, ns] : calls)
        run.call(thread, "op", run.ledger.start_ns + begin_ns, ns);
    const std::string text = exported(run.ledger);
    const std::regex stamps{R"re("name": "op".*"ts": (\d+)\.(\d{3}), "dur": (\d+)\.(\d{3}),)re"};
    std::size_t found = 0;
    for (std::sregex_iterator at{text.begin(), text.end(), stamps}, end; at != end; ++at, ++found) {
        BOOST_REQUIRE(found < calls.size());
        BOOST_TEST(std::stoll((*at)[1].str() + (*at)[2].str()) == calls[found].first);
        BOOST_TEST(std::stoll((*at)[3].str() + (*at)[4].str()) == calls[found].second);
    }
    BOOST_TEST(found == calls.size());
    BOOST_TEST(Json::parse(text)["baseTimeNanoseconds"] == run.ledger.start_ns);
}

BOOST_AUTO_TEST_CASE(a_moment_before_the_start_is_below_zero) {
    OperatorRun run;
    run.ledger.start_ns = 5'000'000;
    run.call(run.thread(3), "early", 5'000'000 - 1'001, 1);
    BOOST_TEST(exported(run.ledger).find(R"("ts": -1.001,)") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(names_are_escaped_and_bytes_that_are_no_text_replaced) {
    OperatorRun run;
    const std::uint32_t thread = run.thread(3, "a \"quoted\"\nthread");
    const std::string odd = "say \"x\\y\"\n\t\x01 and \x7f";
    run.call(thread, odd, run.ledger.start_ns, 1);
    run.call(thread, std::string_view{"nul\0byte", 8}, run.ledger.start_ns + 2, 1);
    run.call(thread, "broken \xff\xc3 utf-8 \xe2\x82", run.ledger.start_ns + 4, 1);
    run.ledger.set_fact("a \"key\"", "a\x02value\xfe");
    const Trace trace{run.ledger};
    BOOST_TEST(trace.slice(odd).ns == 1);
    BOOST_TEST(trace.slice(std::string{"nul\0byte", 8}).ns == 1);
    BOOST_TEST(trace.slice("broken \xef\xbf\xbd\xef\xbf\xbd utf-8 \xef\xbf\xbd").ns == 1);
    BOOST_TEST(trace.document["drawpoint"]["a \"key\""] == "a\x02value\xef\xbf\xbd");
    BOOST_TEST(trace.thread_name(3) == "thread 3 (a \"quoted\"\nthread)");
}

BOOST_AUTO_TEST_CASE(operators_stand_on_their_threads_with_their_arguments) {
    const Trace trace{operator_run().ledger};
    const ChromeSlice &conv = trace.slice("aten::conv2d"), &convolution = trace.slice("aten::convolution"),
                      &backward = trace.slice("ConvolutionBackward0"), &step = trace.slice("ProfilerStep#0");
    BOOST_TEST(conv.category == "cpu_op");
    BOOST_TEST(conv.pid == 4700);
    BOOST_TEST(conv.tid == 4711);
    BOOST_TEST(conv.tid == step.tid);
    BOOST_TEST(conv.args["Input Dims"] == Json::parse("[[16, 3, 8, 8], [8], []]"));
    BOOST_TEST(conv.args["Sequence number"] == 5);
    BOOST_TEST(conv.args["Fwd thread id"] == 0);
    BOOST_TEST(conv.args["flops"] == 1234);
    BOOST_TEST(backward.args["Fwd thread id"] == 1);
    BOOST_TEST(backward.tid == 4712);
    BOOST_TEST(conv.args["External id"] != convolution.args["External id"]);
    BOOST_TEST(all_nest(trace));
    BOOST_TEST(trace.thread_name(4711) == "loop");
    BOOST_TEST(trace.thread_name(4712) == "thread 4712 (autograd)");
}

BOOST_AUTO_TEST_CASE(shapes_that_are_no_json_become_a_text) {
    OperatorRun run;
    const std::uint32_t shapes = run.name("[[16, 3], oops");
    run.call(run.thread(3), "op", run.ledger.start_ns, 1).shapes = shapes;
    BOOST_TEST(Trace{run.ledger}.slice("op").args["Input Dims"] == "[[16, 3], oops");
}

BOOST_AUTO_TEST_CASE(what_overlaps_on_a_thread_moves_to_one_of_its_own_with_its_length) {
    OperatorRun run = operator_run();
    const StepRow& step = run.ledger.steps[1];
    const std::int64_t begin_ns = step.draw_begin_ns + step.draw_ns - 2;   // extends beyond the draw's end
    run.call(0, "across", begin_ns, 100);
    run.call(0, "inside", begin_ns + 1, 10);
    const Trace trace{run.ledger};
    BOOST_TEST(all_nest(trace));
    const ChromeSlice &across = trace.slice("across"), &inside = trace.slice("inside");
    BOOST_TEST(across.begin_ns == begin_ns - run.ledger.start_ns);
    BOOST_TEST(across.ns == 100);
    BOOST_TEST(across.tid != 4711);
    BOOST_TEST(inside.tid == across.tid);
    BOOST_TEST(trace.thread_name(across.tid) == "loop (overlapping)");
    BOOST_TEST(trace.slice("ProfilerStep#1").tid == 4711);
    BOOST_TEST(!trace.document.contains("drawpoint_left_out"));
}

BOOST_AUTO_TEST_CASE(the_loops_thread_is_found_by_what_runs_inside_steps) {
    OperatorRun run;
    const std::uint32_t other = run.thread(50), loop = run.thread(51);
    run.call(other, "elsewhere", run.ledger.start_ns, 1);
    run.call(loop, "op", run.begin_of(0, Span::forward), 2);
    const Trace trace{run.ledger};
    BOOST_TEST(trace.slice("ProfilerStep#0").tid == 51);
    BOOST_TEST(trace.slice("op").tid == 51);
    BOOST_TEST(trace.slice("elsewhere").tid == 50);
}

BOOST_AUTO_TEST_CASE(pieces_of_the_loop_are_called_as_readers_expect) {
    const OperatorRun run = operator_run();
    const Trace trace{run.ledger};
    const ChromeSlice& step = trace.slice("ProfilerStep#0");
    for (const std::string name :
         {"forward", "loss", "backward", "Optimizer.step#SGD.step", "Optimizer.zero_grad#SGD.zero_grad"}) {
        const ChromeSlice& piece = trace.slice(name);
        BOOST_TEST(piece.category == "user_annotation");
        BOOST_TEST(piece.tid == step.tid);
        BOOST_TEST(piece.begin_ns >= step.begin_ns);
        BOOST_TEST(piece.end_ns() <= step.end_ns());
    }
    BOOST_TEST(trace.slice("backward").ns == duration_of(run.ledger, run.ledger.steps[0], Action::backward).value());
    BOOST_TEST(trace.slice("starved").end_ns() <= trace.slice("enumerate(DataLoader)#drawpoint.__next__").end_ns());
}

BOOST_AUTO_TEST_CASE(a_step_annotated_already_is_not_written_twice) {
    OperatorRun run = operator_run();
    const StepRow& step = run.ledger.steps[0];
    run.call(0, "ProfilerStep#7", step.draw_begin_ns, step.draw_ns + step.batch_ns, OperatorKind::user_annotation);
    const Trace trace{run.ledger};
    const auto named = [&](std::string_view name) {
        return std::ranges::count(trace.slices, name, &ChromeSlice::name);
    };
    BOOST_TEST(named("ProfilerStep#0") == 0);
    BOOST_TEST(named("ProfilerStep#7") == 1);
    BOOST_TEST(named("ProfilerStep#1") == 1);
    BOOST_TEST(named("enumerate(DataLoader)#drawpoint.__next__") == static_cast<long>(run.ledger.steps.size()));
    BOOST_TEST(named("backward") == 3);   // one per training step
    BOOST_TEST(trace.slice("enumerate(DataLoader)#drawpoint.__next__").tid == trace.slice("ProfilerStep#7").tid);
    BOOST_TEST(all_nest(trace));
}

BOOST_AUTO_TEST_CASE(another_programs_annotations_stand_for_the_loop_and_its_draws_count) {
    OperatorRun run = operator_run();
    for (const StepRow& step : run.ledger.steps) {
        run.call(0, "ProfilerStep#" + std::to_string(step.step), step.draw_begin_ns - 3,
                 step.draw_ns + step.batch_ns + 3, OperatorKind::user_annotation);
        run.call(0, "enumerate(DataLoader)#It.__next__", step.draw_begin_ns, step.draw_ns,
                 OperatorKind::user_annotation);
    }
    const Trace trace{run.ledger};
    const auto named = [&](std::string_view name) {
        return std::ranges::count(trace.slices, name, &ChromeSlice::name);
    };
    BOOST_TEST(named("enumerate(DataLoader)#drawpoint.__next__") == 0);
    BOOST_TEST(named("backward") == 0);
    BOOST_TEST(named("train") == 0);
    for (const StepRow& step : run.ledger.steps)
        BOOST_TEST(named("ProfilerStep#" + std::to_string(step.step)) == 1);
    BOOST_TEST(trace.slice("enumerate(DataLoader)#It.__next__").category == "cpu_op");
    BOOST_TEST(all_nest(trace));
    for (const ChromeSlice& slice : trace.slices)
        BOOST_TEST(!trace.thread_name(slice.tid).ends_with("(overlapping)"));
}

BOOST_AUTO_TEST_CASE(allocations_are_memory_instants) {
    OperatorRun run;
    const std::uint32_t thread = run.thread(8);
    run.ledger.allocations = {{run.ledger.start_ns + 1500, thread, -1, 64, 0xabc, 128}};
    const auto events = Trace{run.ledger}.events("i", "[memory]");
    BOOST_REQUIRE(events.size() == 1u);
    BOOST_TEST(events[0]["tid"] == 8);
    BOOST_TEST(events[0]["ts"] == 1.5);
    BOOST_TEST(events[0]["s"] == "t");
    const Json& args = events[0]["args"];
    BOOST_TEST(args["Bytes"] == 64);
    BOOST_TEST(args["Addr"] == 0xabc);
    BOOST_TEST(args["Total Allocated"] == 128);
    BOOST_TEST(args["Device Type"] == 0);
    BOOST_TEST(args["Device Id"] == -1);
}

BOOST_AUTO_TEST_CASE(a_slice_that_ends_before_it_begins_is_left_out_and_counted) {
    OperatorRun run = operator_run();
    run.call(0, "backward in time", run.begin_of(0, Span::forward), -5);
    run.call(17, "of no thread", run.begin_of(0, Span::forward), 5);
    const Trace trace{run.ledger};
    BOOST_TEST(std::ranges::count(trace.slices, "backward in time", &ChromeSlice::name) == 0);
    BOOST_TEST(trace.document["drawpoint_left_out"] == 2);
}

BOOST_AUTO_TEST_CASE(an_empty_ledger_is_a_trace_without_slices) {
    const Trace trace{Ledger{}};
    BOOST_TEST(trace.slices.empty());
    BOOST_TEST(trace.document["traceEvents"].back()["name"] == "Record Window End");
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
