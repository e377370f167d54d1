#include <drawpoint/pipeline/torch/device_loader.hpp>

#include <cstdint>

#include <boost/test/unit_test.hpp>
#include <c10/core/Device.h>

#include <drawpoint/instrumentation/recorder/loop_track.hpp>

#include "support/count_allocations.hpp"
#include "torch/device_bench.hpp"

namespace drawpoint {
namespace {

namespace fake = fake_accelerator;

BOOST_AUTO_TEST_SUITE(device_steady_state)

BOOST_AUTO_TEST_CASE(a_step_allocates_nothing_waits_for_nothing_and_makes_few_calls_of_the_device) {
    BOOST_TEST(test::count_library_apart(reinterpret_cast<const void*>(&c10::DeviceTypeName)));
    BOOST_TEST(test::count_library_apart(reinterpret_cast<const void*>(&at::_ops::copy_::call)));
    for (const std::size_t workers : {0u, 2u}) {
        test::DeviceBench bench{120,
                                {.query_ns = 1000, .copy_ns = 10'000, .effects = false},
                                {.device_prefetch = 2},
                                {.batch_size = 4, .num_workers = workers, .prefetch_depth = 3}};
        constexpr std::uint64_t warm_up = 20;
        std::uint64_t allocations = 0;
        fake::Counters before;
        const auto loop = [&]() -> Awaitable<void> {
            auto pass = bench.loader.epoch(0);
            for (std::uint64_t step = 0; step < 120; ++step) {
                if (step == warm_up) {
                    allocations = test::counted_allocations();
                    before = fake::counters();
                }
                test::count_this_thread(true);
                auto batch = co_await pass.next();
                BOOST_REQUIRE(batch.has_value());
                BOOST_REQUIRE(data_of(*batch).size(0) == targets_of(*batch).size(0));
                test::count_this_thread(false);
                fake::advance(100'000);
                test::count_this_thread(true);
                batch.reset();
                test::count_this_thread(false);
            }
        };
        run(bench.runtime, loop());
        const fake::Counters after = fake::counters();
        constexpr std::uint64_t steps = 120 - warm_up;
        BOOST_TEST_CONTEXT(workers << " workers") {
            BOOST_TEST(test::counted_allocations() - allocations == 0u);
            BOOST_TEST(after.host_waits - before.host_waits == 0u);
            BOOST_TEST(after.synchronises - before.synchronises == 0u);
            BOOST_TEST(after.device_allocations - before.device_allocations == 0u);
            BOOST_TEST(after.copies - before.copies <= steps + 2);
            BOOST_TEST(after.calls - before.calls - (after.copies - before.copies) <= 8 * steps);
            BOOST_TEST(bench.loader.counters().buffers_replaced == 0u);
        }
    }
}

BOOST_AUTO_TEST_CASE(timing_the_steps_adds_no_allocation_and_no_wait) {
    ManualClock clock{1};
    Recorder recorder{RecorderOptions{.ring_records = 1u << 12}, AnyClock{clock}};
    test::DeviceBench bench{120, {.query_ns = 1000, .copy_ns = 10'000, .effects = false}, {.device_prefetch = 2}};
    LoopTrack track{recorder};
    std::uint64_t allocations = 0;
    fake::Counters before;
    constexpr std::uint64_t warm_up = 20, steps = 120 - warm_up;
    const auto loop = [&]() -> Awaitable<void> {
        track.begin_pass(PassKind::train, 0);
        auto pass = bench.loader.epoch(0, {.track = &track});
        for (std::uint32_t step = 0; step < 120; ++step) {
            if (step == warm_up) {
                allocations = test::counted_allocations();
                before = fake::counters();
            }
            test::count_this_thread(true);
            track.begin_step(Phase::train, 0, step);
            auto batch = co_await pass.next();
            BOOST_REQUIRE(batch.has_value());
            BOOST_REQUIRE(data_of(*batch).size(0) == targets_of(*batch).size(0));
            track.mark(Span::starved);
            track.end_draw(4);
            test::count_this_thread(false);
            fake::kernel(50'000);
            batch->end_forward();
            fake::advance(100'000);
            test::count_this_thread(true);
            batch->end_work();
            track.end_step(StepStatus::complete, std::nullopt);
            batch.reset();
            test::count_this_thread(false);
        }
        const fake::Counters after = fake::counters();
        BOOST_TEST(test::counted_allocations() - allocations == 0u);
        BOOST_TEST(after.host_waits - before.host_waits == 0u);
        BOOST_TEST(after.synchronises - before.synchronises == 0u);
        BOOST_TEST(after.device_allocations - before.device_allocations == 0u);
        BOOST_TEST(after.records - before.records <= 7 * steps);   // of these two the copy's own
        BOOST_TEST(after.elapsed - before.elapsed <= 6 * steps);   // likewise
        BOOST_TEST_MESSAGE((after.calls - before.calls - (after.kernels - before.kernels)) / steps
                           << " calls a step: " << (after.records - before.records) / steps << " records, "
                           << (after.queries - before.queries) / steps << " queries, "
                           << (after.elapsed - before.elapsed) / steps << " times, "
                           << (after.waits - before.waits) / steps << " waits of streams");
        track.end_steps();
        pass.drain();
    };
    run(bench.runtime, loop());
    BOOST_TEST(recorder.ledger().device_steps.size() == 120u);
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
}   // namespace drawpoint
