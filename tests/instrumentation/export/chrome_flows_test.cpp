#include <boost/test/unit_test.hpp>

#include <algorithm>

#include "tests/instrumentation/export/exported_chrome.hpp"

namespace {

using namespace drawpoint;
using namespace drawpoint::test;

BOOST_AUTO_TEST_SUITE(chrome_flows)

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
    const ChromeSlice &kernel = trace.slice("conv_kernel"), &launch = trace.slice("cudaLaunchKernel"),
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

BOOST_AUTO_TEST_CASE(samples_flow_into_their_batch_and_the_batch_into_the_draw) {
    Ledger ledger = hand_made::one_epoch();
    add_first_batch(ledger);
    const Trace trace{ledger};
    BOOST_TEST(all_nest(trace));
    const ChromeSlice &batch = trace.slice("in flight"),
                      &draw = trace.slice("enumerate(DataLoader)#drawpoint.__next__"),
                      &decode = trace.slice("decode+crop");
    BOOST_TEST(batch.category == "dataloader");
    BOOST_TEST(decode.category == "dataloader");
    BOOST_TEST(batch.args["status"] == "taken");
    BOOST_TEST(decode.ns == 100);
    const auto from = trace.events("s", "dataloader"), to = trace.events("f", "dataloader");
    BOOST_REQUIRE(from.size() == 3u);
    BOOST_REQUIRE(to.size() == 3u);
    const auto within = [](const Json& event, const ChromeSlice& slice) {
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

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
