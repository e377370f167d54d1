// The simulated loop: draws and steps.
#include <algorithm>
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
    case LoopState::transfer: return begin_compute();
    case LoopState::waiting_first: return compute_step();
    case LoopState::computing:
        if (run_.loop_waits_first && step_.compute.ns() > 0)
            return release_batch();
        loop_ = LoopState::waiting;
        if (step_.compute.wait_ns > 0 || step_.compute.cpu_ns <= 0)   // even a step of no length is an event
            return time_.wait(loop, step_.compute.wait_ns);
        [[fallthrough]];
    case LoopState::waiting: return release_batch();
    case LoopState::computing_after:
        loop_ = LoopState::waiting_after;
        if (step_.after.wait_ns > 0)
            return time_.wait(loop, step_.after.wait_ns);
        [[fallthrough]];
    case LoopState::waiting_after: return end_step();
    case LoopState::pausing: return begin_draw();
    }
}

void ReplayLoader::begin_draw() {
    draw_begin_ns_ = time_.now_ns();
    if (undrawn_ != 0 || begin_pass())
        draw();
}

void ReplayLoader::draw() {
    loop_ = LoopState::drawing;
    if (ready())
        return take();
    if (inline_) {
        turn(false);
        return run_worker(0);
    }
    loop_ = LoopState::spinning;
    time_.wait(static_cast<std::uint32_t>(workers_.size()), spin_.begin());
}

void ReplayLoader::take() {
    held_ = cells_[position_ % cells_.size()];
    ++position_;
    --undrawn_;
    Slot& s = slots_[held_];
    s.row.ready_batches = static_cast<std::uint32_t>(published_ - position_);
    step_ = demands_.step_at(draw_ns_.size(), s.size);
    const std::int64_t transfer_ns = demands_.batch_at(s.position, s.size).transfer_ns;
    if (transfer_ns <= 0)
        return begin_compute();
    s.row.transfer_issue_ns = time_.now_ns();
    s.row.transfer_done_ns = time_.now_ns() + transfer_ns;
    loop_ = LoopState::transfer;
    time_.wait(static_cast<std::uint32_t>(workers_.size()), transfer_ns);
}

void ReplayLoader::begin_compute() {
    taken_ns_ = time_.now_ns();
    draw_ns_.push_back(taken_ns_ - draw_begin_ns_);
    if (!run_.loop_waits_first || step_.compute.wait_ns <= 0)
        return compute_step();
    loop_ = LoopState::waiting_first;
    time_.wait(static_cast<std::uint32_t>(workers_.size()), step_.compute.wait_ns);
}

void ReplayLoader::compute_step() {
    loop_ = LoopState::computing;
    if (step_.compute.cpu_ns > 0)
        time_.compute(static_cast<std::uint32_t>(workers_.size()), step_.compute.cpu_ns, std::max(step_.threads, 1.0),
                      !step_.spins         ? Spinning::no
                      : run_.helpers_yield ? Spinning::yields
                                           : Spinning::own);
    else
        step_loop();
}

void ReplayLoader::release_batch() {
    released_ns_ = time_.now_ns();
    Slot& s = slots_[held_];
    if (rows_) {
        s.row.taken_ns = taken_ns_;
        s.row.bytes = demands_.batch_at(s.position, s.size).bytes;
        rows_->add(s.row);
        released_ = s.row;
    }
    give_back(std::exchange(held_, none));
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
        rows_->step(released_, draw_begin_ns_, released_ns_, now, step_);
    if (step_ns_.size() == steps_) {
        is_over_ = true;
        return;
    }
    if (step_.pause_ns <= 0)
        return begin_draw();
    if (rows_)
        rows_->pause(now, step_.pause_ns);
    loop_ = LoopState::pausing;
    time_.wait(static_cast<std::uint32_t>(workers_.size()), step_.pause_ns);
}

}   // namespace drawpoint
