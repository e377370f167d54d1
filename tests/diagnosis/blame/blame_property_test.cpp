// Whatever the records say, every nanosecond of a draw is in exactly one piece, and every nanosecond of a worker in one
// column.

#include <drawpoint/diagnosis/blame/blame.hpp>
#include <drawpoint/diagnosis/blame/explain.hpp>

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <numeric>
#include <random>

#include "support/sanitized.hpp"

namespace drawpoint {
namespace {

constexpr std::uint32_t cases = test::sanitized ? 300 : 4'000;

class RandomLedger {
public:
    explicit RandomLedger(std::uint32_t seed) : random_{seed}, horizon_{one_in(4) ? 200u : 20'000u} {}

    Ledger make() {
        for (std::size_t i = below(3); i-- > 0;)
            ledger_.pipelines.push_back({.name = "loader",
                                         .stages = std::vector<std::string>(below(4), "stage"),
                                         .num_workers = number(5),
                                         .prefetch_depth = number(5),
                                         .order = one_in(3) ? OrderRule::out_of_order() : OrderRule::bounded(number(3)),
                                         .memory_budget = number(2)});
        for (std::size_t i = below(4); i-- > 0;)
            ledger_.settings.push_back(
                {.at_ns = stamp(), .pipeline = pipeline(), .num_workers = number(5), .prefetch_depth = number(5)});
        std::ranges::sort(ledger_.settings, {}, &SettingRow::at_ns);
        for (std::size_t i = below(6); i-- > 0;) {
            OrderRow& row = ledger_.orders.emplace_back(
                OrderRow{.begin_ns = stamp(), .ns = stamp(), .epoch = number(3), .pipeline = pipeline()});
            if (one_in(2))
                row.worker = static_cast<std::uint16_t>(below(3));
        }
        add_steps();
        for (std::size_t i = below(30); i-- > 0;)
            add_batch();
        for (std::size_t i = below(80); i-- > 0;)
            add_sample();
        for (std::size_t i = below(5); i-- > 0;)
            ledger_.passes.push_back(
                {.kind = static_cast<PassKind>(below(4)), .epoch = number(3), .begin_ns = stamp()});
        ledger_.folded.steps = below(3);
        ledger_.sort();
        return std::move(ledger_);
    }

private:
    std::size_t below(std::size_t n) { return random_() % n; }
    bool one_in(std::size_t n) { return below(n) == 0; }
    std::uint32_t number(std::size_t n) { return static_cast<std::uint32_t>(below(n)); }
    std::uint16_t pipeline() { return static_cast<std::uint16_t>(below(3)); }
    std::int64_t stamp() {
        switch (below(40)) {
        case 0: return no_stamp;
        case 1: return std::numeric_limits<std::int64_t>::max() - static_cast<std::int64_t>(below(5));
        case 2: return no_stamp + static_cast<std::int64_t>(below(5));
        default: return static_cast<std::int64_t>(below(horizon_));
        }
    }
    std::int64_t length() {
        if (one_in(40))
            return one_in(2) ? -static_cast<std::int64_t>(below(50)) : std::numeric_limits<std::int64_t>::max();
        return static_cast<std::int64_t>(below(horizon_ / 8));
    }
    std::optional<std::int64_t> measured() { return one_in(2) ? std::nullopt : std::optional{length()}; }

    void add_steps() {
        std::int64_t now = 0;
        for (std::size_t i = below(20); i-- > 0;) {
            StepRow row{.step = number(99),
                        .epoch = number(3),
                        .batch = number(8),
                        .phase = static_cast<Phase>(below(2)),
                        .status = static_cast<StepStatus>(below(3)),
                        .size = number(3),
                        .draw_begin_ns = now};
            row.spans = {static_cast<std::uint32_t>(ledger_.spans.size()), number(5)};
            const bool tiles = !one_in(3);   // otherwise they may be anywhere
            for (std::uint32_t piece = 0; piece < row.spans.count; ++piece) {
                const auto ns = static_cast<std::int64_t>(below(horizon_ / 40));
                static constexpr std::array spans{Span::starved, Span::handoff,   Span::transfer,
                                                  Span::between, Span::callbacks, span_of(Event::before_draw)};
                ledger_.spans.push_back({spans[below(spans.size())], tiles ? now : stamp(), tiles ? ns : length()});
                now += ns;
            }
            row.draw_ns = now - row.draw_begin_ns;
            row.batch_ns = static_cast<std::int64_t>(below(horizon_ / 40));
            now += row.batch_ns;
            ledger_.steps.push_back(row);
        }
    }

    void add_batch() {
        BatchRow row{.epoch = number(3),
                     .batch = number(8),
                     .slot = number(4),
                     .pipeline = pipeline(),
                     .status = static_cast<BatchStatus>(below(3)),
                     .size = number(4)};
        if (one_in(3))
            row.collate_worker = static_cast<std::uint16_t>(below(4));
        std::array all{&row.admitted_ns,      &row.first_claim_ns, &row.last_done_ns,
                       &row.collate_begin_ns, &row.collate_end_ns, &row.transfer_issue_ns,
                       &row.transfer_done_ns, &row.offered_ns,     &row.taken_ns};
        std::int64_t at = static_cast<std::int64_t>(below(horizon_));
        const bool ordered = !one_in(3);
        for (std::int64_t* const one : all) {
            at += static_cast<std::int64_t>(below(horizon_ / 40 + 1));
            *one = one_in(8) ? no_stamp : ordered ? at : stamp();
        }
        ledger_.batches.push_back(row);
    }

    void add_sample() {
        SampleRow row{.index = below(50),
                      .epoch = number(3),
                      .batch = number(8),
                      .slot = number(3),
                      .samples = one_in(8) ? 2u : 1u,
                      .worker = static_cast<std::uint16_t>(below(4)),
                      .pipeline = pipeline(),
                      .begin_ns = stamp(),
                      .read_begin_ns = stamp(),
                      .read_end_ns = stamp(),
                      .cpu_ns = measured(),
                      .run_queue_ns = measured()};
        row.stages = {static_cast<std::uint32_t>(ledger_.stages.size()), number(5)};
        std::int64_t at = row.begin_ns;
        for (std::uint32_t i = 0; i < row.stages.count; ++i) {
            const auto ns = static_cast<std::int64_t>(below(horizon_ / 40));
            const bool follows = one_in(2) && at < std::numeric_limits<std::int64_t>::max() / 2;
            ledger_.stages.push_back({follows ? at : stamp(), follows ? ns : length(), measured().value_or(no_stamp)});
            at = follows ? at + ns : at;
        }
        ledger_.samples.push_back(row);
    }

    std::minstd_rand random_;
    std::size_t horizon_;
    Ledger ledger_;
};

BOOST_AUTO_TEST_SUITE(blame_property)

BOOST_AUTO_TEST_CASE(pieces_tile_every_draw_whatever_the_records_say) {
    std::size_t pieces = 0;
    for (std::uint32_t seed = 0; seed < cases; ++seed) {
        const Ledger ledger = RandomLedger{seed}.make();
        const Blame result = blame(ledger);
        bool tiles = result.draws.size() == ledger.steps.size() && result.max_residual_ns == 0;
        for (std::size_t i = 0; tiles && i < result.draws.size(); ++i) {
            const DrawBlame& draw = result.draws[i];
            const StepRow& step = ledger.steps[draw.step];
            std::int64_t at = step.draw_begin_ns;
            for (std::uint32_t k = draw.pieces.first; k < draw.pieces.first + draw.pieces.count; ++k) {
                const BlamePiece& piece = result.pieces[k];
                tiles &= piece.begin_ns == at && piece.ns > 0;
                at += piece.ns;
            }
            tiles &= at == step.draw_begin_ns + step.draw_ns;
            pieces += draw.pieces.count;
        }
        BOOST_TEST_REQUIRE(tiles, "seed " << seed);
    }
    BOOST_TEST(pieces > cases * 10);
}

BOOST_AUTO_TEST_CASE(the_columns_of_a_worker_sum_to_its_span_whatever_the_records_say) {
    std::size_t workers = 0;
    for (std::uint32_t seed = 0; seed < cases; ++seed) {
        const Ledger ledger = RandomLedger{seed}.make();
        const Blame result = blame(ledger);
        for (const WorkerBlame& worker : result.workers) {
            const std::int64_t stages =
                std::accumulate(worker.stages_ns.begin(), worker.stages_ns.end(), std::int64_t{0});
            BOOST_TEST_REQUIRE(stages + worker.collate_ns + worker.sampler_ns + worker.run_queue_ns +
                                       worker.overhead_ns + worker.idle_no_slot_ns + worker.idle_ns +
                                       worker.unknown_ns ==
                                   worker.span_ns,
                               "seed " << seed);
            const StepRow &first = ledger.steps[result.first_steady_step], &last = ledger.steps.back();
            BOOST_TEST_REQUIRE(worker.span_ns ==
                               last.draw_begin_ns + last.draw_ns + last.batch_ns - first.draw_begin_ns);
            BOOST_TEST_REQUIRE(std::ranges::all_of(worker.stages_ns, [](std::int64_t ns) { return ns >= 0; }));
            BOOST_TEST_REQUIRE(std::min({worker.collate_ns, worker.sampler_ns, worker.run_queue_ns, worker.overhead_ns,
                                         worker.idle_no_slot_ns, worker.idle_ns, worker.unknown_ns}) >= 0);
        }
        workers += result.workers.size();
    }
    BOOST_TEST(workers > cases);
}

BOOST_AUTO_TEST_CASE(a_table_sums_to_its_draws_whatever_the_records_say) {
    for (std::uint32_t seed = 0; seed < cases; ++seed) {
        const Ledger ledger = RandomLedger{seed}.make();
        const Blame result = blame(ledger);
        std::int64_t rows = 0, draws = 0;
        for (const DrawKind kind : {DrawKind::steady, DrawKind::warm_up, DrawKind::first_of_pass})
            for (const BlameRow& row : blame_table(ledger, result, kind)) {
                rows += row.ns;
                BOOST_TEST_REQUIRE(row.computing_ns + row.run_queue_ns + row.waiting_ns <= row.ns);
            }
        for (const StepRow& step : ledger.steps)
            draws += step.phase == Phase::train ? step.draw_ns : 0;
        BOOST_TEST_REQUIRE(rows == draws, "seed " << seed);
    }
}

BOOST_AUTO_TEST_CASE(every_step_can_be_explained_whatever_the_records_say) {
    for (std::uint32_t seed = 0; seed < cases / 10; ++seed) {
        const Ledger ledger = RandomLedger{seed}.make();
        const Blame result = blame(ledger);
        for (const StepRow& step : ledger.steps)
            BOOST_TEST_REQUIRE(explain(ledger, result, step.step).find("The loop waited") != std::string::npos);
    }
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
}   // namespace drawpoint
