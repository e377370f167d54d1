// The laws of a BatchSource, checked for all models of this concept in the project.

#include <drawpoint/pipeline/loader/cache_loader.hpp>
#include <drawpoint/pipeline/loader/data_loader.hpp>
#include <drawpoint/pipeline/stages/tensor_rows.hpp>

#include <boost/mpl/list.hpp>
#include <boost/test/unit_test.hpp>

#include <span>
#include <vector>

#include "support/tape.hpp"

namespace drawpoint {
namespace {

constexpr std::size_t samples = 10, batch_size = 4, batches = 3;

struct Rows {
    Recorder recorder;
    Runtime runtime{{.max_threads = 2, .workers = WorkerThreads::threads}, recorder};
    std::vector<float> values = std::vector<float>(samples);
    TensorRows source{std::as_bytes(std::span{values}), SampleLayout{}};
    SequentialSampler sampler{samples};
};

/// The models: a DataLoader with workers, one that loads inline, a cache over a loader, and the tests' own tape.
template <std::size_t Workers>
struct LoaderModel : Rows {
    DataLoader loader{runtime, source, sampler, {.batch_size = batch_size, .num_workers = Workers}};
    DataLoader& make() { return loader; }
};
struct CacheModel : LoaderModel<1> {
    CacheLoader cache{loader, batches};
    CacheLoader& make() { return cache; }
};
struct TapeModel : Rows {
    ManualClock clock;
    test::Tape tape{clock, {{{.size = 4}, {.size = 4}, {.size = 2}}, {{.size = 4}, {.size = 4}, {.size = 2}}}};
    test::Tape& make() { return tape; }
};
using Models = boost::mpl::list<LoaderModel<0>, LoaderModel<1>, LoaderModel<2>, CacheModel, TapeModel>;

template <class Pass>
Awaitable<std::size_t> draw_all(Pass& pass) {
    std::size_t drawn = 0;
    for (;;) {
        auto batch = co_await pass.next();
        if (!batch)
            co_return drawn;
        drawn += batch->size();
    }
}

template <class Pass>
Awaitable<bool> is_exhausted(Pass& pass) {
    auto batch = co_await pass.next();
    co_return !batch;
}

}   // namespace

BOOST_AUTO_TEST_SUITE(batch_source)

BOOST_AUTO_TEST_CASE_TEMPLATE(a_pass_yields_every_sample_once_and_then_nullopt_for_ever, Model, Models) {
    Model model;
    auto& source = model.make();
    for (std::size_t epoch = 0; epoch < 2; ++epoch) {
        auto pass = source.epoch(epoch, EpochOptions{});
        BOOST_TEST(pass.size().value() == batches);
        BOOST_TEST(run(model.runtime, draw_all(pass)) == samples);
        for (int again = 0; again < 3; ++again)
            BOOST_TEST(run(model.runtime, is_exhausted(pass)));
    }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_pass_left_early_does_not_disturb_the_next_one, Model, Models) {
    Model model;
    auto& source = model.make();
    {
        auto left = source.epoch(0, EpochOptions{.next_epoch = true});
        BOOST_TEST(!run(model.runtime, is_exhausted(left)));
    }
    auto pass = source.epoch(1, EpochOptions{});
    BOOST_TEST(run(model.runtime, draw_all(pass)) == samples);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(nothing_happens_until_a_draw_is_awaited, Model, Models) {
    Model model;
    auto& source = model.make();
    auto pass = source.epoch(0, EpochOptions{});
    {
        auto never_awaited = pass.next();
    }
    BOOST_TEST(run(model.runtime, draw_all(pass)) == samples);
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace drawpoint
