#include <drawpoint/pipeline/loader/data_loader.hpp>

#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include "pipeline/loader/loader_bench.hpp"
#include "pipeline/loader/numbered_source.hpp"
#include "support/coro_test.hpp"

namespace drawpoint {
namespace {

using test::Bench;
using test::NumberedSource;
using test::says;

BOOST_AUTO_TEST_SUITE(data_loader_failures)

BOOST_AUTO_TEST_CASE(a_failed_sample_is_thrown_by_its_batch_and_the_next_batches_come) {
    for (const std::size_t workers : {0u, 1u, 3u})
        for (std::uint64_t wrong = 0; wrong < 12; ++wrong) {
            Bench bench{true};
            NumberedSource source{12};
            source.fails = [wrong](std::uint64_t index) { return index == wrong; };
            const SequentialSampler sampler{12};
            DataLoader loader{bench.runtime, source, sampler, {.batch_size = 3, .num_workers = workers}};
            auto pass = loader.epoch(0);
            for (std::uint64_t number = 0; number < 4; ++number) {
                if (number == wrong / 3) {
                    const std::string name = std::to_string(wrong);
                    try {
                        (void)pass.next_blocking();
                        BOOST_ERROR("no exception");
                    } catch (const SampleError& error) {
                        BOOST_TEST(error.what() ==
                                   "sample " + name + " (numbers/" + name + "): count: no sample " + name);
                        BOOST_TEST(error.index() == wrong);
                        BOOST_TEST(error.stage() == "count");
                        BOOST_CHECK_THROW(std::rethrow_exception(error.cause()), std::runtime_error);
                    }
                } else {
                    const auto batch = pass.next_blocking();
                    BOOST_REQUIRE(batch.has_value());
                    BOOST_TEST(batch->number() == number);
                }
            }
            BOOST_TEST(!pass.next_blocking().has_value());
            const Ledger ledger = bench.recorder->ledger();
            BOOST_REQUIRE(ledger.failures.size() == 1u);
            BOOST_TEST(ledger.failures[0].index == wrong);
            BOOST_TEST(ledger.failures[0].batch == wrong / 3);
            BOOST_REQUIRE(ledger.batches.size() == 4u);
            for (const BatchRow& row : ledger.batches)
                BOOST_CHECK(row.status == (row.batch == wrong / 3 ? BatchStatus::failed : BatchStatus::taken));
        }
}

BOOST_AUTO_TEST_CASE(of_several_failures_in_a_batch_the_lowest_index_is_thrown_and_all_are_recorded) {
    for (const std::size_t workers : {0u, 2u}) {
        Bench bench{true};
        NumberedSource source{8};
        source.fails = [](std::uint64_t index) { return index % 2 == 1; };
        const FixedSampler sampler{{7, 2, 5, 0, 3, 4, 6, 1}};
        DataLoader loader{bench.runtime, source, sampler, {.batch_size = 4, .num_workers = workers}};
        auto pass = loader.epoch(0);
        const auto index_is = [](std::uint64_t index) {
            return [index](const SampleError& e) { return e.index() == index; };
        };
        BOOST_CHECK_EXCEPTION((void)pass.next_blocking(), SampleError, index_is(5));
        BOOST_CHECK_EXCEPTION((void)pass.next_blocking(), SampleError, index_is(1));
        BOOST_TEST(!pass.next_blocking().has_value());
        BOOST_TEST(bench.recorder->ledger().failures.size() == 4u);
    }
}

BOOST_AUTO_TEST_CASE(an_index_outside_the_data_set_is_a_failed_sample) {
    Bench bench;
    const NumberedSource source{4};
    const FixedSampler sampler{{0, 4}};
    DataLoader loader{bench.runtime, source, sampler, {.batch_size = 2}};
    auto pass = loader.epoch(0);
    BOOST_CHECK_EXCEPTION((void)pass.next_blocking(), SampleError,
                          says("sample 4: sampler: index 4 of a data set of 4"));
}

BOOST_AUTO_TEST_CASE(holding_every_batch_throws_naming_the_depth_and_giving_one_back_goes_on) {
    for (const std::size_t workers : {0u, 2u}) {
        Bench bench;
        const NumberedSource source{10};
        const SequentialSampler sampler{10};
        DataLoader loader{bench.runtime, source, sampler, {.num_workers = workers, .prefetch_depth = 2}};
        auto pass = loader.epoch(0);
        std::vector<Batch> held;
        for (int i = 0; i < 3; ++i)
            held.push_back(std::move(*pass.next_blocking()));
        BOOST_CHECK_EXCEPTION(
            (void)pass.next_blocking(), std::logic_error,
            says("next(): all prefetch_depth + 1 = 3 batches are held; give one back or raise prefetch_depth"));
        held.erase(held.begin() + 1);
        for (std::size_t number = 3; number < 10; ++number) {
            const auto batch = pass.next_blocking();
            BOOST_TEST(batch->number() == number);
        }
        BOOST_TEST(source.fault(held[0], 0) == "");
        BOOST_TEST(source.fault(held[1], 0) == "");
        BOOST_TEST(held[1].number() == 2u);
    }
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
}   // namespace drawpoint
