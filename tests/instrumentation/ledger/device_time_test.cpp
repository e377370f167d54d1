#include <drawpoint/instrumentation/ledger/device_time.hpp>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include <drawpoint/instrumentation/facts.hpp>
#include <drawpoint/instrumentation/report/json.hpp>
#include <drawpoint/instrumentation/report/summary.hpp>
#include <drawpoint/instrumentation/report/text.hpp>

#include "instrumentation/ledger/ledger_builder.hpp"

namespace drawpoint {
namespace {

void add_step(Ledger& ledger, StepRow step, const std::vector<SpanRow>& pieces) {
    step.spans = {static_cast<std::uint32_t>(ledger.spans.size()), static_cast<std::uint32_t>(pieces.size())};
    ledger.spans.insert(ledger.spans.end(), pieces.begin(), pieces.end());
    ledger.steps.push_back(step);
}

/// Two steps: draw 100 … 200, batch … 300, between … 310; draw … 400, batch … 500.
Ledger two_steps() {
    Ledger ledger;
    add_step(ledger, {.step = 4, .size = 2, .draw_begin_ns = 100, .draw_ns = 100, .batch_ns = 100},
             {{Span::starved, 100, 100}, {Span::forward, 200, 80}, {Span::other, 280, 20}, {Span::between, 300, 10}});
    add_step(ledger, {.step = 5, .size = 2, .draw_begin_ns = 310, .draw_ns = 90, .batch_ns = 100},
             {{span_of(Event::before_draw), 310, 10},
              {Span::transfer, 320, 20},
              {Span::starved, 340, 30},
              {Span::handoff, 370, 30},
              {Span::forward, 400, 100}});
    ledger.passes = {{.kind = PassKind::train, .begin_ns = 100, .end_ns = 600}};
    return ledger;
}

/// What the device did in the second of these steps.
DeviceStepRow second_row(std::int64_t end_ns, std::int64_t host_end_ns) {
    return {.step = 5,
            .free_ns = 285,
            .queued_ns = 395,
            .begin_ns = 400,
            .end_ns = end_ns,
            .host_queued_ns = 380,
            .host_end_ns = host_end_ns};
}

BOOST_AUTO_TEST_SUITE(device_time)

BOOST_AUTO_TEST_CASE(dry_time_is_divided_by_the_pieces_of_the_loop) {
    const Ledger ledger = two_steps();
    DeviceStepRow row{.step = 5, .free_ns = 285, .queued_ns = 395, .host_queued_ns = 380, .dry_step_ns = 77};
    split_dry(ledger, row);
    BOOST_TEST(row.dry_step_ns == 15);   // of `other`
    BOOST_TEST(row.dry_between_ns == 10);
    BOOST_TEST(row.dry_callbacks_ns == 10);
    BOOST_TEST(row.dry_transfer_ns == 20);
    BOOST_TEST(row.dry_starved_ns == 30);
    BOOST_TEST(row.dry_handoff_ns == 10);
    BOOST_TEST(row.dry_launch_ns == 15);
    BOOST_TEST(row.draw_ns == 90);

    DeviceStepRow busy{.step = 5, .free_ns = 390, .queued_ns = 395, .host_queued_ns = 380};   // behind the loop
    split_dry(ledger, busy);
    BOOST_TEST(busy.dry_starved_ns + busy.dry_handoff_ns == 0);
    BOOST_TEST(busy.dry_launch_ns == 5);
    BOOST_TEST(busy.draw_ns == 90);

    DeviceStepRow other{.step = 6, .free_ns = 320, .queued_ns = 380, .host_queued_ns = 380};   // of no step here
    split_dry(ledger, other);
    BOOST_TEST(other.draw_ns == 0);
}

BOOST_AUTO_TEST_CASE(a_step_finds_its_row_by_time_and_number) {
    Ledger ledger = two_steps();
    ledger.device_steps = {
        {.step = 4, .host_queued_ns = 150}, {.step = 9, .host_queued_ns = 320}, {.step = 5, .host_queued_ns = 320}};
    BOOST_TEST(device_step_of(ledger, ledger.steps[0]) == &ledger.device_steps[0]);
    BOOST_TEST(device_step_of(ledger, ledger.steps[1]) == &ledger.device_steps[2]);
    ledger.device_steps.pop_back();
    BOOST_TEST(device_step_of(ledger, ledger.steps[1]) == nullptr);
    const UntimedSteps untimed{ledger};
    BOOST_TEST(!untimed.has(ledger.steps[0]));
    BOOST_TEST(untimed.has(ledger.steps[1]));
    StepRow valid = ledger.steps[1];
    valid.phase = Phase::valid;   // of which nothing was timed
    BOOST_TEST(!untimed.has(valid));
}

BOOST_AUTO_TEST_CASE(the_report_tells_the_devices_time_and_takes_the_headroom_from_it) {
    Ledger ledger = two_steps();
    ledger.set_fact(facts::device, "cuda:0");
    DeviceStepRow row = second_row(485, 480);
    row.uncertainty_ns = 3;
    split_dry(ledger, row);
    ledger.device_steps = {row};
    ledger.transfers = {{.bytes = 1000, .begin_ns = 380, .end_ns = 400}};
    const Summary summary = summarize(ledger);
    BOOST_TEST_REQUIRE(summary.device.has_value());
    const Summary::Device& device = *summary.device;
    const auto ns = [](double seconds) { return std::llround(seconds * 1e9); };
    BOOST_TEST(device.name == "cuda:0");
    BOOST_TEST(device.steps == 1u);
    BOOST_TEST(ns(device.time_s) == 200);
    BOOST_TEST(ns(device.dry_s) == 110);
    BOOST_TEST(ns(device.copy_wait_s) == 5);
    BOOST_TEST(ns(device.span_s) == 85);
    BOOST_TEST(ns(device.exposed_s) == 70);
    BOOST_TEST(ns(device.hidden_s) == 20);
    BOOST_TEST(ns(device.step_s) == 15);
    BOOST_TEST(ns(device.between_s) == 10);
    BOOST_TEST(ns(device.launch_s) == 15);
    BOOST_TEST(ns(device.mean_lag_s) == 5);
    BOOST_TEST(device.is_paced_by_loop());
    BOOST_TEST(*summary.headroom.throughput_gain_if_draw_were_zero == 200.0 / (200.0 - 70 - 5) - 1,
               boost::test_tools::tolerance(1e-9));
    const auto document = to_json(summary, {.version = "1", .command = "x"});
    BOOST_TEST(document["device"]["name"] == "cuda:0");
    BOOST_TEST(document["device"]["dry"]["exposed_s"] == device.exposed_s);
    BOOST_TEST(document["device"]["draw"]["hidden_s"] == device.hidden_s);
    BOOST_TEST(document["device"]["paced_by_loop"] == true);
    const std::string text = to_text(summary);
    for (const char* const part :
         {"exposed 35 % of the device's time,", "hidden behind the device 10 %", "cuda:0: span 42 %", "copy wait 2.5 %",
          "launch-bound: the loop", "of 1 timed steps", "if data were free: ×1.600"})
        BOOST_TEST(text.find(part) != std::string::npos, part << " in\n" << text);
}

BOOST_AUTO_TEST_CASE(a_loss_that_comes_late_is_its_steps_own) {
    LedgerBuilder builder;
    for (std::uint32_t step = 0; step < 3; ++step)
        builder.step(
            {.step = step, .draw_begin_ns = 100 * step, .draw_ns = 10, .batch_ns = 20, .loss = {}, .spans = {}}, {});
    builder.device_step({.step = 1, .host_queued_ns = 105, .loss = 0.5});
    builder.device_step({.step = 2, .phase = Phase::valid, .host_queued_ns = 205, .loss = 0.25});   // of another phase
    builder.device_step({.step = 0, .host_queued_ns = 5});
    const Ledger ledger = builder.ledger();
    BOOST_TEST(!ledger.steps[0].loss.has_value());
    BOOST_TEST((ledger.steps[1].loss == 0.5));
    BOOST_TEST(!ledger.steps[2].loss.has_value());
    BOOST_TEST(ledger.device_steps.size() == 3u);
}

BOOST_AUTO_TEST_CASE(a_loop_that_waits_for_the_device_is_told_from_one_that_launches_slowly) {
    Ledger ledger = two_steps();
    DeviceStepRow row = second_row(500, 495);
    const auto is_synchronised = [&](std::int64_t forward_ns, std::int64_t host_forward_ns) {
        row.forward_ns = forward_ns;
        row.host_forward_ns = host_forward_ns;
        ledger.device_steps = {row};
        const Summary summary = summarize(ledger);
        BOOST_TEST(summary.device->is_paced_by_loop());
        return summary.device->is_synchronised();
    };
    BOOST_TEST(is_synchronised(440, 410));    // behind by 30 when the loss was there, by 5 at the end
    BOOST_TEST(!is_synchronised(440, 436));   // by 4, and by 5
    BOOST_TEST(!is_synchronised(440, 426));   // by 14 and 5: less than a tenth of the span
}

BOOST_AUTO_TEST_CASE(totals_of_hostile_rows_wrap) {
    constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min(), most = ~least;
    Ledger ledger = two_steps();
    for (const std::int64_t a : {least, most})
        for (const std::int64_t b : {least, most})
            ledger.device_steps.push_back({.free_ns = a,
                                           .queued_ns = b,
                                           .begin_ns = a,
                                           .end_ns = b,
                                           .host_queued_ns = b,
                                           .host_end_ns = a,
                                           .uncertainty_ns = b,
                                           .dry_starved_ns = a,
                                           .dry_handoff_ns = a,
                                           .draw_ns = a});
    ledger.transfers = {{.begin_ns = most, .end_ns = least}};
    ledger.sort();
    BOOST_TEST(device_totals(ledger).steps == 4u);
    (void)to_text(summarize(ledger));
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
}   // namespace drawpoint
