#include <drawpoint/loop/profilers/profiler_callback.hpp>
#include <drawpoint/loop/profilers/simple.hpp>

#include <map>
#include <sstream>
#include <stdexcept>

#include <boost/test/unit_test.hpp>

#include <drawpoint/instrumentation/ledger/ledger.hpp>
#include <drawpoint/instrumentation/report/lightning.hpp>
#include <drawpoint/loop/cancel.hpp>
#include "loop/profilers/small_fit.hpp"

namespace {

using namespace drawpoint;
using namespace drawpoint::test;

using Totals = std::map<std::string, std::pair<std::uint64_t, std::int64_t>>;   // calls, microseconds

Totals totals_of(const LightningProfile& profile) {
    Totals totals;
    for (const LightningAction& action : profile.actions)
        totals[action.name] = {action.calls, static_cast<std::int64_t>(action.total_s * 1e6 + 0.5)};
    return totals;
}

std::string text_of(const Totals& totals) {
    std::string text;
    for (const auto& [name, total] : totals)
        text += name + " " + std::to_string(total.first) + " " + std::to_string(total.second) + "\n";
    return text;
}

/// Keeps a stack of the running actions.
class Watched final : public Profiler {
public:
    std::vector<std::string> running;
    std::size_t starts = 0, reports = 0;
    void start(std::string_view action) override {
        ++starts;
        running.emplace_back(action);
    }
    void stop(std::string_view action) override {
        BOOST_REQUIRE(!running.empty());
        BOOST_TEST(running.back() == action);   // actions nest
        running.pop_back();
    }
    std::string summary() override {
        ++reports;
        return {};
    }
};

}   // namespace

BOOST_AUTO_TEST_SUITE(profiler_callback)

BOOST_AUTO_TEST_CASE(a_simple_profiler_driven_by_a_fit_counts_what_the_ledger_says) {
    SmallFit fit{2, 3};
    SimpleProfiler profiler{{}, {}, AnyClock{fit.clock}};
    std::ostringstream out;
    profiler.set_output(out);
    ProfilerCallback callback{profiler};
    At slow{Event::before_batch, [&](LoopState&) { fit.clock.advance(3ms); }};
    At step{Event::before_step, [&](LoopState& state) {
                fit.clock.advance(1ms);
                if (state.batch == 1)
                    throw CancelStep{};
            }};
    fit.callbacks.add(slow);
    fit.callbacks.add(step);
    callback.add_to(fit.callbacks);
    fit.run();
    const LightningProfile ours = profiler.profile_values();
    BOOST_TEST(text_of(totals_of(ours)) == text_of(totals_of(lightning_actions(fit.recorder.ledger()))));
    const Totals totals = totals_of(ours);
    BOOST_TEST(
        (totals.at("[_TrainingEpochLoop].train_dataloader_next") == std::pair<std::uint64_t, std::int64_t>{6, 48000}));
    BOOST_TEST((totals.at("training_step") == std::pair<std::uint64_t, std::int64_t>{6, 84000}));
    BOOST_TEST((totals.at("optimizer_step") == std::pair<std::uint64_t, std::int64_t>{4, 24000}));   // 2 were cancelled
    BOOST_TEST((totals.at("on_train_batch_start") == std::pair<std::uint64_t, std::int64_t>{6, 18000}));
    BOOST_TEST((totals.at("validation_step") == std::pair<std::uint64_t, std::int64_t>{4, 56000}));
    BOOST_TEST(totals.at("run_training_epoch").first == 2u);
    BOOST_TEST(out.str().starts_with("FIT Profiler Report\n"));
}

BOOST_AUTO_TEST_CASE(whatever_is_cancelled_where_actions_nest_and_none_is_left_running) {
    const auto throw_one = [](std::size_t kind) {
        switch (kind) {
        case 0: throw CancelBatch{};
        case 1: throw CancelBackward{};
        case 2: throw CancelStep{};
        case 3: throw CancelTrain{};
        case 4: throw CancelValid{};
        case 5: throw CancelEpoch{};
        default: throw CancelFit{};
        }
    };
    for (std::size_t kind = 0; kind < 7; ++kind)
        for (std::size_t e = 1; e < event_count; ++e) {
            SmallFit fit{2, 2};
            Watched profiler;
            ProfilerCallback callback{profiler};
            int calls = 0;
            At thrower{static_cast<Event>(e), [&](LoopState&) {
                           if (++calls == 2)
                               throw_one(kind);
                       }};
            callback.add_to(fit.callbacks);
            fit.callbacks.add(thrower);
            BOOST_TEST_CONTEXT(name_of(static_cast<Event>(e)) << ", cancel " << kind) {
                try {
                    fit.run();
                    BOOST_TEST(profiler.reports == 1u);
                } catch (const Cancel&) {   // thrown where no level catches it
                }
                BOOST_TEST(profiler.running.empty());
                BOOST_TEST(profiler.starts > 10u);
            }
        }
}

BOOST_AUTO_TEST_CASE(after_an_exception_nothing_runs_and_the_next_fit_is_profiled_as_any) {
    SmallFit fit{1, 2};
    SimpleProfiler profiler{{}, {}, AnyClock{fit.clock}};
    std::ostringstream out;
    profiler.set_output(out);
    ProfilerCallback callback{profiler};
    At thrower{Event::before_backward, [](LoopState&) { throw std::runtime_error("broken"); }};
    callback.add_to(fit.callbacks);
    fit.callbacks.add(thrower);
    BOOST_CHECK_THROW(fit.run(), std::runtime_error);
    BOOST_TEST(out.str().empty());
    fit.callbacks.remove(thrower);
    fit.run();
    BOOST_TEST(totals_of(profiler.profile_values()).at("run_training_epoch").first == 2u);
    BOOST_TEST(!out.str().empty());
}

BOOST_AUTO_TEST_CASE(a_validation_alone_is_a_stage_of_its_own) {
    SmallFit fit{1, 1};
    SimpleProfiler profiler{{}, {}, AnyClock{fit.clock}};
    std::ostringstream out;
    profiler.set_output(out);
    ProfilerCallback callback{profiler};
    callback.add_to(fit.callbacks);
    run_alone(validate(fit.learner, fit.valid, fit.callbacks, fit.recorder));
    BOOST_TEST(out.str().starts_with("VALIDATE Profiler Report\n"));
    BOOST_TEST(totals_of(profiler.profile_values()).at("[_EvaluationLoop].val_next").first == 2u);
}

BOOST_AUTO_TEST_CASE(after_a_validation_that_failed_the_next_run_is_profiled_as_any) {
    SmallFit fit{1, 2};
    SimpleProfiler profiler{{}, {}, AnyClock{fit.clock}};
    std::ostringstream out;
    profiler.set_output(out);
    ProfilerCallback callback{profiler};
    At thrower{Event::after_pred, [](LoopState&) { throw std::runtime_error("broken"); }};
    callback.add_to(fit.callbacks);
    fit.callbacks.add(thrower);
    for (int runs = 0; runs < 2; ++runs)
        BOOST_CHECK_THROW(run_alone(validate(fit.learner, fit.valid, fit.callbacks, fit.recorder)), std::runtime_error);
    fit.callbacks.remove(thrower);
    fit.run();
    BOOST_TEST(totals_of(profiler.profile_values()).at("run_training_epoch").first == 1u);
    BOOST_TEST(out.str().starts_with("FIT Profiler Report\n"));
}

BOOST_AUTO_TEST_CASE(a_report_that_cannot_be_written_does_not_end_the_fit) {
    SmallFit fit{1, 1};
    SimpleProfiler profiler{{"/dev/null/x", "perf"}, {}, AnyClock{fit.clock}};
    std::ostringstream out;
    profiler.set_output(out);
    ProfilerCallback callback{profiler};
    callback.add_to(fit.callbacks);
    fit.run();
    BOOST_TEST(callback.error().find("/dev/null") != std::string::npos);
    BOOST_TEST(out.str().find(callback.error()) != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
