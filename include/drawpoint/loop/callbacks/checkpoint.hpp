#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <drawpoint/loop/callbacks/checkpoint_file.hpp>
#include <drawpoint/loop/callbacks/learner_hooks.hpp>
#include <drawpoint/loop/callbacks/monitor.hpp>
#include <drawpoint/loop/event_callback.hpp>

namespace drawpoint {

/// How far a run had got.
struct TrainingPosition {
    std::size_t epochs = 0;   ///< finished: the `first_epoch` of the fit that goes on
    std::size_t steps = 0;    ///< training steps finished
    bool operator==(const TrainingPosition&) const = default;
};

/// What a run must have in common with the one it resumes, by name: model, data, batch size, seed …
using RunOptions = std::map<std::string, std::string>;

namespace detail {

void save_position(Checkpoint& to, const TrainingPosition& position, const RunOptions& options);
/// Throws CheckpointError naming the first option that differs.
[[nodiscard]] TrainingPosition load_position(const Checkpoint& from, const RunOptions& options);
void save_states(Checkpoint& to, std::span<Stateful* const> states);
void load_states(const Checkpoint& from, std::span<Stateful* const> states);

}   // namespace detail

/// Writes model, optimizer, callbacks' states and position to one file, whole or not at all. Between two steps, best at
/// an epoch's end. Throws CheckpointError.
template <SavableLearner L>
void save_checkpoint(const std::filesystem::path& file, const L& learner, const TrainingPosition& position,
                     std::span<Stateful* const> states = {}, const RunOptions& options = {}) {
    Checkpoint checkpoint;
    learner.save(checkpoint);
    detail::save_position(checkpoint, position, options);
    detail::save_states(checkpoint, states);
    checkpoint.write(file);
}

/// Takes all of it over again; fit with `first_epoch` = position.epochs then goes on as if never interrupted. States
/// are found by name, equal names in their order. Throws CheckpointError naming the file when it is none, cut short or
/// changed, has other options, another model, or lacks a state; then neither learner nor states have changed.
template <SavableLearner L>
TrainingPosition load_checkpoint(const std::filesystem::path& file, L& learner, std::span<Stateful* const> states = {},
                                 const RunOptions& options = {}) {
    const Checkpoint checkpoint = Checkpoint::read(file);
    const TrainingPosition position = detail::load_position(checkpoint, options);
    Checkpoint before;
    detail::save_states(before, states);
    try {
        detail::load_states(checkpoint, states);
        learner.load(checkpoint);
    } catch (...) {
        detail::load_states(before, states);
        throw;
    }
    return position;
}

struct CheckpointOptions {
    std::filesystem::path file;   ///< with keep > 1 its stem gets the number of epochs: run.ckpt becomes run-0004.ckpt
    std::size_t every = 1;        ///< epochs from one to the next, ≥ 1
    std::size_t keep = 1;         ///< of the files made, so many of the last stay; 0: all
    bool best_only = false;       ///< only when the monitored value is the best so far; `every` is 1 then
    MonitorOptions monitor{};
    RunOptions run{};             ///< kept in the file, for load_checkpoint to compare
    std::size_t first_step = 0;   ///< training steps of the run before this fit: TrainingPosition::steps
};

/// When a checkpoint is due and under which name; no learner in it.
class CheckpointPlan {
public:
    /// Throws std::invalid_argument naming option and value; `best_only` needs the recorder.
    CheckpointPlan(CheckpointOptions options, const MetricsRecorder* recorder);

    /// A fit begins at this epoch.
    void restart(std::size_t first_epoch);
    /// Whether the end of this epoch makes one.
    [[nodiscard]] bool due(std::size_t epoch);
    /// The file for so many finished epochs.
    [[nodiscard]] std::filesystem::path file_of(std::size_t epochs) const;
    /// A file was made: removes those no longer kept. One that cannot be removed stays.
    void made(std::size_t epochs);
    [[nodiscard]] const CheckpointOptions& options() const noexcept { return options_; }

private:
    CheckpointOptions options_;
    std::optional<Monitor> monitor_;
    std::vector<std::size_t> made_;   // epochs of the files that are kept
};

/// Saves a checkpoint at the ends of epochs. None at the end of one whose training
/// was cut short (a cancel, `max_steps`): a resumed run would leave its rest out. Ordered after the
/// recorder and ReduceOnPlateau, before EarlyStopping.
template <SavableLearner L>
class CheckpointCallback final : public EventCallback<CheckpointCallback<L>> {
public:
    /// `states`: what else a resumed run needs, mostly recorder, schedule and accumulation. All of them outlive it.
    /// Throws std::invalid_argument naming option and value.
    CheckpointCallback(const L& learner, CheckpointOptions options, std::vector<Stateful*> states = {},
                       const MetricsRecorder* recorder = nullptr)
        : learner_{&learner}, states_{std::move(states)}, plan_{std::move(options), recorder} {}

    [[nodiscard]] std::string_view name() const noexcept override { return "CheckpointCallback"; }
    [[nodiscard]] int order() const noexcept override { return 61; }
    void before_fit(const LoopState& state) { plan_.restart(state.epoch); }
    void before_epoch() { trained_ = false; }
    void after_train(const LoopState& state) { trained_ = !state.batches || state.batch >= *state.batches; }
    void after_epoch(const LoopState& state) {
        if (!trained_ || !plan_.due(state.epoch))
            return;
        const TrainingPosition position{state.epoch + 1, plan_.options().first_step + state.train_steps};
        save_checkpoint(plan_.file_of(position.epochs), *learner_, position, states_, plan_.options().run);
        plan_.made(position.epochs);
        saved_ = position;
    }

    /// Of the last file made in this run; 0 epochs: none.
    [[nodiscard]] const TrainingPosition& saved() const noexcept { return saved_; }

private:
    const L* learner_;
    std::vector<Stateful*> states_;
    CheckpointPlan plan_;
    TrainingPosition saved_;
    bool trained_ = false;   // the epoch at hand, to its end
};

}   // namespace drawpoint
