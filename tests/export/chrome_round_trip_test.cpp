#include <boost/test/unit_test.hpp>

#include <filesystem>
#include <set>
#include <sstream>
#include <string>
#include <tuple>

#include <zlib.h>

#include <drawpoint/instrumentation/export/chrome.hpp>
#include <drawpoint/instrumentation/import/chrome_trace.hpp>

#include <tests/export/operator_run.hpp>
#include <tests/golden/golden_files.hpp>

namespace {

using namespace drawpoint;

std::string contents(const std::filesystem::path& file) {   // of a compressed file too
    gzFile stream = gzopen(file.c_str(), "rb");
    BOOST_REQUIRE(stream);
    std::string text;
    char block[1 << 14];
    for (int got; (got = gzread(stream, block, sizeof block)) > 0;)
        text.append(block, static_cast<std::size_t>(got));
    gzclose(stream);
    return text;
}

std::size_t links_in(const std::string& trace) {
    const golden::Json document = golden::Json::parse(trace);
    std::size_t found = 0;
    for (const auto& event : document["traceEvents"])
        found += event["ph"] == "s" && event.value("cat", "") == "fwdbwd";
    return found;
}

/// Everything a call is, with texts in place of positions.
auto calls_of(const Ledger& ledger) {
    const auto text = [&](std::uint32_t name) { return name == nothing ? std::string{} : ledger.names.at(name); };
    std::multiset<
        std::tuple<std::uint64_t, std::int64_t, std::int64_t, std::string, std::string, std::int64_t, std::uint64_t>>
        calls;
    for (const OperatorRow& row : ledger.operators)
        calls.emplace(ledger.threads.at(row.thread).tid, row.begin_ns, row.ns, text(row.name), text(row.shapes),
                      row.sequence, row.forward_thread);
    return calls;
}

BOOST_AUTO_TEST_SUITE(chrome_round_trip)

BOOST_AUTO_TEST_CASE(pytorchs_traces_read_and_written_hold_every_call_and_link_to_the_nanosecond) {
    std::size_t traces = 0;
    for (const golden::Path& folder : golden::folders())
        for (const auto& entry : std::filesystem::directory_iterator{folder / "g6_kineto"}) {
            const std::string name = entry.path().filename().string();
            if (!name.starts_with("cpu_") || (!name.ends_with(".json.gz") && name.find('.') != name.size() - 5))
                continue;
            BOOST_TEST_CONTEXT(name) {
                const std::string original = contents(entry.path());
                std::istringstream in{original};
                const Ledger ledger = import_chrome_trace(in, name).ledger;
                const std::string written =
                    test::text_of([&](std::ostream& out) { write_chrome_trace(ledger, out, {.trace_name = name}); });
                std::istringstream again{written};
                const Ledger back = import_chrome_trace(again, name).ledger;
                BOOST_TEST(ledger.operators.size() > 1000u);
                BOOST_TEST((calls_of(back) == calls_of(ledger)));
                BOOST_REQUIRE(back.steps.size() == ledger.steps.size());
                for (std::size_t i = 0; i < back.steps.size(); ++i) {
                    BOOST_TEST(back.steps[i].step == ledger.steps[i].step);
                    BOOST_TEST(back.steps[i].draw_ns == ledger.steps[i].draw_ns);
                    BOOST_TEST(back.steps[i].batch_ns == ledger.steps[i].batch_ns);
                }
                BOOST_TEST(links_in(original) > 0u);
                BOOST_TEST(links_in(written) == links_in(original));
                ++traces;
            }
        }
    BOOST_TEST(traces > 0u);
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
