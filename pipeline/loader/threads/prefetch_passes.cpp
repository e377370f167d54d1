// PrefetchCore's functions for passes: their order of samples, begin and end.
#include <algorithm>
#include <bit>
#include <optional>
#include <stdexcept>

#include "pipeline/loader/threads/prefetch_core.hpp"

namespace drawpoint {

std::uint64_t PrefetchCore::begin_pass(std::size_t epoch, EpochOptions options) {
    if (pass_left_ != 0)
        throw std::logic_error{"DataLoader::epoch: the pass before must be used up or destroyed first"};
    auto guard = guarded_.lock();
    order_done_.wait(guard.mutex_lock(), [&] { return !guard->machine->is_preparing(); });
    if (!guard->machine.decide<&LoaderMachine::begin_pass>(std::uint64_t{epoch})) {
        abandon(*guard);
        std::vector<std::uint64_t>& order = guard->order;   // no thread prepares one
        guard.unlock();
        sampler_->order(epoch, order);
        guard.lock_again();
        guard->machine.decide<&LoaderMachine::orders>(std::uint64_t{epoch});
        extend(*guard);
    }
    guard->machine.decide<&LoaderMachine::want_next>(options.next_epoch && !inline_ && batches_per_epoch_ > 0);
    Wakes wakes;
    if (!inline_) {
        wakes = turn(*guard);
        wakes += raise_limits_if_room(*guard);
    }
    guard.unlock();
    if (!started_)
        start_crew();
    perform(wakes);
    pass_left_ = batches_per_epoch_;
    return ++pass_serial_;
}

void PrefetchCore::end_pass(std::uint64_t serial) noexcept {
    if (exhausted(serial))
        return;
    auto guard = guarded_.lock();
    order_done_.wait(guard.mutex_lock(), [&] { return !guard->machine->is_preparing(); });
    abandon(*guard);
    pass_left_ = 0;
}

void PrefetchCore::prepare_next_order() noexcept {
    auto guard = guarded_.lock();
    const std::optional<std::uint64_t> epoch = guard->machine.decide<&LoaderMachine::begin_preparing>();
    if (!epoch)
        return;
    std::vector<std::uint64_t>& order = guard->order;   // nobody else writes or reads it until it is prepared
    guard.unlock();
    bool made = true;
    try {
        sampler_->order(*epoch, order);
    } catch (...) {
        made = false;   // begin_pass() will call it again, and throw
    }
    guard.lock_again();
    Wakes wakes;
    if (guard->machine.decide<&LoaderMachine::prepared>(made)) {
        extend(*guard);
        wakes = turn(*guard);
    }
    guard.unlock();
    order_done_.notify_all();
    perform(wakes);
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
    guard.order_first_batch = guard.machine->policy().limit();
    guard.machine.decide<&LoaderMachine::extend>(LoaderMachine::PassShape{
        .batches = batches_per_epoch_,
        .samples = std::min<std::uint64_t>(order_size_, batches_per_epoch_ * options_.batch_size)});
    note_setting(guard);   // the order may change with a pass
}

}   // namespace drawpoint
