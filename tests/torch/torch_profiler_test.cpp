#include <drawpoint/loop/torch/torch_profiler.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <ATen/ops/exp.h>
#include <ATen/ops/ones.h>
#include <ATen/record_function.h>
#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include <drawpoint/instrumentation/facts.hpp>
#include <drawpoint/loop/fit.hpp>
#include <drawpoint/loop/torch/learner.hpp>
#include <drawpoint/loop/torch/op_profiler.hpp>

#include "support/temporary_folder.hpp"
#include "support/tape.hpp"
#include "torch/drawn.hpp"

BOOST_AUTO_TEST_SUITE(torch_profiler)

using namespace drawpoint;
using namespace std::chrono_literals;
using test::Tape;

namespace {

/// A learner that runs one real operator per step, on the test's clock.
struct OneOperator {
    ManualClock* clock;
    at::Tensor one = at::ones({1});
    void begin_phase(bool) {}
    void forward(const test::TapeBatch&) {
        clock->advance(5us);
        one = at::exp(one);
        clock->advance(5us);
    }
    void loss(const test::TapeBatch&) {}
    void backward() {}
    void opt_step() {}
    void zero_grad() {}
    double loss_value() { return 0.5; }
};

/// A fit on a tape: `train` draws per epoch, each epoch followed by two draws of validation.
struct World {
    explicit World(std::vector<std::size_t> draws) {
        Tape::Epochs tape;
        for (const std::size_t count : draws)
            tape.push_back(std::vector(count, test::DrawCost{.starved = 20us, .handoff = 1us}));
        train.emplace(clock, tape);
        valid.emplace(clock, Tape::Epochs(draws.size(), std::vector(2, test::DrawCost{.starved = 7us})));
        train->give_back = valid->give_back = 3us;
    }
    void fit(TorchProfiler& profiler, Callback* other = nullptr) {
        TorchProfilerCallback callback{profiler};
        CallbackList callbacks;
        if (other != nullptr)
            callbacks.add(*other);
        callbacks.add(callback);
        FitOptions options;
        options.epochs = epochs;
        test::run_alone(drawpoint::fit(learner, *train, *valid, options, callbacks, recorder));
    }

    ManualClock clock{1'000'000};
    Recorder recorder{RecorderOptions{.ring_records = 1u << 10}, AnyClock{clock}};
    OneOperator learner{&clock};
    std::optional<Tape> train, valid;
    std::size_t epochs = 2;
};

struct Range {
    std::int64_t number, begin_ns, end_ns;
};
std::vector<Range> ranges(const Ledger& ledger) {
    std::vector<Range> found;
    constexpr std::string_view prefix = "ProfilerStep#";
    for (const OperatorRow& row : ledger.operators)
        if (const std::string& name = ledger.names[row.name]; name.starts_with(prefix))
            found.push_back({std::stoll(name.substr(prefix.size())), row.begin_ns, row.begin_ns + row.ns});
    return found;
}
std::vector<std::int64_t> numbers(const Ledger& ledger) {
    std::vector<std::int64_t> found;
    for (const Range& range : ranges(ledger))
        found.push_back(range.number);
    return found;
}
std::size_t calls(const Ledger& ledger, std::string_view name) {
    return static_cast<std::size_t>(
        std::ranges::count_if(ledger.operators, [&](const auto& row) { return ledger.names[row.name] == name; }));
}

std::string refusal(TorchProfilerOptions options) {
    Recorder recorder;
    try {
        const TorchProfiler profiler{recorder, std::move(options)};
    } catch (const std::invalid_argument& error) {
        return error.what();
    }
    return "taken";
}

std::string text_of(const std::filesystem::path& file) {
    std::ostringstream text;
    text << std::ifstream{file, std::ios::binary}.rdbuf();
    return text.str();
}

const Schedule always = [](std::int64_t) { return ProfilerAction::record; };

}   // namespace

BOOST_AUTO_TEST_CASE(each_profiler_step_is_the_draw_of_its_number_and_what_is_computed_with_it) {
    World world{{3, 3}};
    TorchProfiler profiler{world.recorder, {.schedule = always}};
    world.fit(profiler);
    const Ledger ledger = world.recorder.ledger();
    std::vector<StepRow> train;
    std::ranges::copy_if(ledger.steps, std::back_inserter(train),
                         [](const auto& s) { return s.phase == Phase::train; });
    const std::vector<Range> steps = ranges(ledger);
    BOOST_REQUIRE(train.size() == 6u);
    BOOST_REQUIRE(steps.size() == 6u);
    for (std::size_t k = 0; k < steps.size(); ++k) {
        BOOST_TEST(steps[k].number == std::int64_t(k));
        BOOST_TEST(steps[k].begin_ns == train[k].draw_begin_ns);
        BOOST_TEST(steps[k].end_ns >= train[k].draw_begin_ns + train[k].draw_ns + train[k].batch_ns);
        if (k % 3 != 2)   // another training step follows at once
            BOOST_TEST(steps[k].end_ns == train[k + 1].draw_begin_ns);
    }
    for (const StepRow& row : ledger.steps)
        if (row.phase == Phase::valid)
            for (const Range& step : steps)
                BOOST_TEST((row.draw_begin_ns >= step.end_ns || row.draw_begin_ns + row.draw_ns <= step.begin_ns));
}

BOOST_AUTO_TEST_CASE(a_window_holds_exactly_its_active_steps) {
    World world{{5, 5}};
    struct Trace {
        std::vector<std::int64_t> numbers, batches;
        std::size_t operators;
    };
    std::vector<Trace> traces;
    const auto keep = [&](TorchProfiler& profiler) {
        const Ledger& ledger = profiler.ledger();
        Trace trace{numbers(ledger), {}, calls(ledger, "aten::exp")};
        for (const StepRow& row : ledger.steps)
            trace.batches.push_back(row.phase == Phase::train ? row.epoch * 5 + row.batch : -1);
        traces.push_back(trace);
    };
    TorchProfiler profiler{
        world.recorder,
        {.schedule = schedule({.wait = 1, .warmup = 1, .active = 2, .repeat = 2}), .on_trace_ready = keep}};
    world.fit(profiler);
    BOOST_REQUIRE(traces.size() == 2u);
    for (std::size_t cycle = 0; cycle < 2; ++cycle) {
        const std::int64_t first = cycle == 0 ? 2 : 6;
        const std::vector<std::int64_t> expected{first, first + 1};
        BOOST_TEST(traces[cycle].numbers == expected, boost::test_tools::per_element());
        BOOST_TEST(traces[cycle].batches == expected, boost::test_tools::per_element());
        BOOST_TEST(traces[cycle].operators == 2u);
    }
    // Outside its windows the profiler records nothing.
    BOOST_TEST(calls(world.recorder.ledger(), "aten::exp") == 4u);
    BOOST_TEST(!at::hasCallbacks());
    BOOST_TEST(!profiler.running());
}

BOOST_AUTO_TEST_CASE(a_draw_that_finds_the_end_of_data_is_no_step) {
    World world{{2, 2}};
    world.train->known_size = false;
    TorchProfiler profiler{world.recorder, {.schedule = always}};
    world.fit(profiler);
    const Ledger ledger = world.recorder.ledger();
    const std::vector<Range> steps = ranges(ledger);
    std::vector<StepRow> train;
    std::ranges::copy_if(ledger.steps, std::back_inserter(train),
                         [](const auto& s) { return s.phase == Phase::train; });
    BOOST_REQUIRE(train.size() == 4u);
    for (std::size_t k = 0; k < train.size(); ++k)
        BOOST_TEST(std::ranges::count_if(steps, [&](const Range& step) {
                       return step.number == std::int64_t(k) && step.begin_ns == train[k].draw_begin_ns;
                   }) == 1);
    BOOST_TEST(profiler.step_num() == 4);
}

BOOST_AUTO_TEST_CASE(a_cancelled_draw_uses_up_its_number_as_it_uses_up_its_turn) {
    struct Canceller final : Callback {
        std::string_view name() const noexcept override { return "Canceller"; }
        EventSet events() const noexcept override { return {Event::before_draw}; }
        void on(Event, LoopState& state) override {
            if (state.training.value_or(false) && state.batch == 1)
                throw CancelBatch{};
        }
    } canceller;
    World world{{3}};
    world.epochs = 1;
    TorchProfiler profiler{world.recorder, {.schedule = always}};
    world.fit(profiler, &canceller);
    const Ledger ledger = world.recorder.ledger();
    const std::vector<Range> steps = ranges(ledger);
    BOOST_REQUIRE(steps.size() == 3u);
    for (std::int64_t k = 0; k < 3; ++k)
        BOOST_TEST(std::ranges::count_if(steps, [&](const Range& step) {
                       return step.number == k && step.begin_ns == ledger.steps[std::size_t(k)].draw_begin_ns;
                   }) == 1);
}

BOOST_AUTO_TEST_CASE(a_further_fit_goes_on_with_the_next_step) {
    World world{{2}};
    world.epochs = 1;
    std::vector<std::vector<std::int64_t>> traces;
    TorchProfiler profiler{world.recorder,
                           {.schedule = schedule({.active = 1}), .on_trace_ready = [&](TorchProfiler& ready) {
                                traces.push_back(numbers(ready.ledger()));
                            }}};
    TorchProfilerCallback callback{profiler};
    CallbackList callbacks;
    callbacks.add(callback);
    for (int fits = 0; fits < 2; ++fits)
        test::run_alone(drawpoint::fit(world.learner, *world.train, FitOptions{}, callbacks, world.recorder));
    world.fit(profiler);   // with a callback of its own
    BOOST_REQUIRE(traces.size() == 6u);
    for (std::size_t k = 0; k < traces.size(); ++k)
        BOOST_TEST(traces[k] == std::vector{std::int64_t(k)}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_cycle_that_could_not_start_ends_without_a_window) {
    Recorder recorder;
    OpProfiler other{recorder};
    other.start();
    TorchProfiler profiler{recorder, {.schedule = [](std::int64_t step) {
                               return step == 0 ? ProfilerAction::none : ProfilerAction::record;
                           }}};
    profiler.start();
    BOOST_CHECK_THROW(profiler.step(), std::logic_error);   // the thread is already being observed
    profiler.stop();
    BOOST_TEST(!profiler.recorded());
    other.stop();
    profiler.start();
    (void)at::exp(at::ones({1}));
    profiler.stop();
    BOOST_TEST(calls(profiler.ledger(), "aten::exp") == 1u);
}

BOOST_AUTO_TEST_CASE(a_fit_that_fails_stops_the_profiler_and_hands_its_trace_over) {
    struct Thrower final : Callback {
        std::string_view name() const noexcept override { return "Thrower"; }
        EventSet events() const noexcept override { return {Event::after_pred}; }
        void on(Event, LoopState& state) override {
            if (state.batch == 1)
                throw std::runtime_error{"broken"};
        }
    } thrower;
    World world{{3, 3}};
    int traces = 0;
    TorchProfiler profiler{world.recorder, {.on_trace_ready = [&](TorchProfiler&) { ++traces; }}};
    BOOST_CHECK_THROW(world.fit(profiler, &thrower), std::runtime_error);
    BOOST_TEST(!profiler.running());
    BOOST_TEST(traces == 1);
    BOOST_TEST(!at::hasCallbacks());
    BOOST_TEST(calls(profiler.ledger(), "aten::exp") == 2u);
}

BOOST_AUTO_TEST_CASE(a_real_training_run_is_one_ledger_of_draws_and_operators) {
    const auto source = test::numbered(6);
    Recorder recorder;
    Runtime runtime{{.max_threads = 1, .workers = WorkerThreads::threads}, recorder};
    SequentialSampler sampler{source.size()};
    DataLoader loader{runtime, source, sampler, {.batch_size = 2, .num_workers = 1}};
    TorchLearner learner{mlp(2, 6, {4})};
    TorchProfiler profiler{recorder,
                           {.schedule = schedule({.wait = 1, .active = 2, .repeat = 1}), .record_shapes = true}};
    TorchProfilerCallback callback{profiler};
    CallbackList callbacks;
    callbacks.add(callback);
    FitOptions options;
    options.epochs = 2;
    run(runtime, fit(learner, loader, options, callbacks, recorder));
    const Ledger& ledger = profiler.ledger();
    const std::vector<std::int64_t> expected{1, 2};
    BOOST_TEST(numbers(ledger) == expected, boost::test_tools::per_element());
    BOOST_TEST(ledger.steps.size() == 2u);
    BOOST_TEST(calls(ledger, "aten::addmm") == 4u);   // two layers, two steps
    const auto averages = profiler.key_averages({.group_by_input_shape = true});
    BOOST_TEST(std::ranges::count_if(averages, [](const auto& row) {
                   return row.key == "aten::addmm" && row.shapes == "[[4], [2, 2], [2, 4], [], []]" && row.count == 2;
               }) == 1);
    // The engine's evaluation of a backward function has that function's sequence numbers.
    int evaluations = 0;
    for (const OperatorRow& row : ledger.operators)
        if (ledger.names[row.name] == "autograd::engine::evaluate_function: AddmmBackward0") {
            ++evaluations;
            BOOST_TEST(row.sequence >= 0);
            BOOST_TEST(row.forward_thread > 0u);
        }
    BOOST_TEST(evaluations == 4);
}

BOOST_AUTO_TEST_CASE(a_trace_may_be_exported_any_number_of_times_and_says_what_was_on) {
    const test::TemporaryFolder folder;
    Recorder recorder;
    TorchProfiler profiler{
        recorder, {.record_shapes = true, .with_flops = true, .custom_trace_id_callback = [] { return "run 7"; }}};
    profiler.preset_metadata_json("loader", R"({"num_workers": 2})");
    profiler.add_metadata("note", "a \"quoted\" text");
    profiler.start();
    (void)at::exp(at::ones({2, 3}));
    profiler.stop();
    BOOST_TEST(profiler.get_trace_id() == "run 7");
    for (int i = 0; i < 2; ++i)
        profiler.export_chrome_trace(folder.path() / "trace.json");
    profiler.export_chrome_trace(folder.path() / "trace.json.gz");
    const auto trace = nlohmann::json::parse(text_of(folder.path() / "trace.json"));
    BOOST_TEST(trace["record_shapes"] == 1);
    BOOST_TEST(trace["with_flops"] == 1);
    BOOST_TEST(!trace.contains("with_stack"));
    BOOST_TEST(trace["trace_id"] == "run 7");
    BOOST_TEST(trace["loader"]["num_workers"] == 2);
    BOOST_TEST(trace["note"] == "a \"quoted\" text");
    int found = 0;
    for (const auto& event : trace["traceEvents"])
        if (event["name"] == "aten::exp") {
            ++found;
            BOOST_TEST(event["cat"] == "cpu_op");
            BOOST_TEST(event["args"]["Input Dims"].dump() == "[[2,3]]");
        }
    BOOST_TEST(found == 1);
    BOOST_TEST(text_of(folder.path() / "trace.json.gz").starts_with("\x1f\x8b"));
    BOOST_CHECK_THROW(profiler.add_metadata_json("bad", "{"), std::invalid_argument);
    BOOST_CHECK_THROW(profiler.preset_metadata_json("bad", "x"), std::invalid_argument);
}

BOOST_AUTO_TEST_CASE(only_the_last_cycle_is_reported_unless_events_accumulate) {
    for (const bool accumulate : {false, true}) {
        const test::TemporaryFolder folder;
        Recorder recorder;
        TorchProfiler profiler{recorder,
                               {.schedule = schedule({.wait = 1, .active = 1, .repeat = 2}), .acc_events = accumulate}};
        const TorchProfilerScope scope{profiler};
        for (int step = 0; step < 5; ++step) {
            (void)at::exp(at::ones({1}));
            profiler.step();
        }
        const std::size_t cycles = accumulate ? 2u : 1u;
        BOOST_TEST(calls(profiler.ledger(), "aten::exp") == cycles);
        BOOST_TEST(std::ranges::count_if(profiler.events(), [&](const auto& event) {
                       return event.row != nothing &&
                              profiler.ledger().names[profiler.ledger().operators[event.row].name] == "aten::exp";
                   }) == std::ptrdiff_t(cycles));
        profiler.export_chrome_trace(folder.path() / "last.json");
        const auto trace = nlohmann::json::parse(text_of(folder.path() / "last.json"));
        BOOST_TEST(std::ranges::count_if(trace["traceEvents"],
                                         [](const auto& event) { return event["name"] == "aten::exp"; }) == 1);
    }
}

BOOST_AUTO_TEST_CASE(collecting_is_switched_off_and_on_in_mid_run) {
    Recorder recorder;
    TorchProfiler profiler{recorder};
    const std::vector cpu{ProfilerActivity::cpu};
    profiler.toggle_collection_dynamic(false, cpu);   // no effect before the start
    profiler.start();
    (void)at::exp(at::ones({1}));
    profiler.toggle_collection_dynamic(false, cpu);
    (void)at::exp(at::ones({1}));
    profiler.toggle_collection_dynamic(true, cpu);
    (void)at::exp(at::ones({1}));
    const std::vector cuda{ProfilerActivity::cuda};
    BOOST_CHECK_THROW(profiler.toggle_collection_dynamic(false, cuda), std::invalid_argument);
    profiler.stop();
    profiler.stop();
    BOOST_TEST(calls(profiler.ledger(), "aten::exp") == 2u);
}

BOOST_AUTO_TEST_CASE(what_is_asked_before_the_start_says_so) {
    const test::TemporaryFolder folder;
    Recorder recorder;
    TorchProfiler profiler{recorder};
    const auto error = [](auto&& call) -> std::string {
        try {
            call();
        } catch (const std::logic_error& thrown) {
            return thrown.what();
        }
        return "taken";
    };
    BOOST_TEST(error([&] { (void)profiler.key_averages(); }) ==
               "Profiler must be initialized before getting key averages");
    BOOST_TEST(error([&] { profiler.export_chrome_trace(folder.path() / "x.json"); }) ==
               "Profiler must be initialized before exporting chrome trace");
    BOOST_TEST(error([&] { (void)profiler.events(); }) == "Profiler must be initialized before accessing events");
    BOOST_TEST(error([&] { profiler.stop(); }) == "Profiler must be initialized before stopping trace");
    BOOST_TEST(error([&] { profiler.step(); }) != "taken");
    BOOST_TEST(std::filesystem::is_empty(folder.path()));
}

BOOST_AUTO_TEST_CASE(options_that_cannot_be_had_are_refused_by_name) {
    using enum ProfilerActivity;
    std::vector<std::string> warnings;
    BOOST_TEST(refusal({.activities = std::vector<ProfilerActivity>{}}) == "No valid profiler activities found");
    BOOST_TEST(refusal({.activities = std::vector{cpu, cpu}}) == "Activity CPU specified more than once");
    BOOST_TEST(refusal({.activities = std::vector{cpu, cuda}}).starts_with("activities: CUDA cannot be profiled here"));
    BOOST_TEST(refusal({.activities = std::vector{cpu}}) == "taken");
    BOOST_TEST(refusal({.with_modules = true}).starts_with("with_modules: "));
    BOOST_TEST(
        refusal({.experimental_config = {"profiler_metrics"}}).starts_with("experimental_config: profiler_metrics"));
    BOOST_TEST(refusal({.use_cuda = true, .warn = [&](auto text) { warnings.emplace_back(text); }}) == "taken");
    const std::vector<std::string> expected{"`use_cuda` is deprecated, use `activities` argument instead"};
    BOOST_TEST(warnings == expected, boost::test_tools::per_element());
    const std::vector only{cpu};
    BOOST_TEST(bool(supported_activities() == only));
}

BOOST_AUTO_TEST_CASE(stacks_and_the_memory_timeline_need_what_they_are_made_of) {
    const test::TemporaryFolder folder;
    Recorder recorder;
    const auto error = [](auto&& call) -> std::string {
        try {
            call();
        } catch (const std::invalid_argument& thrown) {
            return thrown.what();
        }
        return "taken";
    };
    {
        TorchProfiler profiler{recorder, {.with_stack = true}};
        const TorchProfilerScope scope{profiler};
        BOOST_TEST(error([&] { profiler.export_memory_timeline(folder.path() / "m.json"); }) ==
                   "record_shapes=True, profile_memory=True required for memory profiling.");
    }
    {
        TorchProfiler profiler{recorder, {.record_shapes = true}};
        const TorchProfilerScope scope{profiler};
        BOOST_TEST(error([&] { profiler.export_stacks(folder.path() / "s.txt"); }) ==
                   "export_stacks() requires with_stack=True");
    }
    TorchProfiler profiler{recorder, {.record_shapes = true, .profile_memory = true, .with_stack = true}};
    profiler.start();
    const at::Tensor big = at::ones({1 << 20});
    profiler.stop();
    profiler.export_stacks(folder.path() / "stacks.txt");
    const std::string stacks = text_of(folder.path() / "stacks.txt");
    BOOST_TEST(stacks.find("main") != stacks.npos);
    BOOST_TEST(stacks.find("at::_ops::fill_") != stacks.npos);
    profiler.export_memory_timeline(folder.path() / "memory.json");
    const auto timeline = nlohmann::json::parse(text_of(folder.path() / "memory.json"));
    std::int64_t most = 0;
    for (const auto& sizes : timeline[1])
        for (const auto& bytes : sizes)
            most = std::max(most, bytes.get<std::int64_t>());
    BOOST_TEST(most >= 4 << 20);
    BOOST_TEST(error([&] { profiler.export_memory_timeline(folder.path() / "m.json", "gpu"); }) ==
               "device: 'gpu' is none; there are \"cpu\" and \"cuda:0\"");
}

BOOST_AUTO_TEST_CASE(the_handler_for_tensorboard_writes_a_file_a_cycle) {
    const test::TemporaryFolder folder;
    Recorder recorder;
    TorchProfiler profiler{recorder,
                           {.schedule = schedule({.active = 1, .repeat = 2}),
                            .on_trace_ready = tensorboard_trace_handler(folder.path() / "log", "w1", true)}};
    profiler.start();
    for (int step = 0; step < 3; ++step) {
        (void)at::exp(at::ones({1}));
        profiler.step();
    }
    profiler.stop();
    std::size_t files = 0;
    for (const auto& entry : std::filesystem::directory_iterator{folder.path() / "log"}) {
        const std::string name = entry.path().filename();
        BOOST_TEST(name.starts_with("w1."));
        BOOST_TEST(name.ends_with(".pt.trace.json.gz"));
        ++files;
    }
    BOOST_TEST(files == 2u);
    std::ofstream{folder.path() / "file"} << "x";
    const auto handler = tensorboard_trace_handler(folder.path() / "file" / "below");
    BOOST_CHECK_EXCEPTION(handler(profiler), std::runtime_error, [](const auto& error) {
        return std::string{error.what()}.starts_with("Can't create directory: ");
    });
}

BOOST_AUTO_TEST_CASE(an_execution_trace_covers_the_windows_of_the_profiler) {
    const test::TemporaryFolder folder;
    const auto file = folder.path() / "graph.json";
    Recorder recorder;
    {
        TorchProfiler profiler{recorder,
                               {.schedule = schedule({.wait = 1, .active = 1, .repeat = 1}), .execution_trace = file}};
        BOOST_CHECK_THROW((TorchProfiler{recorder, {.execution_trace = folder.path() / "other.json"}}),
                          std::logic_error);
        profiler.start();
        const at::Tensor one = at::ones({1});
        profiler.step();
        (void)at::exp(one);
        profiler.step();
        (void)one.sin();
        profiler.stop();
    }
    const auto graph = nlohmann::json::parse(text_of(file));
    std::multiset<std::string> names;
    for (const auto& node : graph["nodes"])
        names.insert(node["name"].get<std::string>());
    BOOST_TEST(names.count("aten::exp") == 1u);
    BOOST_TEST(names.count("aten::ones") == 0u);
    BOOST_TEST(names.count("aten::sin") == 0u);
    BOOST_CHECK_THROW((ExecutionTraceObserver{folder.path() / "none" / "graph.json"}), std::runtime_error);
    ExecutionTraceObserver{folder.path() / "again.json"};
}

BOOST_AUTO_TEST_SUITE_END()
