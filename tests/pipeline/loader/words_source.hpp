#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <drawpoint/pipeline/loader/blocking.hpp>
#include <drawpoint/pipeline/loader/core/collate.hpp>
#include <drawpoint/pipeline/loader/data_loader.hpp>

#include "pipeline/loader/numbered_source.hpp"
#include "support/coro_test.hpp"
#include "support/count_allocations.hpp"

namespace drawpoint::test {

inline constexpr std::uint64_t words_seed = 11;
inline constexpr SampleLayout words{ScalarType::int64, 1, {0}};

/// Samples of 0 … 16 numbers that identify the sample and its epoch; in epoch 0 all have 16.
class Words final : public SampleSource {
public:
    explicit Words(std::size_t n) : n_{n} {}
    std::function<void(std::uint64_t index)> before_fill = [](std::uint64_t) {};
    std::optional<std::uint64_t> shapeless;   // a sample that sets no shape

    static std::size_t length(std::uint64_t epoch, std::uint64_t index) {
        return epoch == 0 ? 16 : (index * 7 + epoch * 5) % 17;
    }
    static std::int64_t word(std::uint64_t epoch, std::uint64_t index, std::size_t at) {
        return NumberedSource::word(words_seed, epoch, index, at);
    }
    std::size_t size() const noexcept override { return n_; }
    SampleLayout layout() const noexcept override { return words; }
    std::vector<std::string> stages() const override { return {"write"}; }
    std::string path(std::uint64_t index) const override { return "words/" + std::to_string(index); }
    std::unique_ptr<WorkerScratch> make_scratch() const override { return std::make_unique<WorkerScratch>(); }
    void fill(SampleTask& task, WorkerScratch&) const override {
        count_this_thread(true);
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

/// Describes what is wrong with a padded batch of `Words`; empty if nothing is.
inline std::string fault(const Batch& batch) {
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

/// A loader of `Words` and what it needs; batches of four, padded with -1.
struct Loaded {
    explicit Loaded(std::size_t n = 44, bool record = false)
        : source{n},
          sampler{n},
          runtime{{.record = record, .on_worker_start = []() noexcept { count_this_thread(false); }}, *recorder} {}
    Words source;
    SequentialSampler sampler;
    std::unique_ptr<Recorder> recorder = small_recorder();
    Runtime runtime;
    PadCollate pad{words, {.value = -1}};

    [[nodiscard]] LoaderOptions options(std::size_t workers, const Collate* collate = nullptr) const {
        return {.batch_size = 4, .num_workers = workers, .seed = words_seed, .collate = collate ? collate : &pad};
    }
    Loaded(const Loaded&) = delete;
};

/// A flag that one thread sets and another waits for.
class Flag {
public:
    void set() noexcept {
        set_ = true;
        set_.notify_all();
    }
    void wait() const noexcept { set_.wait(false); }

private:
    std::atomic<bool> set_{false};
};

inline void add_count(const FinishedSamples& samples, CollatedBatch& batch) {
    const std::array<std::int64_t, 1> one{1};
    batch.add_values<std::int64_t>("count", ScalarType::int64, one)[0] =
        static_cast<std::int64_t>(samples.samples.size());
}

}   // namespace drawpoint::test
