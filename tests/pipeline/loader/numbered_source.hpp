#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <drawpoint/pipeline/loader/core/batch_slots.hpp>
#include <drawpoint/pipeline/loader/core/sample_source.hpp>

namespace drawpoint::test {

/// Samples of `words` 64-bit numbers that identify the sample and its epoch.
class NumberedSource : public SampleSource {
public:
    explicit NumberedSource(std::size_t n, std::size_t words = 4) noexcept : n_{n}, words_{words} {}

    std::function<bool(std::uint64_t index)> fails = [](std::uint64_t) { return false; };
    std::function<void(std::uint64_t index)> before_fill = [](std::uint64_t) {};
    mutable std::atomic<std::uint64_t> fills{0}, scratches{0};
    bool runs = false;   // fills runs: one call per claim
    mutable std::atomic<std::uint64_t> run_calls{0};
    std::atomic<bool> closed{false};   // set when fill() must not run any more
    mutable std::atomic<bool> filled_closed{false};

    static std::int64_t word(std::uint64_t seed, std::uint64_t epoch, std::uint64_t index, std::size_t at) noexcept {
        return static_cast<std::int64_t>((seed * 1000003 + epoch) * 0x9E3779B97F4A7C15 + index * 1000 + at);
    }
    static std::int64_t target(std::uint64_t index) noexcept { return static_cast<std::int64_t>(index * 3 + 1); }

    /// Describes what is wrong with the batch; empty if nothing is.
    [[nodiscard]] std::string fault(const Batch& batch, std::uint64_t seed) const {
        for (std::size_t i = 0; i < batch.size(); ++i) {
            const std::uint64_t index = batch.indices()[i];
            if (batch.targets()[i] != target(index))
                return "target of sample " + std::to_string(index);
            std::vector<std::int64_t> words(words_);
            std::memcpy(words.data(), batch.data().data() + i * words_ * 8, words_ * 8);
            for (std::size_t at = 0; at < words_; ++at)
                if (words[at] != word(seed, batch.epoch(), index, at))
                    return "data of sample " + std::to_string(index) + " in epoch " + std::to_string(batch.epoch());
        }
        return {};
    }

    std::size_t size() const noexcept override { return n_; }
    SampleLayout layout() const noexcept override {
        return {.type = ScalarType::int64, .rank = 1, .shape = {static_cast<std::int64_t>(words_)}};
    }
    std::vector<std::string> stages() const override {
        return runs ? std::vector<std::string>{"rows"} : std::vector<std::string>{"count", "write"};
    }
    std::string path(std::uint64_t index) const override { return "numbers/" + std::to_string(index); }
    std::unique_ptr<WorkerScratch> make_scratch() const override {
        scratches.fetch_add(1, std::memory_order_relaxed);
        return std::make_unique<WorkerScratch>();
    }
    void fill(SampleTask& task, WorkerScratch&) const override {
        fills.fetch_add(1, std::memory_order_relaxed);
        if (closed.load())
            filled_closed = true;
        std::int64_t now = task.clock ? task.clock->now_ns() : 0;
        task.stages[0] = {now, 0};
        task.stage_count = 1;
        before_fill(task.index);
        if (fails(task.index))
            throw std::runtime_error{"no sample " + std::to_string(task.index)};
        if (task.clock) {
            task.stages[0].ns = task.clock->now_ns() - now;
            now += task.stages[0].ns;
        }
        task.stages[1] = {now, 0};
        task.stage_count = 2;
        write(task.seed, task.epoch, task.index, task.data.data(), *task.target);
        task.bytes_read = words_ * 8;
        if (task.clock)
            task.stages[1].ns = task.clock->now_ns() - now;
    }
    bool fills_runs() const noexcept override { return runs; }
    void fill_run(SampleRun& run, WorkerScratch&) const override {
        run_calls.fetch_add(1, std::memory_order_relaxed);
        if (closed.load())
            filled_closed = true;
        for (std::size_t at = 0; at < run.indices.size(); ++at) {
            const std::uint64_t index = run.indices[at];
            before_fill(index);
            if (fails(index))
                throw std::runtime_error{"no sample " + std::to_string(index)};
            write(run.seed, run.epoch, index, run.data + at * words_ * 8, run.targets[at]);
        }
        run.bytes_read = run.indices.size() * words_ * 8;
    }

private:
    void write(std::uint64_t seed, std::uint64_t epoch, std::uint64_t index, std::byte* data,
               std::int64_t& its_target) const noexcept {
        for (std::size_t at = 0; at < words_; ++at) {
            const std::int64_t value = word(seed, epoch, index, at);
            std::memcpy(data + at * 8, &value, 8);
        }
        its_target = target(index);
    }

    std::size_t n_, words_;
};

}   // namespace drawpoint::test
