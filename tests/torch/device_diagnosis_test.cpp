// What is said of runs on a device whose cause is known, and what is predicted of them, against the same runs changed.
#include <algorithm>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <drawpoint/diagnosis/verdict/verdict_report.hpp>

#include "bench/accuracy/device_case.hpp"

namespace drawpoint::bench {
namespace {

struct Known {
    Verdict verdict;
    DeviceCase of;
};

std::vector<Known> known() {
    DeviceCase fine{.name = "fine", .sample_us = 300};   // steps of 3 ms on the device, batches of 1.2 ms
    fine.setting = {.num_workers = 2, .prefetch_depth = 3, .batch_size = 8};
    fine.samples.sigma = 0.2;
    std::vector<Known> all{{Verdict::compute_bound, fine}};
    const auto add = [&](Verdict verdict, std::string name, auto change) {
        all.push_back({verdict, fine});
        all.back().of.name = std::move(name);
        change(all.back().of);
    };
    add(Verdict::compute_bound, "hidden", [](DeviceCase& of) { of.sample_us = 650; });
    add(Verdict::decode, "starved", [](DeviceCase& of) { of.sample_us = 1200; });
    add(Verdict::copy, "slow copies", [](DeviceCase& of) { of.copy_us = 5000; });
    add(Verdict::copy, "no copy ahead", [](DeviceCase& of) {
        of.copy_us = 2000;
        of.device_prefetch = 0;
        of.kernel_us = 50;
    });
    add(Verdict::copy, "pageable", [](DeviceCase& of) {
        of.copy_us = 1800;
        of.pinned = false;
        of.kernel_us = 30;
    });
    add(Verdict::launch_bound, "launches", [](DeviceCase& of) {
        of.launch_us = 100;
        of.kernel_us = 20;
    });
    add(Verdict::synchronised, "reads the loss", [](DeviceCase& of) {
        of.sync = DeviceCase::Sync::loss;
        of.callback_us = 3000;
    });
    add(Verdict::synchronised, "waits at the end", [](DeviceCase& of) {
        of.sync = DeviceCase::Sync::end;
        of.callback_us = 600;
    });
    add(Verdict::copy, "slow copies, waits at the end", [](DeviceCase& of) {
        of.copy_us = 5000;   // so the device begins late, and the loop waits for it, although it launches no faster
        of.launch_us = 100;
        of.sync = DeviceCase::Sync::end;
    });
    return all;
}

BOOST_AUTO_TEST_SUITE(device_diagnosis)

BOOST_AUTO_TEST_CASE(known_causes_are_named_and_changes_predicted) {
    for (const Known& one : known())
        BOOST_TEST_CONTEXT(one.of.name) {
            const DeviceScore score = score_device_case(one.of, 1);
            BOOST_TEST_MESSAGE(line_of(score));
            BOOST_TEST(!score.said.abstained.has_value());
            const std::vector<Verdict>& others = score.said.co_verdicts;   // which gain the same
            const bool is_named =
                score.said.verdict == one.verdict || std::ranges::find(others, one.verdict) != others.end();
            BOOST_TEST(is_named, to_text(score.said));
            BOOST_TEST(score.is_right());
            BOOST_TEST(score.replay_error < 0.02);
            BOOST_TEST(score.gain_errors.size() >= 7u);
            for (const double error : score.gain_errors)
                BOOST_TEST(error < 0.05);
        }
}

BOOST_AUTO_TEST_CASE(a_case_is_the_same_again) {
    const DeviceCase of = draw_device_case(3, 4);
    BOOST_TEST(of.name == "device-3-004");
    BOOST_TEST(to_text(of) == to_text(draw_device_case(3, 4)));
    BOOST_TEST(to_text(of) != to_text(draw_device_case(3, 5)));
    BOOST_TEST(rate_of(run_case(of, 1)) == rate_of(run_case(of, 1)), boost::test_tools::tolerance(1e-3));
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
}   // namespace drawpoint::bench
