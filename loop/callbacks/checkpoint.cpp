#include <drawpoint/loop/callbacks/checkpoint.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <system_error>

#include <fmt/format.h>

namespace drawpoint {
namespace detail {
namespace {

/// Calls `each` with every state and the prefix of its keys; states with equal names are numbered in order.
template <class Each>
void with_prefixes(std::span<Stateful* const> states, Each each) {
    std::map<std::string, int> count;
    for (Stateful* const state : states) {
        const std::string name{state->state_name()};
        const int number = ++count[name];
        each(*state, number == 1 ? fmt::format("state.{}.", name) : fmt::format("state.{}.{}.", name, number));
    }
}

}   // namespace

void save_position(Checkpoint& to, const TrainingPosition& position, const RunOptions& options) {
    to.set_integer("position.epochs", static_cast<std::int64_t>(position.epochs));
    to.set_integer("position.steps", static_cast<std::int64_t>(position.steps));
    for (const auto& [name, value] : options)
        to.set_text("run." + name, value);
}

TrainingPosition load_position(const Checkpoint& from, const RunOptions& options) {
    for (const auto& [name, value] : options) {
        const std::string* const there = from.find_text("run." + name);
        if (there == nullptr)
            from.refuse(fmt::format("does not say its {}, which is {} here", name, value));
        if (*there != value)
            from.refuse(fmt::format("its {} is {}, here it is {}", name, *there, value));
    }
    const auto count = [&](const char* name, std::int64_t most) {
        const std::int64_t value = from.integer(name);
        if (value < 0 || value > most)
            from.refuse(fmt::format("its {} is {}", name, value));
        return static_cast<std::size_t>(value);
    };
    return {count("position.epochs", std::numeric_limits<std::uint32_t>::max()),
            count("position.steps", std::numeric_limits<std::int64_t>::max())};
}

void set_bytes(Checkpoint& to, const std::string& name, std::string bytes) {
    const auto kept = std::make_shared<const std::string>(std::move(bytes));
    to.set(name, {"U8", {static_cast<std::int64_t>(kept->size())}, std::as_bytes(std::span{*kept}), kept});
}

void save_states(Checkpoint& to, std::span<Stateful* const> states) {
    with_prefixes(states, [&](const Stateful& state, const std::string& prefix) { state.save(to, prefix); });
}

void load_states(const Checkpoint& from, std::span<Stateful* const> states) {
    with_prefixes(states, [&](Stateful& state, const std::string& prefix) { state.load(from, prefix); });
}

}   // namespace detail

CheckpointPlan::CheckpointPlan(CheckpointOptions options, std::span<Stateful* const> states,
                               const MetricsRecorder* recorder)
    : options_{std::move(options)} {
    const auto require = [](bool holds, const char* what) {
        if (!holds)
            throw std::invalid_argument{fmt::format("CheckpointCallback: {}", what)};
    };
    require(options_.file.has_filename(), "file must name a file");
    require(options_.every >= 1, "every must be at least 1, got 0");
    if (options_.every_steps != 0) {
        require(options_.keep == 1 && !options_.best_only, "every_steps needs keep = 1 and best_only = false");
        require(std::ranges::any_of(
                    states, [](const Stateful* state) { return state->state_name() == detail::position_state; }),
                "every_steps needs a LoaderPosition among the states");
    }
    if (options_.best_only) {
        require(options_.every == 1, "best_only looks at every epoch, so every must be 1");
        require(recorder != nullptr, "best_only needs a MetricsRecorder to watch");
        monitor_.emplace(*recorder, options_.monitor, "CheckpointCallback");
    }
}

void CheckpointPlan::restart(std::size_t first_epoch) {
    made_.clear();
    if (monitor_)
        monitor_->restart();
    std::size_t epoch = 0;
    if (!monitor_ && options_.keep == 0)
        epoch = first_epoch;   // none is ever removed
    else if (!monitor_ && first_epoch / options_.every > options_.keep)
        epoch = (first_epoch / options_.every - options_.keep) * options_.every;
    for (; epoch < first_epoch; ++epoch)
        if (monitor_ ? monitor_->next().value_or(false) : (epoch + 1) % options_.every == 0)
            made_.push_back(epoch + 1);
    if (options_.keep > 0 && made_.size() > options_.keep)
        made_.erase(made_.begin(), made_.end() - static_cast<std::ptrdiff_t>(options_.keep));
}

bool CheckpointPlan::due(std::size_t epoch) {
    return monitor_ ? monitor_->newest() : (epoch + 1) % options_.every == 0;
}

std::filesystem::path CheckpointPlan::file_of(std::size_t epochs) const {
    if (options_.keep == 1)
        return options_.file;
    std::filesystem::path file = options_.file;
    file.replace_filename(
        fmt::format("{}-{:04}{}", options_.file.stem().string(), epochs, options_.file.extension().string()));
    return file;
}

void CheckpointPlan::made(std::size_t epochs) {
    made_.push_back(epochs);
    if (options_.keep == 0 || made_.size() <= options_.keep)
        return;
    if (const std::filesystem::path oldest = file_of(made_.front()); oldest != file_of(epochs)) {
        std::error_code stays;
        std::filesystem::remove(oldest, stays);
    }
    made_.erase(made_.begin());
}

}   // namespace drawpoint
