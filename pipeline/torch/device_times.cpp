#include "pipeline/torch/device_times.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <limits>
#include <thread>

namespace drawpoint {
namespace {

constexpr int attempts = 32;                         // to measure the difference as a pass begins
constexpr int few_looks = 8;                         // at an event of a stream that may have work
constexpr std::int64_t measured_for = 100'000'000;   // ns; later the difference is measured again

}   // namespace

DeviceTimes::DeviceTimes(DeviceCalls& calls, std::size_t most_steps)
    : calls_{calls},
      began_{calls.device().type(), c10::EventFlag::BACKEND_DEFAULT},
      probe_{calls.device().type(), c10::EventFlag::BACKEND_DEFAULT} {
    steps_.reserve(most_steps + 1);
    for (std::size_t i = 0; i <= most_steps; ++i)
        steps_.emplace_back(calls.device().type());
}

bool DeviceTimes::begin(const c10::Stream& stream, std::function<std::int64_t()> now_ns, bool every_step) {
    now_ns_ = std::move(now_ns);
    every_step_ = every_step;
    first_ = size_ = 0;
    is_first_ = true;
    reached_ns_ = 0;
    queued_ns_ = no_stamp;
    times_this_ = false;
    times_next_ = every_step_ || (knows_lengths_ && budget_.next());
    clock_ = {};
    const auto record = [&](c10::Event& event) { calls_("event record", [&] { event.record(stream); }); };
    if (!steps_.front().ended.was_marked_for_recording())   // an event is made when it is recorded first
        for (Step& step : steps_)
            for (c10::Event* const event : {&step.queued, &step.arrived, &step.forward, &step.ended})
                record(*event);
    record(began_);
    wait_for(began_);
    try {
        (void)began_.elapsedTime(began_);   // not every backend has it, which is no failure of the device
    } catch (const std::exception&) {
        return false;
    }
    std::int64_t record_ns = std::numeric_limits<std::int64_t>::max(), read_ns = record_ns;
    for (int i = 0; i < attempts; ++i) {
        const Attempt attempt = measure_difference(stream, std::numeric_limits<int>::max());
        record_ns = std::min(record_ns, attempt.record_ns);
        read_ns = std::min(read_ns, attempt.read_ns);
    }
    clock_.settle();
    measured_ns_ = now_ns_();
    // For a step alone: four events of its own, the end of the one before, and two of a copy; what is between them.
    const std::int64_t price_ns = 7 * record_ns + 9 * read_ns;
    readings_ = static_cast<std::uint32_t>(std::ceil(static_cast<double>(price_ns) / ReadingBudget::reading_ns));
    reached_ns_ = elapsed_ns(began_, probe_);
    ended_ns_ = clock_.host_ns(reached_ns_);
    std::swap(began_, probe_);   // so that measuring is not part of the first step
    return true;
}

void DeviceTimes::wait_for(const c10::Event& event) {
    while (!calls_("event query", [&] { return event.query(); }))
        std::this_thread::sleep_for(std::chrono::microseconds{20});
}

void DeviceTimes::wait(const c10::Stream& stream) {
    end(stream);
    calls_("event record", [&] { probe_.record(stream); });
    wait_for(probe_);
}

std::int64_t DeviceTimes::elapsed_ns(const c10::Event& from, const c10::Event& to) {
    return std::llround(calls_("event times", [&] { return from.elapsedTime(to); }) * 1e6);
}

DeviceTimes::Attempt DeviceTimes::measure_difference(const c10::Stream& stream, int looks) {
    const std::int64_t from_ns = now_ns_();
    calls_("event record", [&] { probe_.record(stream); });
    const std::int64_t recorded_ns = now_ns_();
    while (!calls_("event query", [&] { return probe_.query(); }))
        if (--looks == 0)
            return {};
    const std::int64_t to_ns = now_ns_();
    const std::int64_t at_ns = reached_ns_ + elapsed_ns(reached(), probe_);
    clock_.not_before(at_ns, from_ns);
    clock_.not_after(at_ns, to_ns);
    return {recorded_ns - from_ns, now_ns_() - to_ns};
}

void DeviceTimes::end(const c10::Stream& stream, Step& step) {
    step.is_open = false;
    calls_("event record", [&] { step.ended.record(stream); });
    step.row.host_end_ns = now_ns_();
}

void DeviceTimes::end(const c10::Stream& stream, std::size_t buffer) {
    if (size_ != 0 && newest().buffer == buffer)
        end(stream);
}

void DeviceTimes::end(const c10::Stream& stream) {
    if (size_ != 0 && newest().is_open)
        end(stream, newest());
}

void DeviceTimes::queue(const c10::Stream& stream, std::uint32_t step, std::uint32_t epoch, Phase phase,
                        std::size_t buffer) {
    end(stream);
    if (size_ == 0 && now_ns_() - measured_ns_ > measured_for) {
        measured_ns_ = now_ns_();
        (void)measure_difference(stream, few_looks);
    }
    const std::int64_t now_ns = now_ns_();
    if (queued_ns_ != no_stamp) {
        budget_.took(now_ns - queued_ns_, readings_);
        knows_lengths_ = true;
    }
    queued_ns_ = now_ns;
    // A step is timed from the end of the one before it, which therefore is in the ring, too.
    const bool is_full = size_ + 1 == steps_.size();
    times_this_ = times_next_ && !is_full;
    times_next_ = !is_full && (every_step_ || (knows_lengths_ && budget_.next()));
    if (!times_this_ && !times_next_)
        return;
    ++size_;
    Step& entry = newest();
    entry.buffer = buffer;
    entry.is_open = true;
    entry.is_timed = times_this_;
    entry.has_forward = false;
    entry.loss = nullptr;
    entry.row = {.step = step, .epoch = epoch, .phase = phase, .host_queued_ns = now_ns};
    if (times_this_)
        calls_("event record", [&] { entry.queued.record(stream); });
}

void DeviceTimes::end_forward(const c10::Stream& stream, std::size_t buffer) {
    if (size_ == 0 || newest().buffer != buffer || !newest().is_open || !newest().is_timed)
        return;
    Step& step = newest();
    calls_("event record", [&] { step.forward.record(stream); });
    step.row.host_forward_ns = now_ns_();
    step.has_forward = true;
}

void DeviceTimes::keep_loss(std::size_t buffer, const float* loss) noexcept {
    if (size_ != 0 && newest().buffer == buffer && newest().is_open)
        newest().loss = loss;
}

void DeviceTimes::arrive(const c10::Stream& stream) {
    if (times_this_)
        calls_("event record", [&] { newest().arrived.record(stream); });
}

std::optional<DeviceStepRow> DeviceTimes::done() {
    while (size_ != 0) {
        Step& oldest = steps_[first_];
        if (oldest.is_open || !calls_("event query", [&] { return oldest.ended.query(); }))
            return std::nullopt;
        const std::int64_t seen_ns = now_ns_(), free_ns = reached_ns_;
        std::int64_t queued_ns = 0, begin_ns = 0, forward_ns = 0, end_ns = 0;
        if (oldest.is_timed) {
            queued_ns = free_ns + std::max<std::int64_t>(elapsed_ns(reached(), oldest.queued), 0);
            begin_ns = queued_ns + std::max<std::int64_t>(elapsed_ns(oldest.queued, oldest.arrived), 0);
            const c10::Event& middle = oldest.has_forward ? oldest.forward : oldest.arrived;
            forward_ns = begin_ns;
            if (oldest.has_forward)
                forward_ns += std::max<std::int64_t>(elapsed_ns(oldest.arrived, middle), 0);
            end_ns = forward_ns + std::max<std::int64_t>(elapsed_ns(middle, oldest.ended), 0);
            clock_.not_before(queued_ns, oldest.row.host_queued_ns);
        } else {
            end_ns = free_ns + elapsed_ns(reached(), oldest.ended);
        }
        clock_.not_after(end_ns, seen_ns);
        reached_ns_ = end_ns;
        is_first_ = false;
        first_ = (first_ + 1) % steps_.size();
        --size_;
        DeviceStepRow row = oldest.row;
        row.free_ns = std::exchange(ended_ns_, clock_.host_ns(end_ns));
        if (!oldest.is_timed)
            continue;
        // In order, even if the difference has just been corrected downwards.
        row.queued_ns = std::max(clock_.host_ns(queued_ns), row.free_ns);
        row.begin_ns = std::max(clock_.host_ns(begin_ns), row.queued_ns);
        row.forward_ns = std::max(clock_.host_ns(forward_ns), row.begin_ns);
        row.end_ns = ended_ns_ = std::max(ended_ns_, row.forward_ns);
        if (!oldest.has_forward) {
            row.forward_ns = row.end_ns;
            row.host_forward_ns = row.host_end_ns;
        }
        row.uncertainty_ns = clock_.uncertainty_ns();
        if (oldest.loss != nullptr)
            row.loss = *oldest.loss;
        return row;
    }
    return std::nullopt;
}

std::pair<std::int64_t, std::int64_t> DeviceTimes::times_of(const c10::Event& begin, const c10::Event& end) {
    const std::int64_t begin_ns = clock_.host_ns(reached_ns_ + elapsed_ns(reached(), begin));
    return {begin_ns, begin_ns + std::max<std::int64_t>(elapsed_ns(begin, end), 0)};
}

}   // namespace drawpoint
