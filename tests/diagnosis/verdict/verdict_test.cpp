#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <utility>

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include <drawpoint/diagnosis/steady/detail/steady_run.hpp>
#include "diagnosis/verdict/interventions.hpp"
#include <drawpoint/diagnosis/verdict/detail/refutation.hpp>
#include <drawpoint/diagnosis/replay/replay.hpp>
#include <drawpoint/diagnosis/verdict/verdict.hpp>
#include <drawpoint/diagnosis/verdict/verdict_report.hpp>
#include <drawpoint/instrumentation/facts.hpp>

#include "support/verdict_print.hpp"

using namespace drawpoint;

namespace {

constexpr std::int64_t ms = 1'000'000, us = 1000;

/// A pipeline that keeps up: 8 cores, 4 workers, samples of 1 ms ± 10 %, batches of 8, and steps that wait 4 ms for a
/// device.
RecordedRun healthy(std::size_t steps = 200) {
    RecordedRun run;
    run.pipeline = "train";
    run.stages = {"read", "decode", "transform"};
    run.setting = {.num_workers = 4, .prefetch_depth = 4, .batch_size = 8};
    run.cores = 8;
    run.cpu_measured = run.loop_cpu_measured = true;
    std::mt19937_64 random{7};
    std::normal_distribution<double> noise{1, 0.1};
    for (std::uint32_t batch = 0; batch < steps; ++batch) {
        for (std::uint64_t i = 0; i < run.setting.batch_size; ++i) {
            const double factor = std::max(0.5, noise(random));
            const auto ns = [&](double base) { return static_cast<std::int64_t>(base * factor); };
            SampleDemand& sample = run.samples.emplace_back();
            sample.index = batch * run.setting.batch_size + i;
            sample.batch = batch;
            sample.bytes = static_cast<std::uint64_t>(10'000 * factor);
            sample.stages[0].wait_ns = ns(100 * us);
            sample.stages[1].cpu_ns = ns(600 * us);
            sample.stages[2].cpu_ns = ns(300 * us);
        }
        run.batches.push_back({.collate = {}, .transfer = {}, .bytes = 100'000});
        run.steps.push_back({.compute = {.cpu_ns = 0, .wait_ns = 4 * ms}});
    }
    return run;
}

/// The ledger that a recorder would have made of it.
Ledger recorded(const RecordedRun& run, std::size_t steps = 0) {
    ReplayOptions options;
    options.setting = run.setting;
    options.steps = steps;
    options.keep_rows = true;
    Ledger ledger = replay(run, options).ledger;
    ledger.set_fact(facts::machine_cores, std::to_string(static_cast<int>(run.cores)));
    ledger.set_fact(facts::host_cores, std::to_string(run.cores));
    return ledger;
}

Diagnosis diagnosed(const RecordedRun& run) {
    const Diagnosis found = drawpoint::diagnose(recorded(run), {.most_samples = 600'000});
    BOOST_TEST_MESSAGE(to_text(found));
    return found;
}

bool names(const Diagnosis& found, Verdict verdict) {
    return found.verdict == verdict || std::ranges::find(found.co_verdicts, verdict) != found.co_verdicts.end();
}

const Intervention& change_of(const Diagnosis& found, std::string_view key) {
    const auto change = std::ranges::find(found.interventions, key, &Intervention::key);
    BOOST_REQUIRE_MESSAGE(change != found.interventions.end(), key);
    return *change;
}

void each(RecordedRun& run, const std::function<void(SampleDemand&)>& change) {
    std::ranges::for_each(run.samples, change);
}

}   // namespace

BOOST_AUTO_TEST_SUITE(verdict)

BOOST_AUTO_TEST_CASE(a_loader_that_keeps_up_is_given_no_cause_and_no_advice) {
    const Diagnosis found = diagnosed(healthy());
    BOOST_TEST(!found.abstained, found.abstained.value_or(""));
    BOOST_TEST(found.verdict == Verdict::compute_bound);
    BOOST_TEST(!found.advice.has_value());
    BOOST_TEST(found.draw_share < 0.03);
    BOOST_TEST(found.replayed_batches_per_s == found.batches_per_s, boost::test_tools::tolerance(0.03));
}

BOOST_AUTO_TEST_CASE(a_slow_decode_on_full_cores_is_decode) {
    RecordedRun run = healthy();
    run.cores = 2;
    run.setting.num_workers = 2;
    each(run, [](SampleDemand& sample) { sample.stages[1].cpu_ns *= 4; });
    const Diagnosis found = diagnosed(run);
    BOOST_TEST(found.verdict == Verdict::decode);
    BOOST_TEST(change_of(found, "stage:decode").gain.median > 0.4);
    BOOST_TEST(change_of(found, "num_workers").gain.median < 0.1);
    BOOST_TEST_REQUIRE(found.advice.has_value());
    BOOST_TEST(found.advice->key() == "stage:decode");   // no setting helps when the cores are full
}

BOOST_AUTO_TEST_CASE(a_slow_sampler_before_short_passes_is_sampler) {
    RecordedRun run = healthy();
    run.pass_batches = 20;
    run.pass_samples = run.pass_batches * run.setting.batch_size;
    run.order = {150 * ms, 0};   // of passes of 80 ms
    const Diagnosis found = diagnosed(run);
    BOOST_TEST(found.verdict == Verdict::sampler);
    BOOST_TEST(change_of(found, "sampler").gain.median > 0.3);
    BOOST_TEST(std::ranges::any_of(found.evidence, [](const std::string& text) {
        return text.find("for the sampler's order of samples") != std::string::npos;
    }));
    run.order = {1 * ms, 0};   // computed while the pass is made
    BOOST_TEST(!names(diagnosed(run), Verdict::sampler));
}

BOOST_AUTO_TEST_CASE(a_slow_transform_on_full_cores_is_transform) {
    RecordedRun run = healthy();
    run.cores = 2;
    run.setting.num_workers = 2;
    each(run, [](SampleDemand& sample) { sample.stages[2].cpu_ns *= 8; });
    BOOST_TEST(diagnosed(run).verdict == Verdict::transform);
}

BOOST_AUTO_TEST_CASE(too_few_workers_are_advised_to_be_more_of) {
    RecordedRun run = healthy();
    run.setting.num_workers = 1;
    const Diagnosis found = diagnosed(run);
    BOOST_TEST(names(found, Verdict::workers), to_string(found.verdict));
    BOOST_REQUIRE(found.advice.has_value());
    BOOST_TEST(found.advice->key() == "num_workers");
    BOOST_TEST(found.advice->setting.num_workers == 2u);
    BOOST_TEST(found.advice->gain.median == 1.0, boost::test_tools::tolerance(0.15));
    BOOST_TEST(found.how_to_refute.find("num_workers 1 -> 2") != std::string::npos, found.how_to_refute);
}

BOOST_AUTO_TEST_CASE(the_largest_gain_is_the_verdict_and_a_setting_that_gains_as_much_is_the_advice) {
    // Both leave the loop's 5 ms: a second worker would share its core with the loop.
    RecordedRun run = healthy();
    run.setting.num_workers = 1;
    run.cores = 2;
    each(run, [](SampleDemand& sample) {
        sample.stages[1].cpu_ns = 800 * us;
        sample.stages[0] = sample.stages[2] = {};
    });
    for (StepDemand& step : run.steps)
        step.compute = {.cpu_ns = 500 * us, .wait_ns = 4'500 * us};
    const Diagnosis found = diagnosed(run);
    BOOST_TEST(change_of(found, "stage:decode").gain.median > change_of(found, "num_workers").gain.median);
    BOOST_TEST(found.verdict == Verdict::decode);
    BOOST_TEST(names(found, Verdict::workers));
    BOOST_REQUIRE(found.advice.has_value());
    BOOST_TEST(found.advice->key() == "num_workers");
}

BOOST_AUTO_TEST_CASE(samples_that_wait_for_storage_need_more_workers_or_faster_reads) {
    RecordedRun run = healthy();
    each(run, [](SampleDemand& sample) { sample.stages[0].wait_ns *= 80; });
    const Diagnosis found = diagnosed(run);
    BOOST_TEST(change_of(found, "waiting").verdict == Verdict::read_latency);
    BOOST_TEST(change_of(found, "waiting").gain.median > 0.7);
    BOOST_TEST(found.verdict == Verdict::workers);   // they halve the computing, too
    BOOST_REQUIRE(found.advice.has_value());
    BOOST_TEST(found.advice->key() == "num_workers");
    run = healthy(1500);
    run.setting.num_workers = loader_limits::most_workers;   // there cannot be more
    run.setting.prefetch_depth = loader_limits::most_prefetch_depth;
    each(run, [](SampleDemand& sample) { sample.stages[0].wait_ns *= 4000; });
    BOOST_TEST(names(diagnosed(run), Verdict::read_latency));
}

BOOST_AUTO_TEST_CASE(reads_that_share_a_line_are_read_bandwidth_and_more_workers_are_not_advised) {
    RecordedRun run = healthy();
    std::int64_t line_free_ns = 0;
    std::array<std::int64_t, 4> worker_free_ns{};   // enough for all workers
    for (SampleDemand& sample : run.samples) {
        std::int64_t& worker_ns = *std::ranges::min_element(worker_free_ns);
        sample.bytes = 8000 + (sample.index * 2654435761u) % 4000;
        line_free_ns = std::max(line_free_ns, worker_ns) + static_cast<std::int64_t>(sample.bytes) * 100;
        sample.stages[0].wait_ns = line_free_ns - worker_ns;
        worker_ns = line_free_ns + sample.stages[1].cpu_ns + sample.stages[2].cpu_ns;
    }
    const Diagnosis found = diagnosed(run);
    BOOST_TEST(found.verdict == Verdict::read_bandwidth);
    BOOST_TEST(change_of(found, "num_workers").gain.high < 0.05);
    BOOST_TEST(change_of(found, "waiting").gain.median > 0.3);
    BOOST_TEST((!found.advice || !found.advice->can_be_set()));
    BOOST_TEST(cause_of(Lever::waiting, {}, run, {.bandwidth = true}) == Verdict::read_bandwidth);
    BOOST_TEST(cause_of(Lever::waiting, {}, run, {}) == Verdict::read_latency);
}

BOOST_AUTO_TEST_CASE(a_rare_slow_sample_with_a_shallow_window_is_a_straggler) {
    RecordedRun run = healthy(300);
    run.setting.prefetch_depth = 1;
    run.setting.num_workers = 3;
    for (std::size_t i = 0; i < run.samples.size(); i += 60)   // slow in one stage or the other
        run.samples[i].stages[1 + i / 60 % 2].cpu_ns = 50 * ms;
    const Diagnosis found = diagnosed(run);
    BOOST_TEST(names(found, Verdict::stragglers), to_string(found.verdict));
    BOOST_TEST(change_of(found, "variance").gain.median > 0.1);
}

BOOST_AUTO_TEST_CASE(a_rare_sample_that_sleeps_in_the_decode_stage_does_not_wait_for_storage) {
    RecordedRun run = healthy(300);
    run.setting.prefetch_depth = 2;
    run.setting.num_workers = 2;
    run.cores = 2;
    each(run, [](SampleDemand& sample) {
        sample.stages[0] = {.cpu_ns = 0, .wait_ns = 1};
        sample.stages[1] = {.cpu_ns = 30 * us, .wait_ns = sample.index % 100 == 37 ? 400 * ms : 0};
        sample.stages[2] = {};
    });
    const Diagnosis found = diagnosed(run);
    BOOST_TEST((found.verdict == Verdict::stragglers || found.verdict == Verdict::decode), to_string(found.verdict));
    BOOST_TEST(!names(found, Verdict::read_latency));
    BOOST_TEST(change_of(found, "waiting").change == "samples wait half as long");
    // now the read takes as long as the decode did
    each(run, [](SampleDemand& sample) { std::swap(sample.stages[0], sample.stages[1]); });
    BOOST_TEST(cause_of(Lever::waiting, {}, run, {}) == Verdict::read_latency);
}

BOOST_AUTO_TEST_CASE(a_window_too_shallow_for_uneven_steps_is_deepened) {
    RecordedRun run = healthy(240);
    run.setting.prefetch_depth = 1;
    run.setting.num_workers = 3;
    run.cores = 3;
    for (std::size_t i = 0; i < run.steps.size();
         ++i)   // a long step, three that are none: the loader needs 2.7 ms each
        run.steps[i].compute.wait_ns = i % 4 == 0 ? 12 * ms : 10 * us;
    const Diagnosis found = diagnosed(run);
    BOOST_TEST(change_of(found, "variance").verdict == Verdict::bursty_consumer);
    BOOST_TEST(change_of(found, "prefetch_depth").verdict == Verdict::bursty_consumer);
    BOOST_REQUIRE(found.advice.has_value());
    BOOST_TEST(found.advice->key() == "prefetch_depth");
    BOOST_TEST(found.advice->gain.median > 0.1);
}

BOOST_AUTO_TEST_CASE(a_slow_collate_is_collate) {
    RecordedRun run = healthy();
    run.collates = true;
    run.cores = 2;
    run.setting.num_workers = 2;
    for (BatchDemand& batch : run.batches)
        batch.collate.cpu_ns = 12 * ms;
    BOOST_TEST(names(diagnosed(run), Verdict::collate));
}

BOOST_AUTO_TEST_CASE(a_slow_transfer_is_transfer) {
    RecordedRun run = healthy();
    for (BatchDemand& batch : run.batches)
        batch.transfer.wait_ns = 6 * ms;
    BOOST_TEST(names(diagnosed(run), Verdict::copy));
}

BOOST_AUTO_TEST_CASE(more_cores_than_there_are_is_no_verdict_however_much_they_would_gain) {
    RecordedRun run = healthy();
    run.cores = 2;
    run.setting.num_workers = 8;
    each(run, [](SampleDemand& sample) { sample.stages[1].cpu_ns *= 4; });
    const Diagnosis found = diagnosed(run);
    BOOST_TEST(found.interventions.front().lever == Lever::cores);
    BOOST_TEST(found.verdict == Verdict::decode);
    BOOST_TEST(found.co_verdicts.empty());
}

BOOST_AUTO_TEST_CASE(a_loader_and_a_loop_of_one_speed_are_balanced) {
    RecordedRun run = healthy();
    run.setting.num_workers = 2;
    const Diagnosis found = diagnosed(run);
    BOOST_TEST(!found.abstained, found.abstained.value_or(""));
    BOOST_TEST(found.verdict == Verdict::balanced);
    BOOST_TEST(!found.advice.has_value());
}

BOOST_AUTO_TEST_CASE(a_first_draw_that_takes_long_and_no_other_is_the_warm_up) {
    RecordedRun run = healthy();
    run.samples[0].stages[0].wait_ns = 400 * ms;
    const Diagnosis found = diagnosed(run);
    BOOST_TEST(found.verdict == Verdict::warm_up);
    BOOST_TEST(found.draw_share < 0.03);
    BOOST_TEST(!found.advice.has_value());
}

BOOST_AUTO_TEST_CASE(few_steps_are_no_verdict_but_say_how_many_are_missing) {
    const Diagnosis found = drawpoint::diagnose(recorded(healthy(), 30));
    BOOST_REQUIRE(found.abstained.has_value());
    BOOST_TEST(found.verdict == Verdict::undecided);
    BOOST_TEST(found.steady_steps < 50u);
    BOOST_TEST(found.more_steps_needed == 50 - found.steady_steps);
    BOOST_TEST(found.abstained->starts_with("needs " + std::to_string(found.more_steps_needed) + " more steps"),
               *found.abstained);
    const std::string text = to_text(found);
    BOOST_TEST(text.find("undecided") == text.rfind("undecided"), text);   // only once
    BOOST_TEST(found.interventions.empty());
    BOOST_TEST(!found.advice.has_value());
}

BOOST_AUTO_TEST_CASE(a_run_that_becomes_steady_only_at_its_half_may_not_be_steady_yet) {
    RecordedRun run = healthy();
    const std::size_t half = run.batches.size() / 2;
    each(run, [half](SampleDemand& sample) { sample.stages[1].cpu_ns *= sample.batch < half ? 40 : 1; });
    const Diagnosis found = diagnosed(run);
    BOOST_TEST(found.verdict == Verdict::undecided);
    BOOST_REQUIRE(found.abstained.has_value());
    BOOST_TEST(found.abstained->find("the warm-up took") != std::string::npos, *found.abstained);
    BOOST_TEST(found.more_steps_needed > 0u);
    BOOST_TEST(found.interventions.empty());
}

BOOST_AUTO_TEST_CASE(a_ledger_without_steps_is_no_verdict) {
    const Diagnosis found = drawpoint::diagnose(Ledger{});
    BOOST_TEST(found.abstained.has_value());
    BOOST_TEST(found.more_steps_needed == 50u);
    BOOST_TEST(!to_text(found).empty());
}

/// A recorded healthy run on whose machine this process used one core, other processes and a hypervisor as said.
Ledger with_host(double foreign_cores, double steal_cores) {
    Ledger ledger = recorded(healthy());
    const std::int64_t end_ns =
        ledger.steps.back().draw_begin_ns + ledger.steps.back().draw_ns + ledger.steps.back().batch_ns;
    for (std::int64_t at = ledger.start_ns; at <= end_ns; at += (end_ns - ledger.start_ns) / 10) {
        const std::int64_t ns = at - ledger.start_ns;
        HostRow row;
        row.at_ns = at;
        row.own_cpu_ns = ns;
        row.busy_ns = std::llround((1 + foreign_cores) * static_cast<double>(ns));
        row.steal_ns = std::llround(steal_cores * static_cast<double>(ns));
        ledger.host.push_back(row);
    }
    ledger.sort();
    return ledger;
}

BOOST_AUTO_TEST_CASE(a_neighbour_that_takes_a_core_is_interference_and_no_verdict) {
    const Diagnosis found = drawpoint::diagnose(with_host(2, 0));
    BOOST_REQUIRE(found.abstained.has_value());
    BOOST_TEST(found.verdict == Verdict::interference);
    BOOST_TEST(!found.trust.trusted);
    BOOST_TEST(found.interventions.empty());
}

BOOST_AUTO_TEST_CASE(a_hypervisor_that_takes_a_tenth_of_the_cores_leaves_a_verdict_and_is_told) {
    const Ledger ledger = with_host(0, 0.1 * healthy().cores);
    const Diagnosis found = drawpoint::diagnose(ledger);
    BOOST_TEST(!found.abstained.has_value());
    BOOST_TEST(found.trust.trusted);
    BOOST_TEST(std::ranges::count(found.evidence, "a hypervisor took 10 % of the cores") == 1);
    BOOST_TEST(drawpoint::diagnose(with_host(0, 0.3 * healthy().cores)).verdict == Verdict::interference);
}

BOOST_AUTO_TEST_CASE(lost_records_are_no_verdict) {
    Ledger ledger = recorded(healthy());
    ledger.dropped.push_back({.records = ledger.samples.size() / 10,
                              .from_ns = ledger.start_ns,
                              .to_ns = ledger.steps.back().draw_begin_ns,
                              .ring = 1});
    const Diagnosis found = drawpoint::diagnose(ledger);
    BOOST_REQUIRE(found.abstained.has_value());
    BOOST_TEST(found.verdict == Verdict::undecided);
}

BOOST_AUTO_TEST_CASE(the_same_ledger_gives_the_same_diagnosis) {
    RecordedRun run = healthy();
    run.setting.num_workers = 1;
    BOOST_TEST(to_text(diagnosed(run)) == to_text(diagnosed(run)));
}

BOOST_AUTO_TEST_CASE(every_lever_shows_a_cause_and_settings_alone_have_an_option) {
    RecordedRun run = healthy();
    run.setting.read_concurrency = 8;
    run.setting.memory_budget = 1 << 20;
    run.samples[0].read.wait_ns = 1;
    run.batches[0].collate.cpu_ns = 1;
    run.batches[0].transfer.wait_ns = 1;
    run.pass_batches = 20;
    run.batches_per_s = 200;
    run.order.cpu_ns = 2 * ms;   // of 100
    run.device_buffers = 3;
    run.copies = Copies::pageable;
    run.steps[0].device.first_ns = 1;
    std::vector<std::string> keys;
    for (const Intervention& change : unit_interventions(run, {})) {
        keys.push_back(change.key());
        BOOST_TEST(change.verdict != Verdict::undecided, change.key());
        const bool on_device = change.what.device_buffers != 0;
        BOOST_TEST(change.can_be_set() == (change.setting != run.setting || on_device), change.key());
        BOOST_TEST(change.can_be_set() == (change.what == Change{} || on_device), change.key());
        BOOST_TEST((!on_device || option_of(change) == "--device-prefetch 3"), option_of(change));
        BOOST_TEST(change.can_be_set() == !option_of(change).empty(), change.key());
    }
    const std::vector<std::string> expected{"num_workers/2",   "order",         "prefetch_depth", "read_concurrency",
                                            "num_workers",     "memory_budget", "stage:read",     "stage:decode",
                                            "stage:transform", "read",          "collate",        "device_prefetch",
                                            "pinned",          "transfer",      "no_sync",        "sampler",
                                            "compute",         "variance",      "waiting",        "cores"};
    BOOST_TEST(keys == expected, boost::test_tools::per_element());

    const auto of_bytes = [&run] {
        std::optional<Intervention> found;
        for (const Intervention& change : unit_interventions(run, {}))
            if (change.lever == Lever::uint8)
                found = change;
        return found;
    };
    run.stages[1] = "decode+crop+resize+normalize";   // floats that a device could make
    BOOST_TEST(!of_bytes());                          // but not of batches that are collated
    run.batches[0].collate = {};
    BOOST_REQUIRE(of_bytes().has_value());
    BOOST_TEST((of_bytes()->what == Change{.transfer = 0.25}));
    BOOST_TEST((of_bytes()->verdict == Verdict::copy));
    run.stages[1] = "fft+normalize";   // of something else than pictures
    BOOST_TEST(!of_bytes());
    run.stages[1] = "decode+crop+resize+normalize";
    run.device_buffers = 0;
    BOOST_TEST(!of_bytes());
}

BOOST_AUTO_TEST_CASE(every_word_names_one_verdict_and_every_key_one_lever) {
    for (std::size_t i = 0; i <= static_cast<std::size_t>(Verdict::undecided); ++i) {
        const auto verdict = static_cast<Verdict>(i);
        BOOST_TEST((verdict_of(to_string(verdict)) == verdict), to_string(verdict));
    }
    BOOST_TEST(!verdict_of("Decode"));
    for (const LeverWords& words : levers) {
        const std::string key =
            Intervention{.lever = words.lever, .stage = {}, .change = {}, .setting = {}, .what = {}, .gain = {}}.key() +
            (words.lever == Lever::stage ? "augment" : "");
        BOOST_TEST((lever_of(key) == words.lever), key);
    }
    BOOST_TEST(!lever_of("stage:"));
    BOOST_TEST(!lever_of("workers"));
}

BOOST_AUTO_TEST_CASE(a_change_that_changes_nothing_is_not_tried) {
    RecordedRun run = healthy();
    run.setting.num_workers = 1;
    run.setting.order = OrderRule::out_of_order();
    for (const Intervention& change : unit_interventions(run, {})) {
        BOOST_TEST(change.lever != Lever::out_of_order);
        BOOST_TEST(change.lever != Lever::fewer_workers);
        BOOST_TEST(change.lever != Lever::more_reads);
        BOOST_TEST(change.lever != Lever::collate);
    }
}

BOOST_AUTO_TEST_CASE(stages_get_the_words_of_what_they_do) {
    RecordedRun run = healthy();
    run.stages = {"fetch", "decode+crop+resize+normalize", "augment"};
    BOOST_TEST(cause_of(Lever::stage, "fetch", run, {}) == Verdict::read_latency);
    BOOST_TEST(cause_of(Lever::stage, "decode+crop+resize+normalize", run, {}) == Verdict::decode);
    BOOST_TEST(cause_of(Lever::stage, "augment", run, {}) == Verdict::transform);
    each(run, [](SampleDemand& sample) { sample.stages[2].wait_ns = 50 * ms; });
    BOOST_TEST(cause_of(Lever::stage, "augment", run, {}) == Verdict::transform);   // it waits, but not for storage
    run.stages[0] = "open";
    each(run, [](SampleDemand& sample) { sample.stages[0].wait_ns = 50 * ms; });
    BOOST_TEST(cause_of(Lever::stage, "open", run, {}) == Verdict::read_latency);   // the first waits for its read
    each(run, [](SampleDemand& sample) { sample.bytes = 0; });
    BOOST_TEST(cause_of(Lever::stage, "open", run, {}) == Verdict::transform);   // it reads nothing
    BOOST_TEST(cause_of(Lever::more_depth, {}, run, {}) == Verdict::prefetch_depth);
    BOOST_TEST(cause_of(Lever::more_depth, {}, run, {.bursty_compute = true}) == Verdict::bursty_consumer);
}

BOOST_AUTO_TEST_CASE(a_recorded_command_line_is_what_refutes) {
    Ledger ledger;
    Intervention advice{.lever = Lever::more_workers,
                        .change = "num_workers 2 -> 4",
                        .verdict = Verdict::workers,
                        .setting = {.num_workers = 4},
                        .what = {},
                        .gain = {0.41, 0.35, 0.47}};
    ledger.set_fact(facts::command, "drawpoint profile --data pictures --num-workers 2");
    ledger.set_fact("option.data", "my pictures");
    ledger.set_fact("option.num-workers", "2");
    ledger.set_fact("option.inject", R"(["decode=x3","read-latency=5ms"])");
    BOOST_TEST(how_to_refute(ledger, advice) ==
               "drawpoint profile '--data=my pictures' --inject=decode=x3 --inject=read-latency=5ms --num-workers 4 -o "
               "refute.pftrace: throughput should rise by 41 % (35 … 47 %)");
    const OptionValues defaults{{"data", "pictures"}, {"num-workers", "2"}, {"epochs", "1"}, {"model", "small_cnn"}};
    for (const auto& [name, value] : {std::pair{"epochs", "1"}, {"model", "mlp"}})
        ledger.set_fact(std::string{facts::option_prefix} + name, value);
    BOOST_TEST(how_to_refute(ledger, advice, defaults)
                   .starts_with("drawpoint profile '--data=my pictures' --inject=decode=x3 --inject=read-latency=5ms "
                                "--model=mlp --num-workers 4 -o refute.pftrace: "),
               how_to_refute(ledger, advice, defaults));
    ledger.set_fact(facts::command, "python train.py");
    BOOST_TEST(how_to_refute(ledger, advice).find("python") == std::string::npos);
    BOOST_TEST(how_to_refute(ledger, advice).find("drawpoint profile") == std::string::npos);
}

BOOST_AUTO_TEST_CASE(no_recording_can_make_a_command_that_writes_or_runs_what_it_says) {
    Ledger ledger;
    Intervention advice{.lever = Lever::more_workers, .change = "num_workers 2 -> 4", .setting = {.num_workers = 4}};
    ledger.set_fact(facts::command, "drawpoint profile; rm -rf /");
    ledger.set_fact("option.data", "a'$(touch b)'");
    for (const char* name : {"json", "output", "checkpoint", "resume", "report", "config", "profiler", "data=x --json",
                             "DATA", "", "o", "csv"})
        ledger.set_fact(std::string{facts::option_prefix} + name, "/victim");
    const std::string said = how_to_refute(ledger, advice);
    BOOST_TEST(
        said.starts_with(R"x(drawpoint profile '--data=a'\''$(touch b)'\''' --num-workers 4 -o refute.pftrace: )x"),
        said);
    BOOST_TEST(recorded_options(ledger).size() == 1u);
    ledger.set_fact("option.data", "a\x1b[2J");
    BOOST_TEST(how_to_refute(ledger, advice).starts_with("alternate runs with num_workers 2 -> 4"),
               how_to_refute(ledger, advice));
}

BOOST_AUTO_TEST_CASE(a_number_is_raised_no_further_than_it_can_go) {
    const auto change = [](const RecordedRun& run, std::string_view key) -> std::optional<LoaderSetting> {
        for (const Intervention& one : unit_interventions(run, {}))
            if (one.key() == key)
                return one.setting;
        return std::nullopt;
    };
    RecordedRun run = healthy();
    run.setting.prefetch_depth = 28;
    run.setting.num_workers = 200;
    run.setting.memory_budget = loader_limits::most_memory_budget / 2 + 2;
    run.setting.read_concurrency = 1500;
    run.samples[0].read.wait_ns = 1;
    BOOST_TEST(change(run, "prefetch_depth").value().prefetch_depth == 55u);
    BOOST_TEST(change(run, "num_workers").value().num_workers == 256u);
    BOOST_TEST(change(run, "memory_budget").value().memory_budget == loader_limits::most_memory_budget);
    BOOST_TEST(change(run, "read_concurrency").value().read_concurrency == 4096u);
    run.setting.prefetch_depth = 55;
    run.setting.num_workers = 256;
    run.setting.memory_budget = loader_limits::most_memory_budget;
    run.setting.read_concurrency = 4096;
    for (const char* key : {"prefetch_depth", "num_workers", "memory_budget", "read_concurrency"})
        BOOST_TEST(!change(run, key).has_value(), key);
}

BOOST_AUTO_TEST_CASE(a_deep_window_is_diagnosed_and_a_setting_that_cannot_be_is_no_verdict) {
    RecordedRun run = healthy();
    run.setting.prefetch_depth = 40;
    const Diagnosis deep = diagnosed(run);
    BOOST_TEST(!deep.abstained, deep.abstained.value_or(""));
    BOOST_TEST(change_of(deep, "prefetch_depth").setting.prefetch_depth == 55u);
    for (const std::uint32_t depth : {0u, 4'000'000'000u}) {
        Ledger ledger = recorded(healthy());
        ledger.pipelines.front().prefetch_depth = depth;
        const Diagnosis found = drawpoint::diagnose(ledger);
        BOOST_REQUIRE(found.abstained.has_value());
        BOOST_TEST(found.abstained->find("cannot be replayed: ") != std::string::npos, *found.abstained);
        BOOST_TEST(found.interventions.empty());
    }
    Ledger ledger = recorded(healthy());
    ledger.pipelines.front().num_workers = 5000;
    const Diagnosis found = drawpoint::diagnose(ledger);
    BOOST_REQUIRE(found.abstained.has_value());
    BOOST_TEST(found.abstained->find("cannot be replayed: ") != std::string::npos, *found.abstained);
}

BOOST_AUTO_TEST_CASE(what_late_delivery_costs_is_measured_and_has_no_interval) {
    constexpr std::int64_t late_ns = ms;
    Ledger ledger = recorded(healthy());
    const std::vector<SpanRow> pieces = std::exchange(ledger.spans, {});
    const auto take = [&](Slice& slice, std::int64_t later_ns) {
        for (std::size_t i = slice.first; i < slice.first + slice.count; ++i) {
            ledger.spans.push_back(pieces[i]);
            ledger.spans.back().begin_ns += later_ns;
        }
        slice.first = static_cast<std::uint32_t>(ledger.spans.size() - slice.count);
    };
    for (std::size_t i = 0; i < ledger.steps.size(); ++i) {
        StepRow& step = ledger.steps[i];
        step.draw_begin_ns += late_ns * static_cast<std::int64_t>(i);
        step.draw_ns += late_ns;
        ledger.spans.push_back({Span::handoff, step.draw_begin_ns, late_ns});
        take(step.spans, late_ns * static_cast<std::int64_t>(i + 1));
        --step.spans.first;
        ++step.spans.count;
    }
    for (PassRow& pass : ledger.passes)
        take(pass.spans, late_ns * static_cast<std::int64_t>(ledger.steps.size()));
    for (PassRow& pass : ledger.passes)
        pass.end_ns += late_ns * static_cast<std::int64_t>(ledger.steps.size());
    const Diagnosis found = drawpoint::diagnose(ledger, {.most_samples = 600'000});
    BOOST_TEST(!found.abstained, found.abstained.value_or(""));
    const Interval gain = change_of(found, "delivery").gain;
    BOOST_TEST(gain.median == 0.25, boost::test_tools::tolerance(0.05));
    BOOST_TEST(gain.low == gain.median);
    BOOST_TEST(gain.high == gain.median);
}

BOOST_AUTO_TEST_CASE(a_loop_that_resumes_late_where_it_had_to_wait_anyway_lost_nothing) {
    RecordedRun run = healthy();
    run.setting.num_workers = 1;   // a batch takes 8 ms
    for (StepDemand& step : run.steps)
        step.compute.wait_ns = 6 * ms;
    ReplayOptions options{.setting = run.setting, .keep_rows = true};
    options.costs.wake_ns = 900 * us;
    Ledger ledger = replay(run, options).ledger;
    ledger.set_fact(facts::machine_cores, std::to_string(static_cast<int>(run.cores)));
    ledger.set_fact(facts::host_cores, std::to_string(run.cores));
    const Diagnosis found = drawpoint::diagnose(ledger, {.most_samples = 600'000});
    BOOST_TEST(!found.abstained, found.abstained.value_or(""));
    BOOST_TEST(found.verdict == Verdict::workers);
    BOOST_TEST(std::ranges::count(found.interventions, "delivery", &Intervention::key) == 0);
    BOOST_TEST(std::ranges::any_of(found.blame_rows, [](const BlameRow& row) {   // although it often was late
        return row.key == "handoff" && row.share > 0.1;
    }));
}

BOOST_AUTO_TEST_CASE(cores_that_others_took_are_left_to_a_run_that_had_them) {
    RecordedRun run = healthy();
    run.cores = 1;
    run.setting.num_workers = 1;   // 0.9 of each ms on a core, while other processes are said to take 0.4 of it
    ReplayOptions alone;
    alone.setting = run.setting;
    run.batches_per_s = replay(run, alone).batches_per_s;
    const Interference others{.cores = 1, .own_cores = 0.9, .foreign_cores = 0.4, .measured = true};
    const auto ratio = [&](Interference of) {
        RecordedRun copy = run;
        return replay_recorded(copy, of, 1'000'000) / run.batches_per_s;
    };
    BOOST_TEST(ratio(others) == 1.0, boost::test_tools::tolerance(0.02));
    Interference contended = others;
    contended.run_queue_share = 0.2;
    BOOST_TEST(ratio(contended) < 0.8);
    RecordedRun fits = run;
    fits.batches_per_s *= 0.6;   // as if it had been that slow
    (void)replay_recorded(fits, others, 1'000'000);
    BOOST_TEST(fits.foreign_cores == 0.4);
}

BOOST_AUTO_TEST_CASE(as_much_of_a_spinning_loop_is_work_as_makes_the_replay_fit) {
    RecordedRun run = healthy();
    for (StepDemand& step : run.steps) {
        step.compute = {20 * ms, 0};
        step.threads = 2;
        step.spins = true;
    }
    RecordedRun half = run;
    for (StepDemand& step : half.steps)
        step.compute.cpu_ns /= 2;
    run.batches_per_s = replay_recorded(half, {}, 1'000'000);
    RecordedRun kept = run, bounded = run;
    BOOST_TEST(replay_recorded(kept, {}, 1'000'000) < 0.8 * run.batches_per_s);
    run.least_loop_work = 0.25;
    BOOST_TEST(replay_recorded(run, {}, 1'000'000) == run.batches_per_s, boost::test_tools::tolerance(0.05));
    BOOST_TEST(static_cast<double>(run.steps[0].compute.cpu_ns) == 10e6, boost::test_tools::tolerance(0.1));
    bounded.least_loop_work = 0.9;
    (void)replay_recorded(bounded, {}, 1'000'000);
    BOOST_TEST(bounded.steps[0].compute.cpu_ns >= 18 * ms);
}

BOOST_AUTO_TEST_CASE(what_the_replay_does_not_explain_is_said_and_a_tenth_is_too_much_for_a_verdict) {
    RecordedRun run = healthy();
    run.cores = 2;
    run.setting.num_workers = 4;
    each(run, [](SampleDemand& sample) { sample.stages[1].cpu_ns *= 4; });
    Ledger ledger = recorded(run);
    const auto with_cores = [&](const char* cores) {   // that are said to have been there
        ledger.set_fact(facts::host_cores, cores);
        return drawpoint::diagnose(ledger, {.most_samples = 600'000});
    };
    const Diagnosis little = with_cores("2.1"), much = with_cores("3"), less = with_cores("1");
    BOOST_TEST(!little.abstained, little.abstained.value_or(""));
    BOOST_TEST(little.unexplained > 0.02);
    BOOST_TEST(little.unexplained < 0.08);
    BOOST_TEST(to_text(little).find("% of a step's time is not explained") != std::string::npos, to_text(little));
    BOOST_TEST(to_json(little, {}, {})["run"]["unexplained"].get<double>() == little.unexplained);
    BOOST_TEST(much.unexplained > 0.2);
    BOOST_TEST(much.abstained.value_or("").find("something unrecorded limited the run") != std::string::npos);
    BOOST_TEST(less.unexplained < -0.2);
    BOOST_TEST(to_text(little).find("Linux's defaults are assumed: ") != std::string::npos);
    BOOST_TEST(less.abstained.value_or("").find("faster than its own records allow") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(steps_before_the_last_change_of_the_setting_do_not_count) {
    Ledger ledger = recorded(healthy());
    BOOST_TEST(!drawpoint::diagnose(ledger).abstained);
    const auto changed_at = [&](std::size_t step) {
        const PipelineRow& now = ledger.pipelines.front();
        ledger.settings = {{.at_ns = ledger.steps[step].draw_begin_ns,
                            .pipeline = 0,
                            .num_workers = now.num_workers,
                            .prefetch_depth = now.prefetch_depth,
                            .order = now.order,
                            .read_concurrency = now.read_concurrency,
                            .memory_budget = now.memory_budget}};
        return drawpoint::diagnose(ledger);
    };
    BOOST_TEST(!changed_at(ledger.steps.size() - 100).abstained);
    const Diagnosis late = changed_at(ledger.steps.size() - 10);
    BOOST_TEST(late.abstained.value_or("").find("and the last change of its setting, 50 are the least") !=
                   std::string::npos,
               late.abstained.value_or("a verdict"));
    BOOST_TEST(late.more_steps_needed == 40u);
}

BOOST_AUTO_TEST_CASE(of_a_long_run_parts_from_everywhere_are_replayed) {
    RecordedRun run = healthy(2000);
    for (std::size_t i = 1000; i < run.steps.size(); ++i)
        run.steps[i].compute.wait_ns = 40 * ms;
    const double all = replay_recorded(run, {}, 10'000'000),
                 part = replay_recorded(run, {}, 1000 * run.setting.batch_size);
    BOOST_TEST(part == all, boost::test_tools::tolerance(0.2));   // the first half alone is nearly twice as fast
    const Replayed no_more = replay(run, {.setting = run.setting,
                                          .steps = 1000,   // than the budget holds
                                          .warm_up_steps = PredictOptions{}.warm_up_steps,
                                          .bootstrap_seed = 1});
    BOOST_TEST(part == no_more.batches_per_s);
}

BOOST_AUTO_TEST_CASE(the_document_has_every_field_of_its_schema) {
    RecordedRun run = healthy();
    run.setting.num_workers = 1;
    const Diagnosis found = diagnosed(run);
    const auto document = to_json(found, {.version = "1", .command = "drawpoint diagnose"}, {});
    BOOST_TEST(document.begin().key() == "schema");
    BOOST_TEST(document["schema"] == "drawpoint.diagnosis/1");
    BOOST_TEST(document["verdict"] == to_string(found.verdict));
    BOOST_TEST(document["abstained"].is_null());
    BOOST_TEST(document["evidence"].size() > 1);
    BOOST_REQUIRE(document["interventions"].size() == found.interventions.size());
    double last = 1e9;
    for (const auto& change : document["interventions"]) {
        BOOST_TEST(change["predicted_gain"].get<double>() <= last);
        last = change["predicted_gain"];
        BOOST_TEST(change["low"].get<double>() <= change["high"].get<double>());
    }
    for (const char* key : {"change", "predicted_gain", "low", "high", "how_to_refute"})
        BOOST_TEST(document["advice"].contains(key), key);
    BOOST_TEST(document["trust"]["trusted"] == true);
    double shares = 0;
    for (const auto& row : document["blame"])
        shares += row["share"].get<double>();
    BOOST_TEST(shares == 1.0, boost::test_tools::tolerance(1e-9));
}

BOOST_AUTO_TEST_CASE(no_name_acts_on_a_terminal_or_breaks_a_table) {
    Diagnosis found;
    found.verdict = Verdict::decode;
    found.blame_rows = {{.cause = "evil\x1b[2J|`<b>", .ns = 5, .share = 1}};
    found.interventions.push_back({.lever = Lever::stage,
                                   .stage = "x",
                                   .change = "x\ny twice as fast",
                                   .verdict = Verdict::decode,
                                   .setting = {},
                                   .what = {}});
    BOOST_TEST(to_text(found).find('\x1b') == std::string::npos);
    BOOST_TEST(to_text(found).find("x\\ny twice") != std::string::npos);
    BOOST_TEST(verdict_lines(found).find('\x1b') == std::string::npos);
    BOOST_TEST(to_markdown(found).find("\\|\\`\\<b>") != std::string::npos, to_markdown(found));
    found.blame_rows = {{.cause = "![a](b)&amp;\\|", .ns = 5, .share = 1}};
    BOOST_TEST(to_markdown(found).find("| !\\[a\\](b)\\&amp;\\\\\\| |") != std::string::npos, to_markdown(found));
}

BOOST_AUTO_TEST_CASE(a_report_ends_with_the_verdict_and_what_is_predicted) {
    RecordedRun run = healthy();
    run.setting.num_workers = 1;
    const std::string lines = verdict_lines(diagnosed(run));
    BOOST_TEST(std::ranges::count(lines, '\n') == 2);
    BOOST_TEST(lines.starts_with("why the draw waits: "));
    BOOST_TEST(lines.find("predicted: num_workers 1 -> 2: +") != std::string::npos, lines);
}

BOOST_AUTO_TEST_SUITE_END()
