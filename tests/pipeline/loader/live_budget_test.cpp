// What a memory budget means while the settings of a loader change.
#include <drawpoint/pipeline/loader/data_loader.hpp>

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "pipeline/loader/running_workers.hpp"
#include "support/coro_test.hpp"

namespace drawpoint {
namespace {

using test::comes_to;

/// Large samples; counts the scratches that exist.
class Weighed final : public SampleSource {
public:
    struct Scratch final : WorkerScratch {
        explicit Scratch(std::atomic<std::uint64_t>& count) : alive{&count} { ++*alive; }
        Scratch(const Scratch&) = delete;
        Scratch& operator=(const Scratch&) = delete;
        ~Scratch() override { --*alive; }
        std::atomic<std::uint64_t>* alive;
    };
    std::size_t size() const noexcept override { return 4096; }
    SampleLayout layout() const noexcept override { return {.rank = 1, .shape = {std::int64_t{1} << 14}}; }
    std::vector<std::string> stages() const override { return {"fill"}; }
    std::string path(std::uint64_t) const override { return {}; }
    std::unique_ptr<WorkerScratch> make_scratch() const override { return std::make_unique<Scratch>(scratches); }
    void fill(SampleTask& task, WorkerScratch&) const override {
        task.data[0] = std::byte{1};
        *task.target = 0;
        task.stages[0] = {task.clock ? task.clock->now_ns() : 0, 0};
        task.stage_count = 1;
    }
    /// A lower bound of the memory of workers and slots, while both may change.
    std::uint64_t bytes(DataLoader& loader) const {
        const std::uint64_t workers = scratches.load(), slots = loader.counters().slots_bytes;
        return std::min(workers, scratches.load()) * MemoryNeeds{}.worker_bytes + slots;
    }
    mutable std::atomic<std::uint64_t> scratches{0};
};

BOOST_AUTO_TEST_SUITE(live_budget)

BOOST_AUTO_TEST_CASE(under_a_budget_more_of_one_thing_waits_until_there_is_less_of_the_other) {
    const Weighed source;
    const RandomSampler sampler{source.size(), 3};
    const auto recorder = test::small_recorder();
    Runtime runtime{{.workers = WorkerThreads::threads}, *recorder};
    constexpr std::uint64_t budget = std::uint64_t{11} << 20;
    DataLoader loader{runtime,
                      source,
                      sampler,
                      {.batch_size = 8, .num_workers = 1, .prefetch_depth = 16, .seed = 5, .memory_budget = budget}};
    std::mt19937_64 random{4};
    std::set<std::size_t> depths;
    std::uint64_t most = 0;
    for (std::size_t epoch = 0; epoch < 2; ++epoch) {
        auto pass = loader.epoch(epoch);
        for (std::size_t drawn = 0; const auto batch = pass.next_blocking(); ++drawn) {
            BOOST_TEST(batch->size() == 8u);
            if (drawn % 16 == 1)
                loader.reconfigure({.num_workers = 1 + random() % 4});
            depths.insert(loader.options().prefetch_depth);
            most = std::max(most, source.bytes(loader));
        }
    }
    BOOST_TEST(depths.size() == 4u);   // workers and slots were traded for each other
    BOOST_TEST(most <= budget);
    BOOST_TEST(most > budget / 4 * 3);
    BOOST_TEST(loader.counters().peak_bytes <= budget);
    auto pass = loader.epoch(2);
    for (std::size_t drawn = 0; drawn < 40; ++drawn)   // what waits for memory checks at each draw
        (void)pass.next_blocking();
    BOOST_TEST(comes_to(loader, loader.options().num_workers));
    const SettingRow last = recorder->ledger().settings.back();
    BOOST_TEST(last.num_workers == loader.options().num_workers);
    BOOST_TEST(last.prefetch_depth == loader.options().prefetch_depth);
}

BOOST_AUTO_TEST_CASE(who_holds_all_batches_may_hold_as_many_more_as_fewer_workers_leave_room_for) {
    const Weighed source;
    const SequentialSampler sampler{source.size()};
    const auto recorder = test::small_recorder();
    Runtime runtime{{.workers = WorkerThreads::threads}, *recorder};
    for (int round = 0; round < 30; ++round) {
        DataLoader loader{
            runtime,
            source,
            sampler,
            {.batch_size = 8, .num_workers = 4, .prefetch_depth = 16, .memory_budget = std::uint64_t{11} << 20}};
        auto pass = loader.epoch(0);
        std::vector<Batch> held;
        while (held.size() <= loader.options().prefetch_depth)
            held.push_back(*pass.next_blocking());
        BOOST_TEST(held.size() < 8u);
        loader.reconfigure({.num_workers = 1});   // workers take a moment to leave
        while (held.size() <= loader.options().prefetch_depth)
            held.push_back(*pass.next_blocking());
        BOOST_TEST(held.size() == 17u);
    }
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
}   // namespace drawpoint
