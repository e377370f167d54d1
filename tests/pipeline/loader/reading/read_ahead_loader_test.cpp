#include <drawpoint/pipeline/loader/data_loader.hpp>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <map>
#include <random>
#include <set>
#include <system_error>
#include <thread>

#include <boost/test/unit_test.hpp>

#include <sys/resource.h>

#include <drawpoint/instrumentation/recorder/recorder.hpp>
#include <drawpoint/pipeline/sampling/sampler.hpp>

#include <drawpoint/pipeline/loader/machine/detail/slot_bytes.hpp>
#include "pipeline/loader/stored_source.hpp"
#include "support/coro_test.hpp"
#include "support/count_allocations.hpp"
#include "support/sanitized.hpp"

BOOST_AUTO_TEST_SUITE(read_ahead_loader)

using namespace drawpoint;
using namespace std::chrono_literals;
using test::StoredSource;

namespace {

void slowly(std::uint64_t) { std::this_thread::sleep_for(500us); }

[[noreturn]] void fail(int error) {
    throw std::filesystem::filesystem_error{"cannot read", "x", std::error_code{error, std::generic_category()}};
}

/// Digests of the batches' samples, by batch number, whatever the order of the draws.
struct Drawn {
    std::string digest;
    std::map<std::uint64_t, std::vector<std::uint64_t>> indices;
    std::string fault;
    LoaderCounters counters;
};
Drawn draw(const StoredSource& source, LoaderOptions options) {
    const auto recorder = test::small_recorder();
    Runtime runtime{{.record = false}, *recorder};
    const RandomSampler sampler{source.size(), 7};
    DataLoader loader{runtime, source, sampler, options};
    loader.enable_digest();
    const test::NumberedSource expected{source.size()};
    Drawn drawn;
    for (std::size_t epoch = 0; epoch < 2; ++epoch) {
        auto pass = loader.epoch(epoch);
        while (const auto batch = pass.next_blocking()) {
            drawn.indices[batch->number() + 1000 * epoch].assign(batch->indices().begin(), batch->indices().end());
            drawn.fault += expected.fault(*batch, options.seed);
        }
    }
    drawn.digest = loader.digest();
    drawn.counters = loader.counters();
    return drawn;
}

}   // namespace

BOOST_AUTO_TEST_CASE(batches_are_the_same_to_the_byte_with_and_without_reading_ahead) {
    for (const auto where : {StoredSource::In::memory, StoredSource::In::one_file}) {
        StoredSource source{150, where};
        source.before_read = slowly;
        const LoaderOptions none{.batch_size = 8, .num_workers = 2, .prefetch_depth = 3, .read_concurrency = 0};
        const Drawn alone = draw(source, none);
        BOOST_TEST(alone.counters.reads_ahead == 0u);
        for (const std::size_t workers : {0u, 1u, 3u}) {
            LoaderOptions options = none;
            options.num_workers = workers;
            options.read_concurrency = 16;
            const Drawn ahead = draw(source, options);
            BOOST_TEST(ahead.fault == "");
            BOOST_TEST(ahead.digest == alone.digest);
            BOOST_TEST(ahead.counters.reads_ahead > 0u);
            BOOST_TEST(ahead.counters.peak_bytes > alone.counters.peak_bytes + (std::uint64_t{workers} << 21) -
                                                       (std::uint64_t{none.num_workers} << 21));   // samples read ahead
        }
        for (const OrderRule order : {OrderRule::out_of_order(), OrderRule::bounded(1)}) {
            LoaderOptions options = none;
            options.order = order;
            options.read_concurrency = 16;
            const Drawn ahead = draw(source, options);
            BOOST_TEST(ahead.fault == "");
            BOOST_TEST((ahead.indices == alone.indices));
        }
    }
}

BOOST_AUTO_TEST_CASE(one_worker_has_more_reads_in_flight_than_itself) {
    StoredSource source{400};
    source.before_read = [](std::uint64_t) { std::this_thread::sleep_for(3ms); };
    const Drawn drawn = draw(source, {.batch_size = 16, .num_workers = 1, .prefetch_depth = 4, .read_concurrency = 16});
    BOOST_TEST(drawn.fault == "");
    BOOST_TEST(source.most_at_a_time > 1u);
    BOOST_TEST(source.most_at_a_time <= 17u);
    BOOST_TEST(source.reads_begun == 800u);
    BOOST_TEST(source.made_from_contents == 800u);
}

BOOST_AUTO_TEST_CASE(reads_in_flight_leave_the_process_most_of_its_descriptors) {
    if (test::sanitized)
        return;   // UBSan needs descriptors to check a virtual call
    StoredSource source{600};
    source.before_read = [](std::uint64_t) { std::this_thread::sleep_for(5ms); };
    rlimit before{};
    BOOST_TEST_REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
    rlimit few = before;
    few.rlim_cur = 100;
    BOOST_TEST_REQUIRE(::setrlimit(RLIMIT_NOFILE, &few) == 0);
    const Drawn drawn =
        draw(source, {.batch_size = 100, .num_workers = 2, .prefetch_depth = 5, .read_concurrency = 512});
    BOOST_TEST_REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
    BOOST_TEST(drawn.fault == "");
    BOOST_TEST(source.most_at_a_time > 4u);
    BOOST_TEST(source.most_at_a_time <= 25u + 2u);
}

BOOST_AUTO_TEST_CASE(samples_that_are_left_out_do_not_disturb_reads_ahead) {
    StoredSource source{600};
    source.before_read = [](std::uint64_t index) {
        if (index % 16 != 3)
            slowly(index);   // so that some are read ahead, and some made by workers that have overtaken
        if (index % 5 == 2)
            fail(EIO);
    };
    const Drawn drawn = draw(source, {.batch_size = 8,
                                      .num_workers = 3,
                                      .prefetch_depth = 4,
                                      .on_error = OnError::skip,
                                      .max_errors = 600,
                                      .read_concurrency = 16,
                                      .read_retries = 0});
    BOOST_TEST(drawn.fault == "");
    std::size_t samples = 0;
    for (const auto& [number, indices] : drawn.indices) {
        samples += indices.size();
        BOOST_TEST(std::ranges::none_of(indices, [](std::uint64_t index) { return index % 5 == 2; }));
    }
    BOOST_TEST(samples == 2u * 480);
    BOOST_TEST(drawn.counters.samples_skipped == 2u * 120);
}

BOOST_AUTO_TEST_CASE(a_read_that_fails_is_its_batchs_failure_in_the_stage_read_with_its_attempts) {
    for (const std::size_t concurrency : {0u, 16u}) {
        StoredSource source{64};
        source.before_read = [](std::uint64_t index) {
            slowly(index);
            if (index == 40)
                fail(EIO);
        };
        const auto recorder = test::small_recorder();
        Runtime runtime{{}, *recorder};
        const SequentialSampler sampler{source.size()};
        DataLoader loader{runtime,
                          source,
                          sampler,
                          {.batch_size = 8, .num_workers = 2, .read_concurrency = concurrency, .read_retries = 1}};
        auto pass = loader.epoch(0);
        for (std::size_t batch = 0; batch < 8; ++batch) {
            if (batch == 5)
                BOOST_CHECK_EXCEPTION((void)pass.next_blocking(), SampleError, [](const SampleError& error) {
                    return error.index() == 40 && error.stage() == "read" &&
                           std::string{error.what()} ==
                               "sample 40 (stored/40): read: cannot read, tried 2 times: Input/output error";
                });
            else
                BOOST_TEST(pass.next_blocking().has_value());
        }
        BOOST_TEST(loader.counters().read_retries == 1u);
    }
}

BOOST_AUTO_TEST_CASE(rows_of_samples_read_ahead_say_when_and_the_stages_still_tile_them) {
    StoredSource source{200};
    source.before_read = slowly;
    const auto recorder = test::small_recorder();
    Runtime runtime{{}, *recorder};
    const SequentialSampler sampler{source.size()};
    {
        DataLoader loader{runtime, source, sampler, {.batch_size = 8, .num_workers = 2}};
        auto pass = loader.epoch(0);
        while (pass.next_blocking()) {
        }
    }
    recorder->finish();
    std::size_t ahead = 0, measured = 0;
    const Ledger ledger = recorder->ledger();
    BOOST_TEST_REQUIRE(ledger.samples.size() == 200u);
    for (const SampleRow& sample : ledger.samples) {
        const auto stages = ledger.stages_of(sample);
        BOOST_TEST_REQUIRE(stages.size() == 2u);
        BOOST_TEST(stages[0].begin_ns == sample.begin_ns);
        BOOST_TEST(stages[1].begin_ns == stages[0].begin_ns + stages[0].ns);
        if (sample.read_begin_ns == no_stamp)
            continue;
        ++ahead;
        BOOST_TEST(sample.read_begin_ns < sample.read_end_ns);
        BOOST_TEST(sample.read_end_ns <= stages[1].begin_ns);
        if (sample.read_cpu_ns == no_stamp)
            continue;
        ++measured;
        BOOST_TEST(sample.read_cpu_ns >= 0);
        BOOST_TEST(sample.read_cpu_ns <= sample.read_end_ns - sample.read_begin_ns);
    }
    BOOST_TEST(ahead > 0u);
    BOOST_TEST(measured > 0u);
}

BOOST_AUTO_TEST_CASE(reading_ahead_allocates_nothing_once_its_buffers_have_grown) {
    constexpr std::uint64_t MiB = std::uint64_t{1} << 20;
    for (const std::uint64_t budget : {std::uint64_t{0}, 64 * MiB})
        for (const auto where : {StoredSource::In::memory, StoredSource::In::one_file}) {
            StoredSource source{256, where};
            source.before_read = [](std::uint64_t index) {
                test::count_this_thread(true);   // on a reader or a worker, from its first read on
                slowly(index);
            };
            const auto recorder = test::small_recorder();
            Runtime runtime{{.record = false}, *recorder};
            const SequentialSampler sampler{source.size()};
            DataLoader loader{runtime,
                              source,
                              sampler,
                              {.batch_size = 8,
                               .num_workers = 2,
                               .prefetch_depth = 4,
                               .read_concurrency = 8,
                               .memory_budget = budget}};
            const auto self = std::this_thread::get_id();
            // The thread of an io_uring never calls read().
            source.before_location = [&](std::uint64_t) {
                test::count_this_thread(std::this_thread::get_id() != self);
            };
            // A buffer grows when it is first used for a longer sample than before, and it is random which buffers are
            // used.
            std::size_t epoch = 0;
            for (std::size_t quiet = 0; quiet < 3 && epoch < 60; ++epoch) {
                const std::uint64_t before = test::counted_allocations();
                auto pass = loader.epoch(epoch);
                while (pass.next_blocking()) {
                }
                quiet = test::counted_allocations() == before ? quiet + 1 : 0;
            }
            BOOST_TEST(epoch < 60u, "budget " << budget << ", source " << static_cast<int>(where));
            BOOST_TEST(loader.counters().reads_ahead > 0u);
        }
}

BOOST_AUTO_TEST_CASE(the_plan_looks_at_samples_from_all_over_the_source) {
    for (const std::uint64_t n : {1u, 20u, 32u, 33u, 100u}) {
        StoredSource source{n, StoredSource::In::one_file};
        std::set<std::uint64_t> looked_at;
        source.before_location = [&](std::uint64_t index) { looked_at.insert(index); };
        const auto recorder = test::small_recorder();
        Runtime runtime{{.record = false}, *recorder};
        const SequentialSampler sampler{source.size()};
        const DataLoader loader{runtime, source, sampler, {.read_concurrency = 8}};
        BOOST_TEST(looked_at.size() == std::min<std::size_t>(n, 32));
        BOOST_TEST(*looked_at.rbegin() == (std::min<std::uint64_t>(n, 32) - 1) * n / std::min<std::uint64_t>(n, 32));
        // sample 6 has the largest remainder modulo 7
        const std::uint64_t largest = StoredSource::bytes_of(n == 1 ? 0 : 6);
        BOOST_TEST(loader.memory_plan().in_flight_bytes == 16 * contents_memory_bytes(largest));
    }
}

BOOST_AUTO_TEST_CASE(a_loader_that_ends_repeats_no_read) {
    const auto recorder = test::small_recorder();
    Runtime runtime{{}, *recorder};
    StoredSource source{4};
    source.before_read = [](std::uint64_t) { fail(EIO); };   // for a moment, by its error
    const SequentialSampler sampler{4};
    {
        DataLoader loader{
            runtime, source, sampler, {.batch_size = 2, .num_workers = 1, .read_concurrency = 2, .read_retries = 100}};
        const DataLoader::Pass pass = loader.epoch(0);
        while (source.reads_begun == 0)
            std::this_thread::yield();
    }
    BOOST_TEST(source.reads_begun < 100u);   // all pauses of one read take a minute and a half
}

BOOST_AUTO_TEST_CASE(a_loader_ends_in_the_midst_of_reads_and_touches_the_source_no_more) {
    std::mt19937 random{1};
    for (int round = 0; round < 40; ++round) {
        const auto recorder = test::small_recorder();
        Runtime runtime{{.record = round % 2 == 0}, *recorder};
        StoredSource source{400, round % 4 == 3 ? StoredSource::In::files : StoredSource::In::memory};
        std::atomic<bool> closed{false}, touched{false};
        source.before_read = [&](std::uint64_t index) {
            touched = touched || closed;
            slowly(index);
            if (index % 17 == 0)
                fail(index % 2 == 0 ? EIO : ENOENT);
        };
        const RandomSampler sampler{source.size(), 3};
        {
            DataLoader loader{runtime,
                              source,
                              sampler,
                              {.batch_size = 1 + random() % 20,
                               .num_workers = random() % 4,
                               .prefetch_depth = 1 + random() % 5,
                               .read_concurrency = random() % 20,
                               .read_retries = random() % 2}};
            std::vector<Batch> held;
            for (std::size_t epoch = 0; epoch < 3; ++epoch) {
                auto pass = loader.epoch(epoch, {.next_epoch = epoch != 2});
                for (std::size_t draws = random() % 12; draws-- > 0;) {
                    try {
                        if (auto batch = pass.next_blocking(); batch && held.size() < 1)
                            held.push_back(std::move(*batch));
                    } catch (const SampleError&) {
                    } catch (const std::logic_error&) {
                    }
                }
                if (epoch == 1 && round % 3 == 0)
                    held.clear();
            }
            if (round % 5 == 0)
                loader.request_stop();
        }
        closed = true;
        BOOST_TEST(!touched);
    }
}

BOOST_AUTO_TEST_SUITE_END()
