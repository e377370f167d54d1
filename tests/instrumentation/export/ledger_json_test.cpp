#include <boost/test/unit_test.hpp>

#include <limits>

#include <nlohmann/json.hpp>

#include <drawpoint/instrumentation/export/json.hpp>

#include "tests/instrumentation/export/operator_run.hpp"

namespace {

using namespace drawpoint;
using namespace drawpoint::test;
using Json = nlohmann::ordered_json;

Json exported(const Ledger& ledger) {
    return Json::parse(text_of([&](std::ostream& out) { write_json_ledger(ledger, out); }));
}

BOOST_AUTO_TEST_SUITE(ledger_json)

BOOST_AUTO_TEST_CASE(the_document_begins_like_every_other) {
    Ledger ledger = hand_made::one_epoch();
    ledger.set_fact(facts::version, "1.2.3");
    ledger.set_fact(facts::command, "drawpoint profile");
    ledger.set_fact(facts::machine_cores, "8");
    ledger.set_fact(std::string{facts::machine_library_prefix} + "fmt", "9");
    const Json document = exported(ledger);
    const std::vector<std::string> head{"schema", "version", "command", "machine", "start_ns", "facts"};
    std::size_t i = 0;
    for (const auto& [key, value] : document.items())
        if (i < head.size())
            BOOST_TEST(key == head[i++]);
    BOOST_TEST(document["schema"] == "drawpoint.ledger/1");
    BOOST_TEST(document["version"] == "1.2.3");
    BOOST_TEST(document["machine"]["cores_usable"] == 8);
    BOOST_TEST(document["machine"]["libraries"]["fmt"] == "9");
    BOOST_TEST(document["facts"]["run.command"] == "drawpoint profile");
}

BOOST_AUTO_TEST_CASE(a_step_holds_its_pieces_and_all_its_numbers) {
    const Ledger ledger = hand_made::one_epoch();
    const Json document = exported(ledger);
    BOOST_REQUIRE(document["steps"].size() == ledger.steps.size());
    for (std::size_t i = 0; i < ledger.steps.size(); ++i) {
        const StepRow& row = ledger.steps[i];
        const Json& step = document["steps"][i];
        BOOST_TEST(step["draw_begin_ns"] == row.draw_begin_ns);
        BOOST_TEST(step["draw_ns"] == row.draw_ns);
        BOOST_TEST(step["batch_ns"] == row.batch_ns);
        BOOST_TEST(step["phase"] == name_of(row.phase));
        const auto spans = ledger.spans_of(row);
        BOOST_REQUIRE(step["spans"].size() == spans.size());
        for (std::size_t j = 0; j < spans.size(); ++j) {
            BOOST_TEST(step["spans"][j]["span"] == name_of(spans[j].span));
            BOOST_TEST(step["spans"][j]["begin_ns"] == spans[j].begin_ns);
            BOOST_TEST(step["spans"][j]["ns"] == spans[j].ns);
        }
    }
    BOOST_TEST(document["steps"][0]["loss"] == 8.0);
    BOOST_TEST(document["steps"][3]["loss"].is_null());
    BOOST_TEST(document["passes"].size() == ledger.passes.size());
}

BOOST_AUTO_TEST_CASE(no_column_is_missing) {
    OperatorRun run;
    Ledger& ledger = run.ledger;
    add_first_batch(ledger);
    OperatorRow& call = run.call(run.thread(3, "t"), "op", 5, 6, OperatorKind::kernel);
    call.correlation = std::numeric_limits<std::uint64_t>::max();
    ledger.ends_of_data = {{2, Phase::valid, 30, 40}};
    ledger.failures = {{17, 1, 2, 0, "a/b\".jpg", "decode", "broken \xff"}};
    ledger.dropped = {{3, 4, 5, 6}};
    ledger.thinnings = {{7, 8, 9}};
    ledger.settings = {{11, 1, 2, 3, OrderRule::out_of_order(), 4, 5}};
    ledger.orders = {{.begin_ns = 27, .ns = 28, .epoch = 1, .pipeline = 2, .worker = std::uint16_t{0}}};
    ledger.transfers = {{.epoch = 1, .batch = 2, .pipeline = 3, .bytes = 4, .issue_ns = 5, .begin_ns = 6, .end_ns = 7}};
    ledger.device_steps = {{.step = 1, .epoch = 2, .phase = Phase::valid, .free_ns = 3, .end_ns = 9, .draw_ns = 30}};
    ledger.host = {{.at_ns = 12, .own_cpu_ns = 0, .resident_bytes = 13}};
    ledger.pipelines[0].read_concurrency = 21;
    ledger.pipelines[0].memory_budget = 22;
    ledger.steps[0].cpu_ns = 23;
    ledger.steps[0].run_queue_ns = 24;
    ledger.steps[0].between_run_queue_ns = 26;
    ledger.stages[ledger.samples[1].stages.first].cpu_ns = 25;
    ledger.allocations = {{1, 0, -1, -64, 77, 5}};
    ledger.frames = {{0, nothing, 12}};
    ledger.stacks = {{nothing, 0}};
    ledger.stack_samples = {{1, 0, 0, 1000}};
    ledger.folded.steps = 12;
    ledger.batches.push_back({.batch = 9, .collate_worker = std::uint16_t{3}, .collate_end_ns = 8});
    const Json document = exported(ledger);
    BOOST_TEST(document["pipelines"][0]["stages"] == Json::parse(R"(["decode+crop", "scale"])"));
    BOOST_TEST(document["batches"][0]["taken_ns"] == ledger.batches[0].taken_ns);
    BOOST_TEST(document["batches"][0]["collate_begin_ns"].is_null());
    BOOST_TEST(document["batches"][0]["collate_worker"].is_null());
    BOOST_TEST(document["batches"].back()["collate_end_ns"] == 8);
    BOOST_TEST(document["batches"].back()["collate_worker"] == 3);
    BOOST_TEST(document["samples"][1]["stages"][0]["ns"] == 100);
    BOOST_TEST(document["samples"][0]["cpu_ns"].is_null());
    BOOST_TEST(document["ends_of_data"][0]["ns"] == 40);
    BOOST_TEST(document["settings"] == Json::parse(R"([{"at_ns": 11, "pipeline": 1, "num_workers": 2,
        "prefetch_depth": 3, "max_overtakes": null, "read_concurrency": 4, "memory_budget": 5}])"));
    BOOST_TEST(document["orders"] == Json::parse(R"([{"begin_ns": 27, "ns": 28, "cpu_ns": null, "epoch": 1,
        "pipeline": 2, "worker": 0}])"));
    BOOST_TEST(document["transfers"] == Json::parse(R"([{"epoch": 1, "batch": 2, "pipeline": 3, "bytes": 4,
        "issue_ns": 5, "begin_ns": 6, "end_ns": 7}])"));
    BOOST_TEST(document["device_steps"] == Json::parse(R"([{"step": 1, "epoch": 2, "phase": "valid", "free_ns": 3,
        "queued_ns": 0, "begin_ns": 0, "end_ns": 9, "host_queued_ns": 0, "host_end_ns": 0, "uncertainty_ns": 0,
        "dry_starved_ns": 0, "dry_handoff_ns": 0, "dry_transfer_ns": 0, "dry_callbacks_ns": 0, "dry_step_ns": 0,
        "dry_between_ns": 0, "dry_launch_ns": 0, "draw_ns": 30, "loss": null,
        "forward_ns": 0, "host_forward_ns": 0}])"));
    BOOST_TEST(document["host"][0]["at_ns"] == 12);
    BOOST_TEST(document["host"][0]["own_cpu_ns"] == 0);
    BOOST_TEST(document["host"][0]["busy_ns"].is_null());
    BOOST_TEST(document["host"][0]["resident_bytes"] == 13);
    BOOST_TEST(document["pipelines"][0]["read_concurrency"] == 21);
    BOOST_TEST(document["pipelines"][0]["memory_budget"] == 22);
    BOOST_TEST(document["steps"][0]["cpu_ns"] == 23);
    BOOST_TEST(document["steps"][0]["run_queue_ns"] == 24);
    BOOST_TEST(document["steps"][0]["between_run_queue_ns"] == 26);
    BOOST_TEST(document["steps"][1]["between_run_queue_ns"].is_null());
    BOOST_TEST(document["steps"][1]["cpu_ns"].is_null());
    BOOST_TEST(document["samples"][1]["stages"][0]["cpu_ns"] == 25);
    BOOST_TEST(document["samples"][0]["stages"][0]["cpu_ns"].is_null());
    BOOST_TEST(document["failures"][0]["path"] == "a/b\".jpg");
    BOOST_TEST(document["failures"][0]["message"] == "broken \xef\xbf\xbd");
    BOOST_TEST(document["dropped"][0]["records"] == 3);
    BOOST_TEST(document["thinnings"][0]["samples_every"] == 9);
    BOOST_TEST(document["names"][0] == "op");
    BOOST_TEST(document["threads"][0]["tid"] == 3);
    BOOST_TEST(document["operators"][0]["kind"] == "kernel");
    BOOST_TEST(document["operators"][0]["correlation"] == std::numeric_limits<std::uint64_t>::max());
    BOOST_TEST(document["operators"][0]["shapes"].is_null());
    BOOST_TEST(document["operators"][0]["sequence"].is_null());
    BOOST_TEST(document["allocations"][0]["bytes"] == -64);
    BOOST_TEST(document["frames"][0]["line"] == 12);
    BOOST_TEST(document["stacks"][0]["parent"].is_null());
    BOOST_TEST(document["stack_samples"][0]["weight_ns"] == 1000);
    BOOST_TEST(document["folded"]["steps"] == 12);
    BOOST_TEST(document["folded"]["until_ns"].is_null());
}

BOOST_AUTO_TEST_CASE(a_loss_that_json_has_no_word_for_is_null) {
    Ledger ledger = hand_made::one_epoch();
    ledger.steps[0].loss = std::numeric_limits<double>::quiet_NaN();
    ledger.steps[1].loss = 0.1 + 0.2;
    const Json document = exported(ledger);
    BOOST_TEST(document["steps"][0]["loss"].is_null());
    BOOST_TEST(document["steps"][1]["loss"] == 0.1 + 0.2);
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
