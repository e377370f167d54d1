#include <boost/test/unit_test.hpp>

#include <filesystem>
#include <set>
#include <sstream>
#include <string>
#include <tuple>

#include <zlib.h>

#include <drawpoint/instrumentation/export/chrome.hpp>
#include <drawpoint/instrumentation/import/chrome_trace.hpp>
#include <drawpoint/instrumentation/report/operators.hpp>

#include "tests/instrumentation/export/operator_run.hpp"
#include "tests/golden/replays.hpp"

namespace {

using namespace drawpoint;

std::string contents(const std::filesystem::path& file) {   // decompresses if needed
    gzFile stream = gzopen(file.c_str(), "rb");
    BOOST_REQUIRE(stream);
    std::string text;
    char block[1 << 14];
    for (int got; (got = gzread(stream, block, sizeof block)) > 0;)
        text.append(block, static_cast<std::size_t>(got));
    gzclose(stream);
    return text;
}

std::size_t links_in(const std::string& trace) {
    const golden::Json document = golden::Json::parse(trace);
    std::size_t found = 0;
    for (const auto& event : document["traceEvents"])
        found += event["ph"] == "s" && event.value("cat", "") == "fwdbwd";
    return found;
}

/// Everything about each call, with texts in place of positions.
auto calls_of(const Ledger& ledger) {
    const auto text = [&](std::uint32_t name) { return name == nothing ? std::string{} : ledger.names.at(name); };
    std::multiset<
        std::tuple<std::uint64_t, std::int64_t, std::int64_t, std::string, std::string, std::int64_t, std::uint64_t>>
        calls;
    for (const OperatorRow& row : ledger.operators)
        calls.emplace(ledger.threads.at(row.thread).tid, row.begin_ns, row.ns, text(row.name), text(row.shapes),
                      row.sequence, row.forward_thread);
    return calls;
}

BOOST_AUTO_TEST_SUITE(chrome_round_trip)

BOOST_AUTO_TEST_CASE(pytorchs_traces_read_and_written_hold_every_call_and_link_to_the_nanosecond) {
    golden::Replays replays{"chrome_round_trip"};
    for (const golden::Path& path : golden::traces())
        replays(path, [&] {
            const std::string name = path.filename().string(), original = contents(path);
            std::istringstream in{original};
            const Ledger ledger = import_chrome_trace(in, name).ledger;
            const std::string written =
                test::text_of([&](std::ostream& out) { write_chrome_trace(ledger, out, {.trace_name = name}); });
            std::istringstream again{written};
            const Ledger back = import_chrome_trace(again, name).ledger;
            BOOST_TEST(!ledger.operators.empty());
            BOOST_TEST((calls_of(back) == calls_of(ledger)));
            BOOST_REQUIRE(back.steps.size() == ledger.steps.size());
            for (std::size_t i = 0; i < back.steps.size(); ++i) {
                BOOST_TEST(back.steps[i].step == ledger.steps[i].step);
                BOOST_TEST(back.steps[i].draw_ns == ledger.steps[i].draw_ns);
                BOOST_TEST(back.steps[i].batch_ns == ledger.steps[i].batch_ns);
            }
            BOOST_TEST(links_in(original) > 0u);
            BOOST_TEST(links_in(written) == links_in(original));
        });
}

Ledger exported_and_imported(const Ledger& ledger) {
    std::istringstream written{test::text_of([&](std::ostream& out) { write_chrome_trace(ledger, out); })};
    return import_chrome_trace(written, "run.json").ledger;
}

/// A run with a loader's rows, and calls of two threads and a device, with shapes, operations and stacks.
Ledger run_with_everything() {
    test::OperatorRun run;
    test::add_first_batch(run.ledger);
    run.ledger.set_fact(facts::loop_tid, "4711");
    const std::uint32_t loop = run.thread(4711, "python"), autograd = run.thread(4712, "autograd"),
                        stream = run.thread(7, "", 0);
    const std::uint32_t main = run.name("main"), file = run.name("a dir/a.cpp"), inner = run.name("inner (3): odd");
    run.ledger.frames = {{main, file, 3}, {inner, nothing, 0}, {main, nothing, 0}};
    run.ledger.stacks = {{nothing, 0}, {0, 1}, {nothing, 2}};
    const std::uint32_t shapes = run.name("[[16, 3, 8, 8], [8], []]");
    for (std::size_t step = 0; step < 2; ++step) {
        const std::int64_t forward = run.begin_of(step, Span::forward), backward = run.begin_of(step, Span::backward);
        OperatorRow& outer = run.call(loop, "aten::conv2d", forward, 20);
        outer.shapes = shapes;
        outer.flops = 1234;
        outer.sequence = 5;
        outer.stack = step == 0 ? 1 : 2;
        run.call(loop, "aten::convolution", forward + 1, 18).stack = outer.stack;
        run.call(loop, "cudaLaunchKernel", forward + 2, 3, OperatorKind::runtime).correlation = 99 + step;
        run.call(autograd, "backward", backward, 30, OperatorKind::user_annotation);
        OperatorRow& last = run.call(autograd, "ConvolutionBackward0", backward + 1, 28);
        last.sequence = 5;
        last.forward_thread = 1;
        run.call(stream, "conv_kernel", forward + 40, 500, OperatorKind::kernel).correlation = 99 + step;
    }
    run.ledger.sort();
    return std::move(run.ledger);
}

BOOST_AUTO_TEST_CASE(our_trace_read_back_has_the_same_table_of_operators) {
    const Ledger ledger = run_with_everything(), back = exported_and_imported(ledger);
    BOOST_TEST((calls_of(back) == calls_of(ledger)));
    for (const KeyAveragesOptions& group :
         {KeyAveragesOptions{}, {.group_by_input_shape = true}, {.group_by_stack_n = 5}}) {
        const std::string table = to_op_report(ledger, {.group = group, .table = {}});
        BOOST_TEST(table.find("aten::convolution") != std::string::npos);
        BOOST_TEST(to_op_report(back, {.group = group, .table = {}}) == table);
    }
    BOOST_TEST(export_stacks(back) == export_stacks(ledger));
}

BOOST_AUTO_TEST_CASE(our_trace_read_back_has_its_steps) {
    const Ledger ledger = run_with_everything(), back = exported_and_imported(ledger);
    BOOST_REQUIRE(back.steps.size() == ledger.steps.size());
    for (std::size_t i = 0; i < back.steps.size(); ++i) {
        BOOST_TEST(back.steps[i].step == ledger.steps[i].step);
        BOOST_TEST(back.steps[i].draw_ns == ledger.steps[i].draw_ns);
        BOOST_TEST(back.steps[i].batch_ns == ledger.steps[i].batch_ns);
    }
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
