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

/// A sum of doubles without rounding until it is read, as Python's math.fsum. Bounded memory, any number of addends.
class ExactSum {
public:
    void add(double value);
    /// The double nearest to the sum of all finite addends; an infinity or NaN among them is the sum.
    [[nodiscard]] double value() const noexcept;

private:
    std::vector<double> partials_;   // do not overlap, ascending; at most some forty
    double special_ = 0;             // sum of what is not finite
    bool is_special_ = false;
};

/// Records each action's durations and prints their means and totals. Calls and totals are exact for any number of
/// calls; single durations are kept of the first `kept_durations` calls of an action, so memory is bounded by the
/// number of actions. About 100 ns for a start and its stop. One thread at a time.
class SimpleProfiler final : public Profiler {
public:
    static constexpr std::size_t kept_durations = 1u << 16;

    explicit SimpleProfiler(ProfilerFiles files = {}, LightningOptions options = {},
                            const AnyClock& clock = AnyClock{});
    /// Also records every action as a region of its name, on the recorder's clock; the recorder outlives it. Regions
    /// nest: of actions that overlap without nesting, the inner one is two regions.
    SimpleProfiler(Recorder& recorder, ProfilerFiles files = {}, LightningOptions options = {});

    /// Throws std::invalid_argument "Attempted to start ACTION which has already started."
    void start(std::string_view action) override;
    /// Throws std::invalid_argument "Attempting to stop recording an action (ACTION) which was never started."
    void stop(std::string_view action) override;
    /// Since it was made.
    [[nodiscard]] std::string summary() override;

    /// What the summary prints.
    [[nodiscard]] LightningProfile profile_values() const;
    /// The first durations of an action, in seconds; empty: it never ended.
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
