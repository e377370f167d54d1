#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include <drawpoint/pipeline/loader/core/sample_source.hpp>

namespace drawpoint::test {

struct SampleKey {
    std::uint64_t index = 0, seed = 0, epoch = 0;
};

/// Makes one sample as a worker would.
class MadeSample {
public:
    using Key = SampleKey;

    explicit MadeSample(const SampleSource& source)
        : source_{&source}, scratch_{source.make_scratch()}, data(source.layout().bytes()) {}

    /// Makes the sample; the outcome is in `task`, even after an exception.
    void fill(Key key = {}, const AnyClock* clock = nullptr, std::int64_t cpu_ns = no_stamp) {
        task = SampleTask{};
        task.index = key.index;
        task.seed = key.seed;
        task.epoch = key.epoch;
        task.data = data;
        task.target = &target;
        task.clock = clock;
        task.cpu_ns = cpu_ns;
        source_->fill(task, *scratch_);
    }

    [[nodiscard]] std::vector<float> floats() const {
        std::vector<float> values(data.size() / sizeof(float));
        std::memcpy(values.data(), data.data(), data.size());
        return values;
    }

    /// The duration of each stage.
    [[nodiscard]] std::vector<std::int64_t> times() const {
        std::vector<std::int64_t> ns;
        for (const StageRow& stage : stages())
            ns.push_back(stage.ns);
        return ns;
    }

    /// Whether each stage begins where the one before ends.
    [[nodiscard]] bool tiled() const {
        for (std::size_t i = 1; i < task.stage_count; ++i)
            if (task.stages[i].begin_ns != task.stages[i - 1].begin_ns + task.stages[i - 1].ns)
                return false;
        return task.stage_count > 0;
    }

    [[nodiscard]] std::span<const StageRow> stages() const { return std::span{task.stages}.first(task.stage_count); }

private:
    const SampleSource* source_;
    std::unique_ptr<WorkerScratch> scratch_;

public:
    std::vector<std::byte> data;
    std::int64_t target = -1;
    SampleTask task;
};

}   // namespace drawpoint::test
