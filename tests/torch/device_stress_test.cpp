#include <drawpoint/pipeline/torch/device_loader.hpp>

#include <cstdint>
#include <cstdlib>
#include <deque>
#include <optional>
#include <random>
#include <string>
#include <utility>

#include <boost/test/unit_test.hpp>

#include <drawpoint/pipeline/loader/core/detail/batch_digest.hpp>

#include "torch/device_bench.hpp"

namespace drawpoint {
namespace {

using test::NumberedSource;
namespace fake = fake_accelerator;

/// What is random in a pass.
struct Plan {
    std::size_t batches, batch_size, workers, depth, prefetch, held, next_depth, next_workers, ends_after;
    bool in_order, one_stream, is_short;
    fake::Settings settings;
    std::int64_t kernel_ns, host_ns;

    explicit Plan(std::uint64_t seed) {
        std::mt19937_64 random{seed};
        const auto to = [&](std::size_t most) { return static_cast<std::size_t>(random() % (most + 1)); };
        batches = 1 + to(9);
        batch_size = 1 + to(2);
        workers = to(2);
        depth = 1 + to(3);
        prefetch = to(3);
        held = to(std::min(depth, prefetch));
        next_depth = 1 + to(3);
        next_workers = 1 + to(1);
        ends_after = to(3) == 0 ? to(batches) : batches;
        in_order = to(2) != 0;
        one_stream = to(7) == 0;
        is_short = to(2) == 0;
        settings.copy_ns = static_cast<std::int64_t>(to(40));
        settings.query_ns = 10 + static_cast<std::int64_t>(to(20));
        settings.call_ns = static_cast<std::int64_t>(to(3));
        settings.launch_queue = to(3) == 0 ? 2 : 1024;
        settings.one_stream = one_stream;
        kernel_ns = static_cast<std::int64_t>(to(50));
        host_ns = static_cast<std::int64_t>(to(50));
    }
};

/// Runs two passes by the plan. Returns what is wrong; empty if nothing is.
std::string run_plan(Runtime& runtime, std::uint64_t seed) {
    const Plan plan{seed};
    fake::reset(plan.settings);
    const NumberedSource source{plan.batches * plan.batch_size - (plan.is_short && plan.batch_size > 1 ? 1 : 0), 2};
    const RandomSampler sampler{source.size(), seed};
    DataLoader host{runtime,
                    source,
                    sampler,
                    {.batch_size = plan.batch_size,
                     .num_workers = plan.workers,
                     .prefetch_depth = plan.depth,
                     .order = plan.in_order ? OrderRule::in_order() : OrderRule::out_of_order(),
                     .slot_memory = pinned_memory()}};
    DeviceLoader loader{host, {.device_prefetch = plan.prefetch}};
    host.enable_digest();
    BatchDigest seen;   // of what the device's kernels see
    std::string fault;
    const auto look_at = [&](DeviceBatch& batch) {
        const auto* const data = static_cast<const std::byte*>(data_of(batch).const_data_ptr());
        const auto* const targets = static_cast<const std::byte*>(targets_of(batch).const_data_ptr());
        const std::vector<std::uint64_t> indices{batch.indices().begin(), batch.indices().end()};
        fake::kernel(plan.kernel_ns, [=, &seen](bool at_end) {
            if (!at_end)
                return;
            seen.add(std::as_bytes(std::span{indices}));
            seen.add({targets, indices.size() * 8});
            seen.add({data, indices.size() * 16});
        });
    };
    const auto loop = [&]() -> Awaitable<void> {
        std::deque<DeviceBatch> held;
        for (std::size_t epoch = 0; epoch < 2; ++epoch) {
            auto pass = loader.epoch(epoch);
            const std::size_t most = epoch == 0 ? plan.ends_after : plan.batches;
            for (std::size_t drawn = 0; drawn < most; ++drawn) {
                if (drawn == plan.batches / 2 && plan.workers > 0 && held.empty())
                    host.reconfigure({.num_workers = plan.next_workers, .prefetch_depth = plan.next_depth});
                while (held.size() > std::min<std::size_t>(plan.held, host.options().prefetch_depth - 1))
                    held.pop_front();
                auto batch = co_await pass.next();
                if (!batch) {
                    fault = "the pass ends after " + std::to_string(drawn) + " batches";
                    co_return;
                }
                fake::advance(plan.host_ns);
                look_at(*batch);
                held.push_back(std::move(*batch));
                if (held.size() > plan.held)
                    held.pop_front();
            }
        }
    };
    run(runtime, loop());
    fake::synchronize();
    if (fault.empty() && seen.hex() != host.digest())
        fault = "the device has seen " + seen.hex() + ", the loader has made " + host.digest();
    if (fault.empty() && fake::counters().synchronises != 0)
        fault = "the host has synchronised";
    if (fault.empty() && loader.counters().buffers_replaced + host.counters().slots_replaced != 0)
        fault = "memory was replaced";
    return fault;
}

BOOST_AUTO_TEST_SUITE(device_stress)

BOOST_AUTO_TEST_CASE(under_every_schedule_the_device_sees_what_the_loader_has_made) {
    const char* const asked = std::getenv("DRAWPOINT_DEVICE_SCHEDULES");
    const std::uint64_t schedules = asked != nullptr ? std::strtoull(asked, nullptr, 10) : 100'000;
    const auto recorder = test::small_recorder();
    Runtime runtime{{.record = false}, *recorder};
    for (std::uint64_t seed = 0; seed < schedules; ++seed)
        if (const std::string fault = run_plan(runtime, seed); !fault.empty())
            BOOST_FAIL("schedule " << seed << ": " << fault);
    BOOST_TEST_MESSAGE(schedules << " schedules");
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
}   // namespace drawpoint
