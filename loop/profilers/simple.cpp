#include <drawpoint/loop/profilers/simple.hpp>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

namespace drawpoint {
namespace {

/// Converts to seconds first, so that results round as in a program whose clock returns doubles.
double seconds(std::int64_t ns) { return static_cast<double>(ns) / 1e9; }

}   // namespace

void ExactSum::add(double value) {
    if (!std::isfinite(value)) {
        special_ += value;
        is_special_ = true;
        return;
    }
    // Shewchuk's growing expansion: each partial holds the rounding error of the larger ones.
    std::size_t kept = 0;
    for (double partial : partials_) {
        if (std::abs(value) < std::abs(partial))
            std::swap(value, partial);
        const double high = value + partial, low = partial - (high - value);
        if (low != 0)
            partials_[kept++] = low;
        value = high;
    }
    partials_.resize(kept);
    partials_.push_back(value);
}

double ExactSum::value() const noexcept {
    if (is_special_)
        return special_;
    double sum = 0, low = 0;
    std::size_t i = partials_.size();
    while (i > 0) {
        const double before = sum, partial = partials_[--i];
        sum = before + partial;
        low = partial - (sum - before);
        if (low != 0)
            break;
    }
    // If the sum is halfway between two doubles, the next partial's sign decides the direction of rounding.
    if (i > 0 && ((low < 0 && partials_[i - 1] < 0) || (low > 0 && partials_[i - 1] > 0))) {
        const double twice = low * 2, rounded = sum + twice;
        if (twice == rounded - sum)
            sum = rounded;
    }
    return sum;
}

SimpleProfiler::SimpleProfiler(ProfilerFiles files, LightningOptions options, const AnyClock& clock)
    : Profiler{std::move(files)}, clock_{clock}, options_{options}, made_ns_{clock_.now_ns()} {}

SimpleProfiler::SimpleProfiler(Recorder& recorder, ProfilerFiles files, LightningOptions options)
    : SimpleProfiler{std::move(files), options, recorder.clock()} {
    recorder_ = &recorder;
}

std::size_t SimpleProfiler::index_of(std::string_view action) {
    if (const auto found = index_.find(action); found != index_.end())
        return found->second;
    const std::size_t index = actions_.size();
    actions_.emplace_back().name = action;
    if (recorder_ != nullptr)
        actions_.back().region_name = recorder_->add_name(action);
    index_.emplace(action, index);
    return index;
}

void SimpleProfiler::start(std::string_view action) {
    const std::size_t index = index_of(action);
    if (std::ranges::find(open_, index, &Open::action) != open_.end())
        throw std::invalid_argument{"Attempted to start " + std::string{action} + " which has already started."};
    Open open{.action = index, .begin_ns = 0, .ticket = 0};
    if (recorder_ != nullptr)
        open.ticket = recorder_->begin_operator({.name = actions_[index].region_name});
    open.begin_ns = clock_.now_ns();
    open_.push_back(open);
}

void SimpleProfiler::stop(std::string_view action) {
    const std::int64_t end_ns = clock_.now_ns();
    const auto known = index_.find(action);
    const auto found = known == index_.end() ? open_.end() : std::ranges::find(open_, known->second, &Open::action);
    if (found == open_.end())
        throw std::invalid_argument{"Attempting to stop recording an action (" + std::string{action} +
                                    ") which was never started."};
    if (recorder_ != nullptr) {
        // Regions must nest: those begun later are ended here too and continue as new ones.
        for (auto inner = open_.end(); inner-- != found;)
            recorder_->end_operator(inner->ticket);
        for (auto inner = found + 1; inner != open_.end(); ++inner)
            inner->ticket = recorder_->begin_operator({.name = actions_[inner->action].region_name});
    }
    const double duration = seconds(end_ns) - seconds(found->begin_ns);
    Action& ended = actions_[found->action];
    if (ended.calls++ == 0)
        ended_.push_back(found->action);
    ended.total.add(duration);
    if (ended.durations.size() < kept_durations)
        ended.durations.push_back(duration);
    open_.erase(found);
}

LightningProfile SimpleProfiler::profile_values() const {
    LightningProfile values{.stage = stage(), .total_s = seconds(clock_.now_ns()) - seconds(made_ns_), .actions = {}};
    for (const std::size_t index : ended_)
        values.actions.push_back({actions_[index].name, actions_[index].calls, actions_[index].total.value()});
    return values;
}

std::string SimpleProfiler::summary() { return to_lightning(profile_values(), options_); }

std::span<const double> SimpleProfiler::durations(std::string_view action) const noexcept {
    const auto found = index_.find(action);
    return found == index_.end() ? std::span<const double>{} : actions_[found->second].durations;
}

}   // namespace drawpoint
