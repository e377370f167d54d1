// The simulated loop: draws and steps.
#include <algorithm>
#include <cmath>
#include <utility>

#include "diagnosis/replay/replay_loader.hpp"

namespace drawpoint {

void ReplayLoader::step_loop() {
    const auto loop = static_cast<std::uint32_t>(workers_.size());
    switch (loop_) {
    case LoopState::ordering:
        if (!order(loop, order_phase_))
            return;
        end_ordering();
        return draw();
    case LoopState::awaiting_order:
        if (begin_pass())
            draw();
        return;
    case LoopState::drawing:
    case LoopState::suspended: break;   // nothing is under way
    case LoopState::spinning:
        if (ready()) {
            spin_.succeeded(time_.now_ns() - draw_begin_ns_);
            return take();
        }
        spin_.failed();
        loop_ = LoopState::drawing;
        turn(true);
        if (ready())
            return take();
        loop_ = LoopState::suspended;
        return;
    case LoopState::waking: return take();
    case LoopState::receiving: return receive();
    case LoopState::waiting_for_device: waits_.device_until_ns = time_.now_ns(); return draw();
    case LoopState::copying: return copy();
    case LoopState::waiting_first: return compute_step();
    case LoopState::computing:
        if (run_.loop_waits_first && part_.ns() > 0)
            return end_part();
        loop_ = LoopState::waiting;
        if (part_.wait_ns > 0 || part_.cpu_ns <= 0)   // even a step of no length is an event
            return time_.wait(loop, part_.wait_ns);
        [[fallthrough]];
    case LoopState::waiting: return end_part();
    case LoopState::synchronising: return compute_part();
    case LoopState::computing_after:
        loop_ = LoopState::waiting_after;
        if (step_.after.wait_ns > 0)
            return time_.wait(loop, step_.after.wait_ns);
        [[fallthrough]];
    case LoopState::waiting_after: return end_step();
    case LoopState::draining: return pause();
    case LoopState::pausing: return begin_draw();
    }
}

void ReplayLoader::begin_draw() {
    draw_begin_ns_ = time_.now_ns();
    waits_ = {};
    if (undrawn_ != 0 || begin_pass())
        draw();
}

void ReplayLoader::draw() {
    loop_ = LoopState::drawing;
    if (device_ && !may_draw())
        return;
    if (ready())
        return take();
    if (inline_) {
        turn(false);
        return run_worker(0);
    }
    if (pytorch_) {
        loop_ = LoopState::suspended;
        return;
    }
    loop_ = LoopState::spinning;
    time_.wait(static_cast<std::uint32_t>(workers_.size()), spin_.begin());
}

bool ReplayLoader::may_draw() {
    device_->reclaim(time_.now_ns(), [this](std::uint32_t slot) { give_back(slot); });
    if (device_->may_draw(machine_.policy().slots(), ready()))
        return true;
    loop_ = LoopState::waiting_for_device;
    time_.wait(static_cast<std::uint32_t>(workers_.size()), device_->next_copied_ns() - time_.now_ns());
    return false;
}

void ReplayLoader::take() {
    held_ = cells_[position_ % cells_.size()];
    ++position_;
    --undrawn_;
    Slot& s = slots_[held_];
    s.row.ready_batches = static_cast<std::uint32_t>(published_ - position_);
    step_ = demands_.step_at(draw_ns_.size(), s.size);
    waits_.resumed_ns = time_.now_ns();
    if (device_) {
        is_queued_ = false;
        return copy();
    }
    receiving_ = demands_.batch_at(s.position, s.size).transfer;
    if (receiving_.ns() > 0)
        s.row.transfer_issue_ns = time_.now_ns();
    if (pytorch_)
        s.row.receive_cpu_ns = receiving_.cpu_ns;
    receive();
}

/// The loop waits for the batch's transfer, then computes what it takes to receive it.
void ReplayLoader::receive() {
    const auto loop = static_cast<std::uint32_t>(workers_.size());
    loop_ = LoopState::receiving;
    if (const std::int64_t wait_ns = std::exchange(receiving_.wait_ns, 0); wait_ns > 0)
        return time_.wait(loop, wait_ns);
    if (const std::int64_t cpu_ns = std::exchange(receiving_.cpu_ns, 0); cpu_ns > 0)
        return time_.compute(loop, cpu_ns);
    Slot& s = slots_[held_];
    if (s.row.transfer_issue_ns != no_stamp)
        s.row.transfer_done_ns = time_.now_ns();
    if (pytorch_) {
        s.row.receive_run_queue_ns =
            time_.now_ns() - waits_.resumed_ns - demands_.batch_at(s.position, s.size).transfer.ns();
        pytorch_->drawn(held_);
        turn(false);   // sends the indices of one more
    }
    begin_compute();
}

/// Issues the copy of the batch that is drawn, unless it is issued, then copies of batches that are ready.
void ReplayLoader::copy() {
    loop_ = LoopState::copying;
    for (;;) {
        if (!is_queued_ && device_->ahead() > 0) {
            device_->draw(time_.now_ns(), held_);
            is_queued_ = true;
        }
        const std::uint64_t next = is_queued_ ? position_ + device_->ahead() : position_ - 1;
        if (is_queued_ && (!device_->may_issue() || next >= published_ || next - position_ >= undrawn_))
            return begin_compute();
        const Slot& s = slots_[cells_[next % cells_.size()]];
        const BatchDemand batch = demands_.batch_at(s.position, s.size);
        const std::int64_t until_ns = device_->issue(time_.now_ns(), batch.transfer.wait_ns);
        if (rows_)
            rows_->transfer(device_->last_copy(), s.row, batch.bytes);
        if (until_ns > time_.now_ns())
            return time_.wait(static_cast<std::uint32_t>(workers_.size()), until_ns - time_.now_ns());
    }
}

void ReplayLoader::begin_compute() {
    taken_ns_ = time_.now_ns();
    draw_ns_.push_back(taken_ns_ - draw_begin_ns_);
    part_ = step_.compute;
    if (device_)
        device_->begin_work(taken_ns_);
    synchronises_ = device_ && step_.device.first_ns > 0;
    if (synchronises_) {
        const auto before = [&](std::int64_t ns) {
            return std::llround(static_cast<double>(ns) * step_.device.wait_at);
        };
        part_ = {before(step_.compute.cpu_ns), before(step_.compute.wait_ns)};
        rest_ = {step_.compute.cpu_ns - part_.cpu_ns, step_.compute.wait_ns - part_.wait_ns};
    }
    compute_part();
}

void ReplayLoader::compute_part() {
    if (!run_.loop_waits_first || part_.wait_ns <= 0)
        return compute_step();
    loop_ = LoopState::waiting_first;
    time_.wait(static_cast<std::uint32_t>(workers_.size()), part_.wait_ns);
}

void ReplayLoader::compute_step() {
    loop_ = LoopState::computing;
    if (part_.cpu_ns > 0)
        time_.compute(static_cast<std::uint32_t>(workers_.size()), part_.cpu_ns, std::max(step_.threads, 1.0),
                      !step_.spins         ? Spinning::no
                      : run_.helpers_yield ? Spinning::yields
                                           : Spinning::own);
    else
        step_loop();
}

void ReplayLoader::end_part() {
    if (!std::exchange(synchronises_, false))
        return release_batch();
    part_ = rest_;
    const std::int64_t wait_ns = device_->first_done_ns(step_.device) - time_.now_ns();
    if (wait_ns <= 0)
        return compute_part();
    waits_.in_step_ns = wait_ns;
    loop_ = LoopState::synchronising;
    time_.wait(static_cast<std::uint32_t>(workers_.size()), wait_ns);
}

void ReplayLoader::release_batch() {
    released_ns_ = time_.now_ns();
    if (device_)
        device_->end_work(released_ns_, step_.device);
    Slot& s = slots_[held_];
    if (rows_) {
        s.row.taken_ns = taken_ns_;
        s.row.bytes = demands_.batch_at(s.position, s.size).bytes;
        rows_->add(s.row);
        released_ = s.row;
    }
    if (device_)
        device_->give_back([this](std::uint32_t slot) { give_back(slot); });
    else
        give_back(held_);
    held_ = none;
    if (step_.after.ns() <= 0)
        return end_step();
    loop_ = LoopState::computing_after;
    if (step_.after.cpu_ns > 0)
        time_.compute(static_cast<std::uint32_t>(workers_.size()), step_.after.cpu_ns);
    else
        step_loop();
}

void ReplayLoader::end_step() {
    const std::int64_t now = time_.now_ns();
    step_ns_.push_back(now - draw_begin_ns_);
    if (rows_)
        rows_->step(released_, draw_begin_ns_, released_ns_, now, step_, waits_);
    if (rows_ && device_)
        rows_->device_step(device_->step());
    if (step_ns_.size() == steps_) {
        is_over_ = true;
        return;
    }
    if (device_ && undrawn_ == 0 && device_->free_ns() > now) {   // a pass ends with the device
        if (rows_)
            rows_->pause(Span::device, now, device_->free_ns() - now);
        loop_ = LoopState::draining;
        return time_.wait(static_cast<std::uint32_t>(workers_.size()), device_->free_ns() - now);
    }
    pause();
}

void ReplayLoader::pause() {
    if (step_.pause_ns <= 0)
        return begin_draw();
    if (rows_)
        rows_->pause(Span::between, time_.now_ns(), step_.pause_ns);
    loop_ = LoopState::pausing;
    time_.wait(static_cast<std::uint32_t>(workers_.size()), step_.pause_ns);
}

}   // namespace drawpoint
