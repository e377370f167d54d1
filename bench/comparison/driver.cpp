#include "driver.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <memory>
#include <random>
#include <span>
#include <utility>

#include <fmt/format.h>

#include <drawpoint/instrumentation/host/detail/signals.hpp>

#include "bench/machine.hpp"

namespace drawpoint::bench {
namespace {

constexpr std::int64_t least_ns = 300'000'000;   // per turn, so that clocks and start-up do not matter
constexpr std::size_t most_passes = 400;

/// A loader as a contender. What it measures besides, and its check, are in its row.
class LoaderContender final : public Contender {
public:
    /// `expected`: the batches of the first loader, which the others are checked against.
    LoaderContender(Row& row, const ComparisonOptions& options, std::vector<BatchCopy>& expected)
        : row_{row},
          options_{options},
          expected_{expected},
          name_{fmt::format("{} {}", row.entry.workload.contender, row.entry.workload.variant)} {}

    const std::string& name() const noexcept override { return name_; }
    const std::string& description() const noexcept override { return row_.settings; }
    std::span<const Metric> metrics() const noexcept override {
        using enum Metric::Unit;
        static const std::array all{Metric{"time per item", seconds, true}, Metric{"CPU time per item", seconds, true}};
        return all;
    }

    void prepare() override {
        fmt::print(stderr, "starting {}\n", name_);
        attempt([&] {
            const Workload& workload = row_.entry.workload;
            child_ = std::make_unique<Child>(command_of(row_.entry), workload);
            row_.settings = child_->settings();
            if (options_.checks_outputs) {
                std::vector<BatchCopy> batches = child_->batches(0, batches_to_check(workload));
                if (expected_.empty())
                    expected_ = batches;
                row_.check = check_batches(expected_, batches, row_.entry);
            }
            choose_passes();
        });
    }

    Turn take_turn(std::size_t runs) override {
        Passes passes;
        attempt([&] {
            const std::size_t epoch = 2 + row_.rounds.size() * passes_;
            const std::int64_t fresh =
                options_.asks_first_batch && !row_.entry.is_bound ? child_->first_batch_ns(epoch) : 0;
            passes = child_->passes(epoch, runs * passes_);
            passes.fresh_first_batch_ns = fresh;
        });
        row_.rounds.push_back(passes);
        const auto an_item = [&](std::int64_t ns) {
            return static_cast<double>(std::max<std::int64_t>(ns, 1)) * 1e-9 / static_cast<double>(passes.items);
        };
        return {.values = {an_item(passes.wall_ns), an_item(passes.cpu_ns)}};
    }

    double running_cpu_seconds() const override { return child_ ? child_->cpu_seconds() : 0; }
    void cancel() noexcept override { cancelled_ = true; }

private:
    /// A loader that fails takes no further part.
    template <class F>
    void attempt(F&& action) {
        try {
            if (!cancelled_)
                action();
            if (cancelled_)
                throw Cancelled{};
        } catch (const NotRun& reason) {
            leave_out(reason.what());
        } catch (const nlohmann::json::exception& error) {
            leave_out(fmt::format("answered what was not asked: {}", error.what()));
        }
    }

    [[noreturn]] void leave_out(const std::string& reason) {
        row_.not_run = reason;
        row_.rounds.clear();
        child_.reset();
        fmt::print(stderr, "{}: not run: {}\n", name_, reason);
        throw NotRun{fmt::format("{}: {}", name_, reason)};
    }

    /// Chooses how many passes a turn has, so that it takes long enough. Passes over pictures are long enough, and a
    /// fixed number gives everybody the same crops in each round.
    void choose_passes() {
        const Passes one = child_->passes(1, 1);   // also warms up
        const double wanted = static_cast<double>(least_ns) / static_cast<double>(one.wall_ns);
        passes_ = row_.entry.workload.reads_photos()
                      ? options_.passes
                      : std::clamp(static_cast<std::size_t>(std::ceil(wanted)), std::size_t{1}, most_passes);
    }

    Row& row_;
    const ComparisonOptions& options_;
    std::vector<BatchCopy>& expected_;
    std::string name_;
    std::unique_ptr<Child> child_;
    std::size_t passes_ = 1;
    std::atomic<bool> cancelled_{false};
};

}   // namespace

LoaderComparison run_comparison(const std::vector<Entry>& entries, const ComparisonOptions& options) {
    LoaderComparison result;
    for (const Entry& entry : entries)
        result.rows.push_back({.entry = entry});
    std::vector<BatchCopy> expected;
    std::vector<std::unique_ptr<Contender>> contenders;
    for (Row& row : result.rows)
        contenders.push_back(std::make_unique<LoaderContender>(row, options, expected));
    Experiment experiment{std::move(contenders), {.seed = std::random_device{}(), .leaves_out = true}};
    const Signals signals{[&experiment](int) { experiment.cancel(); }};
    result.load_before = load_average();
    try {
        experiment.prepare();
        for (std::size_t done = 0; done < options.rounds;) {
            experiment.run_round();
            fmt::print(stderr, "round {} of {}\n", ++done, options.rounds);
        }
    } catch (const Cancelled&) {
        result.interrupted = true;
        for (Row& row : result.rows)   // of a round that was not ended
            if (row.rounds.size() > experiment.measurements().rounds.size())
                row.rounds.pop_back();
    }
    result.load_after = load_average();
    result.measured = experiment.measurements();
    return result;
}

}   // namespace drawpoint::bench
