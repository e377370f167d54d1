#include <drawpoint/pipeline/loader/data_loader.hpp>

#include <boost/test/unit_test.hpp>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "pipeline/loader/orders.hpp"
#include "support/coro_test.hpp"
#include "support/count_allocations.hpp"

namespace drawpoint {
namespace {

/// Rows of 3 x 224 x 224 floats, copied from memory. The threads that make them count their allocations.
class CopiedRows final : public SampleSource {
public:
    CopiedRows(std::size_t n, const test::UntilSuspended* first_draw, bool runs = false)
        : n_{n}, first_draw_{first_draw}, runs_{runs} {}
    std::size_t size() const noexcept override { return n_; }
    SampleLayout layout() const noexcept override { return {.rank = 3, .shape = {3, 224, 224}}; }
    std::vector<std::string> stages() const override { return {"copy"}; }
    std::string path(std::uint64_t) const override { return {}; }
    std::unique_ptr<WorkerScratch> make_scratch() const override { return std::make_unique<WorkerScratch>(); }
    void fill(SampleTask& task, WorkerScratch&) const override {
        if (first_draw_ != nullptr)
            first_draw_->wait();
        test::count_this_thread(true);
        const std::int64_t begin = task.clock ? task.clock->now_ns() : 0;
        std::memcpy(task.data.data(), row_.data(), task.data.size());
        *task.target = static_cast<std::int64_t>(task.index);
        task.stages[0] = {begin, task.clock ? task.clock->now_ns() - begin : 0};
        task.stage_count = 1;
    }
    bool fills_runs() const noexcept override { return runs_; }
    void fill_run(SampleRun& run, WorkerScratch&) const override {
        if (first_draw_ != nullptr)
            first_draw_->wait();
        test::count_this_thread(true);
        for (std::size_t i = 0; i < run.indices.size(); ++i) {
            std::memcpy(run.data + i * row_.size() * sizeof(float), row_.data(), row_.size() * sizeof(float));
            run.targets[i] = static_cast<std::int64_t>(run.indices[i]);
        }
    }

private:
    std::size_t n_;
    const test::UntilSuspended* first_draw_;
    bool runs_;
    std::vector<float> row_ = std::vector<float>(3 * 224 * 224, 0.5f);
};

struct Counted {
    std::uint64_t batches = 0, allocations = 0, faults = 0;
};

Awaitable<void> draw(Runtime& runtime, DataLoader& loader, test::UntilSuspended& first_draw, Counted& counted) {
    first_draw.watch(runtime);
    const std::size_t warm_up = 2 * (loader.options().prefetch_depth + 1);
    auto pass = loader.epoch(0);
    std::uint64_t allocations = 0, faults = 0;
    for (std::size_t number = 0; number < *pass.size(); ++number) {
        if (number == warm_up) {
            allocations = test::counted_allocations();
            faults = test::minor_faults();
        }
        test::count_this_thread(true);
        auto batch = co_await pass.next();
        test::count_this_thread(false);
        counted.batches += number >= warm_up;
    }
    counted.allocations = test::counted_allocations() - allocations;
    counted.faults = test::minor_faults() - faults;
}

BOOST_AUTO_TEST_SUITE(steady_state)

BOOST_AUTO_TEST_CASE(the_counter_counts) {
    if (!test::counts_allocations()) {
        BOOST_TEST_MESSAGE("a sanitizer's malloc is in place: nothing is counted in this build");
        BOOST_TEST(test::counted_allocations() == 0u);
        return;
    }
    const std::uint64_t before = test::counted_allocations();
    test::count_this_thread(true);
    auto kept = std::make_unique<std::vector<int>>(100);
    test::count_this_thread(false);
    BOOST_TEST(test::counted_allocations() == before + 2);
    kept = std::make_unique<std::vector<int>>(200);
    BOOST_TEST(test::counted_allocations() == before + 2);
}

BOOST_AUTO_TEST_CASE(workers_and_draws_allocate_nothing_and_touch_no_new_page) {
    for (int way = 0; way < 36; ++way) {
        const bool record = way % 2 != 0, runs = way / 2 % 2 != 0;
        const auto workers = static_cast<std::size_t>(way / 4 % 3);
        const OrderRule order = test::nth_order(static_cast<std::uint64_t>(way / 12), 1);
        const auto recorder = test::small_recorder();
        // A new thread must not count yet: it may have counted for another loader.
        Runtime runtime{{.record = record, .on_worker_start = []() noexcept { test::count_this_thread(false); }},
                        *recorder};
        test::UntilSuspended first_draw;
        const CopiedRows source{16 * 60, workers > 0 ? &first_draw : nullptr, runs};   // inline, nothing suspends
        const SequentialSampler sampler{source.size()};
        DataLoader loader{
            runtime, source, sampler, {.batch_size = 16, .num_workers = workers, .prefetch_depth = 2, .order = order}};
        Counted counted;
        run(runtime, draw(runtime, loader, first_draw, counted));
        BOOST_TEST(counted.batches == 54u);
        BOOST_TEST(counted.allocations == 0u, "record " << record << ", runs " << runs << ", order " << way / 12 << ", "
                                                        << workers << " workers: " << counted.allocations
                                                        << " allocations in " << counted.batches << " batches");
        // The recorder's writer thread has a growing ledger, whose pages are not the loader's.
        if (!record && test::counts_allocations())
            BOOST_TEST(counted.faults < counted.batches,
                       counted.faults << " faults in " << counted.batches << " batches");
        BOOST_TEST(loader.counters().handler_fallbacks == 0u);
    }
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
}   // namespace drawpoint
