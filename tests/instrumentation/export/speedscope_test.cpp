#include <boost/test/unit_test.hpp>

#include <map>
#include <vector>

#include <nlohmann/json.hpp>

#include <drawpoint/instrumentation/export/speedscope.hpp>

#include "tests/instrumentation/export/operator_run.hpp"

namespace {

using namespace drawpoint;
using namespace drawpoint::test;
using Json = nlohmann::json;

Json exported(const Ledger& ledger) {
    return Json::parse(text_of([&](std::ostream& out) { write_speedscope(ledger, out); }));
}

/// Time between opening and closing a frame, summed over a profile, by the frame's name. Fails unless the profile's
/// events are balanced, nested and ordered by time.
std::map<std::string, std::int64_t> totals(const Json& document, const Json& profile) {
    std::map<std::string, std::int64_t> sums;
    std::vector<std::pair<std::size_t, std::int64_t>> open;
    std::int64_t last = profile["startValue"];
    for (const Json& event : profile["events"]) {
        const std::int64_t at = event["at"];
        const std::size_t frame = event["frame"];
        BOOST_REQUIRE(at >= last);
        last = at;
        if (event["type"] == "O") {
            open.emplace_back(frame, at);
        } else {
            BOOST_REQUIRE(!open.empty());
            BOOST_REQUIRE(open.back().first == frame);
            sums[document["shared"]["frames"][frame]["name"]] += at - open.back().second;
            open.pop_back();
        }
    }
    BOOST_TEST(open.empty());
    BOOST_TEST(last == profile["endValue"].get<std::int64_t>());
    return sums;
}

BOOST_AUTO_TEST_SUITE(speedscope)

BOOST_AUTO_TEST_CASE(every_frame_is_open_for_exactly_as_long_as_its_rows_say) {
    const Ledger ledger = hand_made::one_epoch();
    const Json document = exported(ledger);
    BOOST_TEST(document["$schema"] == "https://www.speedscope.app/file-format-schema.json");
    BOOST_REQUIRE(document["profiles"].size() == 1u);
    BOOST_TEST(document["profiles"][0]["name"] == "loop");
    BOOST_TEST(document["profiles"][0]["unit"] == "nanoseconds");
    auto sums = totals(document, document["profiles"][0]);
    std::int64_t steps = 0, draws = 0, opt_steps = 0;
    for (const StepRow& step : ledger.steps) {
        steps += step.draw_ns + step.batch_ns;
        draws += step.draw_ns;
        opt_steps += duration_of(ledger, step, Action::opt_step).value_or(0);
    }
    BOOST_TEST(sums["step"] == steps);
    BOOST_TEST(sums["draw"] == draws);
    BOOST_TEST(sums["opt_step"] == opt_steps);
    BOOST_TEST(sums["fit"] == ledger.passes[0].end_ns - ledger.passes[0].begin_ns);
}

BOOST_AUTO_TEST_CASE(each_thread_worker_and_batch_slot_has_a_profile_of_its_own) {
    OperatorRun run;
    add_first_batch(run.ledger);
    run.call(run.thread(50, "autograd"), "say \"x\"\n", run.ledger.start_ns, 7);
    const Json document = exported(run.ledger);
    std::vector<std::string> names;
    for (const Json& profile : document["profiles"]) {
        names.push_back(profile["name"]);
        const auto sums = totals(document, profile);
        if (profile["name"] == "thread 50 (autograd)")
            BOOST_TEST(sums.at("say \"x\"\n") == 7);
        if (profile["name"] == "worker 1")
            BOOST_TEST(sums.at("decode+crop") == 100);
    }
    const std::vector<std::string> expected{"loop", "thread 50 (autograd)", "worker 0", "worker 1",
                                            "train batch slot 0"};
    BOOST_TEST(names == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
