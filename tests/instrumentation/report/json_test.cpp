#include <boost/test/unit_test.hpp>

#include <initializer_list>

#include <nlohmann/json.hpp>

#include <drawpoint/instrumentation/facts.hpp>
#include <drawpoint/instrumentation/report/json.hpp>

#include "tests/instrumentation/report/hand_made.hpp"

namespace {

using namespace drawpoint;
using Json = nlohmann::ordered_json;

const JsonHead head{.version = "1.2.3", .command = "drawpoint report x"};

void check_keys(const Json& object, std::initializer_list<const char*> keys) {
    std::vector<std::string> found;
    for (const auto& [key, value] : object.items())
        found.push_back(key);
    BOOST_TEST(found == std::vector<std::string>(keys.begin(), keys.end()), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE(json)

BOOST_AUTO_TEST_CASE(the_document_has_its_keys_in_order) {
    Ledger ledger = hand_made::one_epoch();
    ledger.samples.push_back({.begin_ns = 0});
    ledger.failures.push_back({.index = 17, .path = "a.jpg", .stage = "decode+crop", .message = "no"});
    const Json document = to_json(summarize(ledger), head);
    check_keys(document, {"schema", "version",      "command",  "machine",   "run",   "rows",   "draw",
                          "draws",  "device",       "stages",   "workers",   "queue", "memory", "reading",
                          "cache",  "conservation", "headroom", "recording", "trust", "model",  "errors"});
    BOOST_TEST(document["schema"] == "drawpoint.report/1");
    BOOST_TEST(document["version"] == "1.2.3");
    BOOST_TEST(document["command"] == "drawpoint report x");
    check_keys(document["machine"], {"cpu", "cores_usable", "kernel", "compiler", "libraries"});
    check_keys(document["run"], {"batch_size", "num_workers", "prefetch_depth", "order", "epochs", "steps", "samples",
                                 "wall_s", "samples_per_s", "stopped", "digest"});
    check_keys(document["rows"].at(0), {"phase", "action", "calls", "mean_s", "std_s", "median_s", "p90_s", "p99_s",
                                        "total_s", "share_of_total", "samples_per_s"});
    check_keys(document["draw"], {"callbacks_s", "starved_s", "handoff_s", "transfer_s", "order", "blame"});
    check_keys(document["draw"]["order"], {"lost_s", "share"});
    check_keys(document["stages"].at(0), {"stage", "calls", "mean_s", "median_s", "p90_s", "p99_s", "total_s", "cpu_s",
                                          "run_queue_s", "bytes", "failures"});
    check_keys(document["workers"].at(0), {"worker", "busy_share", "samples"});
    check_keys(document["queue"], {"mean_ready", "occupancy", "empty_share"});
    check_keys(document["memory"], {"planned_bytes", "loader_peak_bytes", "slots_bytes", "peak_bytes", "slots_replaced",
                                    "allocations_per_batch", "minor_faults_per_batch"});
    BOOST_TEST(document["reading"].is_null());
    BOOST_TEST(document["cache"].is_null());
    check_keys(document["conservation"], {"steps", "max_residual_ns", "untiled_ns", "unmarked_ns", "clamped_ns",
                                          "ahead_ns", "other_share_of_batch"});
    check_keys(document["headroom"], {"throughput_gain_if_draw_were_zero"});
    check_keys(document["recording"], {"file", "bytes", "events", "dropped", "thinned_to", "ns_per_event",
                                       "share_of_cpu", "error", "percentile_error_share"});
    check_keys(document["model"], {"loss_first", "loss_last", "accuracy"});
    check_keys(document["errors"].at(0), {"index", "path", "stage", "message", "handling"});
    BOOST_TEST(document["conservation"]["steps"] == 5);
    BOOST_TEST(document["rows"].at(0)["action"] == "fit");
}

BOOST_AUTO_TEST_CASE(what_is_unknown_is_null) {
    const Json document = to_json(summarize(hand_made::one_epoch()), head);
    BOOST_TEST(document["trust"].is_null());
    BOOST_TEST(document["draw"]["blame"].is_null());
    BOOST_TEST(document["device"].is_null());
    BOOST_TEST(document["memory"]["peak_bytes"].is_null());
    BOOST_TEST(document["queue"]["mean_ready"].is_null());
    BOOST_TEST(document["run"]["digest"].is_null());
    BOOST_TEST(document["recording"]["percentile_error_share"].is_null());
    BOOST_TEST(document["model"]["accuracy"].is_null());
    BOOST_TEST(document["rows"].at(0)["samples_per_s"].is_null());
}

BOOST_AUTO_TEST_CASE(blame_and_trust_are_told_once_a_diagnosis_knows_them) {
    Summary summary = summarize(hand_made::one_epoch());
    summary.blame = std::vector<BlameSummary>{};
    BOOST_TEST(to_json(summary, head)["draw"]["blame"] == Json::array());
    summary.blame = {{.cause = "decode+crop", .total_s = 0.3, .share = 0.75}, {.cause = "order", .total_s = 0.1}};
    summary.trust = {.trusted = false, .interference_share = 0.25, .steal_share = 0.5, .reasons = {"a", "b"}};
    const Json document = to_json(summary, head), &blame = document["draw"]["blame"], &trust = document["trust"];
    check_keys(blame.at(0), {"cause", "total_s", "share"});
    BOOST_TEST(blame.at(0)["cause"] == "decode+crop");
    BOOST_TEST(blame.at(0)["total_s"] == 0.3);
    BOOST_TEST(blame.at(0)["share"] == 0.75);
    BOOST_TEST(blame.at(1)["share"].is_null());
    check_keys(trust, {"trusted", "interference_share", "steal_share", "reasons"});
    BOOST_TEST(trust["trusted"] == false);
    BOOST_TEST(trust["interference_share"] == 0.25);
    BOOST_TEST(trust["steal_share"] == 0.5);
    BOOST_TEST(trust["reasons"] == Json({"a", "b"}));
}

BOOST_AUTO_TEST_CASE(a_cache_is_told_with_its_share_of_hits) {
    Ledger ledger = hand_made::one_epoch();
    ledger.set_fact(facts::cache_hits, "0");
    const Json unused = to_json(summarize(ledger), head)["cache"];
    BOOST_TEST(unused["hit_share"].is_null());
    for (const auto& [key, value] : {std::pair{facts::cache_hits, "300"},
                                     {facts::cache_misses, "100"},
                                     {facts::cache_samples, "90"},
                                     {facts::cache_bytes, "5000"},
                                     {facts::cache_budget_bytes, "6000"},
                                     {facts::cache_origin, "memory"}})
        ledger.set_fact(key, value);
    const Json cache = to_json(summarize(ledger), head)["cache"];
    check_keys(cache, {"hits", "misses", "hit_share", "samples", "bytes", "budget_bytes", "origin"});
    BOOST_TEST(cache["hit_share"] == 0.75);
    BOOST_TEST(cache["misses"] == 100);
    BOOST_TEST(cache["samples"] == 90);
    BOOST_TEST(cache["bytes"] == 5000);
    BOOST_TEST(cache["budget_bytes"] == 6000);
    BOOST_TEST(cache["origin"] == "memory");
}

BOOST_AUTO_TEST_CASE(the_error_of_percentiles_is_a_number_where_there_is_one) {
    Summary summary = summarize(hand_made::one_epoch());
    summary.recording.percentile_error_share = 0.01;
    BOOST_TEST(to_json(summary, head)["recording"]["percentile_error_share"] == 0.01);
}

BOOST_AUTO_TEST_CASE(numbers_read_back_as_they_were_and_broken_text_does_not_break_the_document) {
    Ledger ledger = hand_made::one_epoch();
    ledger.failures.push_back({.path = "\xff.jpg"});
    const Summary summary = summarize(ledger);
    const Json document = Json::parse(json_text(to_json(summary, head)));
    BOOST_REQUIRE(document["rows"].size() == summary.rows.size());
    for (std::size_t i = 0; i < summary.rows.size(); ++i) {
        BOOST_TEST(document["rows"][i]["mean_s"].get<double>() == summary.rows[i].mean_s);
        BOOST_TEST(document["rows"][i]["p99_s"].get<double>() == summary.rows[i].p99_s);
    }
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
