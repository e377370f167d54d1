#pragma once

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <drawpoint/instrumentation/export/chrome.hpp>

#include "tests/instrumentation/export/operator_run.hpp"

namespace drawpoint::test {

using Json = nlohmann::ordered_json;

inline std::string exported(const Ledger& ledger) {
    return text_of([&](std::ostream& out) { write_chrome_trace(ledger, out, {.trace_name = "run.pt.trace.json"}); });
}

/// A complete event; times in nanoseconds since the run's start, parsed from the text's digits.
struct ChromeSlice {
    std::string category, name;
    std::int64_t pid = 0, tid = 0, begin_ns = 0, ns = 0;
    Json args;
    [[nodiscard]] std::int64_t end_ns() const { return begin_ns + ns; }
};

struct Trace {
    Json document;
    std::vector<ChromeSlice> slices;
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

    [[nodiscard]] const ChromeSlice& slice(std::string_view name) const {
        const auto found = std::ranges::find(slices, name, &ChromeSlice::name);
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

/// Checks that slices of a thread overlap only if one encloses the other.
inline bool all_nest(const Trace& trace) {
    std::map<std::pair<std::int64_t, std::int64_t>, std::vector<const ChromeSlice*>> threads;
    for (const ChromeSlice& slice : trace.slices)
        threads[{slice.pid, slice.tid}].push_back(&slice);
    for (const auto& [thread, slices] : threads)
        for (const ChromeSlice* a : slices)
            for (const ChromeSlice* b : slices)
                if (a->begin_ns < b->begin_ns && b->begin_ns < a->end_ns() && a->end_ns() < b->end_ns())
                    return false;
    return true;
}

/// A run with operators on the loop's thread and on another one, and a kernel.
inline OperatorRun operator_run() {
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

}   // namespace drawpoint::test
