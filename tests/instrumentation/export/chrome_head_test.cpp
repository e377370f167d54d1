#include <boost/test/unit_test.hpp>

#include <regex>
#include <string>
#include <vector>

#include "tests/instrumentation/export/exported_chrome.hpp"

namespace {

using namespace drawpoint;
using namespace drawpoint::test;

BOOST_AUTO_TEST_SUITE(chrome_head)

BOOST_AUTO_TEST_CASE(the_keys_stand_in_kinetos_order) {
    OperatorRun run;
    run.ledger.set_fact(std::string{facts::metadata_prefix} + "record_shapes", "1");
    const Json document = Json::parse(exported(run.ledger));
    std::vector<std::string> keys;
    for (const auto& [key, value] : document.items())
        keys.push_back(key);
    const std::vector<std::string> expected{"schemaVersion",   "deviceProperties",    "record_shapes", "drawpoint",
                                            "displayTimeUnit", "baseTimeNanoseconds", "traceEvents",   "traceName"};
    BOOST_TEST(keys == expected, boost::test_tools::per_element());
    BOOST_TEST(document["schemaVersion"] == 1);
    BOOST_TEST(document["record_shapes"] == 1);
    BOOST_TEST(document["traceName"] == "run.pt.trace.json");
    BOOST_TEST(document["traceEvents"].back()["name"] == "Record Window End");
}

BOOST_AUTO_TEST_CASE(unix_time_is_the_base_where_it_is_known) {
    Ledger ledger = hand_made::one_epoch();
    ledger.start_ns = 1000;
    ledger.set_fact(facts::unix_offset_ns, "1790857026000000000");
    BOOST_TEST(Json::parse(exported(ledger))["baseTimeNanoseconds"] == 1790857026000001000);
}

BOOST_AUTO_TEST_CASE(a_stack_is_written_once_and_its_calls_name_it) {
    OperatorRun run;
    const std::uint32_t main = run.name("main"), file = run.name("a.cpp"), inner = run.name("inner");
    run.ledger.frames = {{main, file, 3}, {inner, nothing, 0}};
    run.ledger.stacks = {{nothing, 0}, {0, 1}};
    const std::uint32_t thread = run.thread(3);
    for (std::int64_t i = 0; i < 3; ++i)
        run.call(thread, "op", run.ledger.start_ns + 2 * i, 1).stack = i == 2 ? nothing : 1;
    const Json document = Json::parse(exported(run.ledger));
    BOOST_TEST(document["stackFrames"] == Json::parse(R"({"0": {"category": "", "name": "a.cpp(3): main"},
                               "1": {"category": "", "name": "inner", "parent": "0"}})"));
    std::vector<int> frames;
    for (const Json& event : document["traceEvents"])
        if (event["name"] == "op")
            frames.push_back(event.value("sf", -1));
    BOOST_TEST(frames == (std::vector{1, 1, -1}), boost::test_tools::per_element());
    BOOST_TEST(!Json::parse(exported(hand_made::one_epoch())).contains("stackFrames"));
}

BOOST_AUTO_TEST_CASE(the_rank_stands_behind_a_space_in_a_line_of_its_own) {
    Ledger ledger = hand_made::one_epoch();
    BOOST_TEST(exported(ledger).find("distributedInfo") == std::string::npos);
    ledger.set_fact(facts::rank, "3");
    ledger.set_fact(facts::world_size, "4");
    ledger.set_fact(facts::backend, "gloo");
    const std::regex line{R"re(\n\s*"rank": 3,?\n)re"};
    BOOST_TEST(std::regex_search(exported(ledger), line));
    BOOST_TEST(Json::parse(exported(ledger))["distributedInfo"] ==
               Json::parse(R"({"backend": "gloo", "world_size": 4, "rank": 3})"));
    ledger.set_fact(std::string{facts::metadata_prefix} + "distributedInfo", R"({"rank":3,"pg_count":1})");
    BOOST_TEST(std::regex_search(exported(ledger), line));
    BOOST_TEST(Json::parse(exported(ledger))["distributedInfo"]["pg_count"] == 1);
}

BOOST_AUTO_TEST_CASE(metadata_is_json_and_cannot_break_the_file) {
    Ledger ledger = hand_made::one_epoch();
    const std::string prefix{facts::metadata_prefix};
    ledger.set_fact(prefix + "note", json_string("a \"note\""));
    ledger.set_fact(prefix + "loader", R"({"num_workers": 2})");
    ledger.set_fact(prefix + "broken", "{\"a\":");
    ledger.set_fact(prefix + "traceEvents", "[1]");
    const Json document = Json::parse(exported(ledger));
    BOOST_TEST(document["note"] == "a \"note\"");
    BOOST_TEST(document["loader"]["num_workers"] == 2);
    BOOST_TEST(document["broken"] == "{\"a\":");
    BOOST_TEST(document["user.traceEvents"] == Json::parse("[1]"));
    BOOST_TEST(document["traceEvents"].size() > 20u);
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
