#include <drawpoint/pipeline/collate.hpp>

#include <algorithm>
#include <atomic>
#include <cstring>
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
#include <drawpoint/pipeline/blocking.hpp>
#include <drawpoint/pipeline/cache_loader.hpp>
#include <drawpoint/pipeline/data_loader.hpp>

#include "pipeline/loader_core.hpp"
#include "pipeline/numbered_source.hpp"
#include "support/coro_test.hpp"
#include "support/count_allocations.hpp"

namespace drawpoint {
namespace {

using test::NumberedSource;

constexpr std::uint64_t seed = 11;
constexpr SampleLayout words{ScalarType::int64, 1, {0}};

/// Samples of 0 … 16 numbers that say which sample of which epoch they are; those of epoch 0 all have 16.
class Words final : public SampleSource {
public:
    explicit Words(std::size_t n) : n_{n} {}
    std::function<void(std::uint64_t index)> before_fill = [](std::uint64_t) {};
    std::optional<std::uint64_t> shapeless;   // a sample that does not say its shape

    static std::size_t length(std::uint64_t epoch, std::uint64_t index) {
        return epoch == 0 ? 16 : (index * 7 + epoch * 5) % 17;
    }
    static std::int64_t word(std::uint64_t epoch, std::uint64_t index, std::size_t at) {
        return NumberedSource::word(seed, epoch, index, at);
    }
    std::size_t size() const noexcept override { return n_; }
    SampleLayout layout() const noexcept override { return words; }
    std::vector<std::string> stages() const override { return {"write"}; }
    std::string path(std::uint64_t index) const override { return "words/" + std::to_string(index); }
    std::unique_ptr<WorkerScratch> make_scratch() const override { return std::make_unique<WorkerScratch>(); }
    void fill(SampleTask& task, WorkerScratch&) const override {
        test::count_this_thread(true);
        task.stages[0] = {task.clock ? task.clock->now_ns() : 0, 0};
        task.stage_count = 1;
        before_fill(task.index);
        *task.target = NumberedSource::target(task.index);
        if (task.index == shapeless)
            return;
        const std::size_t count = length(task.epoch, task.index);
        const auto place = task.buffer->reshape({ScalarType::int64, 1, {static_cast<std::int64_t>(count)}});
        for (std::size_t at = 0; at < count; ++at) {
            const std::int64_t value = word(task.epoch, task.index, at);
            std::memcpy(place.data() + 8 * at, &value, 8);
        }
        if (task.clock)
            task.stages[0].ns = task.clock->now_ns() - task.stages[0].begin_ns;
    }

private:
    std::size_t n_;
};

template <class T>
T at(const BatchPart& part, std::size_t i) {
    T value;
    std::memcpy(&value, part.data().data() + i * sizeof(T), sizeof(T));
    return value;
}

/// What is wrong with a padded batch of `Words`, or nothing.
std::string fault(const Batch& batch) {
    std::size_t longest = 0;
    for (const std::uint64_t index : batch.indices())
        longest = std::max(longest, Words::length(batch.epoch(), index));
    const BatchPart &data = batch.part("data"), &lengths = batch.part("lengths"), &mask = batch.part("mask");
    const auto padded = [&](const BatchPart& part) {
        return part.shape().size() == 2 && part.shape()[0] == static_cast<std::int64_t>(batch.size()) &&
               part.shape()[1] == static_cast<std::int64_t>(longest);
    };
    if (batch.parts().size() != 3 || !padded(data) || !padded(mask) || lengths.shape().size() != 1)
        return "shapes";
    if (batch.data().data() != data.data().data() || batch.data().size() != data.data().size())
        return "data() is not the first part";
    for (std::size_t i = 0; i < batch.size(); ++i) {
        const std::uint64_t index = batch.indices()[i];
        const std::size_t length = Words::length(batch.epoch(), index);
        if (batch.targets()[i] != NumberedSource::target(index) ||
            at<std::int64_t>(lengths, i) != static_cast<std::int64_t>(length))
            return "target or length of sample " + std::to_string(index);
        for (std::size_t place = 0; place < longest; ++place)
            if (at<std::int64_t>(data, i * longest + place) !=
                    (place < length ? Words::word(batch.epoch(), index, place) : -1) ||
                at<bool>(mask, i * longest + place) != (place < length))
                return "sample " + std::to_string(index) + " in epoch " + std::to_string(batch.epoch());
    }
    return {};
}

struct Loaded {
    explicit Loaded(std::size_t n = 44, bool record = false)
        : source{n},
          sampler{n},
          runtime{{.record = record, .on_worker_start = []() noexcept { test::count_this_thread(false); }}, *recorder} {
    }
    Words source;
    SequentialSampler sampler;
    std::unique_ptr<Recorder> recorder = test::small_recorder();
    Runtime runtime;
    PadCollate pad{words, {.value = -1}};

    [[nodiscard]] LoaderOptions options(std::size_t workers, const Collate* collate = nullptr) const {
        return {.batch_size = 4, .num_workers = workers, .seed = seed, .collate = collate ? collate : &pad};
    }
    Loaded(const Loaded&) = delete;
};

/// A flag that one thread waits for and another sets.
class Event {
public:
    void set() noexcept {
        set_ = true;
        set_.notify_all();
    }
    void wait() const noexcept { set_.wait(false); }

private:
    std::atomic<bool> set_{false};
};

void add_count(const FinishedSamples& samples, CollatedBatch& batch) {
    const std::array<std::int64_t, 1> one{1};
    batch.add_values<std::int64_t>("count", ScalarType::int64, one)[0] =
        static_cast<std::int64_t>(samples.samples.size());
}

BOOST_AUTO_TEST_SUITE(collated_loader)

BOOST_AUTO_TEST_CASE(padded_batches_are_right_in_every_order_with_any_number_of_workers) {
    for (const BatchOrder order : {BatchOrder::in_order, BatchOrder::out_of_order, BatchOrder::bounded})
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
                        expected ^= NumberedSource::word(seed, 3, index, i);
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
        for (const BatchRow& row : ledger.batches) {
            BOOST_TEST(row.collate_begin_ns == row.last_done_ns);
            BOOST_TEST(row.collate_begin_ns != no_stamp);
            BOOST_TEST(row.collate_end_ns >= row.collate_begin_ns);
            BOOST_TEST(row.offered_ns >= row.collate_end_ns);
            BOOST_TEST(row.bytes == bytes[row.batch]);
        }
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

BOOST_AUTO_TEST_CASE(what_is_still_held_of_a_batch_is_left_to_its_holder_and_only_that) {
    Loaded loaded;
    DataLoader loader{loaded.runtime, loaded.source, loaded.sampler, loaded.options(0)};
    auto pass = loader.epoch(0);
    auto batch = pass.next_blocking();
    SlotMemory &data = batch->part("data").memory(), &targets = batch->memory();
    const SlotMemory* const mask = &batch->part("mask").memory();
    data.retain();
    targets.retain();
    const std::vector<std::byte> before(batch->data().begin(), batch->data().end());
    const std::uint64_t held = loader.counters().slots_bytes;
    batch.reset();
    BOOST_TEST(loader.counters().slots_replaced == 1u);
    BOOST_TEST(loader.counters().slots_bytes == held - data.bytes() - targets.bytes());
    bool mask_again = false;
    while ((batch = pass.next_blocking())) {
        BOOST_TEST(fault(*batch) == "");
        BOOST_TEST(&batch->part("data").memory() != &data);
        mask_again |= &batch->part("mask").memory() == mask;
    }
    BOOST_TEST(mask_again);
    BOOST_TEST(std::ranges::equal(before, std::span{data.data(), before.size()}));
    BOOST_TEST(targets.targets()[0] == NumberedSource::target(0));
    BOOST_TEST(loader.counters().slots_replaced == 1u);
    data.release();
    targets.release();
}

BOOST_AUTO_TEST_CASE(a_slot_says_what_it_holds_and_can_be_emptied) {
    struct Core final : LoaderCore {
        Core() : LoaderCore{words, 3, 1, true} {}
        ~Core() override = default;
    };
    auto* const core = new Core;
    BOOST_TEST(core->held_bytes(0) == 0u);
    for (int round = 0; round < 2; ++round) {
        Slot& slot = core->slot(0);
        core->furnish(slot);
        core->take_samples(slot);
        BOOST_TEST(core->held_bytes(0) == slot.memory->bytes() + 3 * (sizeof(SampleBuffer) + 8));
        BOOST_TEST(slot.collation->samples[2].capacity() == 0u);
        slot.collation->samples[2].reshape({ScalarType::uint8, 1, {1000}});
        const std::array<std::int64_t, 1> size{10};
        (void)slot.collation->batch.add("a", ScalarType::uint8, size);
        core->trim(0);
        BOOST_TEST(core->held_bytes(0) == 0u);
        BOOST_TEST(slot.memory == nullptr);
        BOOST_TEST(slot.collation->batch.bytes() == 0u);
    }
    core->release();

    Loaded loaded;
    DataLoader loader{loaded.runtime, loaded.source, loaded.sampler, loaded.options(0)};
    auto pass = loader.epoch(0);
    const auto batch = pass.next_blocking();
    std::uint64_t bytes =
        batch->memory().bytes() + 4 * (256 + sizeof(SampleBuffer) + 8);   // four buffers of 16 numbers, and indices
    for (const BatchPart& part : batch->parts())
        bytes += part.memory().bytes();
    BOOST_TEST(loader.counters().slots_bytes == bytes);
}

BOOST_AUTO_TEST_CASE(a_batch_takes_over_the_buffers_that_lay_idle_longest_and_never_those_of_one_in_the_making) {
    struct Core final : LoaderCore {
        Core() : LoaderCore{words, 1, 5, true} { sample_sets_ = 2; }
        ~Core() override = default;
        const SampleBuffer* begin(std::uint32_t i) {
            take_samples(slot(i));
            slot(i).collation->making = true;
            return slot(i).collation->samples.get();
        }
        void end(std::uint32_t i) { slot(i).collation->making = false; }
        [[nodiscard]] std::uint64_t all_samples_bytes() const {
            std::uint64_t sum = 0;
            for (std::uint32_t i = 0; i < 5; ++i)
                sum += samples_bytes(i);
            return sum;
        }
    };
    auto* const core = new Core;
    const SampleBuffer* const first = core->begin(0);
    core->end(0);
    const SampleBuffer* const second = core->begin(1);   // there are to be two
    BOOST_TEST(second != first);
    BOOST_TEST(core->begin(2) == first);
    BOOST_TEST(core->samples_bytes(0) == 0u);
    BOOST_TEST(core->samples_bytes(2) == sizeof(SampleBuffer));
    core->end(2);
    core->end(1);
    BOOST_TEST(core->begin(2) == second);   // not its own, which were taken last
    BOOST_TEST(core->begin(1) == first);
    BOOST_TEST(core->all_samples_bytes() == 2 * sizeof(SampleBuffer));
    const SampleBuffer* const third = core->begin(3);   // hardly ever: both are in the making
    BOOST_TEST(third != first);
    BOOST_TEST(third != second);
    BOOST_TEST(core->all_samples_bytes() == 3 * sizeof(SampleBuffer));
    BOOST_TEST(core->sample_sets() == 3u);
    core->end(3);
    core->free_samples(core->slot(3));
    BOOST_TEST(core->sample_sets() == 2u);
    BOOST_TEST(core->all_samples_bytes() == 2 * sizeof(SampleBuffer));
    core->end(1);
    BOOST_TEST(core->begin(3) == first);
    core->release();
}

BOOST_AUTO_TEST_CASE(where_there_is_no_memory_for_another_set_of_buffers_idle_ones_are_taken_over) {
    if (!test::counts_allocations())
        return;   // nor can they fail
    struct Core final : LoaderCore {
        Core() : LoaderCore{words, 1, 3, true} { sample_sets_ = 2; }
        ~Core() override = default;
    };
    auto* const core = new Core;
    core->take_samples(core->slot(0));
    const SampleBuffer* const first = core->slot(0).collation->samples.get();
    test::fail_allocation_after(0);
    core->take_samples(core->slot(1));
    BOOST_TEST(core->slot(1).collation->samples.get() == first);
    BOOST_TEST(core->slot(0).collation->samples == nullptr);
    BOOST_TEST(core->samples_bytes(0) == 0u);
    BOOST_TEST(core->samples_bytes(1) == sizeof(SampleBuffer));
    core->slot(1).collation->making = true;
    test::fail_allocation_after(0);
    BOOST_CHECK_THROW(core->take_samples(core->slot(2)), std::bad_alloc);   // nothing lies idle
    BOOST_TEST(core->samples_bytes(2) == 0u);
    core->take_samples(core->slot(2));
    BOOST_TEST(core->sample_sets() == 2u);
    core->release();
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
            std::int64_t free_ns = no_stamp;   // when the worker's last sample of it was done
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

BOOST_AUTO_TEST_CASE(a_stop_while_a_batch_is_collated_ends_the_draw) {
    Loaded loaded;
    Event collating, may_end;
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
    Event reached, may_go_on;
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
    Event collating, may_end;
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
    options.prefetch_depth = 8;   // more slots than there are buffers for
    DataLoader loader{loaded.runtime, loaded.source, loaded.sampler, options};
    for (std::size_t round = 0; round < 200; ++round) {
        auto pass = loader.epoch(round);
        for (std::size_t drawn = 0; drawn < round % 6; ++drawn)
            BOOST_TEST(fault(*pass.next_blocking()) == "");
    }
    BOOST_TEST(wrong == 0);
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

BOOST_AUTO_TEST_CASE(a_copy_that_memory_runs_out_for_anywhere_is_made_of_the_next_batch) {
    Loaded loaded;
    std::optional<std::uint64_t> calls;   // after the batch was made
    const FunctionCollate fails_later{"fails later", [&](const FinishedSamples& samples, CollatedBatch& batch) {
                                          loaded.pad.collate(samples, batch);
                                          if (calls)
                                              test::fail_allocation_after(*std::exchange(calls, std::nullopt));
                                      }};
    DataLoader loader{loaded.runtime, loaded.source, loaded.sampler, loaded.options(0, &fails_later)};
    for (auto& batch : blocking(loader))   // has its memory
        BOOST_TEST(fault(batch) == "");
    std::uint64_t failures = 0;
    for (bool failed = true; failed; failures += failed ? 1 : 0) {
        CacheLoader cache{loader, 1};
        auto pass = cache.epoch(0);
        calls = failures;
        std::optional<Batch> batch;
        try {
            batch = pass.next_blocking();
        } catch (const std::bad_alloc&) {
        }
        test::fail_no_allocation();
        failed = !batch.has_value();
        if (failed)
            batch = pass.next_blocking();
        BOOST_TEST(fault(*batch) == "");
    }
    if (test::counts_allocations())
        BOOST_TEST(failures >= 6u);   // each of three arrays, and what knows of them
}

BOOST_AUTO_TEST_CASE(once_the_largest_has_been_seen_collating_allocates_nothing) {
    for (const bool record : {false, true})
        for (const auto& [workers, depth] : {std::pair{0u, 2u}, {1u, 2u}, {2u, 2u}, {2u, 7u}}) {
            Loaded loaded{96, record};
            LoaderOptions options = loaded.options(workers);
            options.prefetch_depth = depth;
            DataLoader loader{loaded.runtime, loaded.source, loaded.sampler, options};
            {   // held all at once, every slot has seen samples of full length
                auto pass = loader.epoch(0);
                std::vector<Batch> held;
                for (std::size_t i = 0; i < 3; ++i)
                    held.push_back(*pass.next_blocking());
                held.clear();
                while (pass.next_blocking()) {
                }
            }
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
