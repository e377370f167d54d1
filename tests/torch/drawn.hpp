#pragma once

#include <cstddef>
#include <optional>

#include <drawpoint/instrumentation/recorder/recorder.hpp>
#include <drawpoint/pipeline/loader/data_loader.hpp>
#include <drawpoint/pipeline/stages/generated_rows.hpp>

namespace drawpoint::test {

/// A loader that loads on the calling thread, and draws from it in order.
class Drawn {
public:
    explicit Drawn(const SampleSource& source, std::size_t batch_size, std::size_t depth = 1,
                   const Collate* collate = nullptr)
        : runtime_{{.max_threads = 1, .workers = WorkerThreads::threads}, recorder_},
          sampler_{source.size()},
          loader_{runtime_,
                  source,
                  sampler_,
                  {.batch_size = batch_size, .num_workers = 0, .prefetch_depth = depth, .collate = collate}} {}

    /// The next batch of the present epoch, or else of the next one.
    Batch next() {
        if (pass_)
            if (auto batch = pass_->next_blocking())
                return std::move(*batch);
        pass_.reset();
        pass_.emplace(loader_.epoch(epoch_++));
        return std::move(*pass_->next_blocking());
    }

    [[nodiscard]] DataLoader& loader() noexcept { return loader_; }

private:
    Recorder recorder_;
    Runtime runtime_;
    SequentialSampler sampler_;
    DataLoader loader_;
    std::optional<DataLoader::Pass> pass_;
    std::size_t epoch_ = 0;
};

/// `size` samples of two floats: the index and its square. The target is the index.
inline FunctionRows numbered(std::size_t size) {
    return from_function(size, {ScalarType::float32, 1, {2}}, "number", [](SampleView& sample) {
        const auto index = static_cast<float>(sample.index);
        sample.floats()[0] = index;
        sample.floats()[1] = index * index;
        *sample.target = static_cast<std::int64_t>(sample.index);
    });
}

}   // namespace drawpoint::test
