#include <drawpoint/pipeline/loader/data_loader.hpp>

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <drawpoint/instrumentation/recorder/loop_track.hpp>
#include <drawpoint/instrumentation/report/summary.hpp>
#include <drawpoint/pipeline/loader/machine/detail/loader_policy.hpp>

#include "pipeline/loader/numbered_source.hpp"
#include "pipeline/loader/orders.hpp"
#include "support/coro_test.hpp"

namespace drawpoint {
namespace {

using test::NumberedSource;

/// A loader in virtual time, simulated moment by moment: the ledger of a run, and the time that order cost it.
struct Timeline {
    Ledger ledger;
    std::int64_t lost_ns = 0, starved_ns = 0;
};

Timeline timeline(std::uint64_t seed) {
    std::mt19937_64 random{seed};
    const OrderRule order = test::nth_order(seed, static_cast<std::uint32_t>(1 + seed % 4));
    const std::vector<std::uint64_t> passes{1 + seed % 20, 1, 13};
    LoaderPolicy policy{{.num_workers = 2, .prefetch_depth = 1 + seed % 9, .order = order}};
    Timeline made;
    made.ledger.pipelines = {{"train", {"read"}, 1, 2, 2, order}};

    struct Made {
        BatchRow row;
        std::int64_t due_ns;
    };
    std::map<std::uint32_t, Made> by_slot;
    std::vector<std::uint32_t> offered;   // slots, in the order of their offers
    std::uint64_t next_pass = 0, next_first = 0;
    std::int64_t now = 0;
    std::vector<std::uint64_t> firsts;

    const auto admit = [&] {
        while (const auto admission = policy.admit())
            by_slot[admission->slot] = {
                {.epoch = static_cast<std::uint32_t>(firsts.size() - 1),
                 .batch = static_cast<std::uint32_t>(admission->batch - firsts.back()),
                 .size = 1,
                 .admitted_ns = now},
                now + 1 + static_cast<std::int64_t>(random() % 8 == 0 ? random() % 120 : random() % 12)};
    };
    const auto turn = [&] {
        for (; next_pass < passes.size() && policy.admitted() == policy.limit(); ++next_pass) {
            firsts.push_back(next_first);
            next_first += passes[next_pass];
            policy.extend(passes[next_pass]);
            admit();
        }
        admit();
        while (const auto handed = policy.hand_over()) {
            by_slot[handed->slot].row.offered_ns = now;
            offered.push_back(handed->slot);
        }
    };
    turn();
    for (std::uint32_t epoch = 0; epoch < passes.size(); ++epoch) {
        for (std::uint64_t drawn = 0; drawn < passes[epoch]; ++drawn) {
            const std::int64_t begin = now;
            const auto tick = [&](bool waits) {
                // Whether complete batches of this pass are not handed over although the loop has none.
                const bool kept = std::ranges::any_of(by_slot, [&](const auto& of) {
                    const BatchRow& row = of.second.row;
                    return row.epoch == epoch && row.last_done_ns != no_stamp && row.offered_ns == no_stamp;
                });
                made.lost_ns += waits && kept;
                ++now;
                for (auto& [slot, of] : by_slot)
                    if (of.due_ns == now && of.row.last_done_ns == no_stamp) {
                        of.row.last_done_ns = now;
                        (void)policy.complete(slot, false);
                        turn();
                        break;   // the map may have changed; of two at the same moment the other is late
                    }
                for (auto& [slot, of] : by_slot)
                    if (of.due_ns <= now && of.row.last_done_ns == no_stamp)
                        of.due_ns = now + 1;
            };
            while (offered.empty())
                tick(true);
            const std::uint32_t slot = offered.front();
            offered.erase(offered.begin());
            BatchRow row = by_slot.at(slot).row;
            BOOST_REQUIRE(row.epoch == epoch);
            row.taken_ns = now;
            made.ledger.batches.push_back(row);
            made.ledger.spans.push_back({Span::starved, begin, now - begin});
            made.ledger.steps.push_back({.step = static_cast<std::uint32_t>(made.ledger.steps.size()),
                                         .epoch = epoch,
                                         .batch = row.batch,
                                         .size = 1,
                                         .draw_begin_ns = begin,
                                         .draw_ns = now - begin,
                                         .loss = {},
                                         .spans = {static_cast<std::uint32_t>(made.ledger.spans.size() - 1), 1}});
            made.starved_ns += now - begin;
            for (auto compute = static_cast<std::int64_t>(random() % 10); compute > 0; --compute)
                tick(false);
            policy.release(slot);
            by_slot.erase(slot);
            turn();
            tick(false);   // no two draws occur at one moment
        }
    }
    return made;
}

struct Drawn {
    std::vector<std::size_t> numbers;   // in the order of draws
    std::string fault;
};

Awaitable<void> draw_pass(DataLoader& loader, const NumberedSource& source, LoopTrack& track, std::size_t epoch,
                          bool next_epoch, Drawn& drawn) {
    const EpochOptions options{.next_epoch = next_epoch};
    auto pass = loader.epoch(epoch, options);
    for (std::size_t turn = 0; turn < *pass.size(); ++turn) {
        track.begin_step(Phase::train, static_cast<std::uint32_t>(epoch), static_cast<std::uint32_t>(turn));
        auto batch = co_await pass.next();
        const DrawStamps stamps = batch->draw_stamps();
        track.mark_until(Span::starved, stamps.offered_ns);
        track.mark_until(Span::handoff, stamps.taken_ns);
        track.end_draw(static_cast<std::uint32_t>(batch->size()), static_cast<std::uint32_t>(batch->number()));
        drawn.numbers.push_back(batch->number());
        for (std::size_t i = 0; i < batch->size(); ++i)
            if (batch->indices()[i] != batch->number() * loader.options().batch_size + i)
                drawn.fault = "batch " + std::to_string(batch->number()) + " has other samples";
        if (batch->epoch() != epoch)
            drawn.fault = "a batch of epoch " + std::to_string(batch->epoch());
        if (const std::string wrong = source.fault(*batch, loader.options().seed); !wrong.empty())
            drawn.fault = wrong;
        track.end_step(StepStatus::complete, std::nullopt);
    }
    track.mark(Span::between);
    track.end_steps();
}

void busy(std::chrono::microseconds time) {
    const auto until = std::chrono::steady_clock::now() + time;
    while (std::chrono::steady_clock::now() < until) {
    }
}

BOOST_AUTO_TEST_SUITE(batch_order)

BOOST_AUTO_TEST_CASE(
    the_time_lost_to_order_is_that_in_which_the_loop_waits_and_the_policy_holds_a_complete_batch_back) {
    std::int64_t lost = 0;
    for (std::uint64_t seed = 0; seed < 300; ++seed) {
        const Timeline made = timeline(seed);
        const Summary summary = summarize(made.ledger, {.drop_first_batch = false});
        BOOST_TEST(std::llround(summary.draw.starved_s * 1e9) == made.starved_ns, "seed " << seed);
        BOOST_TEST(std::llround(summary.draw.order_s * 1e9) == made.lost_ns,
                   "seed " << seed << ": " << summary.draw.order_s * 1e9 << " instead of " << made.lost_ns);
        if (seed % 3 == 1)
            BOOST_TEST(made.lost_ns == 0);
        lost += made.lost_ns;
    }
    BOOST_TEST(lost > 1000);
}

BOOST_AUTO_TEST_CASE(in_every_order_each_batch_of_a_pass_comes_once_and_says_which_it_is) {
    constexpr std::size_t batches = 60, batch_size = 3;
    for (const OrderRule order : {OrderRule::in_order(), OrderRule::out_of_order(), OrderRule::bounded(2)})
        for (const std::size_t workers : {0u, 1u, 3u}) {
            const auto recorder = test::small_recorder();
            Runtime runtime{{}, *recorder};
            NumberedSource source{batches * batch_size};
            source.before_fill = [](std::uint64_t index) {
                if (index % 30 == 1)
                    busy(std::chrono::microseconds{300});
            };
            const SequentialSampler sampler{source.size()};
            const LoaderOptions options{
                .batch_size = batch_size, .num_workers = workers, .prefetch_depth = 7, .seed = 5, .order = order};
            {
                DataLoader loader{runtime, source, sampler, options};
                LoopTrack track{recorder.get()};
                for (std::size_t epoch = 0; epoch < 3; ++epoch) {
                    Drawn drawn;
                    track.begin_pass(PassKind::train, static_cast<std::uint32_t>(epoch));
                    run(runtime, draw_pass(loader, source, track, epoch, epoch < 2, drawn));
                    track.end_pass();
                    BOOST_TEST(drawn.fault == "");
                    for (std::size_t i = 0; i < drawn.numbers.size(); ++i) {
                        const auto overtaken =
                            std::count_if(drawn.numbers.begin(), drawn.numbers.begin() + static_cast<std::ptrdiff_t>(i),
                                          [&](std::size_t number) { return number > drawn.numbers[i]; });
                        BOOST_TEST(overtaken <= order.max_overtakes);
                    }
                    std::ranges::sort(drawn.numbers);
                    BOOST_REQUIRE(drawn.numbers.size() == batches);
                    for (std::size_t i = 0; i < batches; ++i)
                        BOOST_TEST(drawn.numbers[i] == i);
                }
            }
            const Ledger ledger = recorder->ledger();
            BOOST_TEST((ledger.pipelines.at(0).order == order));
            BOOST_TEST(max_residual_ns(ledger) == 0);
            for (const StepRow& step : ledger.steps) {   // a step names the batch that it drew
                const auto row = std::ranges::find_if(ledger.batches, [&](const BatchRow& batch) {
                    return batch.epoch == step.epoch && batch.batch == step.batch;
                });
                BOOST_REQUIRE(row != ledger.batches.end());
                BOOST_TEST(row->taken_ns >= step.draw_begin_ns);
                BOOST_TEST(row->taken_ns <= step.draw_begin_ns + step.draw_ns);
            }
            const Summary summary = summarize(ledger, {.drop_first_batch = false});
            BOOST_TEST(summary.draw.order_s <= summary.draw.starved_s);
            if (order == OrderRule::out_of_order() || workers == 0)
                BOOST_TEST(summary.draw.order_s == 0.0);
            BOOST_TEST(summary.run.order == (order == OrderRule::in_order()       ? "in"
                                             : order == OrderRule::out_of_order() ? "out"
                                                                                  : "2"));
        }
}

BOOST_AUTO_TEST_CASE(a_straggler_holds_back_the_batches_behind_it_in_order_and_none_out_of_order) {
    for (const bool in_order : {true, false}) {
        const auto recorder = test::small_recorder();
        Runtime runtime{{}, *recorder};
        NumberedSource source{8};
        std::atomic<int> others{0};
        source.before_fill = [&](std::uint64_t index) {   // the first sample is complete when all others are
            if (index != 0)
                others.fetch_add(1);
            else
                while (others.load() < 7)
                    std::this_thread::yield();
        };
        const SequentialSampler sampler{source.size()};
        DataLoader loader{runtime,
                          source,
                          sampler,
                          {.batch_size = 1,
                           .num_workers = 2,
                           .prefetch_depth = 7,
                           .order = in_order ? OrderRule::in_order() : OrderRule::out_of_order()}};
        LoopTrack track{recorder.get()};
        Drawn drawn;
        track.begin_pass(PassKind::train, 0);
        run(runtime, draw_pass(loader, source, track, 0, false, drawn));
        track.end_pass();
        BOOST_TEST(drawn.fault == "");
        const std::vector<std::size_t> in{0, 1, 2, 3, 4, 5, 6, 7};
        // Of the seven, those that the other worker made came first, in its order.
        if (in_order)
            BOOST_TEST(drawn.numbers == in, boost::test_tools::per_element());
        else
            BOOST_TEST((std::ranges::find(drawn.numbers, 0u) - drawn.numbers.begin() >= 6));
        const Summary summary = summarize(recorder->ledger(), {.drop_first_batch = false});
        BOOST_TEST((summary.draw.order_s > 0) == in_order);
    }
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
}   // namespace drawpoint
