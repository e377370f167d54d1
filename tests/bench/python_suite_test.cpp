#include <drawpoint/bench/experiment/command.hpp>
#include <drawpoint/bench/experiment/experiment.hpp>

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "support/shell_output.hpp"

namespace drawpoint::bench {
namespace {

const std::string program = DRAWPOINT_PYTHON_SUITE;   // starts suite_rows.py

std::string reason(Contender& contender, std::size_t runs = 0) {
    try {
        runs == 0 ? contender.prepare() : void(contender.take_turn(runs));
    } catch (const NotRun& failure) {
        return failure.what();
    }
    return "it ran";
}

double value(const Contender& contender, const Turn& turn, const std::string& name) {
    const auto found = std::ranges::find(contender.metrics(), name, &Metric::name);
    if (found == contender.metrics().end())
        throw std::out_of_range{"no metric " + name};
    return turn.values[static_cast<std::size_t>(found - contender.metrics().begin())];
}

}   // namespace

BOOST_AUTO_TEST_SUITE(python_suite)

BOOST_AUTO_TEST_CASE(rows_measure_themselves_without_the_run_that_warms_up) {
    const auto rows = make_command("it", program + " own --row counts --row short --row loader", Reports::suite);
    rows->prepare();
    const Turn turn = rows->take_turn(3);
    BOOST_TEST(value(*rows, turn, "counts: sum of numbers") == 6);   // 1 + 2 + 3
    BOOST_TEST(value(*rows, turn, "short: wall time") >= 0.001);
    BOOST_TEST(value(*rows, turn, "short: items/s") > 0);
    BOOST_TEST(value(*rows, turn, "short: peak memory") > 1e6);
    BOOST_TEST(value(*rows, turn, "loader: first batch") > 0);
    BOOST_TEST(value(*rows, turn, "loader: draw p50") <= value(*rows, turn, "loader: draw p99"));
    BOOST_TEST(rows->parts().size() == 3u);
    BOOST_TEST(!rows->parts()[0].digest.has_value());
    BOOST_TEST(rows->parts()[1].digest.value() == "0000000000000007");
    BOOST_TEST(rows->parts()[2].digest.value() == "000000000000002d");   // 0 + 1 + … + 9
    const auto process = make_command("it", program + " --row short", Reports::row);
    process->prepare();
    for (const char* name : {"wall time", "CPU time", "page faults", "context switches"}) {   // as in C++
        const auto same = [&](const Metric& metric) { return metric.name == name; };
        const auto cpp = make_command("it", "true");
        BOOST_TEST((*std::ranges::find_if(process->metrics(), same) == *std::ranges::find_if(cpp->metrics(), same)));
    }
}

BOOST_AUTO_TEST_CASE(what_a_row_raises_is_the_reason_why_it_does_not_run) {
    const auto broken = make_command("it", program + " --row broken", Reports::row);
    BOOST_TEST(reason(*broken).ends_with("rows in Python: no such disk"));
    const auto later = make_command("it", program + " --row 'fails later'", Reports::row);
    later->prepare();
    BOOST_TEST(reason(*later, 3).ends_with("rows in Python: the disk is full"));
    BOOST_TEST(later->take_turn(1).values.size() == later->metrics().size());
    const auto spent = make_command("it", program + " --row 'once only'", Reports::row);
    BOOST_TEST(reason(*spent).find("a pass has 0 samples, the one before had 10") != std::string::npos);
    const auto two = make_command("it", program + " --row short --row long", Reports::row);
    BOOST_TEST(reason(*two).ends_with("has 2 rows: choose one with --row"));
}

BOOST_AUTO_TEST_CASE(rows_of_a_python_and_a_cpp_program_are_compared_whatever_their_names) {
    std::vector<std::unique_ptr<Contender>> rows;
    rows.push_back(make_command("cpp", DRAWPOINT_SUITE_ROWS " 1 --row once", Reports::row));
    rows.push_back(make_command("python", program + " --row long", Reports::row));
    Experiment experiment{std::move(rows), {.least_turn = std::chrono::milliseconds{10}}};
    experiment.prepare();
    for (int round = 0; round < 15; ++round)
        experiment.run_round();
    const auto all = compare(experiment.measurements());
    BOOST_REQUIRE(!all.empty());
    BOOST_TEST((all.front().finding == Finding::slower));   // 5 ms, not 1
    const auto differs = differing_parts(experiment.measurements(), 1);
    BOOST_REQUIRE(differs.size() == 1u);
    BOOST_TEST(differs[0] == "python has another output than cpp");   // 8, not 7
}

BOOST_AUTO_TEST_CASE(a_script_compares_its_own_rows) {
    const test::ShellOutput ended =
        test::run_by_shell("DRAWPOINT=/bin/echo " + program + " own --row loader --rounds 3");
    BOOST_TEST(ended.status == 0);
    BOOST_TEST(ended.output.find("bench --reports row --command loader=") != std::string::npos, ended.output);
    BOOST_TEST(ended.output.find("suite_rows.py own --row=loader --rounds 3\n") != std::string::npos, ended.output);
    const test::ShellOutput missing = test::run_by_shell("DRAWPOINT=/nowhere " + program);
    BOOST_TEST(missing.status == 1);
    BOOST_TEST(missing.output.find("/nowhere: No such file or directory") != std::string::npos, missing.output);
    BOOST_TEST(test::run_by_shell(program + " --once nothing").status == 2);
    BOOST_TEST(test::run_by_shell(program + " --runs 2").status == 2);
    BOOST_TEST(test::run_by_shell(program + " --once counts --runs 0").status == 2);
    const test::ShellOutput nobody = test::run_by_shell(program + " --once opens --steps 3>&-");
    BOOST_TEST(nobody.status == 1);
    BOOST_TEST(nobody.output.find("descriptor 3") != std::string::npos, nobody.output);
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace drawpoint::bench
