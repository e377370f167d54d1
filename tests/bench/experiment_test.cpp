#include <drawpoint/bench/experiment/command.hpp>
#include <drawpoint/bench/experiment/experiment.hpp>
#include <drawpoint/bench/experiment/experiment_export.hpp>
#include <drawpoint/bench/experiment/experiment_report.hpp>

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <random>
#include <stdexcept>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "support/temporary_folder.hpp"

namespace drawpoint::bench {
namespace {

/// A machine in which a run costs what these say; nothing takes real time.
struct Machine {
    std::mt19937_64 random{1};
    std::size_t runs = 0, place = 0, in_round = 2;
    double noise = 0.01;
    double first_place = 1;   ///< factor of the first turn of a round
    double drift = 1;         ///< factor of each turn over the one before
    double level = 1;
    std::size_t fails_at = 0, cancels_at = 0;

    double turn() {
        ++runs;
        if (runs == fails_at)
            throw NotRun{"it: broke"};
        if (runs == cancels_at)
            throw Cancelled{};
        level *= drift;
        const double factor = place++ % in_round == 0 ? first_place : 1;
        return level * factor * std::exp(noise * std::normal_distribution<double>{}(random));
    }
};

class Pretended final : public Contender {
public:
    Pretended(Machine& machine, std::string name, double cost, std::string metric = "time")
        : machine_{machine},
          name_{std::move(name)},
          cost_{cost},
          metrics_{Metric{std::move(metric), Metric::Unit::seconds, true}, Metric{"faults", Metric::Unit::count}} {}
    const std::string& name() const noexcept override { return name_; }
    const std::string& description() const noexcept override { return name_; }
    std::span<const Metric> metrics() const noexcept override { return metrics_; }
    Turn take_turn(std::size_t runs) override {
        const double level = machine_.turn();
        for (std::size_t run = 1; run < runs; ++run)
            ++machine_.runs;
        return {.values = {cost_ * level, 7}};
    }
    void cancel() noexcept override {}

private:
    Machine& machine_;
    std::string name_;
    double cost_;
    std::vector<Metric> metrics_;
};

std::vector<std::unique_ptr<Contender>> contenders(Machine& machine, const std::vector<double>& costs) {
    std::vector<std::unique_ptr<Contender>> all;
    for (std::size_t i = 0; i < costs.size(); ++i)
        all.push_back(std::make_unique<Pretended>(machine, std::string(1, static_cast<char>('a' + i)), costs[i]));
    machine.in_round = costs.size();
    return all;
}

Measurements measure(Machine& machine, const std::vector<double>& costs, std::size_t rounds, std::uint64_t seed = 3) {
    Experiment experiment{contenders(machine, costs), {.seed = seed}};
    experiment.prepare();
    for (std::size_t i = 0; i < rounds; ++i)
        experiment.run_round();
    return experiment.measurements();
}

}   // namespace

BOOST_AUTO_TEST_SUITE(experiment)

BOOST_AUTO_TEST_CASE(every_order_of_turns_comes_as_often_as_any_other) {
    Machine machine;
    const Measurements measured = measure(machine, {1, 1, 1}, 6000);
    std::map<std::vector<std::size_t>, double> orders;
    for (const Round& round : measured.rounds)
        ++orders[round.order];
    BOOST_TEST(orders.size() == 6u);
    double chi_squared = 0;
    for (const auto& [order, count] : orders)
        chi_squared += (count - 1000) * (count - 1000) / 1000;
    BOOST_TEST(chi_squared < 20.5);   // 99.9 % of 5 degrees of freedom
}

BOOST_AUTO_TEST_CASE(neither_the_place_in_a_round_nor_drift_makes_equal_contenders_differ) {
    Machine machine{.first_place = 1.2, .drift = 1.001};
    const auto found = compare(measure(machine, {1, 1, 1}, 200));
    BOOST_REQUIRE(found.size() == 2u);
    for (const Comparison& one : found) {
        BOOST_TEST((one.finding == Finding::no_difference_shown));
        BOOST_TEST(one.ratio.low < 1);
        BOOST_TEST(one.ratio.high > 1);
    }
}

BOOST_AUTO_TEST_CASE(a_planted_difference_is_found_and_lies_in_its_bounds) {
    std::size_t held = 0, found = 0;
    for (std::uint64_t seed = 0; seed < 100; ++seed) {
        Machine machine{.random = std::mt19937_64{seed}, .first_place = 1.01};
        const Comparison one = compare(measure(machine, {1, 1.02}, 60, seed)).front();
        held += one.ratio.low <= 1.02 && 1.02 <= one.ratio.high;
        found += one.finding == Finding::slower;
    }
    BOOST_TEST(held >= 99u);
    BOOST_TEST(found >= 95u);
    Machine machine;
    const Comparison faster = compare(measure(machine, {1, 0.9}, 60)).front();
    BOOST_TEST((faster.finding == Finding::faster));
    BOOST_TEST(to_text(faster).starts_with("faster by "));
}

BOOST_AUTO_TEST_CASE(two_rounds_say_nothing) {
    Machine machine;
    const Comparison one = compare(measure(machine, {1, 3}, 2)).front();
    BOOST_TEST((one.finding == Finding::too_few_rounds));
    BOOST_TEST(to_text(one) == "too few rounds to say");
}

BOOST_AUTO_TEST_CASE(the_order_depends_on_the_seed_alone) {
    Machine a, b, c;
    const auto orders = [](const Measurements& measured) {
        std::vector<std::vector<std::size_t>> all;
        for (const Round& round : measured.rounds)
            all.push_back(round.order);
        return all;
    };
    const auto first = orders(measure(a, {1, 1, 1}, 50, 9));
    BOOST_TEST((first == orders(measure(b, {1, 1, 1}, 50, 9))));
    BOOST_TEST((first != orders(measure(c, {1, 1, 1}, 50, 10))));
}

BOOST_AUTO_TEST_CASE(a_turn_has_as_many_runs_as_take_its_time_and_counts_their_mean) {
    Machine machine{.noise = 0};
    Experiment experiment{contenders(machine, {1, 2}), {.least_turn = std::chrono::nanoseconds{0}}};
    experiment.prepare();
    experiment.calibrate();
    BOOST_TEST(experiment.measurements().runs == (std::vector<std::size_t>{1, 1}), boost::test_tools::per_element());

    Experiment longer{contenders(machine, {1, 2}), {.least_turn = std::chrono::milliseconds{1}}};
    longer.prepare();
    longer.calibrate();
    const std::size_t before = machine.runs;
    const Round& round = longer.run_round();
    const auto& runs = longer.measurements().runs;
    BOOST_TEST(runs[0] > 1u);
    BOOST_TEST(machine.runs - before == runs[0] + runs[1]);
    BOOST_TEST(round.values[0][0] == 1);
    BOOST_TEST(round.values[1][0] == 2);
    BOOST_TEST(round.values[1][1] == 7);
}

BOOST_AUTO_TEST_CASE(a_round_that_fails_or_is_cancelled_is_not_counted) {
    for (const bool fails : {true, false}) {
        Machine machine;
        (fails ? machine.fails_at : machine.cancels_at) = 6;
        Experiment experiment{contenders(machine, {1, 1})};
        experiment.prepare();
        experiment.run_round();
        experiment.run_round();
        if (fails)
            BOOST_CHECK_THROW(experiment.run_round(), NotRun);
        else
            BOOST_CHECK_THROW(experiment.run_round(), Cancelled);
        BOOST_TEST(experiment.measurements().rounds.size() == 2u);
    }
}

BOOST_AUTO_TEST_CASE(contenders_that_cannot_be_compared_are_refused) {
    Machine machine;
    BOOST_CHECK_THROW(Experiment({}), std::invalid_argument);
    auto twice = contenders(machine, {1, 1});
    twice[1] = std::make_unique<Pretended>(machine, "a", 1);
    BOOST_CHECK_THROW(Experiment(std::move(twice)), std::invalid_argument);
    auto other = contenders(machine, {1, 1});
    other[1] = std::make_unique<Pretended>(machine, "b", 1, "energy");
    Experiment experiment{std::move(other)};
    BOOST_CHECK_THROW(experiment.prepare(), NotRun);
}

/// Has a value for each of four items, of which one is late now and then.
class ByItem final : public Contender {
public:
    ByItem(std::mt19937_64& random, std::string name, float cost)
        : random_{random}, name_{std::move(name)}, cost_{cost} {}
    const std::string& name() const noexcept override { return name_; }
    const std::string& description() const noexcept override { return name_; }
    std::span<const Metric> metrics() const noexcept override { return metrics_; }
    Turn take_turn(std::size_t) override {
        std::vector<float> items{1 * cost_, 20 * cost_, 3 * cost_, 4 * cost_};
        const double late = random_() % 2 == 0 ? 50 : 1;
        items[random_() % 4] *= static_cast<float>(late);
        return {.values = {late}, .by_item = {std::move(items)}};
    }
    void cancel() noexcept override {}

private:
    std::mt19937_64& random_;
    std::string name_;
    float cost_;
    std::vector<Metric> metrics_{{"stage", Metric::Unit::seconds, true, true}};
};

/// Writes down when it is begun, run and ended.
class Pausing final : public PausingContender {
public:
    Pausing(std::string& log, std::string name, std::vector<std::string> sections)
        : log_{log}, name_{std::move(name)}, sections_{std::move(sections)} {}
    const std::string& name() const noexcept override { return name_; }
    const std::string& description() const noexcept override { return name_; }
    std::span<const Metric> metrics() const noexcept override { return metrics_; }
    std::span<const std::string> sections() const noexcept override { return sections_; }
    void begin(std::size_t section) override { log_ += name_ + sections_[section] + "("; }
    void run(std::size_t runs) override {
        for (; runs > 0; --runs, ++runs_) {
            log_ += name_;
            if (++all_runs_ == fails_at)
                throw NotRun{name_ + ": broke"};
        }
        std::this_thread::sleep_for(std::chrono::milliseconds{2});   // so that calibration ends
    }
    void end() override { log_ += name_ + ")"; }
    Turn results() override { return {.values = {static_cast<double>(std::exchange(runs_, 0))}, .seconds = 0.02}; }
    void cancel() noexcept override {}
    std::size_t fails_at = 0;

private:
    std::string& log_;
    std::string name_;
    std::vector<std::string> sections_;
    std::size_t runs_ = 0, all_runs_ = 0;
    std::vector<Metric> metrics_{{"time", Metric::Unit::seconds, true}};
};

BOOST_AUTO_TEST_CASE(contenders_that_can_pause_run_in_slices_there_and_back_section_by_section) {
    std::string log;
    std::vector<std::unique_ptr<Contender>> both;
    both.push_back(std::make_unique<Pausing>(log, "a", std::vector<std::string>{"old", "both"}));
    both.push_back(std::make_unique<Pausing>(log, "b", std::vector<std::string>{"both"}));
    Experiment experiment{std::move(both), {.least_turn = std::chrono::milliseconds{80}, .seed = 1}};
    experiment.prepare();
    experiment.calibrate();   // a run takes 20 ms, so a turn has four, a slice each
    std::map<std::string, int> rounds;
    for (int round = 0; round < 200; ++round) {
        log.clear();
        const Round& it = experiment.run_round();
        BOOST_TEST(it.values[0] == std::vector<double>{8}, boost::test_tools::per_element());   // in two sections
        BOOST_TEST(it.values[1] == std::vector<double>{4}, boost::test_tools::per_element());
        ++rounds[log];
        // The section that only one has stands alone, the other one is measured together.
        BOOST_TEST(log.starts_with("aold(aaaaa)"), log);
        const std::string second = log.substr(log.find(')') + 1);
        BOOST_TEST((second.starts_with("aboth(bboth(") || second.starts_with("bboth(aboth(")), log);
        const std::string runs = second.substr(12, 8);
        BOOST_TEST(std::ranges::count(runs, 'a') == 4, log);
        for (const std::size_t there : {0u, 4u}) {
            BOOST_TEST(runs[there] == runs[there + 3], log);   // and back
            BOOST_TEST(runs[there + 1] == runs[there + 2], log);
        }
    }
    BOOST_TEST(rounds.size() == 8u);   // by the coins of the first order, the one after two slices, and the last
}

BOOST_AUTO_TEST_CASE(one_that_fails_in_a_slice_is_left_out_and_the_others_go_on) {
    std::string log;
    std::vector<std::unique_ptr<Contender>> both;
    both.push_back(std::make_unique<Pausing>(log, "a", std::vector<std::string>{""}));
    auto failing = std::make_unique<Pausing>(log, "b", std::vector<std::string>{""});
    failing->fails_at = 3;
    both.push_back(std::move(failing));
    Experiment experiment{std::move(both), {.least_turn = std::chrono::milliseconds{20}, .leaves_out = true}};
    experiment.prepare();
    for (int round = 0; round < 4; ++round)
        experiment.run_round();
    BOOST_TEST(experiment.measurements().not_run[1] == "b: broke");
    BOOST_TEST(experiment.measurements().rounds.back().values[0] == std::vector<double>{1},
               boost::test_tools::per_element());
    BOOST_TEST(std::isnan(experiment.measurements().rounds.back().values[1][0]));
}

BOOST_AUTO_TEST_CASE(a_metric_by_item_is_compared_on_the_same_items_so_that_a_late_one_changes_nothing) {
    for (const bool exchanged : {false, true}) {
        std::mt19937_64 random{7};
        std::vector<std::unique_ptr<Contender>> all;
        all.push_back(std::make_unique<ByItem>(random, "a", 1.0F));
        all.push_back(std::make_unique<ByItem>(random, "b", 1.02F));
        if (exchanged)
            std::swap(all[0], all[1]);
        Experiment experiment{std::move(all)};
        experiment.prepare();
        for (int round = 0; round < 20; ++round)
            experiment.run_round();
        const Comparison one = compare(experiment.measurements()).at(0);
        BOOST_TEST((one.finding == (exchanged ? Finding::faster : Finding::slower)));
        BOOST_TEST(one.ratio.median == (exchanged ? 1 / 1.02 : 1.02), boost::test_tools::tolerance(1e-6));
    }
}

BOOST_AUTO_TEST_CASE(a_contender_that_cannot_run_is_left_out_with_its_reason_and_metrics_are_those_of_all) {
    Machine machine;
    auto all = contenders(machine, {1, 1, 1.5});
    all[1] = std::make_unique<Pretended>(machine, "b", 1, "energy");
    all.push_back(make_command("d", "exit 3; true", Reports::numbers));
    Experiment experiment{std::move(all), {.leaves_out = true}};
    experiment.prepare();
    for (int round = 0; round < 12; ++round)
        experiment.run_round();
    const Measurements& measured = experiment.measurements();
    BOOST_TEST(measured.not_run[1] == "b does not measure what a does");
    BOOST_TEST(measured.not_run[3].find("exit code 3") != std::string::npos);
    BOOST_TEST(measured.rounds[0].order.size() == 2u);
    const auto found = compare(measured);
    BOOST_REQUIRE(found.size() == 1u);
    BOOST_TEST(found[0].contender == 2u);
    BOOST_TEST((found[0].finding == Finding::slower));
    BOOST_TEST(to_text(measured, found, 0.01).find("not run: b does not") != std::string::npos);
    for (const std::string_view format : {"csv", "markdown", "junit", "bencher"})
        BOOST_TEST(export_experiment(format, measured, found).find("nan") == std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_machine_that_others_use_is_called_unfit_and_its_rounds_disturbed) {
    Measurements measured{.contenders = {"a"}, .metrics = {}, .rounds = {}, .cores = 2};
    const auto add = [&](double foreign, double steal, double seconds = 1) {
        Round round;
        round.seconds = seconds;
        round.foreign_cores = foreign;
        round.steal = steal;
        measured.rounds.push_back(round);
    };
    add(0.02, 0);
    add(0.4, 0);
    add(0, 0.03);
    add(0.2, 0, 0.05);   // a tick of the kernel's count
    BOOST_TEST(disturbed_rounds(measured) == 2u);
    BOOST_TEST(unfit(measured) == "");
    for (int i = 0; i < 5; ++i)
        add(1.5, 0);
    BOOST_TEST(unfit(measured) == "other processes used 1.5 of 2 cores");
    measured.most_foreign = 0.75;
    BOOST_TEST(unfit(measured) == "");
    measured.rounds.clear();   // rounds of half a tick, which every other one of has: nobody else is there
    for (int i = 0; i < 200; ++i)
        add(i % 2 == 0 ? 1 : -1, 0, 0.005);
    measured.most_foreign = 0.4;
    BOOST_TEST(unfit(measured) == "");
    for (Round& round : measured.rounds)   // one core is somebody else's
        *round.foreign_cores += 1;
    BOOST_TEST(unfit(measured) == "other processes used 1.0 of 2 cores");
}

BOOST_AUTO_TEST_CASE(the_document_has_every_round_and_what_is_said_of_them) {
    Machine machine;
    const Measurements measured = measure(machine, {1, 1.1}, 30);
    const auto comparisons = compare(measured);
    const auto document = to_json(measured, comparisons, 0.01, {.version = "1", .command = "x"}, {});
    BOOST_TEST(document["schema"] == "drawpoint.experiment/1");
    BOOST_TEST(document["rounds"].size() == 30u);
    BOOST_TEST(document["rounds"][4]["values"][1][0].get<double>() == measured.rounds[4].values[1][0]);
    BOOST_TEST(document["comparisons"][0]["finding"] == "slower");
    const Measurements again = measurements_from_json(nlohmann::json::parse(document.dump()));
    BOOST_TEST(to_json(again, compare(again), 0.01, {.version = "1", .command = "x"}, {}) == document);
    for (const char* member : {"rounds", "metrics", "contenders", "schema"}) {
        nlohmann::json damaged = document;
        damaged.erase(member);
        BOOST_CHECK_THROW((void)measurements_from_json(damaged), std::invalid_argument);
    }
    nlohmann::json damaged = document;
    damaged["rounds"][3]["values"][1].erase(0);
    BOOST_CHECK_THROW((void)measurements_from_json(damaged), std::invalid_argument);
    const std::string text = to_text(measured, comparisons, 0.01);
    BOOST_TEST(text.find(to_text(comparisons[0])) != std::string::npos);
    BOOST_TEST(text.find("30 rounds") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(other_programs_formats_have_what_they_need) {
    Machine machine;
    Measurements measured = measure(machine, {1, 1.1}, 30);
    measured.contenders = {"a", "b<\"|,"};
    const auto comparisons = compare(measured);
    const auto in = [&](std::string_view format) { return export_experiment(format, measured, comparisons); };

    const std::string page = in("html");
    for (const char* const part : {"<svg", "b&lt;&quot;|,", "Ratios to a", "30 rounds"})
        BOOST_TEST(page.find(part) != std::string::npos, part << " is missing");
    BOOST_TEST(page.find("b<\"") == std::string::npos);
    const auto* const ratio = &comparisons.front();
    BOOST_TEST(page.find(fmt::format("value=\"{}\"", ratio->ratio.median)) != std::string::npos);

    BOOST_CHECK_THROW((void)in("google-benchmark"), std::invalid_argument);   // has no wall time
    Measurements suites = measured;
    suites.metrics = {{"row: wall time", Metric::Unit::seconds, true}, {"row: faults", Metric::Unit::count}};
    const auto rows = nlohmann::json::parse(export_experiment("google-benchmark", suites, comparisons));
    BOOST_TEST(rows["benchmarks"][0]["name"] == "a/row");
    BOOST_TEST(rows["benchmarks"][0]["faults"] == 7);
    Measurements commands = measured;
    commands.metrics[0].name = "wall time";
    const auto google = nlohmann::json::parse(export_experiment("google-benchmark", commands, comparisons));
    BOOST_TEST(google["benchmarks"].size() == 60u);
    BOOST_TEST(google["benchmarks"][34]["name"] == "b<\"|,");
    BOOST_TEST(google["benchmarks"][34]["repetition_index"] == 4);
    BOOST_TEST(google["benchmarks"][34]["real_time"].get<double>() == measured.rounds[4].values[1][0] * 1e9);
    BOOST_TEST(google["benchmarks"][34]["faults"] == 7);
    BOOST_TEST(google["context"]["num_cpus"].get<int>() >= 1);

    const auto action = nlohmann::json::parse(in("github-action-benchmark"));
    BOOST_TEST(action.size() == 4u);
    BOOST_TEST(action[0]["name"] == "a: time");
    BOOST_TEST(action[0]["value"].is_number());
    BOOST_TEST(action[1]["extra"] == to_text(comparisons[0]));

    const auto bencher = nlohmann::json::parse(in("bencher"));
    BOOST_TEST(bencher["a"]["faults"]["value"] == 7);
    BOOST_TEST(bencher["a"]["time"]["lower_value"].get<double>() < bencher["a"]["time"]["upper_value"].get<double>());

    BOOST_TEST(in("junit").find("failures=\"1\"") != std::string::npos);
    BOOST_TEST(in("junit").find("classname=\"b&lt;&quot;|,\"") != std::string::npos);
    BOOST_TEST(in("markdown").find("| b<\"\\|, |") != std::string::npos);
    BOOST_TEST(in("csv").find("\ntime,\"b<\"\"|,\",s,") != std::string::npos);
    BOOST_CHECK_THROW((void)in("xlsx"), std::invalid_argument);

    const test::TemporaryFolder folder;   // a line a measurement, below the columns of the first
    const ExportFile history{"otava", folder.file("history.csv")};
    write_export(history, measured, comparisons);
    write_export(history, measured, comparisons);
    std::filesystem::resize_file(history.file, std::filesystem::file_size(history.file) - 1);   // as editors may
    write_export(history, measured, comparisons);
    std::ifstream file{history.file};
    std::vector<std::string> lines;
    for (std::string line; std::getline(file, line);)
        lines.push_back(line);
    BOOST_REQUIRE(lines.size() == 4u);
    BOOST_TEST(lines[0] == "time,commit,a time,\"b<\"\"|, time\",a faults,\"b<\"\"|, faults\"");
    BOOST_TEST(lines[2].ends_with(",7,7"));
    measured.contenders[0] = "c";
    BOOST_CHECK_THROW(write_export(history, measured, comparisons), std::runtime_error);
    BOOST_CHECK_THROW(write_export({"csv", "/no/such/file"}, measured, comparisons), std::runtime_error);
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace drawpoint::bench
