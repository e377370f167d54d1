#include <drawpoint/loop/callback.hpp>

#include <algorithm>
#include <stdexcept>

#include <drawpoint/loop/cancel.hpp>

namespace drawpoint {
namespace {

// The orders of a profiler's two callbacks, each the last of its order. An event's time excludes callbacks before the
// first and after the second: fastai's TrainEvalCallback is before the first, its Recorder after the second.
constexpr int first_stamp = -9, second_stamp = 49;

bool reaches(const Callback& callback, Event event, const LoopState& state) noexcept {
    if (!callback.run)
        return false;
    // Outside any pass, one of run_train and run_valid is enough.
    return !inner_loop_events.contains(event) || (callback.run_train && state.training.value_or(true)) ||
           (callback.run_valid && !state.training.value_or(false));
}

/// Replaces an exception's message by `text`; the object, its type and a derived type's members stay the same.
template <class E>
void replace_message(E& error, const std::string& text) {
    if (error.what() != text)
        error = E(text);
}

constexpr std::string_view explanation = "Exception occured in `";

}   // namespace

Event event_named(std::string_view name) {
    for (std::size_t e = 0; e < event_count; ++e)
        if (name_of(static_cast<Event>(e)) == name)
            return static_cast<Event>(e);
    throw std::invalid_argument("missing " + std::string(name));
}

void CallbackList::add(Callback& callback) {
    const Entry entry{&callback, callback.events(), callback.order()};
    entries_.reserve(entries_.size() + added_.size() + 1);   // so that inserting later never allocates
    if (firing_ > 0) {
        added_.push_back(entry);   // it joins at the next event
        changed_ = true;
    } else {
        insert(entry);
    }
    wanted_ |= entry.events;
}

void CallbackList::insert(const Entry& entry) {
    const auto at = std::upper_bound(entries_.begin(), entries_.end(), entry,
                                     [](const Entry& a, const Entry& b) { return a.order < b.order; });
    entries_.insert(at, entry);
}

void CallbackList::remove(Callback& callback) noexcept {
    const auto same = [&](const Entry& entry) { return entry.callback == &callback; };
    std::erase_if(added_, same);
    if (firing_ > 0) {   // the list is being iterated: the entry is erased afterwards
        for (Entry& entry : entries_)
            if (same(entry))
                entry.callback = nullptr;
        changed_ = true;
        return;
    }
    std::erase_if(entries_, same);
    refresh_wanted();
}

void CallbackList::end_firing() noexcept {
    if (--firing_ > 0 || !changed_)
        return;
    changed_ = false;
    std::erase_if(entries_, [](const Entry& entry) { return entry.callback == nullptr; });
    for (const Entry& entry : added_)
        insert(entry);
    added_.clear();
    refresh_wanted();
}

void CallbackList::refresh_wanted() noexcept {
    wanted_ = {};
    for (const Entry& entry : entries_)
        wanted_ |= entry.events;
}

void CallbackList::reset_run() noexcept {
    for (const auto* entries : {&entries_, &added_})
        for (std::size_t i = entries->size(); i-- > 0;) {   // backwards, since removing moves the later ones
            Callback* const callback = i < entries->size() ? (*entries)[i].callback : nullptr;
            if (callback == nullptr)
                continue;
            callback->run = true;
            if (callback->fit_over())
                remove(*callback);
        }
}

std::vector<const Callback*> CallbackList::of(Event event) const {
    std::vector<const Callback*> callbacks;
    for (const Entry& entry : entries_)
        if (entry.callback != nullptr && entry.events.contains(event))
            callbacks.push_back(entry.callback);
    return callbacks;
}

void CallbackList::open(LoopState& state, LoopTrack& track) {
    last_error_.clear();
    if (created_)
        return;
    fire(Event::after_create, state, track);
    created_ = true;
}

void CallbackList::fire_wanted(Event event, LoopState& state, LoopTrack& track) {
    ++firing_;
    try {
        call(event, state, track);
    } catch (...) {
        // For a before event the time until here counts; an after event did not reach its second stamp.
        track.mark(name_of(event).starts_with("before") ? span_of(event) : Span::callbacks);
        end_firing();
        if (event == Event::after_fit)
            reset_run();
        throw;
    }
    end_firing();
    if (event == Event::after_fit)
        reset_run();
}

void CallbackList::call(Event event, LoopState& state, LoopTrack& track) {
    enum class Part : std::uint8_t { before, inside, after } part = Part::before;
    bool called = false;
    for (std::size_t i = 0; i < entries_.size(); ++i) {   // by index, since adding an entry may reallocate
        const Entry entry = entries_[i];
        if (entry.callback == nullptr || !entry.events.contains(event) || !reaches(*entry.callback, event, state))
            continue;
        if (part == Part::before && entry.order > first_stamp) {
            if (called)
                track.mark(Span::callbacks);
            part = Part::inside;
        }
        if (part == Part::inside && entry.order > second_stamp) {
            track.mark(span_of(event));
            part = Part::after;
        }
        invoke(*entry.callback, event, state);
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

void CallbackList::invoke(Callback& callback, Event event, LoopState& state) {
    try {
        callback.on(event, state);
    } catch (const Cancel&) {
        throw;
    } catch (...) {
        explain_error(callback.name(), event);
        throw;
    }
}

void CallbackList::explain_error(std::string_view name, Event event) noexcept {
    const auto explain = [&](const char* message) {
        if (std::string_view{message}.starts_with(explanation))   // it has passed through a CallbackList before
            last_error_ = message;
        else
            last_error_ = std::string(explanation) + std::string(name) + "` when calling event `" +
                          std::string(name_of(event)) + "`:\n\t" + message;
    };
    try {
        last_error_.clear();
        try {
            throw;
        } catch (std::runtime_error& error) {
            explain(error.what());
            replace_message(error, last_error_);
        } catch (std::logic_error& error) {
            explain(error.what());
            replace_message(error, last_error_);
        } catch (const std::exception& error) {
            explain(error.what());
        } catch (...) {
            explain("an exception without a message");
        }
    } catch (...) {   // out of memory: the exception propagates unchanged
    }
}

}   // namespace drawpoint
