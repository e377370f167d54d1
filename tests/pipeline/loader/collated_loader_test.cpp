#include <drawpoint/pipeline/loader/core/collate.hpp>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <drawpoint/instrumentation/report/summary.hpp>
#include <drawpoint/pipeline/loader/blocking.hpp>
#include <drawpoint/pipeline/loader/cache_loader.hpp>
#include <drawpoint/pipeline/loader/data_loader.hpp>

#include "pipeline/loader/words_source.hpp"

namespace drawpoint {
namespace {

using namespace drawpoint::test;

BOOST_AUTO_TEST_SUITE(collated_loader)

BOOST_AUTO_TEST_CASE(padded_batches_are_right_in_every_order_with_any_number_of_workers) {
    for (const OrderRule order : {OrderRule::in_order(), OrderRule::out_of_order(), OrderRule::bounded(1)})
        for (const auto& [workers, depth] : {std::pair{0u, 2u}, {1u, 2u}, {3u, 2u}, {3u, 9u}}) {
            Loaded loaded{42};
            LoaderOptions options = loaded.options(workers);
            options.order = order;
            options.prefetch_depth = depth;
            DataLoader loader{loaded.runtime, loaded.source, loaded.sampler, options};
            for (std::size_t epoch = 0; epoch < 5; ++epoch) {
                std::size_t samples = 0;
                for (auto& batch : blocking(loader, epoch, {.next_epoch = true})) {
                    BOOST_TEST(fault(batch) == "");
                    samples += batch.size();
                }
                BOOST_TEST(samples == 42u);
            }
        }
}

BOOST_AUTO_TEST_CASE(a_shape_that_varies_needs_a_collate_function) {
    Loaded loaded;
    LoaderOptions options = loaded.options(1);
    options.collate = nullptr;
    BOOST_CHECK_EXCEPTION((DataLoader{loaded.runtime, loaded.source, loaded.sampler, options}), std::invalid_argument,
                          [](const std::invalid_argument& error) {
                              return error.what() ==
                                     std::string{"samples of varying shape need LoaderOptions::collate, "
                                                 "e.g. PadCollate"};
                          });
}

BOOST_AUTO_TEST_CASE(a_part_is_asked_for_by_name) {
    Loaded loaded;
    DataLoader loader{loaded.runtime, loaded.source, loaded.sampler, loaded.options(0)};
    auto pass = loader.epoch(0);
    const auto batch = pass.next_blocking();
    BOOST_CHECK_EXCEPTION((void)batch->part("masks"), std::out_of_range, [](const std::out_of_range& error) {
        return error.what() == std::string{"Batch::part: no part 'masks'; there are data, lengths, mask"};
    });
    const NumberedSource fixed{4};
    DataLoader plain{loaded.runtime, fixed, loaded.sampler, {.num_workers = 0}};
    auto plain_pass = plain.epoch(0);
    const auto plain_batch = plain_pass.next_blocking();
    BOOST_TEST(plain_batch->parts().empty());
    BOOST_CHECK_THROW((void)plain_batch->part("data"), std::out_of_range);
}

BOOST_AUTO_TEST_CASE(samples_of_one_shape_can_be_collated_too_and_runs_are_made_one_by_one) {
    for (const bool runs : {false, true})
        for (const std::size_t workers : {0u, 2u}) {
            Loaded loaded;
            NumberedSource source{12};
            source.runs = runs;
            const SequentialSampler sampler{12};
            const auto mix = collate_with("mix", [](const FinishedSamples& samples, CollatedBatch& batch) {
                const std::array<std::int64_t, 1> shape{4};
                const auto mixed = batch.add_values<std::int64_t>("mix", ScalarType::int64, shape);
                std::ranges::fill(mixed, 0);
                for (const SampleBuffer& sample : samples.samples)
                    for (std::size_t i = 0; i < 4; ++i) {
                        std::int64_t word = 0;
                        std::memcpy(&word, sample.data().data() + 8 * i, 8);
                        mixed[i] ^= word;
                    }
            });
            DataLoader loader{loaded.runtime, source, sampler, loaded.options(workers, mix.get())};
            std::size_t drawn = 0;
            for (auto& batch : blocking(loader, 3)) {
                for (std::size_t i = 0; i < 4; ++i) {
                    std::int64_t expected = 0;
                    for (const std::uint64_t index : batch.indices())
                        expected ^= NumberedSource::word(words_seed, 3, index, i);
                    BOOST_TEST(at<std::int64_t>(batch.part("mix"), i) == expected);
                }
                BOOST_TEST(batch.data().size() == 32u);
                ++drawn;
            }
            BOOST_TEST(drawn == 3u);
            BOOST_TEST(source.fills == 12u);
            BOOST_TEST(source.run_calls == 0u);
        }
}

BOOST_AUTO_TEST_CASE(a_failed_sample_fails_its_batch_alone_and_that_is_not_collated) {
    for (const std::size_t workers : {0u, 2u}) {
        Loaded loaded;
        loaded.source.before_fill = [](std::uint64_t index) {
            if (index == 6)
                throw std::runtime_error{"no sample"};
        };
        loaded.source.shapeless = 17;
        std::atomic<int> collated{0};
        const FunctionCollate counted{"count", [&](const FinishedSamples& samples, CollatedBatch& batch) {
                                          ++collated;
                                          loaded.pad.collate(samples, batch);
                                      }};
        DataLoader loader{loaded.runtime, loaded.source, loaded.sampler, loaded.options(workers, &counted)};
        for (std::size_t epoch = 0; epoch < 3; ++epoch) {
            auto pass = loader.epoch(epoch);
            for (std::size_t number = 0; number < 11; ++number) {
                if (number != 1 && number != 4) {
                    const auto batch = pass.next_blocking();
                    BOOST_TEST(batch->number() == number);
                    BOOST_TEST(fault(*batch) == "");
                    continue;
                }
                BOOST_CHECK_EXCEPTION((void)pass.next_blocking(), SampleError, [&](const SampleError& error) {
                    return error.what() ==
                           std::string{number == 1 ? "sample 6 (words/6): write: no sample"
                                                   : "sample 17 (words/17): write: its shape varies, and the source "
                                                     "never called reshape()"};
                });
            }
            BOOST_TEST(!pass.next_blocking().has_value());
        }
        BOOST_TEST(collated == 27);
    }
}

BOOST_AUTO_TEST_CASE(a_failed_collation_fails_its_batch_alone_and_is_recorded) {
    for (const std::size_t workers : {0u, 2u}) {
        Loaded loaded{44, true};
        const FunctionCollate picky{"picky", [&](const FinishedSamples& samples, CollatedBatch& batch) {
                                        if (samples.indices[0] == 8)
                                            throw std::runtime_error{"not this one"};
                                        if (samples.indices[0] != 20)
                                            loaded.pad.collate(samples, batch);
                                    }};
        DataLoader loader{loaded.runtime, loaded.source, loaded.sampler, loaded.options(workers, &picky)};
        for (std::size_t epoch = 0; epoch < 4; ++epoch) {
            auto pass = loader.epoch(epoch);
            for (std::size_t number = 0; number < 11; ++number) {
                if (number != 2 && number != 5) {
                    BOOST_TEST(fault(*pass.next_blocking()) == "");
                    continue;
                }
                BOOST_CHECK_EXCEPTION((void)pass.next_blocking(), SampleError, [&](const SampleError& error) {
                    return error.index() == 4 * number && error.stage() == "collate" &&
                           error.what() == std::string{number == 2
                                                           ? "sample 8: collate: not this one"
                                                           : "sample 20: collate: picky added no array to the batch"};
                });
            }
        }
        const Ledger ledger = loaded.recorder->ledger();
        BOOST_TEST(ledger.failures.size() == 8u);
        BOOST_TEST(std::ranges::all_of(ledger.failures, [](const FailureRow& row) { return row.stage == "collate"; }));
        BOOST_TEST(std::ranges::count(ledger.batches, BatchStatus::failed, &BatchRow::status) == 8);
        const Summary summary = summarize(ledger);
        BOOST_TEST(summary.stages.back().stage == "collate");
        BOOST_TEST(summary.stages.back().failures == 8u);
    }
}

BOOST_AUTO_TEST_CASE(the_record_says_when_a_batch_was_collated_and_how_large_it_is) {
    for (const std::size_t workers : {0u, 2u}) {
        Loaded loaded{44, true};
        std::vector<std::uint64_t> bytes;
        {
            DataLoader loader{loaded.runtime, loaded.source, loaded.sampler, loaded.options(workers)};
            for (auto& batch : blocking(loader, 2)) {
                bytes.push_back(batch.targets().size_bytes());
                for (const BatchPart& part : batch.parts())
                    bytes.back() += part.data().size();
            }
        }
        const Ledger ledger = loaded.recorder->ledger();
        BOOST_TEST_REQUIRE(ledger.batches.size() == bytes.size());
        std::size_t measured = 0;
        for (const BatchRow& row : ledger.batches) {
            BOOST_TEST(row.collate_begin_ns == row.last_done_ns);
            BOOST_TEST(row.collate_begin_ns != no_stamp);
            BOOST_TEST(row.collate_end_ns >= row.collate_begin_ns);
            BOOST_TEST(row.offered_ns >= row.collate_end_ns);
            BOOST_TEST(row.bytes == bytes[row.batch]);
            if (row.collate_cpu_ns != no_stamp) {
                ++measured;
                BOOST_TEST(row.collate_cpu_ns <= row.collate_end_ns - row.collate_begin_ns);
            }
        }
        BOOST_TEST(measured >= 1u);   // each worker's first one
        const Summary summary = summarize(ledger);
        BOOST_TEST(summary.stages.back().stage == "collate");
        BOOST_TEST(summary.stages.back().calls == bytes.size());
    }
}

BOOST_AUTO_TEST_CASE(the_digest_is_of_the_parts_whoever_makes_them) {
    const auto digest_of = [](std::size_t workers, double value) {
        Loaded loaded;
        const PadCollate pad{words, {.value = value}};
        DataLoader loader{loaded.runtime, loaded.source, loaded.sampler, loaded.options(workers, &pad)};
        loader.enable_digest();
        for (auto& batch : blocking(loader, 1))
            BOOST_TEST(batch.size() == 4u);
        return loader.digest();
    };
    BOOST_TEST(digest_of(0, 0) == digest_of(3, 0));
    BOOST_TEST(digest_of(0, 0) != digest_of(0, 1));
}

BOOST_AUTO_TEST_CASE(the_record_names_the_worker_that_collated_and_it_made_a_sample_of_the_batch) {
    for (const std::size_t workers : {0u, 1u, 3u}) {
        Loaded loaded{44, true};
        DataLoader loader{loaded.runtime, loaded.source, loaded.sampler, loaded.options(workers)};
        for (std::size_t epoch = 0; epoch < 3; ++epoch)
            for (auto& batch : blocking(loader, epoch))
                BOOST_TEST(fault(batch) == "");
        const Ledger ledger = loaded.recorder->ledger();
        BOOST_TEST(ledger.batches.size() == 33u);
        std::int64_t collating_ns = 0;
        for (const BatchRow& row : ledger.batches) {
            BOOST_TEST_REQUIRE(row.collate_worker.has_value());
            collating_ns += row.collate_end_ns - row.collate_begin_ns;
            std::int64_t free_ns = no_stamp;   // when the worker's last sample of this batch was complete
            for (const SampleRow& sample : ledger.samples)
                if (sample.epoch == row.epoch && sample.batch == row.batch && sample.worker == row.collate_worker) {
                    const auto stages = ledger.stages_of(sample);
                    BOOST_TEST_REQUIRE(!stages.empty());
                    free_ns = std::max(free_ns, stages.back().begin_ns + stages.back().ns);
                }
            BOOST_TEST(free_ns != no_stamp);
            BOOST_TEST(free_ns <= row.collate_begin_ns);
        }
        BOOST_TEST(collating_ns > 0);
    }
}

BOOST_AUTO_TEST_CASE(cached_batches_have_the_parts) {
    Loaded loaded;
    DataLoader loader{loaded.runtime, loaded.source, loaded.sampler, loaded.options(1)};
    CacheLoader cache{loader, 3};
    for (int pass = 0; pass < 3; ++pass)
        for (auto& batch : blocking(cache)) {
            BOOST_TEST(fault(batch) == "");
            BOOST_TEST(batch.number() < 3u);
        }
    BOOST_TEST(cache.filled());
}

BOOST_AUTO_TEST_CASE(once_the_largest_has_been_seen_collating_allocates_nothing) {
    for (const bool record : {false, true})
        for (const auto& [workers, depth] : {std::pair{0u, 2u}, {1u, 2u}, {2u, 2u}, {2u, 7u}}) {
            Loaded loaded{96, record};
            LoaderOptions options = loaded.options(workers);
            options.prefetch_depth = depth;
            std::atomic<std::size_t> started{0};   // workers that have made a sample, for which they allocate once
            loaded.source.before_fill = [&](std::uint64_t) {
                thread_local const void* of = nullptr;
                if (std::exchange(of, &started) != &started)
                    ++started;
            };
            DataLoader loader{loaded.runtime, loaded.source, loaded.sampler, options};
            {   // holds all batches at once, so every slot has had samples of full length
                auto pass = loader.epoch(0);
                std::vector<Batch> held;
                for (std::size_t i = 0; i < 3; ++i)
                    held.push_back(*pass.next_blocking());
                held.clear();
                while (pass.next_blocking()) {
                }
            }
            for (std::size_t epoch = 100; started < workers && epoch < 10'000; ++epoch)
                for (auto pass = loader.epoch(epoch); pass.next_blocking();) {
                }
            BOOST_REQUIRE(started >= workers);
            std::uint64_t before = 0, batches = 0;
            for (std::size_t epoch = 1; epoch < 8; ++epoch) {
                auto pass = loader.epoch(epoch);
                if (epoch == 2)
                    before = test::counted_allocations();
                for (;;) {
                    test::count_this_thread(true);
                    auto batch = pass.next_blocking();
                    test::count_this_thread(false);
                    if (!batch)
                        break;
                    batches += epoch > 1;
                }
            }
            BOOST_TEST(batches == 6u * 24);
            BOOST_TEST(test::counted_allocations() - before == 0u,
                       workers << " workers, record " << record << ": " << test::counted_allocations() - before);
        }
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
}   // namespace drawpoint
