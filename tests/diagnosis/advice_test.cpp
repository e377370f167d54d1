#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <drawpoint/diagnosis/tuner/tuner.hpp>
#include <drawpoint/diagnosis/verdict/verdict.hpp>
#include <drawpoint/diagnosis/whatif/whatif.hpp>
#include <drawpoint/instrumentation/facts.hpp>
#include <drawpoint/pipeline/loader/data_loader.hpp>

#include "cli/command_line.hpp"
#include "cli/options.hpp"
#include "diagnosis/replay/replayed_runs.hpp"
#include "diagnosis/verdict/interventions.hpp"
#include <drawpoint/diagnosis/verdict/detail/refutation.hpp>

namespace drawpoint {
namespace {

using Words = std::vector<std::string>;

/// Why `drawpoint profile` refuses these words; empty if it accepts them. `effective`: the options that it then
/// records.
std::string refusal_by_program(const Words& words, std::vector<std::pair<std::string, std::string>>* effective = {}) {
    try {
        cli::ProfileOptions options;
        cli::CommandLine line{{.command = "profile", .line = {}, .arguments = words}, "profiles"};
        options.add_to(line.app());
        if (!line.parse())
            return "it printed something instead of running";
        options.check_together();
        if (effective != nullptr)
            *effective = line.effective();
        return {};
    } catch (const cli::UsageError& error) {
        return error.what();
    }
}

/// Why a loader refuses this setting; empty if it accepts it.
std::string refusal_by_loader(const LoaderSetting& setting) {
    try {
        check_options(options_of(setting));
        return {};
    } catch (const std::invalid_argument& error) {
        return error.what();
    }
}

Words words_for(const LoaderSetting& setting) {
    Words words{"--data=synthetic:100",
                fmt::format("--num-workers={}", setting.num_workers),
                fmt::format("--prefetch-depth={}", setting.prefetch_depth),
                fmt::format("--batch-size={}", setting.batch_size),
                fmt::format("--read-concurrency={}", setting.read_concurrency),
                "--order=" + to_string(setting.order)};
    if (setting.memory_budget != 0)
        words.push_back(fmt::format("--memory-budget={}B", setting.memory_budget));
    return words;
}

/// Splits a line without substitutions into words like a shell.
Words shell_words(std::string_view line) {
    Words words(1);
    bool quoted = false;
    for (std::size_t i = 0; i < line.size(); ++i)
        if (line[i] == '\'')
            quoted = !quoted;
        else if (line[i] == '\\' && !quoted)
            words.back() += line[++i];
        else if (line[i] == ' ' && !quoted)
            words.emplace_back();
        else
            words.back() += line[i];
    return words;
}

/// Small recordings with any setting that a loader accepts, often the largest, from machines with 1 to 256 cores.
struct Recordings {
    explicit Recordings(std::uint64_t seed) : random{seed} {}

    template <class Number>
    Number one_of(std::initializer_list<Number> numbers) {
        return numbers.begin()[random() % numbers.size()];
    }
    LoaderSetting setting() {
        const auto upto = [this](std::size_t most) { return 1 + random() % most; };
        return {.num_workers = one_of<std::size_t>({1, 2, 3, 64, 127, 128, 129, 200, 255, 256, upto(256)}),
                .prefetch_depth = one_of<std::size_t>({1, 2, 27, 28, 54, 55, upto(55)}),
                .batch_size = one_of<std::size_t>({1, 2, 7}),
                .order = {one_of<std::uint32_t>({0, 1, 3, OrderRule::any - 1, OrderRule::any})},
                .read_concurrency = one_of<std::size_t>({0, 1, 64, 255, 257, 512, 1024, 1025, 4095, 4096, upto(4096)}),
                .memory_budget =
                    one_of<std::uint64_t>({0, 0, 1 << 30, std::uint64_t{1} << 40, loader_limits::most_memory_budget / 2,
                                           loader_limits::most_memory_budget})};
    }
    RecordedRun run(std::size_t steps) {
        const LoaderSetting with = setting();
        RecordedRun made = test::constant_run({.batch_size = with.batch_size,
                                               .sample = {static_cast<std::int64_t>(random() % 3'000'000),
                                                          static_cast<std::int64_t>(random() % 3'000'000)},
                                               .compute = {static_cast<std::int64_t>(random() % 1'000'000), 100'000},
                                               .steps = steps});
        made.setting = with;
        made.cores = static_cast<double>(one_of<std::size_t>({1, 2, 4, 16, 64, 128, 256, 1 + random() % 256}));
        made.batches_per_s = 100;
        made.worker_bytes = 2 << 20;
        if (with.read_concurrency != 0)
            for (SampleDemand& sample : made.samples) {
                sample.read.wait_ns = 1'000'000;
                sample.bytes = 1000;
            }
        made.reads_ahead = with.read_concurrency != 0;
        return made;
    }
    /// The options that `drawpoint profile` records when run with this setting.
    Ledger ledger(const LoaderSetting& setting) {
        Words words = words_for(setting);
        if (random() % 2 == 0)
            words[0] = "--data=my 'own' pictures";
        if (random() % 3 == 0)
            words.insert(words.end(), {"--inject=decode=x3", "--inject=read-latency=5ms"});
        std::vector<std::pair<std::string, std::string>> effective;
        BOOST_REQUIRE_EQUAL(refusal_by_program(words, &effective), "");
        Ledger made;
        made.set_fact(facts::command, "drawpoint profile");
        for (const auto& [name, value] : effective)
            made.set_fact(std::string{facts::option_prefix} + name, value);
        return made;
    }

    std::mt19937_64 random;
};

/// Checks that settings are accepted, and remembers them, since most come more than once.
struct Taken {
    void operator()(const LoaderSetting& setting, std::string_view by) {
        const Words words = words_for(setting);
        if (!seen.insert(fmt::format("{}", fmt::join(words, " "))).second)
            return;
        BOOST_REQUIRE_MESSAGE(refusal_by_loader(setting).empty(), by << ": " << refusal_by_loader(setting));
        const std::string refusal = refusal_by_program(words);
        BOOST_REQUIRE_MESSAGE(refusal.empty(), by << ": " << refusal);
    }
    std::unordered_set<std::string> seen;
};

BOOST_AUTO_TEST_SUITE(advice)

BOOST_AUTO_TEST_CASE(whatever_change_a_diagnosis_tries_the_loader_and_the_command_line_take) {
    Recordings recordings{1};
    std::size_t changes = 0, commands = 0;
    for (int i = 0; i < 10'000; ++i) {
        const RecordedRun run = recordings.run(2);
        std::vector<Intervention> settable = unit_interventions(run, {});
        std::erase_if(settable, [](const Intervention& change) { return !change.can_be_set(); });
        for (const Intervention& change : settable)
            BOOST_REQUIRE_MESSAGE(refusal_by_loader(change.setting).empty(),
                                  change.change << ": " << refusal_by_loader(change.setting));
        changes += settable.size();
        if (settable.empty())
            continue;
        const Intervention& advised = settable[recordings.random() % settable.size()];
        const std::string how = how_to_refute(recordings.ledger(run.setting), advised);
        BOOST_REQUIRE_MESSAGE(how.starts_with("drawpoint profile "), how);
        Words words = shell_words(std::string_view{how}.substr(0, how.find(": throughput should rise")));
        words.erase(words.begin(), words.begin() + 2);   // the words "drawpoint profile"
        const std::string refusal = refusal_by_program(words);
        BOOST_REQUIRE_MESSAGE(refusal.empty(), how << ": " << refusal);
        ++commands;
    }
    BOOST_TEST(changes > 30'000u);
    BOOST_TEST(commands > 9'000u);
}

BOOST_AUTO_TEST_CASE(whatever_setting_tune_may_race_the_loader_and_the_command_line_take_and_whatif_can_predict) {
    Recordings recordings{2};
    Taken taken;
    for (int i = 0; i < 10'000; ++i) {
        const RecordedRun run = recordings.run(1);
        const std::size_t most_workers = std::max<std::size_t>(run.setting.num_workers, 1 + recordings.random() % 256);
        const WhatifGrid grid = tune_grid(run,
                                          {.start = run.setting,
                                           .most_depth = 1 + recordings.random() % 55,
                                           .may_leave_order = recordings.random() % 2 == 0},
                                          most_workers);
        BOOST_REQUIRE(grid.num_workers.size() * grid.prefetch_depth.size() * grid.order.size() <=
                      WhatifOptions{}.most_rows);
        BOOST_REQUIRE(std::ranges::max(grid.num_workers) <= most_workers);
        BOOST_REQUIRE(std::ranges::find(grid.num_workers, run.setting.num_workers) != grid.num_workers.end());
        // Each number is accepted by itself, whatever the others are.
        for (const std::size_t workers : grid.num_workers)
            taken({.num_workers = workers}, "num_workers");
        for (const std::size_t depth : grid.prefetch_depth)
            taken({.prefetch_depth = depth}, "prefetch_depth");
        for (const OrderRule order : grid.order)
            taken({.order = order}, "order");
    }
    BOOST_TEST(taken.seen.size() > 256u);
}

BOOST_AUTO_TEST_CASE(whatever_setting_whatif_recommends_the_loader_and_the_command_line_take) {
    Recordings recordings{3};
    Taken taken;
    for (int i = 0; i < 1000; ++i) {
        const RecordedRun run = recordings.run(8);
        const WhatifGrid grid{.num_workers = {1, 1 + recordings.random() % 256, loader_limits::most_workers},
                              .prefetch_depth = {1, loader_limits::most_prefetch_depth},
                              .batch_size = {},
                              .order = {OrderRule::in_order(), OrderRule::out_of_order()},
                              .change = {}};
        const Whatif found =
            whatif(run, grid, {.predict = {.replications = 1, .warm_up_steps = 4}, .most_samples = 1000});
        for (const WhatifRow& row : found.rows)
            taken(row.setting, "whatif");
    }
    BOOST_TEST(taken.seen.size() > 500u);
}

BOOST_AUTO_TEST_CASE(what_a_diagnosis_of_a_recording_advises_the_loader_and_the_command_line_take) {
    Recordings recordings{4};
    std::size_t advised = 0;
    for (int i = 0; i < 2000; ++i) {
        RecordedRun run = recordings.run(80);
        run.cpu_measured = run.loop_cpu_measured = true;
        run.setting.memory_budget = 0;   // the replay, with invented sizes, could not keep to it
        // In full flow from the first step on, as the steady part of a run is that is diagnosed.
        Ledger ledger = replay(run, {.setting = run.setting, .warm_up_steps = 64, .keep_rows = true}).ledger;
        ledger.facts = recordings.ledger(run.setting).facts;
        ledger.set_fact(facts::host_cores, std::to_string(run.cores));   // else the replay does not fit the run
        const Diagnosis found =
            diagnose(ledger, {.predict = {.replications = 6, .warm_up_steps = 16}, .most_samples = 20'000});
        if (!found.advice || !found.advice->can_be_set())
            continue;
        ++advised;
        BOOST_REQUIRE_MESSAGE(refusal_by_loader(found.advice->setting).empty(),
                              refusal_by_loader(found.advice->setting));
        const std::string& how = found.how_to_refute;
        Words words = shell_words(std::string_view{how}.substr(0, how.find(": throughput should rise")));
        BOOST_REQUIRE_MESSAGE(words.size() > 2 && words[1] == "profile", how);
        words.erase(words.begin(), words.begin() + 2);
        BOOST_REQUIRE_MESSAGE(refusal_by_program(words).empty(), how << ": " << refusal_by_program(words));
    }
    BOOST_TEST(advised > 200u);
    BOOST_TEST_MESSAGE(advised << " of 2000 recordings were advised");
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
}   // namespace drawpoint
