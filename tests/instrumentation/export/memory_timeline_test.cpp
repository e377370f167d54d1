#include <boost/test/unit_test.hpp>

#include <limits>
#include <stdexcept>

#include <nlohmann/json.hpp>

#include <drawpoint/instrumentation/export/memory_timeline.hpp>

#include "tests/instrumentation/export/operator_run.hpp"
#include "tests/support/temporary_folder.hpp"

namespace {

using namespace drawpoint;
using namespace drawpoint::test;
using Json = nlohmann::json;

constexpr std::int64_t start_ns = 1'000'000;

/// Address 1 exists from the beginning; 2 is allocated; 3 is allocated in the microsecond in which 2 is freed; device 0
/// has an address of its own.
Ledger allocations() {
    Ledger ledger;
    ledger.start_ns = start_ns;
    ledger.threads = {{1, "loop", -1}};
    ledger.allocations = {{start_ns + 2'500, 0, -1, 100, 2, 0},
                          {start_ns + 3'000, 0, 0, 7, 9, 0},
                          {start_ns + 4'000, 0, -1, -40, 1, 0},
                          {start_ns + 6'100, 0, -1, -100, 2, 0},
                          {start_ns + 6'900, 0, -1, 30, 3, 0}};
    return ledger;
}

std::string written(const Ledger& ledger, MemoryTimelineForm form, std::int32_t device = -1) {
    return text_of([&](std::ostream& out) { write_memory_timeline(ledger, out, form, device); });
}

std::string refusal(const Ledger& ledger, std::int32_t device = -1) {
    try {
        (void)written(ledger, MemoryTimelineForm::sizes, device);
    } catch (const std::invalid_argument& error) {
        return error.what();
    }
    return "no error";
}

BOOST_AUTO_TEST_SUITE(memory_timeline)

BOOST_AUTO_TEST_CASE(sizes_are_what_is_held_from_each_microsecond_on) {
    const Json document = Json::parse(written(allocations(), MemoryTimelineForm::sizes));
    BOOST_TEST(document[0] == Json::parse("[2, 2, 4, 6]"));
    const std::vector<std::int64_t> held{40, 140, 100, 30};
    BOOST_REQUIRE(document[1].size() == held.size());
    for (std::size_t i = 0; i < held.size(); ++i)
        BOOST_TEST(document[1][i] == Json::parse("[0,0,0,0,0,0,0,0," + std::to_string(held[i]) + "]"));
    BOOST_TEST(Json::parse(written(allocations(), MemoryTimelineForm::sizes, 0)) ==
               Json::parse("[[3], [[0,0,0,0,0,0,0,0,7]]]"));
}

BOOST_AUTO_TEST_CASE(raw_events_name_what_was_there_before) {
    BOOST_TEST(Json::parse(written(allocations(), MemoryTimelineForm::raw)) ==
               Json::parse("[[-1,1,40,7], [2500,2,100,7], [4000,4,-40,7], [6100,4,-100,7], [6900,2,30,7]]"));
}

BOOST_AUTO_TEST_CASE(sizes_and_stamps_that_no_run_has_are_written_as_they_are) {
    constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min();
    Ledger ledger;
    ledger.threads = {{1, "loop", -1}};
    ledger.allocations = {{least, 0, -1, least, 1, 0}, {~least, 0, -1, -5, 2, 0}, {0, 0, -1, least, 3, 0}};
    const Json raw = Json::parse(written(ledger, MemoryTimelineForm::raw));
    BOOST_TEST(raw.size() == 6u);
    BOOST_TEST(raw[0][2] == least);
    BOOST_TEST(raw[3] == (Json{least, 4, least, 7}));
    BOOST_TEST(written(ledger, MemoryTimelineForm::plot).find("</svg>") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(what_is_missing_is_named_as_pytorch_does) {
    Ledger ledger;
    BOOST_TEST(refusal(ledger) ==
               "record_shapes=True, profile_memory=True, with_stack=True required for memory profiling.");
    ledger.set_fact(std::string{facts::metadata_prefix} + "record_shapes", "1");
    ledger.set_fact(std::string{facts::metadata_prefix} + "with_stack", "0");
    BOOST_TEST(refusal(ledger) == "profile_memory=True, with_stack=True required for memory profiling.");
    BOOST_TEST(refusal(allocations(), 3) == "no allocation was recorded on the device cuda:3");
}

BOOST_AUTO_TEST_CASE(the_files_name_says_its_form) {
    const TemporaryFolder folder;
    const auto text = [&](const char* name) {
        export_memory_timeline(allocations(), folder / name);
        return bytes_in(folder / name);
    };
    BOOST_TEST(text("a.json") == written(allocations(), MemoryTimelineForm::sizes));
    BOOST_TEST(text("a.raw.json") == written(allocations(), MemoryTimelineForm::raw));
    BOOST_TEST(text("a.raw.json.gz").substr(0, 2) == "\x1f\x8b");
    const std::string page = text("a.html");
    BOOST_TEST(page.find("at most 140 B") != std::string::npos);
    BOOST_TEST(page.find("<path") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
