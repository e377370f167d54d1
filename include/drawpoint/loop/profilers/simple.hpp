#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <drawpoint/instrumentation/clock.hpp>
#include <drawpoint/instrumentation/recorder/recorder.hpp>
#include <drawpoint/instrumentation/report/lightning.hpp>
#include <drawpoint/loop/profilers/profiler.hpp>

namespace drawpoint {

/// An exact sum of doubles, rounded only when read, like Python's math.fsum. Bounded memory, any number of addends.
class ExactSum {
public:
    void add(double value);
    /// The double nearest to the sum of all addends, or the infinity or NaN among them.
    [[nodiscard]] double value() const noexcept;

private:
    std::vector<double> partials_;   // do not overlap, ascending; at most about forty
    double special_ = 0;             // sum of the addends that are not finite
    bool is_special_ = false;
};

/// Records each action's durations and prints their means and totals. Counts and totals are exact for any number of
/// calls; single durations are kept for the first `kept_durations` calls of an action, so memory is bounded by the
/// number of actions. A start and its stop cost about 100 ns. One thread at a time.
class SimpleProfiler final : public Profiler {
public:
    static constexpr std::size_t kept_durations = 1u << 16;

    explicit SimpleProfiler(ProfilerFiles files = {}, LightningOptions options = {},
                            const AnyClock& clock = AnyClock{});
    /// Also records every action as a region of its name, on the recorder's clock; the recorder must outlive it.
    /// Regions nest: where two actions overlap without nesting, the inner one is recorded as two regions.
    SimpleProfiler(Recorder& recorder, ProfilerFiles files = {}, LightningOptions options = {});

    /// Throws std::invalid_argument "Attempted to start ACTION which has already started."
    void start(std::string_view action) override;
    /// Throws std::invalid_argument "Attempting to stop recording an action (ACTION) which was never started."
    void stop(std::string_view action) override;
    /// Time since the profiler was made.
    [[nodiscard]] std::string summary() override;

    /// The numbers in the summary.
    [[nodiscard]] LightningProfile profile_values() const;
    /// The first durations of an action, in seconds; empty if it never ended.
    [[nodiscard]] std::span<const double> durations(std::string_view action) const noexcept;

private:
    struct Hash : std::hash<std::string_view> {
        using is_transparent = void;
    };
    struct Action {
        std::string name;
        std::uint64_t calls = 0;
        ExactSum total;
        std::vector<double> durations;
        std::uint32_t region_name = nothing;
    };
    struct Open {
        std::size_t action;
        std::int64_t begin_ns;
        std::uint32_t ticket;
    };
    std::size_t index_of(std::string_view action);

    AnyClock clock_;
    Recorder* recorder_ = nullptr;
    LightningOptions options_;
    std::int64_t made_ns_;
    std::vector<Action> actions_;
    std::vector<std::size_t> ended_;   // in the order of their first end
    std::vector<Open> open_;           // in the order of their start
    std::unordered_map<std::string, std::size_t, Hash, std::equal_to<>> index_;
};

}   // namespace drawpoint
