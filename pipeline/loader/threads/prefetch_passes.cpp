// PrefetchCore's functions for passes: their order of samples, begin and end.
#include <algorithm>
#include <bit>
#include <optional>
#include <stdexcept>

#include <asio/error.hpp>

#include <drawpoint/instrumentation/host/detail/thread_usage.hpp>

#include "pipeline/loader/threads/prefetch_core.hpp"

namespace drawpoint {

std::uint64_t PrefetchCore::begin_pass(std::size_t epoch, EpochOptions options) {
    if (pass_left_ != 0)
        throw std::logic_error{"DataLoader::epoch: the pass before must be used up or destroyed first"};
    check_process();
    if (options.first_batch != 0)
        go_on_at(epoch, options.first_batch);
    const bool goes_on = is_restored_ && epoch == progress_.epoch();
    if (is_restored_ && epoch < progress_.epoch())
        throw std::logic_error{"DataLoader::epoch: the loader was restored to epoch " +
                               std::to_string(progress_.epoch()) + ", got " + std::to_string(epoch)};
    if (goes_on && progress_.drawn() == batches_per_epoch_) {
        begin_progress(epoch);
        return ++pass_serial_;
    }
    const bool wants_next = options.next_epoch && batches_per_epoch_ > 0;
    Wakes wakes;
    {
        const auto guard = guarded_.lock();
        guard->resumed.reset();
        if (goes_on)
            guard->resumed.emplace(Guard::Resumed{epoch, progress_.end(), progress_.undrawn()});
        bool has_begun = guard->machine.decide<&LoaderMachine::begin_pass>(std::uint64_t{epoch});
        if (!has_begun && (parts_ || !guard->machine->expects(epoch)))
            abandon(*guard);
        if (!has_begun && parts_) {
            guard->machine.decide<&LoaderMachine::orders>(std::uint64_t{epoch});
            extend(*guard);
            has_begun = true;
        }
        if (has_begun) {
            wakes = turn_at_pass(*guard, wants_next);
        } else {
            due_pass_ = DuePass{epoch, wants_next};
            is_special_ = true;
            if (!inline_ && !guard->machine->expects(epoch)) {
                guard->machine.decide<&LoaderMachine::expect>(std::uint64_t{epoch});
                wakes = turn(*guard, Asks{.wakes_at_least = 1});   // one that sleeps; those awake will turn
            }
        }
    }
    if (!started_)
        start_crew();
    perform(wakes);
    begin_progress(epoch);
    return ++pass_serial_;
}

void PrefetchCore::begin_due_pass() {
    const DuePass due = *due_pass_;
    Wakes wakes;
    {
        auto guard = guarded_.lock();
        order_done_.wait(guard.mutex_lock(), [&] { return !guard->machine->is_preparing(); });
        if (stopping())
            throw_aborted();
        if (!guard->machine.decide<&LoaderMachine::begin_pass>(std::uint64_t{due.epoch})) {
            abandon(*guard);
            std::vector<std::uint64_t>& order = guard->order;   // nothing that uses it is being admitted
            guard.unlock();
            compute_order(due.epoch, order, nullptr);
            guard.lock_again();
            guard->machine.decide<&LoaderMachine::orders>(std::uint64_t{due.epoch});
            extend(*guard);
        }
        wakes = turn_at_pass(*guard, due.wants_next);
    }
    due_pass_.reset();
    is_special_ = false;
    perform(wakes);
}

PrefetchCore::Wakes PrefetchCore::turn_at_pass(Guard& guard, bool wants_next) noexcept {
    guard.machine.decide<&LoaderMachine::want_next>(wants_next && !inline_, parts_ != nullptr);
    Wakes wakes;
    if (!inline_) {
        wakes = turn(guard);
        wakes += raise_limits_if_room(guard);
    }
    return wakes;
}

void PrefetchCore::end_pass(std::uint64_t serial) noexcept {
    if (exhausted(serial) || lacks_threads())
        return;
    interrupt(asio::error::make_error_code(asio::error::operation_aborted));
    end_outside_wait();
    note_progress();
    const auto guard = guarded_.lock();
    abandon(*guard);
    due_pass_.reset();
    is_special_ = false;
    pass_left_ = 0;
}

void PrefetchCore::prepare_next_order(SampleWorker& worker) noexcept {
    auto guard = guarded_.lock();
    const std::optional<std::uint64_t> epoch = guard->machine.decide<&LoaderMachine::begin_preparing>();
    if (!epoch)
        return;
    std::vector<std::uint64_t>& order = guard->next_order;   // nobody else uses it until it is prepared
    guard.unlock();
    bool made = true;
    try {
        compute_order(*epoch, order, &worker);
    } catch (...) {
        made = false;   // the first draw of the pass will call it again, and throw
    }
    guard.lock_again();
    Wakes wakes;
    if (guard->machine.decide<&LoaderMachine::prepared>(made))
        wakes = turn(*guard);
    guard.unlock();
    order_done_.notify_all();
    perform(wakes);
}

void PrefetchCore::compute_order(std::uint64_t epoch, std::span<std::uint64_t> order, SampleWorker* worker) {
    WorkerActivity* const activity = !watch_ ? nullptr : worker != nullptr ? worker->activity : &watch_->loop();
    const WorkerActivity::For computing{activity, WorkerActivity::What::order, epoch};
    if (!recorder_)
        return sampler_->order(epoch, order);
    const std::int64_t begin_ns = clock_.now_ns(), cpu_ns = ThreadUsage::cpu_ns();
    sampler_->order(epoch, order);
    const OrderRow row{.begin_ns = begin_ns,
                       .ns = clock_.now_ns() - begin_ns,
                       .cpu_ns = ThreadUsage::cpu_ns() - cpu_ns,
                       .epoch = static_cast<std::uint32_t>(epoch),
                       .pipeline = pipeline_};
    if (worker != nullptr)
        worker->track.push(row);
    else
        recorder_->push(row);
}

void PrefetchCore::begin_next(Guard& guard) noexcept {
    guard.order.swap(guard.next_order);   // every batch of the pass before has its indices
    guard.machine.decide<&LoaderMachine::begin_next>();
    extend(guard);
}

void PrefetchCore::fill_indices(Slot& s, std::uint32_t first, std::uint32_t count) const noexcept {
    parts_->part(s.epoch, std::uint64_t{s.number} * batch_size_ + first, 1, {s.indices.get() + first, count});
}

void PrefetchCore::abandon(Guard& guard) noexcept {
    const std::int64_t now = recorder_ ? clock_.now_ns() : no_stamp;
    const auto record_slot = [&](std::uint32_t slot) { record(slots_[slot], slot, BatchStatus::abandoned, now, 0); };
    std::uint64_t undrawn = 0;
    for (; position_ != guard.machine->policy().next_position(); ++position_) {
        const std::uint32_t slot = mailbox_.at(position_).slot;
        record_slot(slot);
        undrawn |= std::uint64_t{1} << slot;
    }
    const LoaderPolicy::Abandoned given_up = guard.machine.decide<&LoaderMachine::abandon>(undrawn);
    for (std::uint64_t left = given_up.complete; left != 0; left &= left - 1)
        record_slot(static_cast<std::uint32_t>(std::countr_zero(left)));
    for (std::uint64_t left = given_up.open; left != 0; left &= left - 1) {
        const auto slot = static_cast<std::uint32_t>(std::countr_zero(left));
        Slot& s = slots_[slot];
        record_slot(slot);
        if (s.collation)
            s.collation->lacks_samples.store(true, std::memory_order_relaxed);
        // Claims all unclaimed samples and counts them as done. Workers finish the samples they have begun.
        const std::uint64_t before = s.claim.fetch_add(s.size, std::memory_order_acq_rel);
        const auto next = static_cast<std::uint32_t>(before);
        const std::uint32_t rest = next < s.size ? s.size - next : 0;
        if (reads_)
            reads_->withdraw(slot, s.size - rest);
        if (rest != 0 && (rest == s.size || s.remaining.fetch_sub(rest, std::memory_order_acq_rel) == rest))
            complete(guard, slot, false);
    }
    trim_slots(guard.machine.decide<&LoaderMachine::retire>());
}

void PrefetchCore::extend(Guard& guard) noexcept {
    guard.first_batch = guard.machine->policy().limit();
    guard.first_number = 0;
    guard.undrawn.clear();
    if (guard.resumed && guard.resumed->epoch == guard.machine->epoch()) {
        guard.first_number = guard.resumed->end;
        guard.undrawn.swap(guard.resumed->undrawn);
        guard.resumed.reset();
    }
    // A last batch that is not full is also the last one opened, so sizes are those of `samples` cut into batches.
    const std::uint64_t all = std::min<std::uint64_t>(order_size_, batches_per_epoch_ * options_.batch_size);
    const auto after = [&](std::uint64_t number) { return all - std::min(all, number * options_.batch_size); };
    std::uint64_t samples = after(guard.first_number);
    for (const std::uint64_t number : guard.undrawn)
        samples += after(number) - after(number + 1);
    guard.machine.decide<&LoaderMachine::extend>(LoaderMachine::PassShape{
        .batches = guard.undrawn.size() + batches_per_epoch_ - guard.first_number, .samples = samples});
    note_setting(guard);   // the order may change with a pass
}

}   // namespace drawpoint
