#include <drawpoint/loop/profilers/profiler_callback.hpp>

#include <algorithm>
#include <ostream>
#include <utility>

#include <drawpoint/instrumentation/report/lightning.hpp>

namespace drawpoint {
namespace {

/// A level of the loop. Actions begun inside it are stopped at its end, even if a cancel left them open.
struct Level {
    Event before, after;
};
constexpr std::array levels{
    Level{Event::before_fit, Event::after_fit},           Level{Event::before_epoch, Event::after_epoch},
    Level{Event::before_train, Event::after_train},       Level{Event::before_validate, Event::after_validate},
    Level{Event::before_batch, Event::after_batch},       Level{Event::before_step, Event::after_step},
    Level{Event::before_backward, Event::after_backward},
};

constexpr std::size_t position(Event event) noexcept { return static_cast<std::size_t>(event); }

std::string_view hook_at(Event event, bool valid) noexcept {
    const auto found = std::ranges::find(lightning_hooks, event, &LightningHook::event);
    return found == lightning_hooks.end() ? "" : valid ? found->valid : found->train;
}

bool same(Edge a, Edge b) noexcept { return a.event == b.event && a.end == b.end; }

std::string_view name_of(const LightningSpan& span, bool valid) noexcept { return valid ? span.valid : span.train; }

}   // namespace

ProfilerCallback::ProfilerCallback(Profiler& profiler, int local_rank, std::filesystem::path log_dir)
    : profiler_{&profiler}, local_rank_{local_rank}, log_dir_{std::move(log_dir)} {}

void ProfilerCallback::add_to(CallbackList& callbacks) {
    callbacks.add(before_);
    callbacks.add(after_);
}

EventSet ProfilerCallback::Stamp::events() const noexcept {
    EventSet wanted{Event::before_draw, Event::after_loss};
    for (const LightningHook& hook : lightning_hooks)
        wanted |= EventSet{hook.event};
    return wanted;
}

bool ProfilerCallback::Stamp::fit_over() noexcept {
    try {
        owner_->stop_down_to(0);   // stops actions that an exception left open
    } catch (...) {                // someone else has stopped them already
        owner_->open_.clear();
    }
    owner_->in_fit_ = false;
    return false;
}

void ProfilerCallback::edge(Edge at, const LoopState& state) {
    const bool valid = !state.training.value_or(true);
    const std::string_view hook = hook_at(at.event, valid);
    if (at.end) {
        stop(hook);
        for (const LightningSpan& span : lightning_spans)
            if (same(span.to, at))
                stop(name_of(span, valid));
        if (at.event == Event::after_epoch)
            stop(lightning_epoch);
        for (const LightningSpan& span : lightning_spans)
            if (same(span.from, at))
                start(name_of(span, valid));
        if (at.event == Event::after_fit || (at.event == Event::after_validate && !in_fit_))
            report();
        return;
    }
    if (at.event == Event::before_fit || (at.event == Event::before_validate && !in_fit_)) {
        before_.fit_over();   // a failed validation does not call it
        in_fit_ = at.event == Event::before_fit;
        profiler_->setup(in_fit_ ? "fit" : "validate", local_rank_, log_dir_);
    }
    if (const auto level = std::ranges::find(levels, at.event, &Level::after); level != levels.end())
        stop_down_to(depth_[position(level->before)]);
    else if (at.event == Event::before_draw || at.event == Event::before_batch)
        stop_down_to(depth_[position(valid ? Event::before_validate : Event::before_train)]);
    if (at.event == Event::before_epoch)
        start(lightning_epoch);
    for (const LightningSpan& span : lightning_spans)
        if (same(span.from, at))
            start(name_of(span, valid));
    depth_[position(at.event)] = open_.size();
    start(hook);
}

void ProfilerCallback::start(std::string_view action) {
    if (action.empty())
        return;
    profiler_->start(action);
    open_.push_back(action);
}

void ProfilerCallback::stop(std::string_view action) {
    if (const auto found = std::ranges::find(open_, action); found != open_.end())
        stop_down_to(static_cast<std::size_t>(found - open_.begin()));
}

void ProfilerCallback::stop_down_to(std::size_t depth) {
    while (open_.size() > depth) {
        const std::string_view action = open_.back();
        open_.pop_back();
        profiler_->stop(action);
    }
}

void ProfilerCallback::report() {
    try {
        profiler_->describe();
    } catch (const std::exception& failed) {   // a full disk must not end the training
        error_ = failed.what();
        profiler_->output() << "the profiler's report could not be written: " << error_ << std::endl;
    }
}

}   // namespace drawpoint
