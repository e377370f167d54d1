#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include <c10/core/Event.h>
#include <c10/core/Stream.h>

#include <drawpoint/instrumentation/ledger/rows.hpp>
#include <drawpoint/instrumentation/recorder/detail/reading_budget.hpp>

#include "pipeline/torch/device_calls.hpp"
#include "pipeline/torch/device_clock.hpp"

namespace drawpoint {

/// Times the steps of a pass on a device, by four events a step on the stream that computes: its first command, the
/// arrival of its batch, the end of what its loss needs, and its last command. Each event is measured from the one
/// before it, since a device tells differences alone, as 32-bit milliseconds. Never waits for the device, but in
/// begin() and wait(). All functions but the constructor throw DeviceError. One thread uses it; it allocates only in
/// the constructor and the first begin().
class DeviceTimes {
public:
    /// `most_steps`: that the device has not done. A step beyond them is not timed.
    DeviceTimes(DeviceCalls&, std::size_t most_steps);
    DeviceTimes(const DeviceTimes&) = delete;
    DeviceTimes& operator=(const DeviceTimes&) = delete;

    /// A pass begins. Waits until the stream has done all its work, then finds out what time it is there. False, and no
    /// other function may be called, if the device cannot tell times. `now_ns`: the loop's clock. `every_step`: whether
    /// to time all steps; else they are chosen so that it costs at most 0.15 % of their time (ReadingBudget).
    [[nodiscard]] bool begin(const c10::Stream&, std::function<std::int64_t()> now_ns, bool every_step);
    /// The loop has the batch of this step, in `buffer`, and gives the device the step's first command now. Ends the
    /// step before.
    void queue(const c10::Stream&, std::uint32_t step, std::uint32_t epoch, Phase, std::size_t buffer);
    /// The stream has been told to wait for the step's batch.
    void arrive(const c10::Stream&);
    /// The step that uses `buffer` has given the device the work up to its loss.
    void end_forward(const c10::Stream&, std::size_t buffer);
    /// The step that uses `buffer` has given the device its last command, unless that was said before.
    void end(const c10::Stream&, std::size_t buffer);
    /// The same of the last step, whatever it uses.
    void end(const c10::Stream&);
    /// The loss of that step will be there when the device has done it, until two further batches are in its buffer.
    void keep_loss(std::size_t buffer, const float* loss) noexcept;
    /// The oldest step that the device has done and that is timed; its dry times are not set.
    [[nodiscard]] std::optional<DeviceStepRow> done();
    /// Ends the last step, and waits until the stream has done all its work.
    void wait(const c10::Stream&);
    /// Whether the copies that are issued now are to be timed.
    [[nodiscard]] bool times_copies() const noexcept { return times_this_ || times_next_; }
    /// When two events that have happened did so.
    [[nodiscard]] std::pair<std::int64_t, std::int64_t> times_of(const c10::Event& begin, const c10::Event& end);

private:
    struct Step {
        explicit Step(c10::DeviceType type)
            : queued{type, c10::EventFlag::BACKEND_DEFAULT},
              arrived{type, c10::EventFlag::BACKEND_DEFAULT},
              forward{type, c10::EventFlag::BACKEND_DEFAULT},
              ended{type, c10::EventFlag::BACKEND_DEFAULT} {}
        c10::Event queued, arrived, forward, ended;
        DeviceStepRow row;
        std::size_t buffer = 0;
        bool is_timed = false;      // else it only ends, for the step after it
        bool is_open = false;       // its last command has not come
        bool has_forward = false;   // end_forward() was called
        const float* loss = nullptr;
    };

    /// From one event that has happened to another.
    [[nodiscard]] std::int64_t elapsed_ns(const c10::Event& from, const c10::Event& to);
    /// The last event whose time is known, reached_ns_.
    [[nodiscard]] const c10::Event& reached() const noexcept {
        return is_first_ ? began_ : steps_[(first_ + steps_.size() - 1) % steps_.size()].ended;
    }
    [[nodiscard]] Step& newest() noexcept { return steps_[(first_ + size_ - 1) % steps_.size()]; }
    /// What recording an event took, and reading its time.
    struct Attempt {
        std::int64_t record_ns = 0, read_ns = 0;
    };
    /// Measures the clocks' difference on a stream that has nothing to do, else learns nothing. Looks at most so often.
    Attempt measure_difference(const c10::Stream&, int looks);
    void wait_for(const c10::Event&);
    void end(const c10::Stream&, Step&);

    DeviceCalls& calls_;
    std::function<std::int64_t()> now_ns_;
    bool every_step_ = false;
    std::vector<Step> steps_;   // a ring; the one before the first is the last that was done
    std::size_t first_ = 0, size_ = 0;
    c10::Event began_, probe_;       // when the device's time is 0; of measure_difference()
    std::int64_t reached_ns_ = 0;    // the device's time when it had done the last step, or at began_
    std::int64_t ended_ns_ = 0;      // the same by the loop's clock, as it was converted then
    bool is_first_ = true;           // no step of the pass is done
    std::int64_t measured_ns_ = 0;   // the loop's time at the last measure_difference()
    std::int64_t queued_ns_ = 0;     // the loop's time at the last queue() of the pass
    bool knows_lengths_ = false;     // of steps: before that none is chosen, since the first are not like the others
    std::uint32_t readings_ = 0;     // what timing a step costs, see ReadingBudget
    bool times_this_ = false, times_next_ = false;   // the step that began last, the next one
    ReadingBudget budget_;
    DeviceClock clock_;
};

}   // namespace drawpoint
