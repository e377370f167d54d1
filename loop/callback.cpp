#include <drawpoint/loop/callback.hpp>

#include <algorithm>

namespace drawpoint {
namespace {

// fastai's TrainEvalCallback stands before -9 and its Recorder after 49: what runs outside is not in the event's time.
constexpr int first_inside = -9, last_inside = 49;

/// Events of a single batch: only these are gated by run_train and run_valid. after_cancel_step is not among them, as in fastai.
const EventSet inner_loop{Event::before_draw,        Event::before_batch,    Event::after_pred,
                          Event::after_loss,         Event::before_backward, Event::after_cancel_backward,
                          Event::after_backward,     Event::before_step,     Event::after_step,
                          Event::after_cancel_batch, Event::after_batch};

bool reaches(const Callback& callback, Event event, const LoopState& state) noexcept {
    if (!callback.run)
        return false;
    // Outside any pass both may let it through.
    return !inner_loop.contains(event) || (callback.run_train && state.training.value_or(true)) ||
           (callback.run_valid && !state.training.value_or(false));
}

}   // namespace

void CallbackList::add(Callback& callback) {
    const Entry entry{&callback, callback.events(), callback.order()};
    wanted_ |= entry.events;
    if (firing_ > 0)
        added_.push_back(entry);   // it joins at the next event
    else
        insert(entry);
}

void CallbackList::insert(const Entry& entry) {
    const auto at = std::upper_bound(entries_.begin(), entries_.end(), entry,
                                     [](const Entry& a, const Entry& b) { return a.order < b.order; });
    entries_.insert(at, entry);
}

void CallbackList::remove(Callback& callback) noexcept {
    const auto same = [&](const Entry& entry) { return entry.callback == &callback; };
    std::erase_if(added_, same);
    if (firing_ == 0)
        std::erase_if(entries_, same);
    else   // somebody walks the list: taken out when they are done
        std::for_each(entries_.begin(), entries_.end(), [&](Entry& entry) {
            if (same(entry))
                entry.callback = nullptr;
        });
}

void CallbackList::end_firing() {
    if (--firing_ > 0)
        return;
    std::erase_if(entries_, [](const Entry& entry) { return entry.callback == nullptr; });
    for (const Entry& entry : added_)
        insert(entry);
    added_.clear();
}

void CallbackList::fire(Event event, LoopState& state, LoopTrack& track) {
    if (wanted_.contains(event)) {
        ++firing_;
        try {
            call(event, state, track);
        } catch (...) {
            // A before event happened, and took until here; an after event never reached its second stamp.
            track.mark(name_of(event).starts_with("before") ? span_of(event) : Span::callbacks);
            end_firing();
            throw;
        }
        end_firing();
    } else {
        // The event's piece is there, without a length, so that actions have their edge.
        track.mark_until(span_of(event), track.last_ns());
    }
    if (event == Event::after_fit)
        for (const Entry& entry : entries_)
            if (entry.callback != nullptr)   // removed by a callback of a fit that runs another
                entry.callback->run = true;
}

void CallbackList::call(Event event, LoopState& state, LoopTrack& track) {
    enum class Part : std::uint8_t { before, inside, after } part = Part::before;
    bool called = false;
    for (const Entry& entry : entries_) {
        if (entry.callback == nullptr || !entry.events.contains(event) || !reaches(*entry.callback, event, state))
            continue;
        if (part == Part::before && entry.order >= first_inside) {
            if (called)
                track.mark(Span::callbacks);
            part = Part::inside;
        }
        if (part == Part::inside && entry.order > last_inside) {
            track.mark(span_of(event));
            part = Part::after;
        }
        entry.callback->on(event, state);
        called = true;
    }
    if (part == Part::inside) {
        track.mark(span_of(event));
        return;
    }
    if (called)
        track.mark(Span::callbacks);
    if (part == Part::before)
        track.mark_until(span_of(event), track.last_ns());
}

}   // namespace drawpoint
