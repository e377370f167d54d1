#include <drawpoint/pipeline/torch/device_loader.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <asio/bind_cancellation_slot.hpp>
#include <asio/cancellation_signal.hpp>
#include <asio/co_spawn.hpp>
#include <boost/test/unit_test.hpp>
#include <c10/util/Exception.h>

#include <drawpoint/instrumentation/recorder/loop_track.hpp>
#include <drawpoint/loop/fit.hpp>
#include <drawpoint/pipeline/loader/core/collate.hpp>
#include <drawpoint/pipeline/loader/core/sample_buffer.hpp>

#include "pipeline/loader/loader_bench.hpp"
#include "torch/device_bench.hpp"

namespace drawpoint {
namespace {

using test::DeviceBench;
using test::ms;
using test::says;
namespace fake = fake_accelerator;

constexpr std::uint64_t batch_bytes = 4 * 4 * 8 + 4 * 8;   // of a DeviceBench

BOOST_AUTO_TEST_SUITE(device_faults)

BOOST_AUTO_TEST_CASE(bad_options_are_named) {
    const auto made = [](const DeviceOptions& options, const fake::Settings& settings = {}) {
        const DeviceBench bench{2, settings, options};
    };
    BOOST_CHECK_EXCEPTION(made({.device_prefetch = 56}), std::invalid_argument,
                          says("device_prefetch must be at most 55, got 56"));
    for (const char* name : {"tpu", "cpu", "fake:x", "fake:-1", ":0"})
        BOOST_CHECK_EXCEPTION(
            made({.device = name}), std::invalid_argument,
            says("device must be an accelerator, e.g. cuda, cuda:1, xpu or mps, got '" + std::string{name} + "'"));
    BOOST_CHECK_EXCEPTION(made({.device = "cuda"}), DeviceError,
                          says("device: there is no cuda: this LibTorch is built for fake"));
    BOOST_CHECK_EXCEPTION(made({.device = "fake:2"}, {.devices = 2}), DeviceError,
                          says("device: there is no fake:2: there are 2 devices of type fake, numbered from 0"));
    BOOST_CHECK_EXCEPTION(made({}, {.devices = 0}), DeviceError,
                          says("device: there is no fake: LibTorch finds no device of type fake"));
    BOOST_CHECK_EXCEPTION(made({.memory_budget = batch_bytes - 1}), std::invalid_argument,
                          says("memory_budget = 159 is less than one batch on the device: 160 bytes"));
}

BOOST_AUTO_TEST_CASE(devices_have_names_with_a_number) {
    const DeviceBench first{2, {}, {}};
    BOOST_TEST(first.loader.device() == "fake:0");
    const DeviceBench second{2, {.devices = 2}, {.device = "fake:1"}};
    BOOST_TEST(second.loader.device() == "fake:1");
}

BOOST_AUTO_TEST_CASE(with_less_memory_there_are_fewer_buffers_down_to_one) {
    const auto buffers = [](std::uint64_t budget, std::uint64_t capacity) {
        fake::reset();
        const std::uint64_t other = fake::counters().device_bytes;
        DeviceBench bench{6,
                          {.query_ns = 1000, .copy_ns = 1000, .capacity = other + capacity},
                          {.device_prefetch = 3, .memory_budget = budget}};
        bench.train();
        BOOST_TEST(bench.steps.looks == 12u);
        BOOST_TEST(bench.steps.wrong == 0u);
        BOOST_TEST(fake::counters().device_bytes == other + bench.loader.counters().buffers * batch_bytes);
        return bench.loader.counters().buffers;
    };
    BOOST_TEST(buffers(0, 1 << 20) == 4u);
    BOOST_TEST(buffers(2 * batch_bytes + 1, 1 << 20) == 2u);
    BOOST_TEST(buffers(0, 3 * batch_bytes) == 3u);
    BOOST_TEST(buffers(0, batch_bytes) == 1u);
    const std::uint64_t other = fake::counters().device_bytes;
    BOOST_CHECK_EXCEPTION(buffers(0, batch_bytes - 1), DeviceError,
                          says("fake:0: a buffer of 160 bytes cannot be allocated: the fake accelerator is out of "
                               "memory: " +
                               std::to_string(other) + " of " + std::to_string(other + 159) +
                               " bytes are allocated, 160 asked for"));
}

BOOST_AUTO_TEST_CASE(a_draw_during_a_capture_throws_and_takes_nothing) {
    DeviceBench bench{4, {.query_ns = 1000, .copy_ns = 1000}, {}};
    const auto loop = [&]() -> Awaitable<void> {
        auto pass = bench.loader.epoch(0);
        fake::settings().is_capturing = true;
        std::string thrown;
        try {
            auto batch = co_await pass.next();
        } catch (const DeviceError& error) {
            thrown = error.what();
        }
        BOOST_TEST(thrown == "fake:0: next() during the capture of a graph: draw before it begins");
        fake::settings().is_capturing = false;
        BOOST_TEST(pass.drawn() == 0u);
        auto batch = co_await pass.next();
        BOOST_TEST(batch->number() == 0u);
    };
    run(bench.runtime, loop());
}

BOOST_AUTO_TEST_CASE(holding_every_buffer_is_an_error_not_a_wait) {
    DeviceBench bench{6,
                      {.query_ns = 1000, .copy_ns = 1000},
                      {.device_prefetch = 1},
                      {.batch_size = 4, .num_workers = 0, .prefetch_depth = 4}};
    const auto loop = [&]() -> Awaitable<void> {
        auto pass = bench.loader.epoch(0);
        auto first = co_await pass.next();
        auto second = co_await pass.next();
        std::string thrown;
        try {
            auto batch = co_await pass.next();
        } catch (const std::logic_error& error) {
            thrown = error.what();
        }
        BOOST_TEST(thrown == "next(): all 2 batches on the device are held: give one back, or raise device_prefetch");
        first.reset();
        auto third = co_await pass.next();
        BOOST_TEST(third->number() == 2u);
    };
    run(bench.runtime, loop());
}

BOOST_AUTO_TEST_CASE(copies_that_hold_every_slot_of_the_loader_are_waited_for) {
    DeviceBench bench{12,
                      {.query_ns = 100'000, .copy_ns = 4 * ms},
                      {.device_prefetch = 5},
                      {.batch_size = 4, .num_workers = 0, .prefetch_depth = 1}};
    bench.steps.kernel_ns = ms;
    BOOST_TEST(bench.train() == 49 * ms);
    BOOST_TEST(bench.steps.wrong == 0u);
    BOOST_TEST(bench.loader.counters().waits > 0u);
}

/// Batches of lengths that grow from 1 to `batches`.
struct Growing : SampleSource {
    explicit Growing(std::size_t n) noexcept : n_{n} {}
    std::size_t size() const noexcept override { return n_; }
    SampleLayout layout() const noexcept override { return {.type = ScalarType::int64, .rank = 1, .shape = {0}}; }
    std::vector<std::string> stages() const override { return {"grow"}; }
    std::string path(std::uint64_t) const override { return {}; }
    std::unique_ptr<WorkerScratch> make_scratch() const override { return std::make_unique<WorkerScratch>(); }
    void fill(SampleTask& task, WorkerScratch&) const override {
        SampleLayout shape = layout();
        shape.shape[0] = static_cast<std::int64_t>(task.index + 1);
        const std::span<std::byte> bytes = task.buffer->reshape(shape);
        for (std::size_t i = 0; i < bytes.size() / 8; ++i) {
            const auto value = static_cast<std::int64_t>(task.index * 100 + i);
            std::memcpy(bytes.data() + i * 8, &value, 8);
        }
        *task.target = static_cast<std::int64_t>(task.index);
    }

private:
    std::size_t n_;
};

BOOST_AUTO_TEST_CASE(buffers_grow_with_the_batches_and_a_batch_that_finds_no_memory_comes_with_the_next_draw) {
    fake::reset({.query_ns = 1000, .copy_ns = 1000});
    const std::uint64_t other = fake::counters().device_bytes;
    const auto recorder = test::small_recorder();
    Runtime runtime{{.record = false}, *recorder};
    const Growing source{60};
    const SequentialSampler sampler{60};
    const PadCollate collate{source.layout()};
    DataLoader host{runtime, source, sampler, {.batch_size = 1, .num_workers = 1, .collate = &collate}};
    DeviceLoader loader{host};
    const auto loop = [&]() -> Awaitable<void> {
        auto pass = loader.epoch(0);
        std::size_t refused = 0, drawn = 0;
        for (;;) {
            if (drawn == 20)
                fake::settings().capacity = 1;
            std::optional<DeviceBatch> batch;
            try {
                auto next = co_await pass.next();
                batch = std::move(next);
            } catch (const DeviceError& error) {
                BOOST_TEST(std::string{error.what()}.find("bytes for a batch cannot be allocated beside the ") !=
                           std::string::npos);
                BOOST_TEST(pass.drawn() == drawn);
                ++refused;
                fake::settings().capacity = std::uint64_t{1} << 40;
                continue;
            }
            if (!batch)
                break;
            BOOST_TEST(batch->number() == drawn);
            fake::kernel(0);
            fake::synchronize();
            const at::Tensor data = data_of(*batch), mask = part_of(*batch, "mask"), targets = targets_of(*batch);
            BOOST_TEST(data.size(1) == static_cast<std::int64_t>(drawn + 1));
            BOOST_TEST(static_cast<const std::int64_t*>(data.const_data_ptr())[drawn] ==
                       static_cast<std::int64_t>(drawn * 100 + drawn));
            BOOST_TEST(mask.sizes() == data.sizes());
            BOOST_TEST(*static_cast<const std::int64_t*>(targets.const_data_ptr()) == static_cast<std::int64_t>(drawn));
            ++drawn;
        }
        BOOST_TEST(drawn == 60u);
        BOOST_TEST(refused == 1u);
    };
    run(runtime, loop());
    fake::synchronize();
    BOOST_TEST(fake::counters().device_bytes - other <= 3 * loader.counters().buffer_bytes);
    BOOST_TEST(loader.counters().buffers_replaced == 0u);
}

BOOST_AUTO_TEST_CASE(a_tensor_that_is_kept_stays_unchanged) {
    DeviceBench bench{8, {.query_ns = 1000, .copy_ns = 1000}, {.device_prefetch = 1}};
    std::vector<at::Tensor> kept;
    const auto loop = [&]() -> Awaitable<void> {
        auto pass = bench.loader.epoch(0);
        for (;;) {
            auto batch = co_await pass.next();
            if (!batch)
                break;
            if (batch->number() == 1)
                kept.push_back(data_of(*batch));
            if (batch->number() == 4)
                kept.push_back(targets_of(*batch).narrow(0, 1, 2));
        }
    };
    run(bench.runtime, loop());
    fake::synchronize();
    BOOST_TEST(bench.loader.counters().buffers_replaced == 2u);
    BOOST_TEST(static_cast<const std::int64_t*>(kept[0].const_data_ptr())[0] == test::NumberedSource::word(0, 0, 4, 0));
    BOOST_TEST(static_cast<const std::int64_t*>(kept[1].const_data_ptr())[0] == test::NumberedSource::target(17));
}

BOOST_AUTO_TEST_CASE(a_draw_that_is_cancelled_while_it_waits_for_the_device_has_taken_nothing) {
    // The device never gets on: nobody advances its clock but the queries, which take no time here.
    DeviceBench bench{6, {.query_ns = 0, .copy_ns = 4 * ms}, {.device_prefetch = 0}};
    auto pass = bench.loader.epoch(0);
    const auto draw = [&]() -> Awaitable<std::optional<DeviceBatch>> {
        auto batch = co_await pass.next();
        co_return batch;
    };
    {
        auto first = run(bench.runtime, draw());
        bench.steps.step(*first);
    }
    for (const std::size_t handlers : {1u, 3u, 8u}) {   // while it posts, and while it sleeps
        asio::io_context& context = bench.runtime.context();
        context.restart();
        asio::cancellation_signal signal;
        std::exception_ptr error;
        const auto ends = [&](std::exception_ptr thrown, const std::optional<DeviceBatch>&) { error = thrown; };
        asio::co_spawn(context, draw(), asio::bind_cancellation_slot(signal.slot(), ends));
        for (std::size_t i = 0; i < handlers; ++i)
            context.run_one();
        signal.emit(asio::cancellation_type::terminal);
        context.run();
        BOOST_CHECK_EXCEPTION(std::rethrow_exception(error), std::system_error, test::aborted);
        BOOST_TEST(pass.drawn() == 1u);
    }
    fake::synchronize();
    BOOST_TEST(run(bench.runtime, draw())->number() == 1u);
}

BOOST_AUTO_TEST_CASE(a_pass_that_is_destroyed_ends_a_draw_that_waits_for_the_device) {
    DeviceBench bench{6, {.query_ns = 0, .copy_ns = 4 * ms}, {.device_prefetch = 0}};
    std::optional<DeviceLoader::Pass> pass{bench.loader.epoch(0)};
    const auto draw = [&]() -> Awaitable<std::optional<DeviceBatch>> {
        auto batch = co_await pass->next();
        co_return batch;
    };
    {
        auto first = run(bench.runtime, draw());
        bench.steps.step(*first);
    }
    asio::io_context& context = bench.runtime.context();
    context.restart();
    std::exception_ptr error;
    const auto ends = [&](std::exception_ptr thrown, const std::optional<DeviceBatch>&) { error = thrown; };
    asio::co_spawn(context, draw(), ends);
    for (std::size_t i = 0; i < 8; ++i)
        context.run_one();
    pass.reset();
    context.run();
    BOOST_CHECK_EXCEPTION(std::rethrow_exception(error), std::system_error, test::aborted);
}

BOOST_AUTO_TEST_CASE(whichever_call_of_the_device_fails_the_error_names_it_and_everything_ends) {
    std::vector<std::string> seen;
    std::size_t ended_well = 0;
    for (std::int64_t call = 0; call < 500; ++call) {
        std::optional<DeviceBench> bench;
        std::string thrown;
        try {
            bench.emplace(60, fake::Settings{.query_ns = 100'000, .copy_ns = ms, .fails_after = call}, DeviceOptions{},
                          LoaderOptions{.batch_size = 4, .num_workers = call % 3 == 0 ? 0u : 1u}, true);
            bench->steps.kernel_ns = ms;
            bench->train();
            ++ended_well;
        } catch (const DeviceError& error) {
            thrown = error.what();
            BOOST_TEST(thrown.starts_with("fake:0: "));
            BOOST_TEST(thrown.ends_with(" failed: the fake accelerator is broken"));
        } catch (const c10::AcceleratorError&) {
            thrown = "the step";   // the loop's own call
        }
        if (!thrown.empty() && std::ranges::find(seen, thrown) == seen.end())
            seen.push_back(thrown);
        if (bench) {
            std::size_t taken = 0;
            for (const BatchRow& batch : bench->recorder->ledger().batches)
                taken += batch.status == BatchStatus::taken ? 1 : 0;
            BOOST_TEST(taken == bench->steps.begun);   // what the loop did not get is not drawn
            BOOST_TEST(bench->steps.wrong == 0u);
        }
    }
    BOOST_TEST(ended_well == 0u);
    std::ranges::sort(seen);
    const std::vector<std::string> expected{"fake:0: capture query failed: the fake accelerator is broken",
                                            "fake:0: copy failed: the fake accelerator is broken",
                                            "fake:0: event query failed: the fake accelerator is broken",
                                            "fake:0: event record failed: the fake accelerator is broken",
                                            "fake:0: event wait failed: the fake accelerator is broken",
                                            "fake:0: new stream failed: the fake accelerator is broken",
                                            "the step"};
    BOOST_TEST(seen == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_timed_pass_ends_whichever_call_fails_and_its_recording_is_whole) {
    std::vector<std::string> seen;
    for (std::int64_t call = 0; call < 500; ++call) {
        ManualClock clock{1};   // on which every step is timed
        Recorder recorder{RecorderOptions{.ring_records = 1u << 10}, AnyClock{clock}};
        std::optional<DeviceBench> bench;
        std::string thrown;
        try {
            bench.emplace(12, fake::Settings{.query_ns = 1'000, .nap_ns = 100'000, .copy_ns = ms, .fails_after = call},
                          DeviceOptions{}, LoaderOptions{.batch_size = 4, .num_workers = 0});
            test::KernelLearner learner{bench->steps};
            run(bench->runtime, fit(learner, bench->loader, {.epochs = 2, .record_loss = false}, recorder));
        } catch (const DeviceError& error) {
            thrown = error.what();
        } catch (const c10::AcceleratorError&) {
            thrown = "the step";
        }
        if (!thrown.empty() && std::ranges::find(seen, thrown) == seen.end())
            seen.push_back(thrown);
        const Ledger ledger = recorder.ledger();
        BOOST_TEST(max_residual_ns(ledger) == 0);
        BOOST_TEST(ledger.device_steps.size() <= ledger.steps.size());
        BOOST_TEST((!bench || bench->steps.wrong == 0u));
    }
    const auto has = [&](const std::string& what) {
        return std::ranges::find(seen, "fake:0: " + what + " failed: the fake accelerator is broken") != seen.end();
    };
    BOOST_TEST(has("event times"));
    BOOST_TEST(has("event record"));
    BOOST_TEST(has("event query"));
}

BOOST_AUTO_TEST_CASE(the_end_of_an_earlier_pass_leaves_the_timing_of_the_next_one_alone) {
    DeviceBench bench{
        6, {.query_ns = 1'000, .nap_ns = 100'000, .copy_ns = ms}, {}, {.batch_size = 4, .num_workers = 0}};
    ManualClock clock{1};   // on which every step is timed
    Recorder recorder{RecorderOptions{.ring_records = 1u << 10}, AnyClock{clock}};
    LoopTrack track{recorder};
    const auto loop = [&]() -> Awaitable<void> {
        auto pass = bench.loader.epoch(0, {.track = &track});
        for (std::size_t epoch = 0; epoch < 2; ++epoch) {
            track.begin_pass(PassKind::train, static_cast<std::uint32_t>(epoch));
            for (std::uint32_t number = 0; number < 6; ++number) {
                track.begin_step(Phase::train, 0, number);
                auto batch = co_await pass.next();
                track.mark(Span::starved);
                track.end_draw(4);
                bench.steps.step(*batch);
                batch->end_work();
                batch->end_work();   // the second time it does nothing
                track.end_step(StepStatus::complete, std::nullopt);
                batch->reset();
                batch->end_work();   // neither for a batch that is back
            }
            pass.drain();
            track.end_pass();
            if (epoch == 0)
                pass = bench.loader.epoch(1, {.track = &track});   // the first one is destroyed after this has begun
        }
    };
    run(bench.runtime, loop());
    BOOST_TEST(recorder.ledger().device_steps.size() == 12u);
    BOOST_TEST(recorder.ledger().transfers.size() == 12u);
}

BOOST_AUTO_TEST_CASE(a_pass_that_is_used_up_leaves_the_copies_of_the_next_one_alone) {
    DeviceBench bench{6,
                      {.query_ns = 100'000, .copy_ns = ms},
                      {.device_prefetch = 2},
                      {.batch_size = 4, .num_workers = 1, .prefetch_depth = 3}};
    const auto loop = [&]() -> Awaitable<void> {
        auto pass = bench.loader.epoch(0);
        for (std::size_t number = 0; number < 6; ++number) {
            auto batch = co_await pass.next();
            bench.steps.step(*batch);
        }
        auto next_pass = bench.loader.epoch(1);
        fake::synchronize();   // so that this draw gives the loader its slots back
        auto first = co_await next_pass.next();
        bench.steps.step(*first);
        first.reset();
        while (bench.source.fills < 24 + 12)   // at least two more batches are ready
            std::this_thread::yield();
        auto second = co_await next_pass.next();
        bench.steps.step(*second);
        BOOST_TEST(bench.loader.counters().batches_ahead > 0u);
        pass = std::move(next_pass);
        for (std::size_t number = 2; number < 6; ++number) {
            auto batch = co_await pass.next();
            BOOST_TEST(batch->number() == number);
            bench.steps.step(*batch);
        }
    };
    run(bench.runtime, loop());
    fake::synchronize();
    BOOST_TEST(bench.loader.counters().batches_copied == 12u);   // none twice
    BOOST_TEST(bench.steps.looks == 24u);
    BOOST_TEST(bench.steps.wrong == 0u);
}

BOOST_AUTO_TEST_CASE(one_stream_and_ordinary_memory_give_the_same_batches) {
    for (const std::size_t prefetch : {0u, 2u}) {
        DeviceBench bench{
            20, {.query_ns = 50'000, .copy_ns = 4 * ms, .one_stream = true}, {.device_prefetch = prefetch}};
        BOOST_TEST(pinned_memory() == nullptr);
        BOOST_TEST(bench.train() == 180 * ms);   // nothing overlaps
        BOOST_TEST(bench.steps.looks == 40u);
        BOOST_TEST(bench.steps.wrong == 0u);
    }
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
}   // namespace drawpoint
