#include <drawpoint/instrumentation/export/xplane.hpp>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>
#include <protozero/pbf_reader.hpp>

#include "tests/instrumentation/export/operator_run.hpp"

namespace {

using namespace drawpoint;
using namespace drawpoint::test;
using protozero::pbf_reader;

struct Event {
    std::string name;
    std::int64_t begin_ns = 0, ns = 0;
    std::map<std::string, std::string> stats;
};

struct Plane {
    std::string name;
    std::map<std::string, std::vector<Event>> lines;
};

/// The only plane of a space, with all names looked up.
Plane read(const std::string& bytes) {
    pbf_reader space{bytes};
    BOOST_REQUIRE(space.next(1));
    const std::string plane_bytes = space.get_bytes();
    BOOST_TEST(!space.next(1));
    std::map<std::int64_t, std::string> events, stats;
    for (pbf_reader fields{plane_bytes}; fields.next();) {
        if (fields.tag() != 4 && fields.tag() != 5) {
            fields.skip();
            continue;
        }
        auto& names = fields.tag() == 4 ? events : stats;
        std::int64_t key = 0, id = 0;
        std::string name;
        for (pbf_reader entry = fields.get_message(); entry.next();)
            if (entry.tag() == 1)
                key = entry.get_int64();
            else
                for (pbf_reader value = entry.get_message(); value.next();)
                    if (value.tag() == 1)
                        id = value.get_int64();
                    else
                        name = value.get_string();
        BOOST_TEST(key == id);
        names[id] = name;
    }
    Plane plane;
    for (pbf_reader fields{plane_bytes}; fields.next();) {
        if (fields.tag() == 2) {
            plane.name = fields.get_string();
            continue;
        }
        if (fields.tag() != 3) {
            fields.skip();
            continue;
        }
        std::string line_name;
        std::int64_t base_ns = 0;
        std::vector<Event> all;
        for (pbf_reader line = fields.get_message(); line.next();) {
            if (line.tag() == 2) {
                line_name = line.get_string();
            } else if (line.tag() == 3) {
                base_ns = line.get_int64();
            } else if (line.tag() == 4) {
                Event& one = all.emplace_back();
                for (pbf_reader event = line.get_message(); event.next();)
                    switch (event.tag()) {
                    case 1: one.name = events.at(event.get_int64()); break;
                    case 2: one.begin_ns = base_ns + event.get_int64() / 1000; break;
                    case 3: one.ns = event.get_int64() / 1000; break;
                    case 4: {
                        std::string stat, value;
                        for (pbf_reader fact = event.get_message(); fact.next();)
                            if (fact.tag() == 1)
                                stat = stats.at(fact.get_int64());
                            else if (fact.tag() == 4)
                                value = std::to_string(fact.get_int64());
                            else
                                value = fact.get_string();
                        one.stats[stat] = value;
                        break;
                    }
                    default: event.skip();
                    }
            } else {
                line.skip();
            }
        }
        BOOST_TEST(plane.lines.emplace(line_name, all).second, line_name << " is there twice");
    }
    return plane;
}

Plane exported(const Ledger& ledger) {
    return read(text_of([&](std::ostream& out) { write_xplane(ledger, out); }));
}

BOOST_AUTO_TEST_SUITE(xplane)

BOOST_AUTO_TEST_CASE(steps_and_draws_are_marked_as_xprof_counts_them) {
    Ledger ledger = hand_made::one_epoch();
    constexpr std::int64_t unix_offset = 1'700'000'000'000'000'000;
    ledger.set_fact("clock.unix_offset_ns", std::to_string(unix_offset));
    const Plane plane = exported(ledger);
    BOOST_TEST(plane.name == "/host:CPU");
    std::size_t steps = 0, draws = 0;
    for (const Event& event : plane.lines.at("loop")) {
        if (event.stats.contains("_r")) {
            const StepRow& row = ledger.steps.at(steps++);
            BOOST_TEST(event.stats.at("_r") == "1");
            BOOST_TEST(event.stats.at("step_num") == std::to_string(row.step));
            BOOST_TEST(event.begin_ns == row.draw_begin_ns + unix_offset);
            BOOST_TEST(event.ns == row.draw_ns + row.batch_ns);
        }
        if (event.stats.contains("_ipl_stage_name")) {
            const StepRow& row = ledger.steps.at(draws++);
            BOOST_TEST(event.begin_ns == row.draw_begin_ns + unix_offset);
            BOOST_TEST(event.ns == row.draw_ns);
        }
    }
    BOOST_TEST(steps == ledger.steps.size());
    BOOST_TEST(draws == ledger.steps.size());
}

BOOST_AUTO_TEST_CASE(workers_have_lines_and_streams_of_devices_have_none) {
    OperatorRun run;
    add_first_batch(run.ledger);
    run.call(run.thread(77), "aten::add", run.begin_of(0, Span::forward), 3);
    run.call(run.thread(7, "", 0), "gemm", run.begin_of(0, Span::forward), 3, OperatorKind::kernel);
    run.ledger.sort();
    const Plane plane = exported(run.ledger);
    BOOST_TEST(plane.lines.at("worker 1").front().name == "sample");
    bool has_operator = false;
    for (const auto& [name, events] : plane.lines)
        for (const Event& event : events) {
            has_operator |= event.name == "aten::add";
            BOOST_TEST(event.name != "gemm");
        }
    BOOST_TEST(has_operator);
    BOOST_TEST(exported({}).lines.empty());
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
