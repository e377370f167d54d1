#include <drawpoint/instrumentation/schedule.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <stdexcept>
#include <utility>

namespace drawpoint {
namespace {

struct Part {
    std::string_view name;
    std::int64_t ScheduleOptions::* value;
};

constexpr std::array parts{Part{"wait", &ScheduleOptions::wait},
                           Part{"warmup", &ScheduleOptions::warmup},
                           Part{"active", &ScheduleOptions::active},
                           Part{"repeat", &ScheduleOptions::repeat},
                           Part{"skip-first", &ScheduleOptions::skip_first},
                           Part{"skip-first-wait", &ScheduleOptions::skip_first_wait}};

constexpr std::array<std::string_view, 4> step_kinds{"training_step", "validation_step", "test_step", "predict_step"};
constexpr std::size_t training = 0, validation = 1;

void check(const ScheduleOptions& options) {
    const auto given = [](std::string_view name, std::int64_t value, std::string_view need) {
        return std::string{name} + "=" + std::to_string(value) + " (need " + std::string{need} + " 0)";
    };
    if (options.wait < 0 || options.warmup < 0 || options.active <= 0 || options.repeat < 0 || options.skip_first < 0)
        throw std::invalid_argument{
            "Invalid profiler schedule arguments. Got " + given("wait", options.wait, ">=") + ", " +
            given("warmup", options.warmup, ">=") + ", " + given("active", options.active, ">") + ", " +
            given("repeat", options.repeat, ">=") + ", " + given("skip_first", options.skip_first, ">=") + "."};
    if (options.skip_first_wait < 0)
        throw std::invalid_argument{"Invalid profiler schedule arguments. Got " +
                                    given("skip_first_wait", options.skip_first_wait, ">=") + "."};
    constexpr std::int64_t most = std::int64_t{1} << 40;   // far more steps than any run has; sums cannot overflow
    for (const Part& part : parts)
        if (options.*part.value > most)
            throw std::invalid_argument{"Invalid profiler schedule arguments. Got " + std::string{part.name} + "=" +
                                        std::to_string(options.*part.value) + " (need <= " + std::to_string(most) +
                                        ")."};
}

[[noreturn]] void refuse_part(std::string_view part, std::string_view why) {
    throw std::invalid_argument{"schedule: '" + std::string{part} + "': " + std::string{why}};
}

}   // namespace

std::string_view name_of(ProfilerAction action) noexcept {
    static constexpr std::array<std::string_view, 5> names{"NONE", "WARMUP", "RECORD", "RECORD_AND_SAVE",
                                                           "DEVICE_STOPPED"};
    return names[static_cast<std::size_t>(action)];
}

Schedule schedule(const ScheduleOptions& options) {
    check(options);
    return [options](std::int64_t step) {
        if (step < 0)
            throw std::invalid_argument{"Step must be non-negative. Got " + std::to_string(step) + "."};
        if (step < options.skip_first)
            return ProfilerAction::none;
        step -= options.skip_first;
        if (options.skip_first_wait != 0)
            step += options.wait;
        const std::int64_t cycle = options.wait + options.warmup + options.active;
        if (options.repeat > 0 && step / cycle >= options.repeat)
            return ProfilerAction::none;
        const std::int64_t at = step % cycle;
        if (at < options.wait)
            return ProfilerAction::none;
        if (at < options.wait + options.warmup)
            return ProfilerAction::warmup;
        return at == cycle - 1 ? ProfilerAction::record_and_save : ProfilerAction::record;
    };
}

std::vector<std::string> schedule_warnings(const ScheduleOptions& options) {
    if (options.warmup == 0)
        return {"Profiler won't be using warmup, this can skew profiler results"};
    return {};
}

ScheduleOptions parse_schedule(std::string_view text) {
    ScheduleOptions options;
    std::array<bool, parts.size()> seen{};
    for (bool more = true; more;) {
        const std::size_t comma = text.find(',');
        const std::string_view item = text.substr(0, comma);
        more = comma != std::string_view::npos;
        text.remove_prefix(more ? comma + 1 : text.size());

        const std::size_t equals = item.find('=');
        if (equals == std::string_view::npos)
            refuse_part(item, "not of the form part=number, as in wait=1,warmup=1,active=3");
        const auto part = std::ranges::find(parts, item.substr(0, equals), &Part::name);
        if (part == parts.end())
            refuse_part(item, "no such part; there are wait, warmup, active, repeat, skip-first and skip-first-wait");
        if (std::exchange(seen[static_cast<std::size_t>(part - parts.begin())], true))
            refuse_part(item, "given twice");
        const std::string_view number = item.substr(equals + 1);
        const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), options.*part->value);
        if (error == std::errc::result_out_of_range)
            refuse_part(item, "the number is too large");
        if (error != std::errc{} || end != number.data() + number.size())
            refuse_part(item, "not a whole number of steps");
    }
    if (!seen[2])
        refuse_part("active", "missing: say how many steps a cycle records, as in active=3");
    check(options);
    return options;
}

CheckedSchedule schedule_for(const ScheduleOptions& options, std::optional<std::int64_t> total_steps) {
    CheckedSchedule checked{schedule(options), schedule_warnings(options)};
    const std::int64_t needed = default_schedule.wait + default_schedule.warmup + default_schedule.active;
    if (options == default_schedule && total_steps && *total_steps < needed) {
        checked.schedule = nullptr;
        checked.warnings.push_back("the default schedule needs " + std::to_string(needed) + " steps and there are " +
                                   std::to_string(*total_steps) + ": every step is recorded");
    }
    return checked;
}

ScheduledProfiler::ScheduledProfiler(ProfilerCalls calls, Schedule schedule)
    : calls_{std::move(calls)}, schedule_{std::move(schedule)}, current_{scheduled(0)}, scheduled_{current_} {}

ProfilerAction ScheduledProfiler::scheduled(std::int64_t step) const {
    if (!schedule_)
        return ProfilerAction::record;
    const ProfilerAction action = schedule_(step);
    if (action >= ProfilerAction::device_stopped)
        throw std::invalid_argument{"ProfilerAction.DEVICE_STOPPED is set internally by the profiler and must not be "
                                    "returned by a user-provided schedule"};
    return action;
}

void ScheduledProfiler::start() {
    if (running_)
        throw std::logic_error{"Profiler has been started already"};
    transit(ProfilerAction::none, current_);
    running_ = started_ = true;
    begin_range();
}

void ScheduledProfiler::step() {
    if (!running_)
        throw std::logic_error{"Profiler must be started before step()"};
    end_range();
    const ProfilerAction before = current_, before_scheduled = scheduled_, next = scheduled(step_num_ + 1);
    ++step_num_;
    current_ = scheduled_ = next;
    const bool stopped = std::exchange(collection_stopped_, false);
    if (before == ProfilerAction::device_stopped) {
        // A cycle ends with RECORD_AND_SAVE; a user's own schedule may also fall back to NONE.
        if (before_scheduled != ProfilerAction::record_and_save && next != ProfilerAction::none)
            current_ = ProfilerAction::device_stopped;
    } else if (stopped && next != ProfilerAction::none &&
               (before == ProfilerAction::warmup || before == ProfilerAction::record)) {
        if (calls_.warn)
            calls_.warn("Collecting ended early at step " + std::to_string(step_num_) +
                        ": nothing is recorded before the next cycle of the schedule");
        current_ = ProfilerAction::device_stopped;
    }
    // The next range begins even if trace_ready throws.
    std::exception_ptr thrown;
    try {
        transit(before, current_);
    } catch (...) {
        thrown = std::current_exception();
    }
    begin_range();
    if (thrown)
        std::rethrow_exception(thrown);
}

void ScheduledProfiler::skip_step() {
    if (running_)
        throw std::logic_error{"Profiler must be stopped before skip_step()"};
    current_ = scheduled_ = scheduled(step_num_ + 1);
    ++step_num_;
}

void ScheduledProfiler::stop() {
    if (!started_)
        throw std::logic_error{"Profiler must be initialized before stopping trace"};
    if (!std::exchange(running_, false))
        return;
    end_range();
    const ProfilerAction last = std::exchange(current_, scheduled_);
    collection_stopped_ = false;
    transit(last, std::nullopt);
}

void ScheduledProfiler::transit(ProfilerAction from, std::optional<ProfilerAction> to) {
    using enum ProfilerAction;
    const auto call = [](const std::function<void()>& function) {
        if (function)
            function();
    };
    const auto warn = [&](std::string_view text) {
        if (calls_.warn)
            calls_.warn(text);
    };
    const bool idle = from == none || from == device_stopped, recording = from == record || from == record_and_save;
    const bool to_recording = to == record || to == record_and_save;
    if (from == record && to_recording)
        return;
    std::exception_ptr thrown;
    const auto hand_over = [&] {
        try {
            call(calls_.trace_ready);
        } catch (...) {
            thrown = std::current_exception();
        }
    };

    // The previous action ends …
    if (from == warmup && (to == none || to == device_stopped || !to)) {
        if (to == none)
            warn("Incorrect schedule: WARMUP followed by NONE");
        call(calls_.start);
        call(calls_.stop);
        if (to == device_stopped)
            hand_over();
    } else if (recording) {
        if (from == record && (to == none || to == warmup))
            warn("Incorrect schedule: RECORD followed by " + std::string{name_of(*to)});
        call(calls_.stop);
        if (from == record_and_save || !to || to == device_stopped)
            hand_over();
    }
    // … and the next one begins.
    if ((idle || recording) && (to == warmup || to_recording))
        call(calls_.prepare);
    if (to_recording)
        call(calls_.start);
    if (thrown)
        std::rethrow_exception(thrown);
}

void ScheduledProfiler::begin_range() {
    if (!schedule_)
        return;
    in_range_ = true;
    if (calls_.begin_step)
        calls_.begin_step(step_num_);
}

void ScheduledProfiler::end_range() {
    if (std::exchange(in_range_, false) && calls_.end_step)
        calls_.end_step(step_num_);
}

ScheduleWrapper::ScheduleWrapper(Schedule schedule) : schedule_{std::move(schedule)} {
    if (!schedule_)
        throw std::invalid_argument{"Schedule should be a callable. Found: an empty function"};
}

void ScheduleWrapper::setup(std::string_view start_action) { in_fit_ = start_action.ends_with("on_fit_start"); }

void ScheduleWrapper::pre_step(std::string_view action) {
    const auto kind = std::ranges::find_if(step_kinds, [&](std::string_view name) { return action.ends_with(name); });
    kind_ =
        kind == step_kinds.end() ? std::nullopt : std::optional{static_cast<std::size_t>(kind - step_kinds.begin())};
}

ProfilerAction ScheduleWrapper::operator()(std::int64_t) {
    if (!kind_ || has_finished())
        return ProfilerAction::none;
    Counter& counter = counters_[*kind_];
    if (*kind_ != validation || !in_fit_ || counters_[training].steps > 0)
        ++counter.steps;
    ProfilerAction action = schedule_(counter.steps);
    if (previous_ == ProfilerAction::record && action == ProfilerAction::warmup)
        action = ProfilerAction::record;
    if (action == ProfilerAction::record_and_save)
        counter.reached_end = true;
    previous_ = action;
    return action;
}

std::int64_t ScheduleWrapper::num_step() const noexcept { return kind_ ? counters_[*kind_].steps : 0; }

bool ScheduleWrapper::has_finished() const noexcept { return kind_ && counters_[*kind_].reached_end; }

void ScheduleWrapper::reset() noexcept {
    std::ranges::fill(counters_, Counter{});
    kind_.reset();
    previous_.reset();
}

}   // namespace drawpoint
