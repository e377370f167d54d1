#include <drawpoint/loop/torch/op_profiler.hpp>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <ATen/ops/cat.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/relu.h>
#include <ATen/record_function.h>
#include <boost/test/unit_test.hpp>
#include <torch/csrc/autograd/profiler_kineto.h>
#include <torch/csrc/profiler/util.h>
#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <drawpoint/instrumentation/recorder/region.hpp>
#include <drawpoint/instrumentation/report/operators.hpp>

#include "support/count_allocations.hpp"

BOOST_AUTO_TEST_SUITE(op_profiler)

using namespace drawpoint;

namespace {

namespace kineto = torch::autograd::profiler;
namespace nn = torch::nn;
using torch::profiler::impl::ProfilerConfig;
using torch::profiler::impl::ProfilerState;

/// A small model whose step uses lists of tensors, undefined inputs and a backward pass.
struct Step {
    Step() {
        torch::manual_seed(1);
        conv = nn::Conv2d{nn::Conv2dOptions{3, 8, 3}.padding(1)};
        linear = nn::Linear{8 * 16 * 16, 5};
        images = torch::ones({4, 3, 16, 16});
        targets = torch::zeros({4}, torch::kLong);
        run();   // LibTorch makes some objects only once
    }
    void run() {
        const at::Tensor hidden = at::relu(conv(at::cat({images, images})));
        const at::Tensor output = linear(hidden.flatten(1));
        nn::functional::cross_entropy(output, at::cat({targets, targets})).backward();
        for (at::Tensor& weight : conv->parameters())
            weight.mutable_grad().reset();
        for (at::Tensor& weight : linear->parameters())
            weight.mutable_grad().reset();
    }
    nn::Conv2d conv = nullptr;
    nn::Linear linear = nullptr;
    at::Tensor images, targets;
};

Ledger recorded(const OpProfilerOptions& options, auto&& work) {
    Recorder recorder;
    OpProfiler profiler{recorder, options};
    profiler.start();
    work();
    profiler.stop();
    return recorder.ledger();
}

std::string name_of(const Ledger& ledger, const OperatorRow& row) { return ledger.names.at(row.name); }
std::string shapes_of(const Ledger& ledger, const OperatorRow& row) {
    return row.shapes == nothing ? "" : ledger.names.at(row.shapes);
}

const OperatorRow& first(const Ledger& ledger, std::string_view name) {
    const auto found =
        std::ranges::find_if(ledger.operators, [&](const auto& row) { return name_of(ledger, row) == name; });
    BOOST_REQUIRE(found != ledger.operators.end());
    return *found;
}

std::unique_ptr<kineto::ProfilerResult> kineto_of(auto&& work) {
    const std::set activities{torch::profiler::impl::ActivityType::CPU};
    const ProfilerConfig config{ProfilerState::KINETO, true};
    kineto::prepareProfiler(config, activities);
    kineto::enableProfiler(config, activities);
    work();
    return kineto::disableProfiler();
}

using Counts = std::map<std::pair<std::string, std::string>, int>;

}   // namespace

BOOST_AUTO_TEST_CASE(the_operators_counted_are_the_ones_kineto_counts_with_the_shapes_it_prints) {
    Step step;
    const auto result = kineto_of([&] { step.run(); });
    Counts theirs, ours;
    for (const kineto::KinetoEvent& event : result->events()) {
        const auto shapes = event.structuredInputShapes();
        ++theirs[{event.name(), shapes.empty() ? "" : torch::profiler::impl::variantShapesToStr(shapes.vec())}];
    }
    const Ledger ledger = recorded({.record_shapes = true}, [&] { step.run(); });
    for (const OperatorRow& row : ledger.operators)
        ++ours[{name_of(ledger, row), shapes_of(ledger, row)}];
    BOOST_TEST(ledger.dropped_records() == 0u);
    BOOST_TEST(theirs.size() > 40u);
    for (const auto& [key, count] : theirs)
        BOOST_TEST(ours[key] == count, key.first << key.second << ": " << ours[key] << ", of Kineto " << count);
    for (const auto& [key, count] : ours)
        BOOST_TEST(theirs.contains(key), key.first << key.second << ": not of Kineto");
}

BOOST_AUTO_TEST_CASE(sequence_numbers_and_forward_threads_are_the_ones_kineto_records) {
    Step step;
    // Both record the same step, so numbers differ by a constant. Kineto gives "evaluate_function" the number of the
    // function that it evaluates, but only afterwards: see torch_profiler_test.
    const auto is_late = [](const std::string& name) { return name.starts_with("autograd::engine::"); };
    const auto result = kineto_of([&] { step.run(); });
    std::multiset<std::tuple<std::string, std::int64_t, std::uint64_t>> theirs, ours;
    std::int64_t their_first = -1, our_first = -1;
    for (const kineto::KinetoEvent& event : result->events()) {
        if (event.sequenceNr() >= 0 && their_first < 0)
            their_first = event.sequenceNr();
        if (!is_late(event.name()))
            theirs.emplace(event.name(), event.sequenceNr() < 0 ? -1 : event.sequenceNr() - their_first,
                           event.fwdThreadId());
    }
    const Ledger ledger = recorded({}, [&] { step.run(); });
    for (const OperatorRow& row : ledger.operators) {
        if (row.sequence >= 0 && our_first < 0)
            our_first = row.sequence;
        if (!is_late(name_of(ledger, row)))
            ours.emplace(name_of(ledger, row), row.sequence < 0 ? -1 : row.sequence - our_first, row.forward_thread);
    }
    BOOST_TEST(their_first >= 0);
    const auto text = [](const auto& row) {
        return std::get<0>(row) + " " + std::to_string(std::get<1>(row)) + " " + std::to_string(std::get<2>(row));
    };
    for (const auto& row : theirs)
        BOOST_TEST(ours.count(row) == theirs.count(row), text(row));
    BOOST_TEST(ours.size() == theirs.size());
}

BOOST_AUTO_TEST_CASE(a_backward_operator_carries_the_number_of_its_forward_one) {
    Step step;
    const Ledger ledger = recorded({}, [&] { step.run(); });
    const OperatorRow& forward = first(ledger, "aten::conv2d");
    const OperatorRow& backward = first(ledger, "ConvolutionBackward0");
    BOOST_TEST(forward.sequence >= 0);
    BOOST_TEST(backward.sequence == forward.sequence);
    BOOST_TEST(forward.forward_thread == 0u);
    BOOST_TEST(backward.forward_thread == at::RecordFunction::currentThreadId());
    BOOST_TEST(backward.begin_ns >= forward.begin_ns + forward.ns);
}

BOOST_AUTO_TEST_CASE(operators_nest_and_their_self_times_sum_to_the_outermost_ones) {
    Step step;
    const Ledger ledger = recorded({}, [&] { step.run(); });
    std::int64_t self = 0, outermost = 0;
    const auto all = events(ledger);
    for (const OperatorEvent& event : all) {
        BOOST_TEST(event.self_cpu_ns >= 0);
        self += event.self_cpu_ns;
        outermost += event.parent == nothing ? event.cpu_ns : 0;
    }
    BOOST_TEST(self == outermost);
    BOOST_TEST(outermost > 0);
    for (const OperatorRow& row : ledger.operators)
        BOOST_TEST(row.ended);
    const OperatorRow& outer = first(ledger, "aten::conv2d");
    const OperatorRow& inner = first(ledger, "aten::convolution");
    BOOST_TEST(outer.begin_ns <= inner.begin_ns);
    BOOST_TEST(inner.begin_ns + inner.ns <= outer.begin_ns + outer.ns);
}

BOOST_AUTO_TEST_CASE(shapes_are_written_as_pytorch_writes_them) {
    const at::Tensor image = at::ones({16, 3, 16, 16}), weight = at::ones({8, 3, 3, 3}), bias = at::ones({8});
    const std::vector<at::Tensor> two(2, at::ones({2, 3})), many(31, at::ones({2}));
    const Ledger ledger = recorded({.record_shapes = true}, [&] {
        (void)at::conv2d(image, weight, bias);
        (void)at::cat(two);
        (void)at::conv2d(image, weight);
        (void)at::cat(many);
    });
    std::vector<std::string> conv, cat;
    for (const OperatorRow& row : ledger.operators) {
        if (name_of(ledger, row) == "aten::conv2d")
            conv.push_back(shapes_of(ledger, row));
        if (name_of(ledger, row) == "aten::cat")
            cat.push_back(shapes_of(ledger, row));
    }
    const std::vector<std::string> of_conv{"[[16, 3, 16, 16], [8, 3, 3, 3], [8], [], [], [], []]",
                                           "[[16, 3, 16, 16], [8, 3, 3, 3], [], [], [], [], []]"};
    const std::vector<std::string> of_cat{"[[[2, 3], [2, 3]], []]", "[[], []]"};
    BOOST_TEST(conv == of_conv, boost::test_tools::per_element());
    BOOST_TEST(cat == of_cat, boost::test_tools::per_element());
    for (const OperatorRow& row : recorded({}, [&] { (void)at::cat(two); }).operators)
        BOOST_TEST(row.shapes == nothing);
}

BOOST_AUTO_TEST_CASE(operations_are_those_of_the_formula) {
    const at::Tensor a = at::ones({16, 32}), b = at::ones({32, 8}), image = at::ones({2, 3, 10, 10}),
                     weight = at::ones({4, 3, 3, 3});
    const std::vector<std::int64_t> one(2, 1), zero(2, 0);   // LibTorch's formula needs two of each
    const Ledger ledger = recorded({.with_flops = true}, [&] {
        (void)a.mm(b);
        (void)at::conv2d(image, weight, {}, one, zero, one);
        (void)a.exp();
    });
    BOOST_TEST(first(ledger, "aten::mm").flops == 2u * 16 * 32 * 8);
    BOOST_TEST(first(ledger, "aten::conv2d").flops == 2u * 2 * 4 * 8 * 8 * 3 * 3 * 3);
    BOOST_TEST(first(ledger, "aten::exp").flops == 0u);
    BOOST_TEST(first(ledger, "aten::mm").shapes == nothing);
}

BOOST_AUTO_TEST_CASE(what_is_allocated_and_released_in_between_balances) {
    Step step;
    const Ledger ledger = recorded({.profile_memory = true}, [&] {
        step.run();
        const at::Tensor kilobyte = at::ones({256});
    });
    std::int64_t sum = 0;
    std::map<std::uint64_t, std::int64_t> held;
    bool kilobyte = false;
    for (const AllocationRow& row : ledger.allocations) {
        BOOST_TEST(row.device == -1);
        sum += row.bytes;
        held[row.address] += row.bytes;
        BOOST_TEST(held[row.address] >= 0);
        kilobyte = kilobyte || row.bytes == 1024;
    }
    BOOST_TEST(sum == 0);
    BOOST_TEST(kilobyte);
    BOOST_TEST(recorded({}, [&] { step.run(); }).allocations.empty());
}

BOOST_AUTO_TEST_CASE(nothing_is_registered_or_recorded_unless_it_is_started) {
    const at::Tensor one = at::ones({1});
    Recorder recorder;
    OpProfiler profiler{recorder};
    BOOST_TEST(!at::hasCallbacks());
    (void)one.exp();
    profiler.start();
    BOOST_TEST(at::hasCallbacks());
    (void)one.log();
    profiler.collect_operators(false);
    BOOST_TEST(!at::hasCallbacks());
    (void)one.sin();
    profiler.collect_operators(true);
    (void)one.cos();
    profiler.stop();
    BOOST_TEST(!at::hasCallbacks());
    (void)one.exp();
    profiler.start();
    (void)one.sqrt();
    profiler.stop();
    const Ledger ledger = recorder.ledger();
    std::vector<std::string> names;
    for (const OperatorRow& row : ledger.operators)
        names.push_back(name_of(ledger, row));
    const std::vector<std::string> expected{"aten::log", "aten::cos", "aten::sqrt"};
    BOOST_TEST(names == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(an_operator_seen_before_allocates_nothing_more) {
    if (!test::counts_allocations())
        return;
    const at::Tensor a = at::ones({64}), b = at::ones({64});
    const auto allocations = [&] {
        const std::uint64_t before = test::counted_allocations();
        test::count_this_thread(true);
        for (int i = 0; i < 100; ++i)
            (void)a.add(b);
        test::count_this_thread(false);
        return test::counted_allocations() - before;
    };
    (void)allocations();
    const std::uint64_t without = allocations();
    for (const bool shapes : {false, true}) {
        Recorder recorder;
        OpProfiler profiler{recorder, {.record_shapes = shapes}};
        profiler.start();
        (void)allocations();
        BOOST_TEST(allocations() == without);
        profiler.stop();
        BOOST_TEST(recorder.ledger().operators.size() == 200u);
    }
}

/// The test finds this function by name in the stacks.
[[gnu::noinline]] static void caller_of_an_operator(const at::Tensor& tensor) {
    (void)tensor.exp();
    asm volatile("" ::: "memory");   // prevents a tail call
}

BOOST_AUTO_TEST_CASE(stacks_lead_from_main_through_the_caller_to_the_operator) {
    const at::Tensor one = at::ones({1});
    const Ledger ledger = recorded({.with_stack = true, .max_frames = 200}, [&] {
        caller_of_an_operator(one);
        caller_of_an_operator(one);
    });
    std::vector<std::string> functions;   // innermost first
    for (std::uint32_t at = first(ledger, "aten::exp").stack; at != nothing; at = ledger.stacks.at(at).parent)
        functions.push_back(ledger.names.at(ledger.frames.at(ledger.stacks.at(at).frame).function));
    const auto at = [&](std::string_view part) {
        return std::ranges::find_if(functions, [&](const auto& name) { return name.find(part) != name.npos; }) -
               functions.begin();
    };
    const auto size = std::ssize(functions);
    BOOST_TEST(at("caller_of_an_operator") < at("main"));
    BOOST_TEST(at("main") < size);
    BOOST_TEST(at("RecordFunction") == size);
    BOOST_TEST(at("OpState") == size);

    const Ledger cut = recorded({.with_stack = true, .max_frames = 1}, [&] { (void)one.exp(); });
    BOOST_TEST(cut.stacks.at(first(cut, "aten::exp").stack).parent == nothing);
}

BOOST_AUTO_TEST_CASE(operators_still_open_end_where_the_profiler_stops) {
    const at::Tensor one = at::ones({1});
    Recorder recorder;
    OpProfiler profiler{recorder};
    profiler.start();
    {
        RECORD_USER_SCOPE("outer");
        {
            RECORD_USER_SCOPE("inner");
            profiler.stop();
        }
        profiler.start();
        (void)one.exp();
    }
    profiler.stop();
    const Ledger ledger = recorder.ledger();
    BOOST_TEST(ledger.operators.size() == 3u);
    for (const OperatorRow& row : ledger.operators)
        BOOST_TEST(row.ended);
    const OperatorRow &outer = first(ledger, "outer"), &inner = first(ledger, "inner"),
                      &exp = first(ledger, "aten::exp");
    BOOST_TEST(int(outer.kind) == int(OperatorKind::user_annotation));
    BOOST_TEST(int(exp.kind) == int(OperatorKind::cpu_op));
    BOOST_TEST(inner.begin_ns + inner.ns <= outer.begin_ns + outer.ns);
    BOOST_TEST(outer.begin_ns + outer.ns <= exp.begin_ns);
}

BOOST_AUTO_TEST_CASE(other_threads_are_observed_when_they_ask_for_it) {
    const at::Tensor one = at::ones({1});
    Recorder recorder;
    OpProfiler profiler{recorder};
    profiler.start();
    std::thread{[&] { (void)one.exp(); }}.join();
    std::thread{[&] {
        const auto observed = profiler.observe_thread();
        (void)one.log();
    }}.join();
    (void)one.sin();
    profiler.stop();
    const Ledger ledger = recorder.ledger();
    BOOST_TEST(ledger.operators.size() == 2u);
    BOOST_TEST(first(ledger, "aten::log").thread != first(ledger, "aten::sin").thread);
}

BOOST_AUTO_TEST_CASE(one_profiler_of_libtorch_at_a_time_observes_a_thread) {
    Recorder recorder;
    OpProfiler one{recorder}, other{recorder};
    one.start();
    BOOST_CHECK_THROW(one.start(), std::logic_error);
    BOOST_CHECK_THROW(other.start(), std::logic_error);
    BOOST_TEST(!other.started());
    BOOST_CHECK_THROW(kineto_of([] {}), c10::Error);
    bool refused = false;
    std::thread{[&] {
        try {
            one.stop();
        } catch (const std::logic_error&) {
            refused = true;
        }
    }}.join();
    BOOST_TEST(refused);
    BOOST_TEST(one.started());
    one.stop();
    one.stop();
    other.start();
    other.stop();
    (void)kineto_of([&] { BOOST_CHECK_THROW(one.start(), std::logic_error); });
    BOOST_CHECK_THROW((OpProfiler{recorder, {.max_frames = 0}}), std::invalid_argument);
    BOOST_CHECK_THROW((OpProfiler{recorder, {.max_frames = 257}}), std::invalid_argument);
}

BOOST_AUTO_TEST_SUITE_END()
