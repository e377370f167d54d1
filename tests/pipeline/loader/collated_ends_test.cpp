#include <drawpoint/pipeline/loader/core/collate.hpp>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <drawpoint/pipeline/loader/blocking.hpp>
#include <drawpoint/pipeline/loader/data_loader.hpp>

#include "pipeline/loader/words_source.hpp"

namespace drawpoint {
namespace {

using namespace drawpoint::test;

BOOST_AUTO_TEST_SUITE(collated_ends)

BOOST_AUTO_TEST_CASE(a_stop_while_a_batch_is_collated_ends_the_draw) {
    Loaded loaded;
    Flag collating, may_end;
    const FunctionCollate slow{"slow", [&](const FinishedSamples& samples, CollatedBatch& batch) {
                                   collating.set();
                                   may_end.wait();
                                   add_count(samples, batch);
                               }};
    DataLoader loader{loaded.runtime, loaded.source, loaded.sampler, loaded.options(1, &slow)};
    auto pass = loader.epoch(0);
    std::thread stopper{[&] {
        collating.wait();
        loader.request_stop();
        may_end.set();
    }};
    BOOST_CHECK_THROW((void)pass.next_blocking(), std::system_error);
    stopper.join();
    BOOST_CHECK_THROW((void)pass.next_blocking(), std::system_error);
}

BOOST_AUTO_TEST_CASE(a_batch_given_up_before_all_its_samples_are_made_is_not_collated) {
    Loaded loaded{16, true};
    Flag reached, may_go_on;
    loaded.source.before_fill = [&](std::uint64_t index) {
        if (index == 2) {
            reached.set();
            may_go_on.wait();
        }
    };
    std::atomic<int> of_epoch_0{0};
    const FunctionCollate counted{"counted", [&](const FinishedSamples& samples, CollatedBatch& batch) {
                                      of_epoch_0 += samples.epoch == 0;
                                      loaded.pad.collate(samples, batch);
                                  }};
    DataLoader loader{loaded.runtime, loaded.source, loaded.sampler, loaded.options(1, &counted)};
    {
        auto pass = loader.epoch(0);
        reached.wait();
    }
    may_go_on.set();
    for (std::size_t epoch = 1; epoch < 4; ++epoch)
        for (auto& batch : blocking(loader, epoch))
            BOOST_TEST(fault(batch) == "");
    BOOST_TEST(of_epoch_0 == 0);
    for (const BatchRow& row : loaded.recorder->ledger().batches)
        BOOST_TEST((row.collate_begin_ns == no_stamp) == (row.status == BatchStatus::abandoned));
}

BOOST_AUTO_TEST_CASE(a_batch_given_up_while_it_is_collated_leaves_its_slot_usable) {
    Loaded loaded{16, true};
    Flag collating, may_end;
    const FunctionCollate slow{"slow", [&](const FinishedSamples& samples, CollatedBatch& batch) {
                                   if (samples.epoch == 0) {
                                       collating.set();
                                       may_end.wait();
                                   }
                                   loaded.pad.collate(samples, batch);
                               }};
    DataLoader loader{loaded.runtime, loaded.source, loaded.sampler, loaded.options(1, &slow)};
    {
        auto pass = loader.epoch(0);
        collating.wait();
    }
    may_end.set();
    for (std::size_t epoch = 1; epoch < 4; ++epoch)
        for (auto& batch : blocking(loader, epoch))
            BOOST_TEST(fault(batch) == "");
}

BOOST_AUTO_TEST_CASE(passes_given_up_anywhere_never_show_a_collate_function_the_sample_of_another_batch) {
    Loaded loaded{60};
    std::atomic<int> wrong{0};
    const FunctionCollate strict{"strict", [&](const FinishedSamples& samples, CollatedBatch& batch) {
                                     for (std::size_t i = 0; i < samples.samples.size(); ++i) {
                                         const std::size_t length = Words::length(samples.epoch, samples.indices[i]);
                                         const auto data = samples.samples[i].data();
                                         std::int64_t last = 0;
                                         if (length > 0 && data.size() == 8 * length)
                                             std::memcpy(&last, data.data() + 8 * (length - 1), 8);
                                         wrong += data.size() != 8 * length ||
                                                  (length > 0 &&
                                                   last != Words::word(samples.epoch, samples.indices[i], length - 1));
                                     }
                                     loaded.pad.collate(samples, batch);
                                 }};
    LoaderOptions options = loaded.options(3, &strict);
    options.prefetch_depth = 8;   // more slots than sets of sample buffers
    DataLoader loader{loaded.runtime, loaded.source, loaded.sampler, options};
    for (std::size_t round = 0; round < 200; ++round) {
        auto pass = loader.epoch(round);
        for (std::size_t drawn = 0; drawn < round % 6; ++drawn)
            BOOST_TEST(fault(*pass.next_blocking()) == "");
    }
    BOOST_TEST(wrong == 0);
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
}   // namespace drawpoint
