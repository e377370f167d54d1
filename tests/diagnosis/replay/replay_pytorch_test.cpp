// A PyTorch loader's rule in the replay, against the same rule written down from PyTorch's dataloader.py.
#include <drawpoint/diagnosis/replay/replay.hpp>

#include <algorithm>
#include <cstdint>
#include <random>
#include <stdexcept>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "diagnosis/replay/replayed_runs.hpp"

using namespace drawpoint;
using namespace drawpoint::test;

namespace {

constexpr std::int64_t ms = 1'000'000;

/// Batch sizes of 4, samples that sleep for 1 to 40 ms each, steps that sleep.
RecordedRun sleeping_run(std::uint64_t seed) {
    std::mt19937_64 random{seed};
    RecordedRun run = constant_run({.batch_size = 4, .compute = {0, 20 * ms}, .steps = 80});
    run.cores = 64;
    for (SampleDemand& sample : run.samples)
        sample.stages[0] = {0, static_cast<std::int64_t>(1 + random() % 8) * ms * (random() % 10 == 0 ? 5 : 1)};
    for (StepDemand& step : run.steps)
        step.compute.wait_ns = static_cast<std::int64_t>(1 + random() % 30) * ms;
    return run;
}

LoaderSetting pytorch(std::size_t num_workers, std::size_t prefetch_factor, OrderRule order = {}) {
    return with_prefetch({.num_workers = num_workers, .batch_size = 4, .order = order, .kind = LoaderKind::pytorch},
                         prefetch_factor);
}

/// What each draw waits for: prefetch_factor lists of indices go to each worker at first, each draw sends one more; the
/// list's worker is decided as it is sent.
std::vector<std::int64_t> draws_by_hand(const RecordedRun& run, const LoaderSetting& setting) {
    const std::size_t workers = setting.num_workers, factor = prefetch_of(setting);
    const bool in_order = setting.order == OrderRule::in_order();
    struct Sent {
        std::size_t worker;
        std::int64_t done_ns;
    };
    std::vector<Sent> sent;   // by batch
    std::vector<std::int64_t> free_ns(workers);
    std::vector<std::size_t> undrawn(workers);
    std::size_t turn = 0;
    const auto send = [&](std::int64_t now_ns) {
        std::size_t worker = turn++ % workers;
        while (!in_order && undrawn[worker] >= factor)
            worker = turn++ % workers;
        std::int64_t takes_ns = 0;
        for (std::size_t i = 0; i < 4; ++i)
            takes_ns += run.samples[(4 * sent.size() + i) % run.samples.size()].stages[0].wait_ns;
        free_ns[worker] = std::max(free_ns[worker], now_ns) + takes_ns;
        ++undrawn[worker];
        sent.push_back({worker, free_ns[worker]});
    };
    for (std::size_t i = 0; i < workers * factor; ++i)
        send(0);
    std::vector<bool> drawn(sent.size());
    std::vector<std::int64_t> draws;
    std::int64_t now_ns = 0;
    for (std::size_t step = 0; step < run.steps.size(); ++step) {
        std::size_t next = step;
        if (!in_order) {   // the one that is there first
            next = sent.size();
            for (std::size_t i = 0; i < sent.size(); ++i)
                if (!drawn[i] && (next == sent.size() || sent[i].done_ns < sent[next].done_ns))
                    next = i;
        }
        const std::int64_t taken_ns = std::max(now_ns, sent[next].done_ns);
        draws.push_back(taken_ns - now_ns);
        drawn[next] = true;
        --undrawn[sent[next].worker];
        send(taken_ns);
        drawn.push_back(false);
        now_ns = taken_ns + run.steps[step].compute.wait_ns;
    }
    return draws;
}

}   // namespace

BOOST_AUTO_TEST_SUITE(replay_pytorch)

BOOST_AUTO_TEST_CASE(each_draw_waits_as_long_as_by_pytorchs_rule) {
    for (std::uint64_t seed = 1; seed <= 40; ++seed)
        for (const std::size_t workers : {1u, 2u, 3u, 5u})
            for (const std::size_t factor : {1u, 2u, 4u}) {
                const RecordedRun run = sleeping_run(seed);
                const LoaderSetting setting = pytorch(workers, factor);
                BOOST_TEST_CONTEXT("seed " << seed << ", " << workers << " x " << factor)
                BOOST_TEST(drawpoint::replay(run, exact(setting)).draw_ns == draws_by_hand(run, setting));
            }
}

BOOST_AUTO_TEST_CASE(out_of_order_a_list_goes_to_a_worker_that_has_room) {
    std::size_t same = 0, all = 0;
    for (std::uint64_t seed = 1; seed <= 40; ++seed)
        for (const std::size_t workers : {1u, 2u, 3u, 5u})
            for (const std::size_t factor : {1u, 2u, 4u}) {
                const RecordedRun run = sleeping_run(seed);
                const LoaderSetting setting = pytorch(workers, factor, OrderRule::out_of_order());
                // Batches that are complete at the same moment may come in another order, and all draws after them.
                same += drawpoint::replay(run, exact(setting)).draw_ns == draws_by_hand(run, setting);
                ++all;
            }
    BOOST_TEST(same * 10 >= all * 9);
}

BOOST_AUTO_TEST_CASE(a_straggler_delays_what_is_sent_to_its_worker_and_no_other) {
    // Batch 0 takes 100 ms and the others 4: by PyTorch's rule every second batch waits behind it, while any free
    // worker would have made them.
    RecordedRun run = constant_run({.batch_size = 4, .sample = {0, 1 * ms}, .compute = {0, 1 * ms}, .steps = 40});
    run.cores = 64;
    run.samples[0].stages[0].wait_ns = 100 * ms;
    const LoaderSetting setting = pytorch(2, 4);
    LoaderSetting any = setting;
    any.kind = LoaderKind::drawpoint;
    const double by_turns = drawpoint::replay(run, exact(setting)).batches_per_s;
    BOOST_TEST(by_turns < drawpoint::replay(run, exact(any)).batches_per_s);
    BOOST_TEST(by_turns < drawpoint::replay(run, exact(pytorch(2, 4, OrderRule::out_of_order()))).batches_per_s);
}

BOOST_AUTO_TEST_CASE(a_worker_makes_the_next_batch_while_its_process_sends_one_and_the_loop_receives_one) {
    RecordedRun run = constant_run({.batch_size = 4, .sample = {0, 1 * ms}, .compute = {0, 1 * ms}, .steps = 40});
    run.collates = true;
    for (BatchDemand& batch : run.batches)
        batch = {.transfer = {2 * ms, 1 * ms}, .send_cpu_ns = 6 * ms};
    const LoaderSetting setting = pytorch(1, 2);
    const Replayed replayed = drawpoint::replay(run, exact(setting));
    BOOST_TEST(replayed.draw_ns.front() == (4 + 6 + 3) * ms);
    BOOST_TEST(replayed.draw_ns.back() == (6 - 1) * ms);   // sending takes longest, 6 ms a batch
    ReplayOptions without = exact(setting);
    without.change.transfer = 0;
    BOOST_TEST(drawpoint::replay(run, without).draw_ns.back() == 3 * ms);
}

BOOST_AUTO_TEST_CASE(what_a_workers_thread_computes_besides_samples_and_collating_delays_its_next_batch) {
    RecordedRun run = constant_run({.batch_size = 4, .sample = {1 * ms, 0}, .compute = {0, 1 * ms}, .steps = 40});
    run.cores = 64;
    run.collates = true;
    for (BatchDemand& batch : run.batches)
        batch = {.collate = {1 * ms, 0}, .rest_cpu_ns = 2 * ms};
    BOOST_TEST(drawpoint::replay(run, exact(pytorch(1, 2))).draw_ns.back() == (4 + 1 + 2 - 1) * ms);
}

BOOST_AUTO_TEST_CASE(without_workers_nothing_is_delivered) {
    RecordedRun run = constant_run({.batch_size = 4, .sample = {0, 1 * ms}, .compute = {0, 1 * ms}, .steps = 40});
    run.setting = pytorch(2, 2);
    run.collates = true;
    for (BatchDemand& batch : run.batches)
        batch = {.transfer = {2 * ms, 1 * ms}, .send_cpu_ns = 6 * ms, .rest_cpu_ns = 2 * ms};
    LoaderSetting none = run.setting;
    none.num_workers = 0;
    none.prefetch_depth = 1;
    for (const std::int64_t draw_ns : drawpoint::replay(run, exact(none)).draw_ns)
        BOOST_TEST(draw_ns == 4 * ms);
}

BOOST_AUTO_TEST_CASE(thousands_of_batches_may_be_ahead) {
    const RecordedRun run = sleeping_run(1);
    for (const OrderRule order : {OrderRule::in_order(), OrderRule::out_of_order()})
        for (const LoaderSetting& setting : {pytorch(16, 64, order), pytorch(8, 8, order), pytorch(256, 16, order)})
            BOOST_TEST(drawpoint::replay(run, exact(setting)).draw_ns == draws_by_hand(run, setting));
    BOOST_CHECK_THROW((void)drawpoint::replay(run, exact(pytorch(256, 17))), std::invalid_argument);
}

BOOST_AUTO_TEST_CASE(a_pass_begins_once_the_one_before_it_is_drawn) {
    // Ten passes of 4 batches: nothing is prefetched into the next pass, whose workers take 50 ms to start.
    RecordedRun run = constant_run({.batch_size = 4, .sample = {0, 1 * ms}, .compute = {0, 10 * ms}, .steps = 40});
    run.pass_batches = 4;
    run.pass_samples = 16;
    run.order = {0, 50 * ms};
    const Replayed replayed = drawpoint::replay(run, exact(pytorch(2, 2)));
    for (std::size_t step = 4; step < 40; step += 4)
        BOOST_TEST(replayed.draw_ns[step] == 54 * ms);
}

BOOST_AUTO_TEST_CASE(the_loop_starts_workers_one_after_the_other_and_each_gets_ready_by_itself) {
    RecordedRun run = constant_run({.batch_size = 4, .sample = {0, 1 * ms}, .compute = {0, 10 * ms}, .steps = 40});
    run.setting = pytorch(2, 2);
    run.cores = 64;
    run.pass_batches = 4;
    run.pass_samples = 16;
    run.order = {6 * ms, 50 * ms};
    BOOST_TEST(drawpoint::replay(run, exact(pytorch(2, 2))).draw_ns[4] == (50 + 6 + 4) * ms);
    BOOST_TEST(drawpoint::replay(run, exact(pytorch(4, 2))).draw_ns[4] == (50 + 12 + 4) * ms);
    run.worker_gap_ns = 7 * ms;
    BOOST_TEST(drawpoint::replay(run, exact(pytorch(2, 2))).draw_ns[4] == (50 + 6 + 4) * ms);
    BOOST_TEST(drawpoint::replay(run, exact(pytorch(2, 1))).draw_ns[5] == 0);   // begins within the step before
    run.worker_gap_ns = 17 * ms;
    BOOST_TEST(drawpoint::replay(run, exact(pytorch(2, 1))).draw_ns[5] == (17 - 10) * ms);
    ReplayOptions persistent = exact(pytorch(2, 1));
    persistent.change.sampler = 0;
    BOOST_TEST(drawpoint::replay(run, persistent).draw_ns[4] == 4 * ms);
    BOOST_TEST(drawpoint::replay(run, persistent).draw_ns[5] == 0);
    LoaderSetting none = pytorch(2, 2);
    none.num_workers = 0;
    BOOST_TEST(drawpoint::replay(run, exact(none)).draw_ns[4] == 4 * ms);
}

BOOST_AUTO_TEST_SUITE_END()
