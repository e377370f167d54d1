#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <regex>
#include <vector>

#include <nlohmann/json.hpp>

#include <drawpoint/instrumentation/export/chrome.hpp>

#include <tests/export/operator_run.hpp>

namespace {

using namespace drawpoint;
using namespace drawpoint::test;
using Json = nlohmann::ordered_json;

std::string exported(const Ledger& ledger) {
    return text_of([&](std::ostream& out) { write_chrome_trace(ledger, out, {.trace_name = "run.pt.trace.json"}); });
}

/// A complete event; times in nanoseconds since the run's start, read from the text's own digits.
struct Slice {
    std::string category, name;
    std::int64_t pid = 0, tid = 0, begin_ns = 0, ns = 0;
    Json args;
    [[nodiscard]] std::int64_t end_ns() const { return begin_ns + ns; }
};

struct Trace {
    Json document;
    std::vector<Slice> slices;
    std::vector<Json> others;

    explicit Trace(const Ledger& ledger) : document(Json::parse(exported(ledger))) {
        for (const Json& event : document["traceEvents"])
            if (event["ph"] == "X" && event["cat"] != "Trace")
                slices.push_back({event["cat"], event["name"], event["pid"], event["tid"], ns(event["ts"]),
                                  ns(event["dur"]), event["args"]});
            else
                others.push_back(event);
    }
    static std::int64_t ns(const Json& microseconds) { return std::llround(microseconds.get<double>() * 1000); }

    [[nodiscard]] const Slice& slice(std::string_view name) const {
        const auto found = std::ranges::find(slices, name, &Slice::name);
        BOOST_REQUIRE_MESSAGE(found != slices.end(), "no slice " << name);
        return *found;
    }
    [[nodiscard]] std::vector<Json> events(std::string_view phase, std::string_view name) const {
        std::vector<Json> found;
        std::ranges::copy_if(others, std::back_inserter(found),
                             [&](const Json& event) { return event["ph"] == phase && event["name"] == name; });
        return found;
    }
    [[nodiscard]] std::string thread_name(std::int64_t tid) const {
        for (const Json& event : events("M", "thread_name"))
            if (event["tid"] == tid)
                return event["args"]["name"];
        return {};
    }
};

/// No two slices of a thread overlap without one enclosing the other.
bool all_nest(const Trace& trace) {
    std::map<std::pair<std::int64_t, std::int64_t>, std::vector<const Slice*>> threads;
    for (const Slice& slice : trace.slices)
        threads[{slice.pid, slice.tid}].push_back(&slice);
    for (const auto& [thread, slices] : threads)
        for (const Slice* a : slices)
            for (const Slice* b : slices)
                if (a->begin_ns < b->begin_ns && b->begin_ns < a->end_ns() && a->end_ns() < b->end_ns())
                    return false;
    return true;
}

/// A run with operators on the loop's thread and another, and a kernel.
OperatorRun operator_run() {
    OperatorRun run;
    run.ledger.set_fact(facts::loop_tid, "4711");
    run.ledger.set_fact(facts::process_id, "4700");
    run.ledger.set_fact(std::string{facts::option_prefix} + "optimizer", "sgd");
    const std::uint32_t loop = run.thread(4711, "python"), autograd = run.thread(4712, "autograd"),
                        stream = run.thread(7, "", 0);
    const std::int64_t forward = run.begin_of(0, Span::forward), backward = run.begin_of(0, Span::backward);
    const std::uint32_t shapes = run.name("[[16, 3, 8, 8], [8], []]");
    OperatorRow& outer = run.call(loop, "aten::conv2d", forward, 20);
    outer.sequence = 5;
    outer.shapes = shapes;
    outer.flops = 1234;
    run.call(loop, "aten::convolution", forward + 1, 18).sequence = 5;
    OperatorRow& launch = run.call(loop, "cudaLaunchKernel", forward + 2, 3, OperatorKind::runtime);
    launch.correlation = 99;
    OperatorRow& evaluate = run.call(autograd, "evaluate ConvolutionBackward0", backward, 30);
    evaluate.sequence = 5;
    evaluate.forward_thread = 1;
    OperatorRow& inner = run.call(autograd, "ConvolutionBackward0", backward + 1, 28);
    inner.sequence = 5;
    inner.forward_thread = 1;
    run.call(stream, "conv_kernel", forward + 40, 500, OperatorKind::kernel).correlation = 99;
    return run;
}

BOOST_AUTO_TEST_SUITE(chrome)

BOOST_AUTO_TEST_CASE(the_keys_stand_in_kinetos_order) {
    OperatorRun run;
    run.ledger.set_fact(std::string{facts::metadata_prefix} + "record_shapes", "1");
    const Json document = Json::parse(exported(run.ledger));
    std::vector<std::string> keys;
    for (const auto& [key, value] : document.items())
        keys.push_back(key);
    const std::vector<std::string> expected{"schemaVersion",   "deviceProperties",    "record_shapes", "drawpoint",
                                            "displayTimeUnit", "baseTimeNanoseconds", "traceEvents",   "traceName"};
    BOOST_TEST(keys == expected, boost::test_tools::per_element());
    BOOST_TEST(document["schemaVersion"] == 1);
    BOOST_TEST(document["record_shapes"] == 1);
    BOOST_TEST(document["traceName"] == "run.pt.trace.json");
    BOOST_TEST(document["traceEvents"].back()["name"] == "Record Window End");
}

BOOST_AUTO_TEST_CASE(the_draw_is_a_cpu_op_inside_its_profiler_step) {
    const Ledger ledger = hand_made::one_epoch();
    const Trace trace{ledger};
    std::vector<const Slice*> draws;
    for (const Slice& slice : trace.slices)
        if (slice.name == "enumerate(DataLoader)#drawpoint.__next__")
            draws.push_back(&slice);
    BOOST_REQUIRE(draws.size() == ledger.steps.size());
    for (std::size_t i = 0; i < draws.size(); ++i) {
        const StepRow& row = ledger.steps[i];
        const Slice& step = trace.slice("ProfilerStep#" + std::to_string(row.step));
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

BOOST_AUTO_TEST_CASE(unix_time_is_the_base_where_it_is_known) {
    Ledger ledger = hand_made::one_epoch();
    ledger.start_ns = 1000;
    ledger.set_fact(facts::unix_offset_ns, "1790857026000000000");
    BOOST_TEST(Json::parse(exported(ledger))["baseTimeNanoseconds"] == 1790857026000001000);
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
    const Slice &conv = trace.slice("aten::conv2d"), &convolution = trace.slice("aten::convolution"),
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

BOOST_AUTO_TEST_CASE(a_stack_is_written_once_and_its_calls_name_it) {
    OperatorRun run;
    const std::uint32_t main = run.name("main"), file = run.name("a.cpp"), inner = run.name("inner");
    run.ledger.frames = {{main, file, 3}, {inner, nothing, 0}};
    run.ledger.stacks = {{nothing, 0}, {0, 1}};
    const std::uint32_t thread = run.thread(3);
    for (std::int64_t i = 0; i < 3; ++i)
        run.call(thread, "op", run.ledger.start_ns + 2 * i, 1).stack = i == 2 ? nothing : 1;
    const Json document = Json::parse(exported(run.ledger));
    BOOST_TEST(document["stackFrames"] == Json::parse(R"({"0": {"category": "", "name": "a.cpp(3): main"},
                               "1": {"category": "", "name": "inner", "parent": "0"}})"));
    std::vector<int> frames;
    for (const Json& event : document["traceEvents"])
        if (event["name"] == "op")
            frames.push_back(event.value("sf", -1));
    BOOST_TEST(frames == (std::vector{1, 1, -1}), boost::test_tools::per_element());
    BOOST_TEST(!Json::parse(exported(hand_made::one_epoch())).contains("stackFrames"));
}

BOOST_AUTO_TEST_CASE(the_innermost_forward_and_backward_calls_of_a_sequence_are_linked) {
    const OperatorRun run = operator_run();
    const Trace trace{run.ledger};
    const auto from = trace.events("s", "fwdbwd"), to = trace.events("f", "fwdbwd");
    BOOST_REQUIRE(from.size() == 1u);
    BOOST_REQUIRE(to.size() == 1u);
    BOOST_TEST(from[0]["id"] == to[0]["id"]);
    BOOST_TEST(Trace::ns(from[0]["ts"]) == trace.slice("aten::convolution").begin_ns);
    BOOST_TEST(from[0]["tid"] == 4711);
    BOOST_TEST(Trace::ns(to[0]["ts"]) == trace.slice("ConvolutionBackward0").begin_ns);
    BOOST_TEST(to[0]["tid"] == 4712);
    BOOST_TEST(to[0]["bp"] == "e");
}

BOOST_AUTO_TEST_CASE(a_kernel_stands_on_its_stream_linked_with_the_call_that_launched_it) {
    const Trace trace{operator_run().ledger};
    const Slice &kernel = trace.slice("conv_kernel"), &launch = trace.slice("cudaLaunchKernel"),
                &convolution = trace.slice("aten::convolution");
    BOOST_TEST(kernel.category == "kernel");
    BOOST_TEST(kernel.pid == 0);
    BOOST_TEST(kernel.tid == 7);
    BOOST_TEST(kernel.args["device"] == 0);
    BOOST_TEST(kernel.args["stream"] == 7);
    BOOST_TEST(kernel.args["correlation"] == 99);
    BOOST_TEST(launch.category == "cuda_runtime");
    BOOST_TEST(launch.args["correlation"] == 99);
    BOOST_TEST(launch.args["External id"] == convolution.args["External id"]);
    BOOST_TEST(kernel.args["External id"] == convolution.args["External id"]);
    const auto from = trace.events("s", "ac2g"), to = trace.events("f", "ac2g");
    BOOST_REQUIRE(from.size() == 1u);
    BOOST_REQUIRE(to.size() == 1u);
    BOOST_TEST(from[0]["id"] == to[0]["id"]);
    BOOST_TEST(to[0]["pid"] == 0);
    bool labelled = false;
    for (const Json& event : trace.events("M", "process_labels"))
        labelled = labelled || (event["pid"] == 0 && event["args"]["labels"] == "GPU 0");
    BOOST_TEST(labelled);
}

BOOST_AUTO_TEST_CASE(thread_0_is_a_thread_and_correlation_0_is_none) {
    OperatorRun run;
    const std::int64_t start = run.ledger.start_ns;
    const std::uint32_t zero = run.thread(0), stream = run.thread(7, {}, 0);
    run.call(zero, "aten::f", start, 10).sequence = 5;
    run.call(zero, "launch", start + 2, 2, OperatorKind::runtime);
    OperatorRow& backward = run.call(zero, "aten::b", start + 20, 10);
    backward.sequence = 5;
    backward.forward_thread = 1;
    run.call(stream, "kernel", start + 5, 2, OperatorKind::kernel);
    const Trace trace{run.ledger};
    BOOST_TEST(trace.events("s", "fwdbwd").size() == 1u);
    BOOST_TEST(trace.slice("launch").args["External id"] == trace.slice("aten::f").args["External id"]);
    BOOST_TEST(trace.slice("kernel").args["External id"] == 0);
}

BOOST_AUTO_TEST_CASE(what_overlaps_on_a_thread_moves_to_one_of_its_own_with_its_length) {
    OperatorRun run = operator_run();
    const StepRow& step = run.ledger.steps[1];
    const std::int64_t begin_ns = step.draw_begin_ns + step.draw_ns - 2;   // across the draw's end
    run.call(0, "across", begin_ns, 100);
    run.call(0, "inside", begin_ns + 1, 10);
    const Trace trace{run.ledger};
    BOOST_TEST(all_nest(trace));
    const Slice &across = trace.slice("across"), &inside = trace.slice("inside");
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
    const Slice& step = trace.slice("ProfilerStep#0");
    for (const std::string name :
         {"forward", "loss", "backward", "Optimizer.step#SGD.step", "Optimizer.zero_grad#SGD.zero_grad"}) {
        const Slice& piece = trace.slice(name);
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
    const auto named = [&](std::string_view name) { return std::ranges::count(trace.slices, name, &Slice::name); };
    BOOST_TEST(named("ProfilerStep#0") == 0);
    BOOST_TEST(named("ProfilerStep#7") == 1);
    BOOST_TEST(named("ProfilerStep#1") == 1);
    BOOST_TEST(named("enumerate(DataLoader)#drawpoint.__next__") == static_cast<long>(run.ledger.steps.size()));
    BOOST_TEST(named("backward") == 3);   // of each training step
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
    const auto named = [&](std::string_view name) { return std::ranges::count(trace.slices, name, &Slice::name); };
    BOOST_TEST(named("enumerate(DataLoader)#drawpoint.__next__") == 0);
    BOOST_TEST(named("backward") == 0);
    BOOST_TEST(named("train") == 0);
    for (const StepRow& step : run.ledger.steps)
        BOOST_TEST(named("ProfilerStep#" + std::to_string(step.step)) == 1);
    BOOST_TEST(trace.slice("enumerate(DataLoader)#It.__next__").category == "cpu_op");
    BOOST_TEST(all_nest(trace));
    for (const Slice& slice : trace.slices)
        BOOST_TEST(!trace.thread_name(slice.tid).ends_with("(overlapping)"));
}

BOOST_AUTO_TEST_CASE(samples_flow_into_their_batch_and_the_batch_into_the_draw) {
    Ledger ledger = hand_made::one_epoch();
    add_first_batch(ledger);
    const Trace trace{ledger};
    BOOST_TEST(all_nest(trace));
    const Slice &batch = trace.slice("in flight"), &draw = trace.slice("enumerate(DataLoader)#drawpoint.__next__"),
                &decode = trace.slice("decode+crop");
    BOOST_TEST(batch.category == "dataloader");
    BOOST_TEST(decode.category == "dataloader");
    BOOST_TEST(batch.args["status"] == "taken");
    BOOST_TEST(decode.ns == 100);
    const auto from = trace.events("s", "dataloader"), to = trace.events("f", "dataloader");
    BOOST_REQUIRE(from.size() == 3u);
    BOOST_REQUIRE(to.size() == 3u);
    const auto within = [](const Json& event, const Slice& slice) {
        return event["tid"] == slice.tid && Trace::ns(event["ts"]) >= slice.begin_ns &&
               Trace::ns(event["ts"]) < slice.end_ns();
    };
    int into_batch = 0, into_draw = 0;
    for (const Json& start : from) {
        const auto end = std::ranges::find(to, start["id"], [](const Json& event) { return event["id"]; });
        BOOST_REQUIRE(end != to.end());
        BOOST_TEST(Trace::ns((*end)["ts"]) >= Trace::ns(start["ts"]));
        into_batch += within(*end, batch) && trace.thread_name(start["tid"]).starts_with("worker");
        into_draw += within(*end, draw) && within(start, batch);
    }
    BOOST_TEST(into_batch == 2);
    BOOST_TEST(into_draw == 1);
    const auto counters = trace.events("C", "ready_batches");
    BOOST_REQUIRE(counters.size() == 1u);
    BOOST_TEST(counters[0]["args"]["count"] == 3);
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

BOOST_AUTO_TEST_CASE(the_rank_stands_behind_a_space_in_a_line_of_its_own) {
    Ledger ledger = hand_made::one_epoch();
    BOOST_TEST(exported(ledger).find("distributedInfo") == std::string::npos);
    ledger.set_fact(facts::rank, "3");
    ledger.set_fact(facts::world_size, "4");
    ledger.set_fact(facts::backend, "gloo");
    const std::regex line{R"re(\n\s*"rank": 3,?\n)re"};
    BOOST_TEST(std::regex_search(exported(ledger), line));
    BOOST_TEST(Json::parse(exported(ledger))["distributedInfo"] ==
               Json::parse(R"({"backend": "gloo", "world_size": 4, "rank": 3})"));
    ledger.set_fact(std::string{facts::metadata_prefix} + "distributedInfo", R"({"rank":3,"pg_count":1})");
    BOOST_TEST(std::regex_search(exported(ledger), line));
    BOOST_TEST(Json::parse(exported(ledger))["distributedInfo"]["pg_count"] == 1);
}

BOOST_AUTO_TEST_CASE(metadata_is_json_and_cannot_break_the_file) {
    Ledger ledger = hand_made::one_epoch();
    const std::string prefix{facts::metadata_prefix};
    ledger.set_fact(prefix + "note", json_string("a \"note\""));
    ledger.set_fact(prefix + "loader", R"({"num_workers": 2})");
    ledger.set_fact(prefix + "broken", "{\"a\":");
    ledger.set_fact(prefix + "traceEvents", "[1]");
    const Json document = Json::parse(exported(ledger));
    BOOST_TEST(document["note"] == "a \"note\"");
    BOOST_TEST(document["loader"]["num_workers"] == 2);
    BOOST_TEST(document["broken"] == "{\"a\":");
    BOOST_TEST(document["user.traceEvents"] == Json::parse("[1]"));
    BOOST_TEST(document["traceEvents"].size() > 20u);
}

BOOST_AUTO_TEST_CASE(a_slice_that_ends_before_it_begins_is_left_out_and_counted) {
    OperatorRun run = operator_run();
    run.call(0, "backward in time", run.begin_of(0, Span::forward), -5);
    run.call(17, "of no thread", run.begin_of(0, Span::forward), 5);
    const Trace trace{run.ledger};
    BOOST_TEST(std::ranges::count(trace.slices, "backward in time", &Slice::name) == 0);
    BOOST_TEST(trace.document["drawpoint_left_out"] == 2);
}

BOOST_AUTO_TEST_CASE(an_empty_ledger_is_a_trace_without_slices) {
    const Trace trace{Ledger{}};
    BOOST_TEST(trace.slices.empty());
    BOOST_TEST(trace.document["traceEvents"].back()["name"] == "Record Window End");
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
