#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include <drawpoint/diagnosis/replay/replay.hpp>
#include <drawpoint/pipeline/loader/machine/detail/transfer_policy.hpp>

namespace drawpoint {

/// Batches that the device of a replay holds.
[[nodiscard]] inline std::size_t buffers_of(const RecordedRun& run, const Change& change) noexcept {
    return change.device_buffers != 0 ? change.device_buffers : run.device_buffers;
}

/// A device with its copy engine and buffers, in virtual time. A TransferPolicy decides as it does for a DeviceLoader.
/// What the loop enqueues waits only for what is enqueued already, so each begin and end is known at once.
class ReplayDevice {
public:
    ReplayDevice(std::size_t buffers, Copies copies) : policy_{buffers}, copies_{copies} {}

    /// Takes up the copies that have ended; `release(slot)` for each slot of the loader that comes back by that.
    template <class Release>
    void reclaim(std::int64_t now_ns, Release release) {
        for (auto buffer = policy_.copying(); buffer && of_[*buffer].copied_ns <= now_ns; buffer = policy_.copying()) {
            policy_.copied();
            if (!policy_.is_taken(*buffer))
                release_slot(*buffer, release);
        }
    }
    /// Whether the loop need not wait for the device before it draws. `slots`: that the loader has. `is_ready`: whether
    /// its next batch is.
    [[nodiscard]] bool may_draw(std::size_t slots, bool is_ready) const noexcept {
        return ahead() > 0 || (policy_.may_issue() && (is_ready || held_ < slots || !policy_.copying()));
    }
    /// Until the oldest copy ends, for which the loop waits if it may not draw.
    [[nodiscard]] std::int64_t next_copied_ns() const noexcept { return of_[*policy_.copying()].copied_ns; }
    [[nodiscard]] std::size_t ahead() const noexcept { return policy_.ahead(); }
    [[nodiscard]] bool may_issue() const noexcept { return policy_.may_issue(); }

    struct Times {
        std::int64_t issue_ns = 0, begin_ns = 0, end_ns = 0;
    };
    /// Issues a copy. Returns until when the loop waits for it.
    std::int64_t issue(std::int64_t now_ns, std::int64_t transfer_ns) {
        Buffer& buffer = of_[policy_.issue()];
        std::int64_t begin_ns = std::max({now_ns, engine_free_ns_, buffer.consumed_ns});
        if (copies_ == Copies::in_order)
            begin_ns = std::max(begin_ns, free_ns_);
        engine_free_ns_ = buffer.copied_ns = begin_ns + transfer_ns;
        if (copies_ == Copies::in_order)
            free_ns_ = engine_free_ns_;
        last_copy_ = {now_ns, begin_ns, engine_free_ns_};
        return copies_ == Copies::pageable ? engine_free_ns_ : now_ns;
    }
    [[nodiscard]] const Times& last_copy() const noexcept { return last_copy_; }

    /// The loop draws the batch of this slot, whose copy is issued, and gives the device the step's first command.
    void draw(std::int64_t now_ns, std::uint32_t slot) {
        out_ = policy_.draw();
        of_[out_].slot = slot;
        ++held_;
        step_.free_ns = free_ns_;
        step_.host_queued_ns = now_ns;
        step_.queued_ns = std::max(now_ns, free_ns_);
        step_.begin_ns = free_ns_ = std::max(step_.queued_ns, of_[out_].copied_ns);
    }
    /// The loop begins to give it the step's work.
    void begin_work(std::int64_t now_ns) noexcept { work_begin_ns_ = std::max(free_ns_, now_ns); }
    /// When it has done the part of the step for which the loop waits.
    [[nodiscard]] std::int64_t first_done_ns(const DeviceDemand& demand) const noexcept {
        return work_begin_ns_ + demand.first_ns;
    }
    /// The loop gives it the step's last command.
    void end_work(std::int64_t now_ns, const DeviceDemand& demand) noexcept {
        step_.host_end_ns = step_.host_forward_ns = now_ns;
        step_.end_ns = step_.forward_ns = free_ns_ = of_[out_].consumed_ns =
            std::max(work_begin_ns_ + demand.ns, now_ns + demand.lag_ns);
    }
    /// The loop gives the step's batch back.
    template <class Release>
    void give_back(Release release) {
        policy_.give_back(out_);
        if (!policy_.is_copied_to(out_))
            release_slot(out_, release);
    }
    /// When it has done all its work.
    [[nodiscard]] std::int64_t free_ns() const noexcept { return free_ns_; }
    /// The step that ended last.
    [[nodiscard]] const DeviceStepRow& step() const noexcept { return step_; }

private:
    struct Buffer {
        std::int64_t copied_ns = 0, consumed_ns = 0;   // when the last copy to it ends, and the last step with it
        std::optional<std::uint32_t> slot;             // of the batch, until the loader has it back
    };
    template <class Release>
    void release_slot(std::size_t buffer, Release release) {
        if (const auto slot = std::exchange(of_[buffer].slot, std::nullopt)) {
            --held_;
            release(*slot);
        }
    }

    TransferPolicy policy_;
    Copies copies_;
    std::array<Buffer, TransferPolicy::most_buffers> of_{};
    std::size_t out_ = 0, held_ = 0;   // held_: slots
    std::int64_t engine_free_ns_ = 0, free_ns_ = 0, work_begin_ns_ = 0;
    Times last_copy_;
    DeviceStepRow step_;
};

}   // namespace drawpoint
