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

/// What a profiler does in one step. `device_stopped`: collecting ended early; only the profiler itself sets this.
enum class ProfilerAction : std::uint8_t { none, warmup, record, record_and_save, device_stopped };

/// "NONE", "WARMUP", "RECORD", "RECORD_AND_SAVE", "DEVICE_STOPPED". Static storage.
[[nodiscard]] std::string_view name_of(ProfilerAction) noexcept;

/// Cycles of `wait` idle steps, `warmup` steps and `active` recorded ones, the last of which saves.
struct ScheduleOptions {
    std::int64_t wait = 0, warmup = 0, active = 1;
    std::int64_t repeat = 0;            ///< number of cycles; 0: unlimited
    std::int64_t skip_first = 0;        ///< idle steps before the first cycle
    std::int64_t skip_first_wait = 0;   ///< other than 0: the first cycle skips its `wait`
    bool operator==(const ScheduleOptions&) const = default;
};
static_assert(std::is_trivially_destructible_v<ScheduleOptions>);

/// What to do in step `step`, counted from 0. Any function may be one; it must not return `device_stopped`.
using Schedule = std::function<ProfilerAction(std::int64_t step)>;

/// The schedule of torch.profiler. O(1) per call. Throws std::invalid_argument naming the values if one is negative or
/// above 2^40, or if `active` is 0; the schedule itself throws it for a negative step.
[[nodiscard]] Schedule schedule(const ScheduleOptions&);

/// Warnings about a schedule that is valid but unusual; empty: none.
[[nodiscard]] std::vector<std::string> schedule_warnings(const ScheduleOptions&);

/// Parses `wait=1,warmup=1,active=3,repeat=2,skip-first=0,skip-first-wait=0`: in any order, each part at most once;
/// `active` is required. Throws std::invalid_argument naming the part that is wrong, or as `schedule` does.
[[nodiscard]] ScheduleOptions parse_schedule(std::string_view text);

/// Lightning's default schedule.
inline constexpr ScheduleOptions default_schedule{.wait = 1, .warmup = 1, .active = 3};

struct CheckedSchedule {
    Schedule schedule;   ///< empty: records every step
    std::vector<std::string> warnings;
};

/// The schedule for a run of `total_steps` steps, if known. If that is too few for Lightning's default schedule (fewer
/// than 5), the default is replaced by recording every step, with a warning. Throws as `schedule` does.
[[nodiscard]] CheckedSchedule schedule_for(const ScheduleOptions&, std::optional<std::int64_t> total_steps);

/// What a `ScheduledProfiler` calls. Empty functions are skipped.
struct ProfilerCalls {
    std::function<void()> prepare;       ///< get ready to record: at the warm-up, else right before `start`
    std::function<void()> start;         ///< recording begins
    std::function<void()> stop;          ///< recording ends
    std::function<void()> trace_ready;   ///< the cycle's recording can be read
    std::function<void(std::int64_t step)> begin_step;   ///< `ProfilerStep#step` begins …
    std::function<void(std::int64_t step)> end_step;     ///< … and ends
    std::function<void(std::string_view)> warn;          ///< a warning about the schedule
};

/// torch.profiler's state machine: where one step ends and the next begins, it makes the calls that the schedule's
/// actions for the two require.
/// With a schedule, each step is a range; without one, everything from `start` to `stop` is recorded, without ranges.
/// An exception from `prepare`, `start` or `stop` ends the transition; one from `trace_ready` is thrown after it.
/// One thread at a time.
class ScheduledProfiler {
public:
    /// Throws std::invalid_argument if the schedule returns `device_stopped` for step 0.
    explicit ScheduledProfiler(ProfilerCalls, Schedule = {});

    /// Begins in the current step. Throws std::logic_error if it is running.
    void start();
    /// Goes on to the next step. Throws std::logic_error if it is not running, and std::invalid_argument if the
    /// schedule returns `device_stopped`: it then stays in its step, whose range has ended, as PyTorch's profiler does.
    void step();
    /// Goes on to the next step while not running, so that `start` begins there. Throws std::logic_error if it is
    /// running, else as `step`.
    void skip_step();
    /// Ends the recording and hands it over. Idempotent. Throws std::logic_error before the first `start`.
    void stop();
    /// Says that collecting ended early (its buffer is full). At the next step, a cycle in warm-up or recording is
    /// ended and handed over, and nothing is recorded before the next cycle begins.
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
    ProfilerAction current_{}, scheduled_{};   // `scheduled_`: what the schedule returned, even if `current_` differs
    bool running_ = false, started_ = false, in_range_ = false, collection_stopped_ = false;
};

/// Lightning's wrapper around a schedule: each kind of step (training_step, validation_step, test_step, predict_step)
/// is counted by itself, and is not recorded again once its cycle has ended. Pass it to a profiler as
/// `std::ref(wrapper)`.
class ScheduleWrapper {
public:
    explicit ScheduleWrapper(Schedule);

    /// `start_action`: the action in which the profiler was started. In a fit ("…on_fit_start"), validation steps
    /// count only from the first training step on, so that the sanity check does not count.
    void setup(std::string_view start_action);
    /// Says which step ends now, by the name of its action ("[Strategy]SingleDeviceStrategy.training_step").
    void pre_step(std::string_view action);
    /// The action of the next step of the kind said last; ignores `step`.
    [[nodiscard]] ProfilerAction operator()(std::int64_t step);

    [[nodiscard]] std::int64_t num_step() const noexcept;
    [[nodiscard]] bool has_finished() const noexcept;
    /// Forgets all counts, as Lightning's profiler does at its summary.
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
