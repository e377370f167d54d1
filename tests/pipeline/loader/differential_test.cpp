// Compares the running loader with its decisions in isolation: a fresh LoaderMachine must give the answers that
// PrefetchCore's threads got.
#include <drawpoint/pipeline/loader/data_loader.hpp>

#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <memory>
#include <string>

#include <drawpoint/pipeline/loader/blocking.hpp>

#include "pipeline/loader/loader_bench.hpp"
#include "pipeline/loader/numbered_source.hpp"
#include "pipeline/loader/stored_source.hpp"
#include "pipeline/loader/threads/machine_log.hpp"
#include "pipeline/loader/words_source.hpp"
#include "support/coro_test.hpp"

namespace drawpoint {
namespace {

using test::Bench;
using test::NumberedSource;
using test::StoredSource;

constexpr std::size_t samples = 403, epochs = 3;

/// What a run does, apart from its options.
struct Course {
    std::size_t draws = ~std::size_t{0};   // of each pass; then it ends early
    bool reconfigures = false, stops = false;
};

/// Runs a loader to its end. Returns how many decisions it logged; fails unless a fresh machine decides the same.
std::size_t decisions_of(const SampleSource& source, const LoaderOptions& options, const Course& course,
                         const std::string& name) {
    MachineLog::Collector collector;
    {
        Bench bench{true};
        const RandomSampler sampler{source.size(), 3};
        DataLoader loader{bench.runtime, source, sampler, options, name};
        for (std::size_t epoch = 0; epoch < epochs; ++epoch) {
            std::size_t drawn = 0;
            DataLoader::Pass pass = loader.epoch(epoch, {.next_epoch = epoch + 1 < epochs});
            while (drawn++ < course.draws) {
                try {
                    const std::optional<Batch> batch = pass.next_blocking();
                    if (!batch)
                        break;
                } catch (const SampleError&) {
                    // a sample that fails on purpose
                }
                if (course.reconfigures && drawn % 7 == 3)
                    loader.reconfigure({.num_workers = 1 + drawn % 4, .prefetch_depth = 1 + drawn % 5});
            }
        }
        if (course.stops)
            loader.request_stop();
    }
    BOOST_REQUIRE(collector.logs().size() == 1u);
    const MachineLog& log = *collector.logs().front();
    const std::optional<std::size_t> differs = log.replay();
    BOOST_TEST(!differs, name << ": decision " << differs.value_or(0) << " of " << log.size() << " differs");
    return log.size();
}

BOOST_AUTO_TEST_SUITE(differential)

BOOST_AUTO_TEST_CASE(a_fresh_machine_decides_as_every_kind_of_loader_did) {
    NumberedSource numbers{samples}, failing{samples}, runs{samples};
    failing.fails = [](std::uint64_t index) { return index % 50 == 7; };
    runs.runs = true;
    const StoredSource stored{samples, StoredSource::In::files};
    std::size_t decided = 0;
    for (const std::size_t workers : {0u, 1u, 2u, 5u}) {
        const std::string name = std::to_string(workers) + " workers";
        const LoaderOptions plain{.batch_size = 8, .num_workers = workers};
        decided += decisions_of(numbers, plain, {}, name);
        decided += decisions_of(failing, plain, {}, name + ", failures");
        decided += decisions_of(runs, plain, {}, name + ", runs");
        decided += decisions_of(stored, {.batch_size = 8, .num_workers = workers, .read_concurrency = 8}, {},
                                name + ", reads ahead");
        decided += decisions_of(numbers, plain, {.draws = 5}, name + ", ends early");
        decided += decisions_of(numbers, plain, {.draws = 5, .stops = true}, name + ", stops");
        for (const OrderRule order : {OrderRule::out_of_order(), OrderRule::bounded(2)})
            decided +=
                decisions_of(numbers, {.batch_size = 8, .num_workers = workers, .prefetch_depth = 6, .order = order},
                             {}, name + ", another order");
        if (workers != 0)
            decided += decisions_of(numbers, plain, {.reconfigures = true}, name + ", reconfigured");
    }
    BOOST_TEST(decided > 5'000u);
    BOOST_TEST_MESSAGE(decided << " decisions");
}

BOOST_AUTO_TEST_CASE(a_fresh_machine_decides_as_loaders_of_collated_batches_did) {
    const test::Words words{samples};
    const PadCollate collate{test::words};
    std::size_t decided = 0;
    for (const std::size_t workers : {0u, 1u, 3u})
        for (const std::uint64_t budget : {std::uint64_t{0}, std::uint64_t{64} << 20}) {
            const LoaderOptions options{.batch_size = 8,
                                        .num_workers = workers,
                                        .prefetch_depth = 4,
                                        .seed = test::words_seed,
                                        .memory_budget = budget,
                                        .collate = &collate};
            decided += decisions_of(words, options, {}, "collated");
            decided += decisions_of(words, options, {.draws = 4}, "collated, ends early");
            if (workers != 0)
                decided += decisions_of(words, options, {.reconfigures = true}, "collated, reconfigured");
        }
    BOOST_TEST(decided > 1'000u);
}

BOOST_AUTO_TEST_CASE(a_machine_that_starts_otherwise_decides_otherwise) {
    MachineLog::Collector collector;
    const PolicyOptions options{.batch_size = 4, .num_workers = 1, .prefetch_depth = 3};
    LoggedMachine machine{options, {.num_workers = 1, .prefetch_depth = 3}};
    machine.decide<&LoaderMachine::extend>(LoaderMachine::PassShape{.batches = 3, .samples = 12});
    const LoaderMachine::HeldBytes nothing{};
    (void)machine.turn({.held = &nothing});
    const MachineLog& log = *collector.logs().front();
    BOOST_TEST(log.size() == 2u);
    BOOST_TEST(!log.replay());
    LoaderMachine other{{.batch_size = 4, .num_workers = 1, .prefetch_depth = 1},
                        {.num_workers = 1, .prefetch_depth = 1}};
    BOOST_TEST(log.replay(other).value_or(0) == 1u);
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
}   // namespace drawpoint
