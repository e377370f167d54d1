#include <drawpoint/pipeline/torch/device_loader.hpp>

#include <algorithm>
#include <array>
#include <optional>
#include <thread>
#include <utility>

#include <ATen/ops/empty.h>
#include <c10/core/StreamGuard.h>

#include <boost/test/unit_test.hpp>

#include <drawpoint/pipeline/loader/machine/detail/transfer_policy.hpp>

#include "torch/device_bench.hpp"

namespace drawpoint {
namespace {

using test::DeviceBench;
using test::ms;
namespace fake = fake_accelerator;

const fake::Settings slow_copies{.query_ns = 50'000, .copy_ns = 4 * ms};

BOOST_AUTO_TEST_SUITE(device_loader)

BOOST_AUTO_TEST_CASE(buffers_are_taken_oldest_first_and_only_when_neither_used_nor_copied_to) {
    TransferPolicy policy{3};
    BOOST_TEST(policy.issue() == 0u);
    BOOST_TEST(policy.issue() == 1u);
    BOOST_TEST(policy.ahead() == 2u);
    BOOST_TEST(policy.draw() == 0u);
    policy.give_back(0);
    BOOST_TEST(policy.issue() == 2u);
    BOOST_TEST(!policy.may_issue());   // the copy to buffer 0 is under way
    BOOST_TEST(*policy.copying() == 0u);
    policy.copied();
    BOOST_TEST(policy.may_issue());
    policy.copied();
    BOOST_TEST(policy.draw() == 1u);
    BOOST_TEST(policy.is_taken(1));
    policy.give_back(1);
    BOOST_TEST(policy.next() == 0u);   // free for longer than 1
    BOOST_TEST(policy.issue() == 0u);
    BOOST_TEST(policy.issue() == 1u);
}

BOOST_AUTO_TEST_CASE(copies_overlap_with_steps_from_two_buffers_on) {
    for (const std::size_t workers : {0u, 2u})
        for (const std::size_t prefetch : {0u, 1u, 2u}) {
            DeviceBench bench{20,
                              slow_copies,
                              {.device_prefetch = prefetch},
                              {.batch_size = 4, .num_workers = workers, .prefetch_depth = 3}};
            BOOST_TEST_CONTEXT(workers << " workers, device_prefetch " << prefetch) {
                BOOST_TEST(bench.train() == (prefetch == 0 ? 180 * ms : 104 * ms));   // 9.000 and 5.200 ms a step
                BOOST_TEST(bench.steps.looks == 40u);
                BOOST_TEST(bench.steps.wrong == 0u);
                BOOST_TEST(fake::counters().synchronises == 0u);
                BOOST_TEST(bench.loader.counters().batches_copied == 20u);
                BOOST_TEST(bench.loader.counters().bytes_copied == 20u * (4 * 4 * 8 + 4 * 8));
                BOOST_TEST(bench.host.counters().slots_replaced == 0u);
            }
        }
}

BOOST_AUTO_TEST_CASE(faster_steps_are_bound_by_the_copies) {
    DeviceBench bench{20, slow_copies, {.device_prefetch = 1}};
    bench.steps.kernel_ns = 2 * ms;
    BOOST_TEST(bench.train() == 82 * ms);   // 4.100 ms a step
    BOOST_TEST(bench.steps.wrong == 0u);
}

BOOST_AUTO_TEST_CASE(the_buffer_that_came_back_longest_ago_is_copied_to) {
    // The loop's thread takes 4.5 ms a step, so that both buffers are free at each draw: the copy to the one that came
    // back just now would have to wait for the step in progress.
    DeviceBench bench{20, {.query_ns = 1000, .copy_ns = 4 * ms}, {.device_prefetch = 1}};
    bench.steps.host_ns = 4'500'000;
    const std::int64_t took = bench.train();
    BOOST_TEST(took >= 104'500'000);
    BOOST_TEST(took < 104'600'000);
    BOOST_TEST(bench.steps.wrong == 0u);
}

BOOST_AUTO_TEST_CASE(a_pass_that_is_destroyed_waits_for_copies_of_batches_that_it_has_not_drawn) {
    DeviceBench bench{12,
                      {.query_ns = 100'000, .copy_ns = 4 * ms},
                      {.device_prefetch = 3},
                      {.batch_size = 4, .num_workers = 2, .prefetch_depth = 3}};
    std::optional<DeviceBatch> outlives;
    const auto loop = [&]() -> Awaitable<void> {
        {
            auto pass = bench.loader.epoch(0);
            while (bench.source.fills < 12)   // three batches are ready
                std::this_thread::yield();
            auto batch = co_await pass.next();
            BOOST_TEST(bench.loader.counters().batches_ahead > 0u);
            outlives = std::move(batch);
        }
        BOOST_TEST(fake::now_ns() >= static_cast<std::int64_t>(bench.loader.counters().batches_copied) * 4 * ms);
        BOOST_TEST(fake::counters().synchronises == 0u);
        BOOST_TEST(outlives->number() == 0u);
    };
    run(bench.runtime, loop());
    outlives.reset();
    bench.train(1);   // every batch of the next pass has its own data
    BOOST_TEST(bench.steps.looks == 24u);
    BOOST_TEST(bench.steps.wrong == 0u);
}

BOOST_AUTO_TEST_CASE(the_stream_that_is_current_at_a_draw_waits_for_its_copy) {
    DeviceBench bench{20, slow_copies, {.device_prefetch = 1}};
    const auto* const calls = c10::impl::getDeviceGuardImpl(c10::DeviceType::PrivateUse1);
    const std::array<c10::Stream, 2> streams{calls->getNewStream(fake::device(), 0),
                                             calls->getNewStream(fake::device(), 0)};
    const auto loop = [&]() -> Awaitable<void> {
        auto pass = bench.loader.epoch(0);
        for (std::size_t step = 0; step < 20; ++step) {
            const c10::StreamGuard current{streams[step % 2]};
            auto batch = co_await pass.next();
            bench.steps.step(*batch);
        }
    };
    run(bench.runtime, loop());
    fake::synchronize();
    BOOST_TEST(bench.steps.looks == 40u);
    BOOST_TEST(bench.steps.wrong == 0u);
}

BOOST_AUTO_TEST_CASE(new_buffers_are_not_copied_to_before_earlier_work_on_their_memory_is_done) {
    DeviceBench bench{6, {.query_ns = 50'000, .copy_ns = ms}, {.device_prefetch = 0}};
    std::size_t looks = 0, wrong = 0;
    {
        // Its memory goes to a buffer of the next loader, while this kernel still works with it.
        const at::Tensor dropped = at::empty({160}, at::TensorOptions{}.dtype(at::kByte).device(fake::device()));
        auto* const memory = static_cast<unsigned char*>(dropped.mutable_data_ptr());
        fake::kernel(50 * ms, [&, memory](bool at_end) {
            ++looks;
            if (at_end)
                wrong += std::any_of(memory, memory + 160, [](unsigned char byte) { return byte != 7; }) ? 1 : 0;
            else
                std::fill_n(memory, 160, static_cast<unsigned char>(7));
        });
    }
    DeviceLoader loader{bench.host, {.device_prefetch = 1}};
    const auto loop = [&]() -> Awaitable<void> {
        auto pass = loader.epoch(0);
        for (;;) {
            auto batch = co_await pass.next();
            if (!batch)
                break;
            bench.steps.step(*batch);
        }
    };
    run(bench.runtime, loop());
    fake::synchronize();
    BOOST_TEST(looks == 2u);
    BOOST_TEST(wrong == 0u);
    BOOST_TEST(bench.steps.looks == 12u);
    BOOST_TEST(bench.steps.wrong == 0u);
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
}   // namespace drawpoint
