#include <drawpoint/instrumentation/schedule.hpp>

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <functional>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace drawpoint;

namespace {

std::vector<std::int64_t> saves(const ScheduleOptions& options, std::int64_t steps) {
    const Schedule plan = drawpoint::schedule(options);
    std::vector<std::int64_t> at;
    for (std::int64_t step = 0; step < steps; ++step)
        if (plan(step) == ProfilerAction::record_and_save)
            at.push_back(step);
    return at;
}

auto says(std::string_view words) {
    return [words](const std::exception& error) {
        BOOST_TEST_MESSAGE(error.what());
        return std::string_view{error.what()}.find(words) != std::string_view::npos;
    };
}

Schedule of(std::vector<ProfilerAction> actions) {
    return [actions](std::int64_t step) {
        return actions.at(std::min(static_cast<std::size_t>(step), actions.size() - 1));
    };
}

/// Records calls as the letters p(repare), b(egin), e(nd), r(eady).
struct Tape {
    std::string calls;
    ProfilerCalls functions() {
        const auto write = [this](char letter) { return [this, letter] { calls += letter; }; };
        return {.prepare = write('p'), .start = write('b'), .stop = write('e'), .trace_ready = write('r')};
    }
    std::string taken() { return std::exchange(calls, {}); }
};

using enum ProfilerAction;
using Actions = std::vector<ProfilerAction>;

}   // namespace

BOOST_AUTO_TEST_SUITE(schedule)

BOOST_AUTO_TEST_CASE(skip_first_wait_leaves_out_the_wait_of_the_first_cycle_only) {
    ScheduleOptions options{.wait = 20, .warmup = 1, .active = 2, .repeat = 2, .skip_first = 10};
    BOOST_TEST(saves(options, 200) == (std::vector<std::int64_t>{32, 55}), boost::test_tools::per_element());
    options.skip_first_wait = 1;
    BOOST_TEST(saves(options, 200) == (std::vector<std::int64_t>{12, 35}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_negative_skip_first_wait_is_an_error_naming_it) {
    BOOST_CHECK_EXCEPTION((void)drawpoint::schedule({.skip_first_wait = -1}), std::invalid_argument,
                          says("skip_first_wait=-1 (need >= 0)"));
}

BOOST_AUTO_TEST_CASE(numbers_whose_sum_would_overflow_are_refused) {
    BOOST_CHECK_EXCEPTION((void)drawpoint::schedule({.warmup = std::numeric_limits<std::int64_t>::max()}),
                          std::invalid_argument, says("warmup=9223372036854775807"));
}

BOOST_AUTO_TEST_CASE(the_text_form_sets_the_parts_it_names_in_any_order) {
    BOOST_CHECK((parse_schedule("wait=1,warmup=2,active=3,repeat=4,skip-first=5,skip-first-wait=1") ==
                 ScheduleOptions{1, 2, 3, 4, 5, 1}));
    BOOST_CHECK((parse_schedule("active=7") == ScheduleOptions{.active = 7}));
    BOOST_CHECK((parse_schedule("repeat=2,active=1") == ScheduleOptions{.active = 1, .repeat = 2}));
}

BOOST_AUTO_TEST_CASE(a_wrong_text_form_is_refused_naming_the_part) {
    const auto refused = [](std::string_view text, std::string_view words) {
        BOOST_CHECK_EXCEPTION((void)parse_schedule(text), std::invalid_argument, says(words));
    };
    refused("", "''");
    refused("active=3,", "''");
    refused("active", "'active': not of the form");
    refused("waits=1,active=3", "'waits=1': no such part");
    refused("wait=1,wait=2,active=3", "'wait=2': given twice");
    refused("wait=one,active=3", "'wait=one': not a whole number");
    refused("wait=1.5,active=3", "'wait=1.5': not a whole number");
    refused("wait=,active=3", "'wait=': not a whole number");
    refused("active=99999999999999999999", "too large");
    refused("wait=1,warmup=1", "'active': missing");
    refused("active=0", "active=0 (need > 0)");
    refused("wait=-1,active=1", "wait=-1 (need >= 0)");
}

BOOST_AUTO_TEST_CASE(the_default_schedule_gives_way_to_recording_all_where_it_could_not_finish) {
    const CheckedSchedule four = schedule_for(default_schedule, 4);
    BOOST_TEST(!four.schedule);
    BOOST_TEST_REQUIRE(four.warnings.size() == 1u);
    BOOST_TEST(four.warnings[0].find("needs 5 steps and there are 4") != std::string::npos);
    for (const std::optional<std::int64_t> total : {std::optional<std::int64_t>{5}, {}}) {
        const CheckedSchedule enough = schedule_for(default_schedule, total);
        BOOST_TEST(bool{enough.schedule});
        BOOST_TEST(enough.warnings.empty());
    }
    BOOST_TEST(bool{schedule_for({.wait = 1, .warmup = 1, .active = 4}, 3).schedule});
    BOOST_TEST(schedule_for({.warmup = 0}, {}).warnings.size() == 1u);
}

BOOST_AUTO_TEST_CASE(a_recording_that_falls_back_to_warm_up_is_prepared_again) {
    Tape tape;
    ScheduledProfiler profiler{tape.functions(), of({record, warmup, record, record_and_save, none})};
    profiler.start();
    BOOST_TEST(tape.taken() == "pb");
    profiler.step();
    BOOST_TEST(tape.taken() == "ep");
    profiler.step();
    BOOST_TEST(tape.taken() == "b");
    profiler.step();
    profiler.step();
    BOOST_TEST(tape.taken() == "er");
}

BOOST_AUTO_TEST_CASE(stopping_again_does_nothing_and_starting_again_goes_on) {
    Tape tape;
    ScheduledProfiler profiler{tape.functions()};
    profiler.start();
    BOOST_CHECK_THROW(profiler.start(), std::logic_error);
    profiler.stop();
    BOOST_TEST(tape.taken() == "pber");
    profiler.stop();
    BOOST_TEST(tape.taken() == "");
    BOOST_CHECK_THROW(profiler.step(), std::logic_error);
    profiler.start();
    profiler.step();
    profiler.stop();
    BOOST_TEST(tape.taken() == "pber");
}

BOOST_AUTO_TEST_CASE(without_a_schedule_there_are_no_step_ranges) {
    bool range = false;
    ScheduledProfiler profiler{{.begin_step = [&](std::int64_t) { range = true; }}};
    profiler.start();
    profiler.step();
    BOOST_TEST(!range);
    BOOST_TEST(profiler.step_num() == 1);
    BOOST_CHECK((profiler.current_action() == record));
}

BOOST_AUTO_TEST_CASE(a_trace_ready_that_throws_leaves_the_next_cycle_prepared_and_its_range_open) {
    Tape tape;
    ProfilerCalls calls = tape.functions();
    std::vector<std::int64_t> open;
    calls.trace_ready = [] { throw std::runtime_error{"disk full"}; };
    calls.begin_step = [&](std::int64_t step) { open.push_back(step); };
    ScheduledProfiler profiler{std::move(calls), of({record_and_save, warmup, record})};
    profiler.start();
    tape.taken();
    BOOST_CHECK_EXCEPTION(profiler.step(), std::runtime_error, says("disk full"));
    BOOST_TEST(tape.taken() == "ep");
    BOOST_TEST(open == (std::vector<std::int64_t>{0, 1}), boost::test_tools::per_element());
    profiler.step();
    BOOST_TEST(tape.taken() == "b");
}

BOOST_AUTO_TEST_CASE(a_skipped_step_makes_no_call_and_the_next_start_is_in_the_one_after) {
    Tape tape;
    ScheduledProfiler profiler{tape.functions(), of({none, record_and_save, record, none})};
    profiler.start();
    BOOST_CHECK_THROW(profiler.skip_step(), std::logic_error);
    profiler.stop();
    profiler.skip_step();
    profiler.skip_step();
    BOOST_TEST(tape.taken() == "");
    profiler.start();
    BOOST_TEST(tape.taken() == "pb");
    BOOST_TEST(profiler.step_num() == 2);
}

BOOST_AUTO_TEST_CASE(a_collection_that_stopped_is_handed_over_and_the_next_cycle_records_again) {
    Tape tape;
    std::string warning;
    ProfilerCalls calls = tape.functions();
    calls.warn = [&](std::string_view text) { warning = text; };
    ScheduledProfiler profiler{std::move(calls), drawpoint::schedule({.warmup = 1, .active = 4})};
    profiler.start();
    profiler.step();
    BOOST_TEST(tape.taken() == "pb");
    profiler.collection_stopped();
    profiler.step();
    BOOST_TEST(tape.taken() == "er");
    BOOST_CHECK((profiler.current_action() == device_stopped));
    BOOST_TEST(warning.find("step 2") != std::string::npos);
    profiler.step();
    profiler.step();
    BOOST_CHECK((profiler.current_action() == device_stopped));
    profiler.step();
    BOOST_CHECK((profiler.current_action() == warmup));
    profiler.step();
    BOOST_TEST(tape.taken() == "pb");
    BOOST_CHECK((profiler.current_action() == record));
}

BOOST_AUTO_TEST_CASE(the_wrapper_counts_each_kind_of_step_for_itself_and_records_each_once) {
    ScheduleWrapper wrapper{drawpoint::schedule({.wait = 1, .warmup = 1, .active = 1})};
    wrapper.setup("[LightningModule]Net.on_fit_start");
    const auto next = [&](std::string_view action) {
        wrapper.pre_step(action);
        return wrapper(0);
    };
    BOOST_CHECK((next("[Strategy]S.training_step") == warmup));
    BOOST_TEST(wrapper.num_step() == 1);
    BOOST_CHECK((next("[Strategy]S.validation_step") == warmup));
    BOOST_TEST(wrapper.num_step() == 1);
    BOOST_CHECK((next("[Strategy]S.training_step") == record_and_save));
    BOOST_TEST(wrapper.has_finished());
    for (int again = 0; again < 5; ++again)
        BOOST_CHECK((next("[Strategy]S.training_step") == none));
    BOOST_CHECK((next("[Strategy]S.validation_step") == record_and_save));
    BOOST_CHECK((next("[Strategy]S.test_step") == warmup));
    BOOST_CHECK((next("[Strategy]S.predict_step") == warmup));
    BOOST_CHECK((next("[Strategy]S.backward") == none));
    BOOST_TEST(wrapper.num_step() == 0);
    wrapper.reset();
    BOOST_CHECK((wrapper(0) == none));
    BOOST_CHECK((next("[Strategy]S.training_step") == warmup));
}

BOOST_AUTO_TEST_CASE(the_wrapper_does_not_count_the_sanity_check_of_a_fit) {
    const auto after_two = [](std::string_view start, std::string_view first) {
        ScheduleWrapper wrapper{drawpoint::schedule({.wait = 5})};
        wrapper.setup(start);
        wrapper.pre_step(first);
        (void)wrapper(0);
        wrapper.pre_step("S.validation_step");
        (void)wrapper(0);
        return wrapper.num_step();
    };
    BOOST_TEST(after_two("on_fit_start", "S.validation_step") == 0);
    BOOST_TEST(after_two("on_fit_start", "S.training_step") == 1);
    BOOST_TEST(after_two("on_validation_start", "S.validation_step") == 2);
}

BOOST_AUTO_TEST_CASE(the_wrapper_goes_on_recording_where_the_schedule_would_warm_up_again) {
    ScheduleWrapper wrapper{of({none, record, warmup, record_and_save})};
    wrapper.pre_step("S.training_step");
    Actions actions;
    for (int step = 0; step < 4; ++step)
        actions.push_back(wrapper(0));
    BOOST_CHECK((actions == Actions{record, record, record_and_save, none}));
}

BOOST_AUTO_TEST_CASE(a_wrapper_drives_a_profiler_by_reference) {
    Tape tape;
    ScheduleWrapper wrapper{drawpoint::schedule({.warmup = 1, .active = 1})};
    ScheduledProfiler profiler{tape.functions(), std::ref(wrapper)};
    profiler.start();
    for (int step = 0; step < 4; ++step) {
        wrapper.pre_step("S.training_step");
        profiler.step();
    }
    profiler.stop();
    BOOST_TEST(tape.taken() == "pber");
    BOOST_CHECK_THROW(ScheduleWrapper{nullptr}, std::invalid_argument);
}

BOOST_AUTO_TEST_SUITE_END()
