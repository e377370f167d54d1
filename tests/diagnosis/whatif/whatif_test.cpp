#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include <drawpoint/diagnosis/steady/detail/steady_run.hpp>
#include "diagnosis/verdict/interventions.hpp"
#include <drawpoint/diagnosis/steady/detail/read_line.hpp>
#include <drawpoint/diagnosis/replay/replay.hpp>
#include <drawpoint/diagnosis/whatif/whatif.hpp>
#include <drawpoint/diagnosis/whatif/whatif_report.hpp>
#include <drawpoint/instrumentation/facts.hpp>

using namespace drawpoint;

namespace {

constexpr std::int64_t ms = 1'000'000;

/// Samples that wait for 4 ms and compute for 1 ms, steps that wait 6 ms for a device per batch of 4, 8 cores.
RecordedRun waiting_run() {
    RecordedRun run;
    run.pipeline = "train";
    run.stages = {"read", "decode"};
    run.setting = {.num_workers = 1, .prefetch_depth = 2, .batch_size = 4};
    run.cores = 8;
    for (std::uint32_t batch = 0; batch < 100; ++batch) {
        for (std::uint64_t i = 0; i < 4; ++i) {
            SampleDemand& sample = run.samples.emplace_back();
            sample.index = 4 * batch + i;
            sample.batch = batch;
            sample.bytes = 1000;
            sample.stages[0].wait_ns = 4 * ms;
            sample.stages[1].cpu_ns = 1 * ms;
        }
        run.batches.push_back({.collate = {}, .transfer = {}, .bytes = 100'000});
        run.steps.push_back({.compute = {.cpu_ns = 0, .wait_ns = 6 * ms}});
    }
    run.batches_per_s = 50;
    run.cpu_measured = run.loop_cpu_measured = true;
    return run;
}

Whatif grid_of(const RecordedRun& run, const Change& change = {}) {
    return drawpoint::whatif(
        run,
        {.num_workers = {4, 1, 2, 8, 2}, .prefetch_depth = {2, 4}, .batch_size = {}, .order = {}, .change = change},
        {.predict = {.replications = 5}});
}

/// The ledger that a recorder would have made of it.
Ledger recorded(const RecordedRun& run) {
    ReplayOptions options;
    options.setting = run.setting;
    options.keep_rows = true;
    Ledger ledger = replay(run, options).ledger;
    ledger.set_fact(facts::host_cores, std::to_string(run.cores));
    return ledger;
}

WhatifRow made_up(std::size_t workers, std::size_t depth, double batches_per_s, std::uint64_t bytes) {
    WhatifRow row;
    row.setting = {.num_workers = workers, .prefetch_depth = depth, .batch_size = 8};
    row.prediction.batches_per_s = {batches_per_s, batches_per_s * 0.9, batches_per_s * 1.1};
    row.prediction.draw_share = {0.5, 0.4, 0.6};
    row.prediction.peak_bytes = bytes;
    row.samples_per_s = batches_per_s * 8;
    return row;
}

Whatif made_up() {
    Whatif found;
    found.recorded = {.num_workers = 1, .prefetch_depth = 1, .batch_size = 8};
    found.recorded_batches_per_s = 10;
    found.as_recorded.batches_per_s = {10, 9, 11};
    found.rows = {made_up(1, 1, 10, 100), made_up(1, 2, 11, 200), made_up(2, 1, 20, 200), made_up(2, 2, 21, 400)};
    found.rows[0].recorded = true;
    found.rows[2].on_frontier = true;
    found.best = 3;
    found.recommended = 2;
    return found;
}

std::size_t count_of(const std::string& text, std::string_view part) {
    std::size_t count = 0;
    for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1))
        ++count;
    return count;
}

}   // namespace

BOOST_AUTO_TEST_SUITE(whatif)

BOOST_AUTO_TEST_CASE(every_combination_is_a_row_once_and_in_order) {
    const Whatif found = grid_of(waiting_run());
    BOOST_REQUIRE(found.rows.size() == 8);
    BOOST_TEST(found.rows[0].setting.num_workers == 1);
    BOOST_TEST(found.rows[0].setting.prefetch_depth == 2);
    BOOST_TEST(found.rows[1].setting.prefetch_depth == 4);
    BOOST_TEST(found.rows[7].setting.num_workers == 8);
    BOOST_TEST(std::ranges::count(found.rows, true, &WhatifRow::recorded) == 1);
    BOOST_TEST(found.rows[0].recorded);
}

BOOST_AUTO_TEST_CASE(the_smallest_setting_within_two_percent_of_the_best_is_recommended) {
    const Whatif found =
        grid_of(waiting_run());   // a batch takes a worker 20 ms: 4 workers make one in 5 ms, and the loop takes 6
    const LoaderSetting& chosen = found.rows[found.recommended].setting;
    BOOST_TEST(chosen.num_workers == 4);
    BOOST_TEST(chosen.prefetch_depth == 2);
    BOOST_TEST(!found.on_edge);
    BOOST_TEST(found.rows[found.recommended].samples_per_s >= 0.98 * found.rows[found.best].samples_per_s);
    BOOST_TEST(found.rows[found.best].prediction.batches_per_s.median == 1e3 / 6, boost::test_tools::tolerance(0.03));
    BOOST_TEST(found.as_recorded.batches_per_s.median == 50.0, boost::test_tools::tolerance(0.03));
}

BOOST_AUTO_TEST_CASE(a_recommendation_at_the_end_of_a_list_says_so) {
    const Whatif found = drawpoint::whatif(
        waiting_run(), {.num_workers = {1, 2}, .prefetch_depth = {}, .batch_size = {}, .order = {}, .change = {}},
        {.predict = {.replications = 3}});
    BOOST_TEST(found.rows[found.recommended].setting.num_workers == 2u);
    BOOST_TEST(found.on_edge);
}

BOOST_AUTO_TEST_CASE(nobody_on_the_frontier_is_beaten_in_everything) {
    const Whatif found = grid_of(waiting_run());
    BOOST_TEST(found.rows[found.recommended].prediction.peak_bytes > 0u);
    for (const WhatifRow& a : found.rows)
        for (const WhatifRow& b : found.rows)
            if (a.on_frontier)
                BOOST_TEST(!(b.samples_per_s > a.samples_per_s && b.setting.num_workers < a.setting.num_workers &&
                             b.prediction.peak_bytes < a.prediction.peak_bytes));
    BOOST_TEST(found.rows[found.best].on_frontier);
}

BOOST_AUTO_TEST_CASE(a_faster_stage_raises_what_one_worker_makes) {
    Change change;
    change.stages[0] = 0.25;
    const Whatif found = grid_of(waiting_run(), change);   // 2 ms per sample instead of 5
    BOOST_TEST(found.rows[0].prediction.batches_per_s.median == 125.0, boost::test_tools::tolerance(0.03));
    BOOST_TEST(!found.rows[0].recorded);
    BOOST_TEST(found.as_recorded.batches_per_s.median == 50.0, boost::test_tools::tolerance(0.03));
}

BOOST_AUTO_TEST_CASE(what_the_replay_is_off_at_the_recorded_setting_it_is_taken_to_be_off_at_all) {
    RecordedRun run = waiting_run();
    const Whatif as_replayed = grid_of(run);
    run.batches_per_s = 40;   // the replay gives 50
    const Whatif found = grid_of(run);
    BOOST_TEST(found.rows[0].recorded);
    BOOST_TEST(found.rows[0].prediction.batches_per_s.median == 40, boost::test_tools::tolerance(1e-9));
    for (std::size_t i = 0; i < found.rows.size(); ++i)
        BOOST_TEST(found.rows[i].samples_per_s == 0.8 * as_replayed.rows[i].samples_per_s,
                   boost::test_tools::tolerance(0.02));
    BOOST_TEST(found.as_recorded.batches_per_s.median == 50,
               boost::test_tools::tolerance(0.03));   // unscaled, as replayed
}

BOOST_AUTO_TEST_CASE(a_setting_that_the_memory_budget_does_not_allow_is_not_offered) {
    RecordedRun run = waiting_run();
    run.worker_bytes = 2 << 20;
    run.setting.memory_budget = 5 << 20;
    const Whatif found = grid_of(run);
    BOOST_TEST(found.rows.size() == 4u);
    for (const WhatifRow& row : found.rows)
        BOOST_TEST(row.setting.num_workers <= 2u);
    BOOST_CHECK_EXCEPTION(
        (void)drawpoint::whatif(
            run, {.num_workers = {8}, .prefetch_depth = {}, .batch_size = {}, .order = {}, .change = {}}),
        std::invalid_argument, [](const std::invalid_argument& error) {
            return std::string{error.what()}.find("memory_budget") != std::string::npos;
        });
    run.setting.num_workers = 2;
    const auto offers = [&](std::string_view key) {
        return std::ranges::count(unit_interventions(run, {}), key, &Intervention::key) == 1;
    };
    BOOST_TEST(!offers("num_workers"));
    BOOST_TEST(offers("num_workers/2"));
    BOOST_TEST(offers("memory_budget"));
}

BOOST_AUTO_TEST_CASE(a_line_that_the_replay_is_better_without_was_none) {
    // Each of four workers waits by itself: 4 of 5 ms per sample; 16 samples take 4 workers 20 ms.
    RecordedRun run = waiting_run();
    run.setting.num_workers = 4;
    for (StepDemand& step : run.steps)
        step.compute.wait_ns = 1 * ms;
    run.batches_per_s = 200;
    run.line_ns_per_byte = 4000;   // 1000 bytes take 4 ms, one sample after the other: 62 batches per second
    BOOST_TEST(replay_recorded(run, {}, 1000) == 200, boost::test_tools::tolerance(0.05));
    BOOST_TEST(run.line_ns_per_byte == 0);
    run.batches_per_s = 62;   // now it agrees with the measurement, although others seem to have taken cores
    run.line_ns_per_byte = 4000;
    Interference others;
    others.measured = true;
    others.foreign_cores = 7.9;
    run.cpu_measured = true;
    BOOST_TEST(replay_recorded(run, others, 1000) == 62, boost::test_tools::tolerance(0.05));
    BOOST_TEST(run.line_ns_per_byte == 4000);
    BOOST_TEST(run.foreign_cores == 0);
}

BOOST_AUTO_TEST_CASE(what_a_hypervisor_takes_is_foreign_load_to_the_replay) {
    RecordedRun run = waiting_run();
    run.batches_per_s = replay_recorded(run, {}, 1000);
    Interference others;
    others.measured = true;
    others.foreign_cores = 0.5;
    others.steal_cores = 0.25;
    others.foreign_cores_spread = 0.3;
    others.steal_cores_spread = 0.4;
    (void)replay_recorded(run, others, 1000);
    BOOST_TEST(run.foreign_cores == 0.75);
    BOOST_TEST(run.foreign_cores_spread == 0.5);
    others.steal_cores = 2 * run.cores;
    run.batches_per_s = 0;
    (void)replay_recorded(run, others, 1000);
    BOOST_TEST(run.foreign_cores == run.cores);
}

BOOST_AUTO_TEST_CASE(a_shared_bandwidth_bounds_every_setting_that_reads_as_much) {
    RecordedRun run = waiting_run();
    run.line_ns_per_byte = 1e9 / (4 * 70) / 1000;   // with samples of 1000 bytes
    const Whatif bounded = grid_of(run);
    for (const WhatifRow& row : bounded.rows)
        BOOST_TEST(row.prediction.batches_per_s.median <= 70.0 * 1.02);   // the model may be off a little
    BOOST_TEST(bounded.rows[bounded.recommended].setting.num_workers == 2u);
    Change no_reading;
    no_reading.waiting = 0;
    BOOST_TEST(grid_of(run, no_reading).rows[0].prediction.batches_per_s.median > 100);
}

BOOST_AUTO_TEST_CASE(what_cannot_be_replayed_or_is_too_much_is_refused) {
    RecordedRun run = waiting_run();
    run.unusable = "samples were thinned";
    const auto says = [](std::string part) {
        return [part](const std::invalid_argument& error) {
            return std::string{error.what()}.find(part) != std::string::npos;
        };
    };
    BOOST_CHECK_EXCEPTION((void)drawpoint::whatif(run, {}), std::invalid_argument, says("samples were thinned"));
    BOOST_CHECK_EXCEPTION(
        (void)drawpoint::whatif(
            waiting_run(),
            {.num_workers = {1, 2}, .prefetch_depth = {1, 2}, .batch_size = {}, .order = {}, .change = {}},
            {.most_rows = 3}),
        std::invalid_argument, says("4 settings"));
}

BOOST_AUTO_TEST_CASE(a_grid_is_the_same_every_time) {
    const Whatif once = grid_of(waiting_run()), again = grid_of(waiting_run());
    for (std::size_t i = 0; i < once.rows.size(); ++i)
        BOOST_TEST((once.rows[i].prediction.batches_per_s == again.rows[i].prediction.batches_per_s));
}

BOOST_AUTO_TEST_CASE(the_largest_batch_of_a_grid_is_what_the_budget_pays_for) {
    RecordedRun run = waiting_run();
    for (SampleDemand& sample : run.samples)
        sample.stages[0].wait_ns += static_cast<std::int64_t>((sample.index * 2654435761u) % 4096) * 1000;
    run.batches_per_s = 0;   // nothing to scale the rates to
    const WhatifOptions options{.predict = {.replications = 3}, .most_samples = 7200};   // 50 steps of 64, 100 of 4
    const WhatifGrid grid{.num_workers = {}, .prefetch_depth = {}, .batch_size = {4, 64}, .order = {}, .change = {}};
    const Whatif found = drawpoint::whatif(run, grid, options);
    const Prediction few = predict(run, run.setting, {}, {.replications = 3, .steps = 50});
    BOOST_TEST((found.rows[0].prediction.batches_per_s == few.batches_per_s));
    BOOST_TEST(!(predict(run, run.setting, {}, {.replications = 3}).batches_per_s == few.batches_per_s));
}

BOOST_AUTO_TEST_CASE(a_warm_up_is_no_reason_to_distrust_what_came_after) {
    RecordedRun run = waiting_run();
    for (std::size_t i = 0; i < 30; ++i)
        run.steps[i].compute.wait_ns = 60 * ms;
    const Ledger ledger = recorded(run);
    const std::int64_t from_ns = ledger.steps.front().draw_begin_ns, to_ns = ledger.steps.back().draw_begin_ns;
    BOOST_TEST(!trust_of(ledger, interference(ledger, from_ns, to_ns), from_ns, to_ns).trusted);
    const SteadyRun part = prepare(ledger);
    BOOST_TEST(part.trust.trusted);
    BOOST_TEST(part.run.batches_per_s == 50.0, boost::test_tools::tolerance(0.03));
}

BOOST_AUTO_TEST_CASE(a_run_that_is_not_to_be_trusted_says_so_at_the_recommendation) {
    Whatif found = made_up();
    BOOST_TEST(to_text(found).find("trusted") == std::string::npos);
    BOOST_TEST(to_json(found, {}, {})["recommended"]["trusted"] == true);
    found.trust = {.trusted = false,
                   .interference_share = 0.9,
                   .reasons = {{DistrustReason::foreign_load, "others kept 1.80 of 2 <cores> busy"}}};
    const std::string text = to_text(found), html = to_html(found, "x");
    const std::size_t at = text.find("\nrecommended: ");
    const std::size_t said = text.find("\n  not to be trusted: others kept 1.80 of 2 <cores> busy\n");
    BOOST_REQUIRE(at != std::string::npos);
    BOOST_REQUIRE(said != std::string::npos);
    BOOST_TEST(std::ranges::count(text.substr(at + 1, said - at), '\n') == 2);   // below what it predicts
    const std::size_t in_page =
        html.find("<strong>Not to be trusted</strong>: others kept 1.80 of 2 &lt;cores&gt; busy");
    BOOST_TEST(in_page < html.find("<svg"));
    const auto document = to_json(found, {}, {});
    BOOST_TEST(document["recommended"]["trusted"] == false);
    BOOST_TEST(document["best"]["trusted"] == false);
    BOOST_TEST(document["trust"]["reasons"].size() == 1);
}

BOOST_AUTO_TEST_CASE(how_much_the_load_of_others_varied_widens_what_is_predicted) {
    Ledger ledger = recorded(waiting_run());
    const std::int64_t end_ns = ledger.steps.back().draw_begin_ns;
    std::int64_t foreign_ns = 0;
    constexpr std::int64_t every_ns = 100 * ms;
    for (std::int64_t at = 0; ledger.start_ns + at <= end_ns; at += every_ns) {
        HostRow row;
        row.at_ns = ledger.start_ns + at;
        row.own_cpu_ns = at / 5;
        row.busy_ns = row.own_cpu_ns + foreign_ns;
        foreign_ns += at / every_ns % 2 == 0 ? every_ns * 8 / 10 : 0;   // 0.8 of a core, then none, alternately
        ledger.host.push_back(row);
    }
    ledger.sort();
    const RecordedRun run = steady_run(ledger);
    BOOST_TEST(run.foreign_cores == 0.4, boost::test_tools::tolerance(0.1));
    BOOST_TEST(run.foreign_cores_spread > 0.3);
    BOOST_TEST(run.foreign_cores_spread < 0.45);
}

BOOST_AUTO_TEST_CASE(reads_that_take_turns_on_a_line_are_seen_and_independent_ones_are_not) {
    const auto ledger_of = [](bool line) {
        Ledger ledger;
        std::int64_t free_ns = 0;
        std::uint64_t random = 12345;
        std::int64_t worker_ns[4] = {0, 0, 0, 0};
        for (std::uint64_t i = 0; i < 400; ++i) {
            random = random * 6364136223846793005 + 1442695040888963407;
            const auto bytes = static_cast<std::int64_t>(1000 + ((random >> 33) & 1023));
            std::int64_t& at = worker_ns[i % 4];
            SampleRow sample;
            sample.index = i;
            sample.bytes = static_cast<std::uint64_t>(bytes);
            sample.begin_ns = sample.read_begin_ns = at;
            sample.read_end_ns = line ? std::max(at, free_ns) + bytes * 1000 : at + 4'000'000 + bytes * 400;
            free_ns = sample.read_end_ns;
            at = sample.read_end_ns + 1000;
            ledger.samples.push_back(sample);
        }
        return ledger;
    };
    const auto line = read_line(ledger_of(true), 0, 1'000'000'000'000);
    BOOST_REQUIRE(line.has_value());
    BOOST_TEST(line->ns_per_byte == 1000, boost::test_tools::tolerance(1e-9));
    BOOST_TEST(line->latency_ns < 10'000);   // although reads queued for milliseconds
    BOOST_TEST(line->busy_share > 0.98);
    const auto later = read_line(ledger_of(true), 50'000'000, 1'000'000'000'000);   // the line was idle only before
    BOOST_REQUIRE(later.has_value());
    BOOST_TEST(later->latency_ns < 10'000);
    BOOST_TEST(!read_line(ledger_of(false), 0, 1'000'000'000'000).has_value());
    BOOST_TEST(!read_line(Ledger{}, 0, 1).has_value());
}

BOOST_AUTO_TEST_CASE(a_line_on_which_reads_queue_only_now_and_then_is_seen_too) {
    // Each worker reads, which takes 0.2 to 4 ms and then its turn on a line, or its own bytes; then it works.
    const auto ledger_of = [](bool line) {
        std::mt19937_64 random{3};
        std::lognormal_distribution<double> size{std::log(500.0), 0.5};
        std::uniform_real_distribution<double> latency{0.2, 4};
        std::exponential_distribution<double> work{1 / 0.5e6};
        Ledger ledger;
        std::int64_t free_ns = 0;
        std::array<std::int64_t, 4> worker_ns{};
        for (std::uint64_t i = 0; i < 2000; ++i) {
            std::int64_t& at = *std::ranges::min_element(worker_ns);   // who is done first reads next
            SampleRow sample{.index = i, .bytes = static_cast<std::uint64_t>(size(random))};
            const std::int64_t arrives_ns = at + std::llround(latency(random) * ms),
                               passes_ns = static_cast<std::int64_t>(sample.bytes) * 1000;
            sample.begin_ns = sample.read_begin_ns = at;
            sample.read_end_ns = (line ? std::max(arrives_ns, free_ns) : arrives_ns) + passes_ns;
            free_ns = sample.read_end_ns;
            at = sample.read_end_ns + static_cast<std::int64_t>(work(random));
            ledger.samples.push_back(sample);
        }
        return ledger;
    };
    const auto line = read_line(ledger_of(true), 0, 1'000'000'000'000);
    BOOST_REQUIRE(line.has_value());
    BOOST_TEST(line->ns_per_byte == 1000, boost::test_tools::tolerance(0.03));
    BOOST_TEST(!read_line(ledger_of(false), 0, 1'000'000'000'000).has_value());
}

BOOST_AUTO_TEST_CASE(reads_of_one_worker_tell_whether_their_bytes_make_them_long) {
    const auto grow = [](std::int64_t latency_ns, std::int64_t more_bytes = 1024, std::int64_t of_workers = 1) {
        Ledger ledger;
        std::int64_t at = 0;
        for (std::uint64_t i = 0; i < 200; ++i) {
            const std::int64_t bytes = 1000 + static_cast<std::int64_t>(i * 2654435761u) % more_bytes,
                               ns = latency_ns + bytes * 400 + static_cast<std::int64_t>(i * 40503u % 50'000);
            ledger.samples.push_back({.index = i,
                                      .bytes = static_cast<std::uint64_t>(bytes),
                                      .begin_ns = at,
                                      .read_begin_ns = at,
                                      .read_end_ns = at + ns});
            at += ns / of_workers;
        }
        return reads_grow_with_bytes(ledger, 0, 1'000'000'000'000);
    };
    BOOST_TEST(grow(300'000));             // with 600'000 for the bytes
    BOOST_TEST(!grow(900'000));            // larger than the part for the bytes
    BOOST_TEST(!grow(0, 40));              // sizes are nearly equal
    BOOST_TEST(!grow(300'000, 1024, 2));   // with two workers a shared line would show
    BOOST_TEST(!reads_grow_with_bytes(Ledger{}, 0, 1));
}

BOOST_AUTO_TEST_CASE(the_chart_marks_what_was_recorded_and_what_is_recommended_within_100_columns) {
    const std::string text = to_text(made_up());
    BOOST_TEST(text.find("20>") != std::string::npos, text);
    BOOST_TEST(text.find("10*") != std::string::npos, text);
    BOOST_TEST(text.find("recommended: num_workers 2, prefetch_depth 1, order in\n") != std::string::npos, text);
    BOOST_TEST(text.find("best: num_workers 2, prefetch_depth 2") != std::string::npos, text);
    std::size_t columns = 0;
    for (const char c : text) {
        columns = c == '\n' ? 0 : columns + ((static_cast<unsigned char>(c) & 0xC0) != 0x80);
        BOOST_REQUIRE(columns <= 100);
    }
}

BOOST_AUTO_TEST_CASE(the_document_has_every_field_of_its_schema) {
    const auto document = to_json(made_up(), {.version = "1", .command = "drawpoint whatif"}, {});
    BOOST_TEST(document.begin().key() == "schema");
    BOOST_TEST(document["schema"] == "drawpoint.whatif/1");
    BOOST_REQUIRE(document["rows"].size() == 4);
    for (const char* key : {"num_workers", "prefetch_depth", "order", "batches_per_s", "low", "high", "draw_share",
                            "p99_draw_s", "peak_bytes", "on_frontier"})
        BOOST_TEST(document["rows"][0].contains(key), key);
    BOOST_TEST(document["rows"][2]["batches_per_s"] == 20.0);
    BOOST_TEST(document["rows"][2]["order"] == "in");
    BOOST_TEST(document["rows"][2]["on_frontier"] == true);
    BOOST_TEST(document["recommended"]["num_workers"] == 2);
}

BOOST_AUTO_TEST_CASE(a_page_needs_nothing_else_and_no_name_can_act_in_it) {
    const std::string page = to_html(made_up(), "<script>alert(\"1\")</script> & run\x1b.pftrace");
    BOOST_TEST(page.find("<script") == std::string::npos);
    BOOST_TEST(page.find("&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt; &amp; run\\x1b.pftrace") !=
                   std::string::npos,
               page);
    BOOST_TEST(count_of(page, "http") == count_of(page, "xmlns=\"http://www.w3.org/2000/svg\""));
    BOOST_TEST(page.find("src=") == std::string::npos);
    BOOST_TEST(count_of(page, "<svg") == 2u);
    BOOST_TEST(count_of(page, "<svg") == count_of(page, "</svg>"));
    BOOST_TEST(count_of(page, "<circle") == 5u);   // four settings, and a ring around the recommended one
    BOOST_TEST(count_of(page, "<rect") == 8u);     // the same, and the legend's three
    BOOST_TEST(count_of(page, "recommended") >= 1u);
    BOOST_TEST(page.ends_with("</html>\n"));
}

BOOST_AUTO_TEST_SUITE_END()
