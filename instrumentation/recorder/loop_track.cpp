#include <drawpoint/instrumentation/recorder/loop_track.hpp>

#include <algorithm>
#include <utility>

namespace drawpoint {

void LoopTrack::begin_pass(PassKind kind, std::uint32_t epoch) noexcept {
    if (recorder_ == nullptr)
        return;
    const std::int64_t unmarked_ns = since_mark_ns();   // before push_step(), which may wait for the writer
    push_step();
    if (depth_++ >= passes_.size())
        return;
    OpenPass& pass = passes_[depth_ - 1];
    pass.row = {.kind = kind, .epoch = epoch, .begin_ns = last_ns_, .end_ns = last_ns_};
    pass.count = 0;
    recorder_->push_begin(pass.row);
    pass.row.unmarked_ns = unmarked_ns;
}

void LoopTrack::end_pass() noexcept {
    if (recorder_ == nullptr)
        return;
    const std::int64_t unmarked_ns = since_mark_ns();
    push_step();
    if (depth_ == 0 || --depth_ >= passes_.size())
        return;
    OpenPass& pass = passes_[depth_];
    pass.row.end_ns = last_ns_;
    pass.row.unmarked_ns += unmarked_ns;
    recorder_->push(pass.row, std::span{pass.spans}.first(pass.count));
}

void LoopTrack::begin_step(Phase phase, std::uint32_t epoch, std::uint32_t batch) noexcept {
    if (recorder_ == nullptr)
        return;
    const std::int64_t unmarked_ns = since_mark_ns();
    push_step();
    if (depth_ != 0)
        innermost().row.unmarked_ns += unmarked_ns;
    step_ = {.step = next_step_++, .epoch = epoch, .batch = batch, .phase = phase, .draw_begin_ns = last_ns_};
    step_spans_ = 0;
    where_ = Where::draw;
}

void LoopTrack::end_draw(std::uint32_t size, std::optional<std::uint32_t> batch) noexcept {
    if (recorder_ == nullptr)
        return;
    step_.batch = batch.value_or(step_.batch);
    step_.draw_ns = last_ns_ - step_.draw_begin_ns;
    step_.size = size;
    where_ = Where::batch;
    measured_ = !recorder_->clock().is_manual() && budget_.next();
    if (measured_) {
        run_queue_ns_ = usage_.run_queue_ns();
        cpu_ns_ = ThreadUsage::cpu_ns();
    }
}

void LoopTrack::end_step(StepStatus status, std::optional<double> loss) noexcept {
    if (recorder_ == nullptr)
        return;
    if (where_ == Where::draw)   // cancelled or failed before a batch was there
        step_.draw_ns = last_ns_ - step_.draw_begin_ns;
    step_.batch_ns = last_ns_ - step_.draw_begin_ns - step_.draw_ns;
    step_.status = status;
    step_.loss = loss;
    where_ = Where::after;
    // Read here, not where the next draw begins: at a system call the kernel may give the core to another thread, and
    // that time is not waiting for data.
    if (std::exchange(measured_, false) && usage_.is_attached()) {
        const std::int64_t run_queue_ns = usage_.run_queue_ns();
        step_.cpu_ns = std::clamp<std::int64_t>(ThreadUsage::cpu_ns() - cpu_ns_, 0, step_.batch_ns);
        const std::int64_t then_ns = usage_.run_queue_ns();   // reading cpu_ns may have cost it the core
        if (run_queue_ns_ != no_stamp && run_queue_ns != no_stamp && then_ns != no_stamp) {
            step_.run_queue_ns = std::clamp<std::int64_t>(run_queue_ns - run_queue_ns_, 0, step_.batch_ns);
            step_.between_run_queue_ns = std::max<std::int64_t>(then_ns - run_queue_ns, 0);
        }
    }
}

void LoopTrack::end_of_data() noexcept {
    if (recorder_ == nullptr)
        return;
    recorder_->push(EndOfDataRow{step_.epoch, step_.phase, step_.draw_begin_ns, last_ns_ - step_.draw_begin_ns});
    --next_step_;
    where_ = Where::outside;
}

void LoopTrack::add_piece(Span span, std::int64_t until_ns) noexcept {
    until_ns = std::max(until_ns, last_ns_);
    const SpanRow piece{span, last_ns_, until_ns - last_ns_};
    last_ns_ = until_ns;
    const bool in_step = where_ != Where::outside;
    if (!in_step && depth_ == 0)
        return;   // before the first pass: belongs to none
    OpenPass& pass = innermost();
    auto& spans = in_step ? spans_ : pass.spans;
    auto& count = in_step ? step_spans_ : pass.count;
    // A piece that continues the previous one is merged with it.
    if (count > 0 && spans[count - 1].span == span && spans[count - 1].begin_ns + spans[count - 1].ns == piece.begin_ns)
        spans[count - 1].ns += piece.ns;
    else if (count < max_step_spans)
        spans[count++] = piece;
    else if (!in_step) {
        continue_pass(pass, piece.begin_ns);
        spans[count++] = piece;
    }
    // else: not recorded, which shows in the pass's residual
}

/// What follows is another record of the same pass, because the one so far has all the pieces that it can have.
void LoopTrack::continue_pass(OpenPass& pass, std::int64_t at_ns) noexcept {
    pass.row.end_ns = at_ns;
    recorder_->push(pass.row, std::span{pass.spans}.first(pass.count));
    pass.row = {.kind = pass.row.kind, .epoch = pass.row.epoch, .begin_ns = at_ns, .end_ns = at_ns};
    pass.count = 0;
    recorder_->push_begin(pass.row);
}

std::int64_t LoopTrack::checked(Span span, std::int64_t until_ns) noexcept {
    std::int64_t off_ns = 0;
    const bool early = until_ns < last_ns_;
    if (early && span == Span::starved && where_ == Where::draw)
        return until_ns;   // the batch was ready before
    if (early) {
        off_ns = last_ns_ - until_ns;
    } else if (const std::int64_t now_ns = recorder_->now_ns(); until_ns > now_ns) {
        off_ns = until_ns - now_ns;
        until_ns = now_ns;
    }
    if (off_ns != 0 && depth_ != 0)
        (early ? innermost().row.clamped_ns : innermost().row.ahead_ns) += off_ns;
    return until_ns;
}

void LoopTrack::push_step() noexcept {
    if (where_ == Where::outside)
        return;
    budget_.took(last_ns_ - step_.draw_begin_ns, 7);   // five readings; those of the run queue cost more
    recorder_->push(step_, std::span{spans_}.first(step_spans_));
    where_ = Where::outside;
}

}   // namespace drawpoint
