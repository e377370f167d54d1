#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace drawpoint {

/// What a profiler does in one step. DEVICE_STOPPED: its collection ended early; only the profiler itself goes there.
enum class ProfilerAction : std::uint8_t { none, warmup, record, record_and_save, device_stopped };

/// "NONE", "WARMUP", "RECORD", "RECORD_AND_SAVE", "DEVICE_STOPPED". Static storage.
[[nodiscard]] std::string_view name_of(ProfilerAction) noexcept;

/// Cycles of `wait` idle steps, `warmup` steps and `active` recorded ones, the last of which saves.
struct ScheduleOptions {
    std::int64_t wait = 0, warmup = 0, active = 1;
    std::int64_t repeat = 0;            ///< cycles; 0: for ever
    std::int64_t skip_first = 0;        ///< idle steps before the first cycle
    std::int64_t skip_first_wait = 0;   ///< other than 0: the first cycle begins without its `wait`
    bool operator==(const ScheduleOptions&) const = default;
};
static_assert(std::is_trivially_destructible_v<ScheduleOptions>);

/// What to do in the step of this number, from 0. Any function may be one; it must not return DEVICE_STOPPED.
using Schedule = std::function<ProfilerAction(std::int64_t step)>;

/// The schedule of torch.profiler. O(1) a call. Throws std::invalid_argument naming the values when one is negative or
/// `active` is 0; the schedule itself does for a negative step.
[[nodiscard]] Schedule schedule(const ScheduleOptions&);

/// What is odd about a valid schedule; empty: nothing.
[[nodiscard]] std::vector<std::string> schedule_warnings(const ScheduleOptions&);

/// Reads `wait=1,warmup=1,active=3,repeat=2,skip-first=0,skip-first-wait=0`: any order, each part at most once, `active`
/// must be there. Throws std::invalid_argument naming the part that is wrong, or as `schedule` does.
[[nodiscard]] ScheduleOptions parse_schedule(std::string_view text);

/// Lightning's schedule where none is given.
inline constexpr ScheduleOptions default_schedule{.wait = 1, .warmup = 1, .active = 3};

struct CheckedSchedule {
    Schedule schedule;   ///< empty: records every step
    std::vector<std::string> warnings;
};

/// The schedule for a run of so many steps: Lightning's default is given up, with a warning, where it could not finish
/// (fewer than 5 steps). `total_steps`: unknown when absent. Throws as `schedule`.
[[nodiscard]] CheckedSchedule schedule_for(const ScheduleOptions&, std::optional<std::int64_t> total_steps);

/// What a `ScheduledProfiler` drives. Empty functions are left out.
struct ProfilerCalls {
    std::function<void()> prepare;       ///< get ready to record: before `start`, one warm-up earlier if there is one
    std::function<void()> start;         ///< record from here on
    std::function<void()> stop;          ///< the recording of this cycle ends here
    std::function<void()> trace_ready;   ///< the cycle's recording may be read
    std::function<void(std::int64_t step)> begin_step;   ///< `ProfilerStep#step` begins …
    std::function<void(std::int64_t step)> end_step;     ///< … and ends
    std::function<void(std::string_view)> warn;
};

/// torch.profiler's state machine: turns the actions of a schedule into calls, at the transition from one step to the next.
/// With a schedule each step is a range; without one everything from `start` to `stop` is recorded, without ranges. A
/// `prepare`, `start` or `stop` that throws leaves the transition; a `trace_ready` that throws is let finish it first. One
/// thread at a time.
class ScheduledProfiler {
public:
    /// Throws std::invalid_argument when the schedule wants DEVICE_STOPPED in step 0.
    explicit ScheduledProfiler(ProfilerCalls, Schedule = {});

    /// Begins in the current step. Throws std::logic_error when it runs already.
    void start();
    /// Goes on to the next step. Throws std::logic_error when it does not run, and std::invalid_argument when the schedule
    /// wants DEVICE_STOPPED: it then stays in its step, whose range has ended, as PyTorch's does.
    void step();
    /// Goes on to the next step while it does not run: `start` then begins there. Throws std::logic_error when it runs, else as
    /// `step`.
    void skip_step();
    /// Ends the recording; what was recorded is handed over. Idempotent. Throws std::logic_error before the first `start`.
    void stop();
    /// Says that collecting ended early (its buffer is full): at the next step a cycle in warm-up or recording is ended and
    /// handed over, and nothing is recorded before the next cycle begins.
    void collection_stopped() noexcept { collection_stopped_ = true; }

    [[nodiscard]] bool running() const noexcept { return running_; }
    [[nodiscard]] std::int64_t step_num() const noexcept { return step_num_; }
    [[nodiscard]] ProfilerAction current_action() const noexcept { return current_; }

private:
    [[nodiscard]] ProfilerAction scheduled(std::int64_t step) const;
    void transit(ProfilerAction from, std::optional<ProfilerAction> to);
    void begin_range();
    void end_range();

    ProfilerCalls calls_;
    Schedule schedule_;
    std::int64_t step_num_ = 0;
    ProfilerAction current_{}, scheduled_{};   // `scheduled_`: as the schedule said, whatever became of it
    bool running_ = false, started_ = false, in_range_ = false, collection_stopped_ = false;
};

/// Lightning's wrapper around a schedule: each kind of step (training_step, validation_step, test_step, predict_step)
/// counts for itself, and none is recorded again once its cycle has ended. Hand it to a profiler as `std::ref(wrapper)`.
class ScheduleWrapper {
public:
    explicit ScheduleWrapper(Schedule);

    /// `start_action`: what the profiler was started in. In a fit ("…on_fit_start") validation steps count only from the first
    /// training step on, so that the sanity check does not.
    void setup(std::string_view start_action);
    /// Says which step ends now, by its action's name ("[Strategy]SingleDeviceStrategy.training_step").
    void pre_step(std::string_view action);
    /// The action of the next step of the kind said last; the number is not looked at.
    [[nodiscard]] ProfilerAction operator()(std::int64_t step);

    [[nodiscard]] std::int64_t num_step() const noexcept;
    [[nodiscard]] bool has_finished() const noexcept;
    /// Forgets all counts. What the summary does.
    void reset() noexcept;

private:
    struct Counter {
        std::int64_t steps = 0;
        bool reached_end = false;
    };
    static constexpr std::size_t kinds = 4;

    Schedule schedule_;
    Counter counters_[kinds]{};
    std::optional<std::size_t> kind_;   // empty: none said, or none of the four
    std::optional<ProfilerAction> previous_;
    bool in_fit_ = false;
};

}   // namespace drawpoint
