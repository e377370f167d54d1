#include "bench/suite/loader_task.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <drawpoint/instrumentation/ledger/ledger.hpp>
#include <drawpoint/instrumentation/recorder/recorder.hpp>
#include <drawpoint/instrumentation/statistics.hpp>
#include <drawpoint/pipeline/loader/core/detail/batch_digest.hpp>
#include <drawpoint/pipeline/loader/data_loader.hpp>
#include <drawpoint/pipeline/runtime/runtime.hpp>

namespace drawpoint::bench {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t most_items = 16'384;   // compared one by one, all over the data set: enough for any median
constexpr std::size_t measured_epoch = 1;    // of every run, so that a run's work does not depend on how many there are

/// The sum of the samples' digests: the same in whatever order and batches they come.
std::uint64_t digest_of(const Batch& batch) {
    const std::size_t bytes = batch.data().size() / batch.size();
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < batch.size(); ++i) {
        BatchDigest digest;
        digest.add(std::as_bytes(batch.indices().subspan(i, 1)));
        digest.add(std::as_bytes(batch.targets().subspan(i, 1)));
        digest.add(batch.data().subspan(i * bytes, bytes));
        sum += digest.value();
    }
    return sum;
}

class LoaderTask final : public Task {
public:
    LoaderTask(const SampleSource& source, const Sampler& sampler, const LoaderOptions& options, LoaderRow row)
        : source_{source},
          stages_{source.fills_runs() ? std::vector<std::string>{} : source.stages()},
          has_digest_{row.checks_output && options.collate == nullptr},
          step_{std::move(row.step)},
          loader_{runtime_, source, sampler, options} {}

    std::uint64_t items() const noexcept override { return items_; }

    std::optional<std::uint64_t> digest() override {
        if (!has_digest_)
            return std::nullopt;
        std::uint64_t sum = 0;
        draw_all(0, [&](Batch& batch) { sum += digest_of(batch); });
        return sum;
    }

    void run(std::size_t number) override {
        const auto begin = Clock::now();
        Clock::time_point asked = begin;
        draw_all(number == 0 ? 0 : measured_epoch, [&](Batch& batch) {
            const auto drawn = Clock::now();
            const std::chrono::duration<double> wait = drawn - asked;
            if (number != 0)
                (asked == begin ? first_batches_ : draws_).push_back(wait.count());
            if (step_)
                step_(batch);
            batch.reset();   // before the next draw, as a loop does
            asked = Clock::now();
        });
    }

    std::vector<Metric> metrics() const override {
        using enum Metric::Unit;
        std::vector<Metric> all{{"first batch", seconds}, {"draw p50", seconds}, {"draw p99", seconds}};
        for (std::size_t i = 0; i < stages_.size(); ++i) {   // several may have the same name
            const auto before =
                std::count(stages_.begin(), stages_.begin() + static_cast<std::ptrdiff_t>(i), stages_[i]);
            all.push_back({.name = before == 0 ? stages_[i] : fmt::format("{} ({})", stages_[i], before + 1),
                           .unit = seconds,
                           .compared = true,
                           .by_item = true});
        }
        return all;
    }

    Turn results() override {
        constexpr std::size_t others = 3;   // metrics before the stages
        Turn turn{.values = {statistics::quantile(first_batches_, 0.5), statistics::quantile(draws_, 0.5),
                             statistics::quantile(draws_, 0.99)}};
        turn.values.resize(others + stages_.size(), std::numeric_limits<double>::quiet_NaN());
        turn.by_item.resize(others + stages_.size());
        const Ledger ledger = recorder_.ledger();
        const std::size_t items_every = std::max<std::size_t>((source_.size() + most_items - 1) / most_items, 1);
        for (std::size_t stage = 0; stage < stages_.size(); ++stage) {
            std::vector<double> sums((source_.size() + items_every - 1) / items_every), counts(sums.size());
            double sum = 0, count = 0;
            for (const SampleRow& row : ledger.samples) {
                const auto stamps = ledger.stages_of(row);
                if (row.epoch != measured_epoch || row.status != SampleStatus::complete || stage >= stamps.size())
                    continue;
                const double seconds = static_cast<double>(stamps[stage].ns) * 1e-9;
                sum += seconds;
                ++count;
                if (const std::size_t item = row.index / items_every;
                    row.index % items_every == 0 && item < sums.size()) {
                    sums[item] += seconds;
                    ++counts[item];
                }
            }
            if (count != 0)
                turn.values[others + stage] = sum / count;
            for (std::size_t item = 0; item < sums.size(); ++item)   // a stage that a cache replaced took no time
                turn.by_item[others + stage].push_back(sums[item] > 0 ? static_cast<float>(sums[item] / counts[item])
                                                                      : std::numeric_limits<float>::quiet_NaN());
        }
        return turn;
    }

private:
    template <class F>
    void draw_all(std::size_t epoch, F&& see) {
        auto pass = loader_.epoch(epoch);
        items_ = 0;
        while (std::optional<Batch> batch = pass.next_blocking()) {
            items_ += batch->size();
            see(*batch);
        }
    }

    const SampleSource& source_;
    std::vector<std::string> stages_;   // those that are measured sample by sample
    bool has_digest_;
    std::function<void(Batch&)> step_;
    Recorder recorder_;
    Runtime runtime_{{}, recorder_};
    DataLoader loader_;
    std::vector<double> first_batches_, draws_;
    std::uint64_t items_ = 0;   // of a pass
};

}   // namespace

std::unique_ptr<Task> make_loader_task(const SampleSource& source, const Sampler& sampler, const LoaderOptions& options,
                                       const LoaderRow& row) {
    return std::make_unique<LoaderTask>(source, sampler, options, row);
}

}   // namespace drawpoint::bench
