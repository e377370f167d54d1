// Who computes the order of samples, when, and who waits for it.
#include <drawpoint/pipeline/loader/data_loader.hpp>

#include <boost/test/unit_test.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <optional>
#include <span>
#include <stdexcept>
#include <thread>
#include <vector>

#include "pipeline/loader/loader_bench.hpp"
#include "pipeline/loader/numbered_source.hpp"
#include "pipeline/loader/stored_source.hpp"

namespace drawpoint {
namespace {

using test::Bench;
using test::NumberedSource;
using test::StoredSource;

/// An order without parts that says when it is computed.
struct WholeSampler final : Sampler {
    explicit WholeSampler(std::size_t n) : n_{n} {}
    [[nodiscard]] std::size_t size() const noexcept override { return n_; }
    void order(std::size_t epoch, std::span<std::uint64_t> order) const override {
        ++calls;
        if (before)
            before(epoch);
        for (std::uint64_t i = 0; i < order.size(); ++i)
            order[i] = (i + epoch) % order.size();
    }
    std::function<void(std::size_t epoch)> before;
    mutable std::atomic<int> calls{0};

private:
    std::size_t n_;
};

std::vector<std::uint64_t> drawn_from(DataLoader::Pass& pass) {
    std::vector<std::uint64_t> indices;
    while (const auto batch = pass.next_blocking())
        indices.insert(indices.end(), batch->indices().begin(), batch->indices().end());
    return indices;
}

std::vector<std::uint64_t> order_of(const Sampler& sampler, std::size_t epoch) {
    std::vector<std::uint64_t> order(sampler.size());
    sampler.order(epoch, order);
    return order;
}

BOOST_AUTO_TEST_SUITE(data_loader_orders)

BOOST_AUTO_TEST_CASE(beginning_a_pass_waits_for_no_order_the_first_draw_does) {
    for (const std::size_t workers : {0u, 2u}) {
        Bench bench;
        const NumberedSource source{20};
        WholeSampler sampler{20};
        std::atomic<bool> may_begin{false};
        sampler.before = [&](std::size_t) { may_begin.wait(false); };
        DataLoader loader{bench.runtime, source, sampler, {.batch_size = 4, .num_workers = workers}};
        for (std::size_t epoch = 0; epoch < 3; ++epoch) {
            may_begin = false;
            auto pass = loader.epoch(epoch);   // would never return if it waited
            may_begin = true;
            may_begin.notify_all();
            const auto got = drawn_from(pass);
            BOOST_TEST(sampler.calls == static_cast<int>(epoch) + 1);
            --sampler.calls;
            BOOST_CHECK(got == order_of(sampler, epoch));
        }
    }
}

BOOST_AUTO_TEST_CASE(workers_compute_the_first_order_and_prefetch_before_the_first_draw) {
    Bench bench;
    const NumberedSource source{20};
    const WholeSampler sampler{20};
    DataLoader loader{bench.runtime, source, sampler, {.batch_size = 4, .num_workers = 1, .prefetch_depth = 2}};
    for (std::size_t epoch = 0; epoch < 3; epoch += 2) {
        const std::uint64_t before = source.fills;
        auto pass = loader.epoch(epoch);
        while (source.fills < before + 12)   // three slots
            std::this_thread::yield();
        BOOST_TEST(drawn_from(pass).size() == 20u);
    }
}

BOOST_AUTO_TEST_CASE(a_pass_that_was_ready_before_its_first_draw_is_like_any_other) {
    for (const bool again : {false, true}) {   // the same epoch, or the next
        Bench bench;
        const NumberedSource source{12};
        const WholeSampler sampler{12};
        DataLoader loader{bench.runtime, source, sampler, {.batch_size = 4, .num_workers = 1, .prefetch_depth = 4}};
        for (std::size_t round = 0; round < 4; ++round) {
            const std::size_t epoch = again ? 0 : round;
            const std::uint64_t before = source.fills;
            auto pass = loader.epoch(epoch, {.next_epoch = true});
            while (round == 0 && source.fills < before + 12)   // all of the pass
                std::this_thread::yield();
            BOOST_CHECK(drawn_from(pass) == order_of(sampler, epoch));
            while (round == 0 && source.fills < before + 24)   // it prefetches into the next one
                std::this_thread::yield();
        }
    }
}

BOOST_AUTO_TEST_CASE(the_draw_throws_what_the_sampler_throws_and_goes_on_once_it_does_not) {
    for (const std::size_t workers : {0u, 2u})
        for (const bool ahead : {false, true}) {
            Bench bench;
            const NumberedSource source{20};
            WholeSampler sampler{20};
            std::atomic<bool> fails{true};
            sampler.before = [&](std::size_t epoch) {
                if (epoch == 1 && fails)
                    throw std::runtime_error{"no order"};
            };
            DataLoader loader{bench.runtime, source, sampler, {.batch_size = 4, .num_workers = workers}};
            auto pass = loader.epoch(0, {.next_epoch = ahead});
            BOOST_CHECK(drawn_from(pass) == order_of(sampler, 0));
            auto next = loader.epoch(1);
            for (int i = 0; i < 2; ++i)
                BOOST_CHECK_EXCEPTION((void)next.next_blocking(), std::runtime_error, test::says("no order"));
            fails = false;
            BOOST_CHECK(drawn_from(next) == order_of(sampler, 1));
        }
}

BOOST_AUTO_TEST_CASE(the_next_order_is_computed_before_the_second_half_of_a_pass_is_drawn) {
    Bench bench;
    const NumberedSource source{400};
    WholeSampler sampler{400};
    std::atomic<int> drawn{0}, drawn_at_call{-1};
    sampler.before = [&](std::size_t epoch) {
        if (epoch == 1)
            drawn_at_call = drawn.load();
    };
    DataLoader loader{bench.runtime, source, sampler, {.batch_size = 4, .num_workers = 1, .prefetch_depth = 2}};
    auto pass = loader.epoch(0, {.next_epoch = true});
    while (pass.next_blocking())
        ++drawn;
    auto next = loader.epoch(1);
    const auto got = drawn_from(next);
    BOOST_TEST(drawn_at_call >= 0);
    BOOST_TEST(drawn_at_call <= 60);   // the middle, and what is in flight
    BOOST_CHECK(got == order_of(sampler, 1));
}

BOOST_AUTO_TEST_CASE(a_pass_that_ends_early_does_not_wait_for_the_order_being_computed) {
    Bench bench;
    const NumberedSource source{20};
    WholeSampler sampler{20};
    std::atomic<bool> began{false}, may_end{false};
    sampler.before = [&](std::size_t epoch) {
        if (epoch != 1)
            return;
        began = true;
        may_end.wait(false);
    };
    DataLoader loader{bench.runtime, source, sampler, {.batch_size = 4, .num_workers = 2, .prefetch_depth = 2}};
    {
        auto pass = loader.epoch(0, {.next_epoch = true});
        (void)pass.next_blocking();
        (void)pass.next_blocking();
        while (!began)
            (void)0;
    }
    auto other = loader.epoch(5, {.next_epoch = true});
    BOOST_CHECK(drawn_from(other) == order_of(sampler, 5));
    auto after = loader.epoch(6);
    BOOST_CHECK(drawn_from(after) == order_of(sampler, 6));
    may_end = true;
    may_end.notify_all();
}

BOOST_AUTO_TEST_CASE(an_order_with_parts_takes_no_memory_and_is_the_samplers) {
    constexpr std::size_t n = 200'000;
    const NumberedSource source{n};
    const RandomSampler random{n, 5};
    const DistributedSampler share{random, 1, 3};
    for (const Sampler* const sampler : {static_cast<const Sampler*>(&random), static_cast<const Sampler*>(&share)})
        for (const std::size_t workers : {0u, 2u}) {
            Bench bench;
            DataLoader loader{bench.runtime, source, *sampler, {.batch_size = 999, .num_workers = workers}};
            BOOST_TEST(loader.memory_plan().order_bytes == 0u);
            for (std::size_t epoch = 0; epoch < 2; ++epoch) {
                auto pass = loader.epoch(epoch, {.next_epoch = epoch == 0});
                BOOST_CHECK(drawn_from(pass) == order_of(*sampler, epoch));
            }
        }
}

BOOST_AUTO_TEST_CASE(an_order_with_parts_is_read_ahead_too) {
    StoredSource source{40, StoredSource::In::files};
    source.before_read = [](std::uint64_t) { std::this_thread::sleep_for(std::chrono::microseconds{500}); };
    std::vector<std::uint64_t> indices(40);
    std::iota(indices.rbegin(), indices.rend(), std::uint64_t{0});
    const FixedSampler sampler{indices};
    Bench bench;
    DataLoader loader{bench.runtime, source, sampler, {.batch_size = 7, .num_workers = 2, .read_concurrency = 8}};
    auto pass = loader.epoch(0);
    BOOST_CHECK(drawn_from(pass) == indices);
    BOOST_TEST(loader.counters().reads_ahead > 0u);
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
}   // namespace drawpoint
