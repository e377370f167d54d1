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

/// The progress of a run. The fit that continues has `first_epoch` = epochs and `resumed` = (steps > 0).
struct TrainingPosition {
    std::size_t epochs = 0;   ///< finished epochs
    std::size_t steps = 0;    ///< training steps finished
    bool operator==(const TrainingPosition&) const = default;
};

/// Options, by name, that a run must share with the one it resumes: model, data, batch size, seed … Loading compares
/// those that it is given; others in the file are ignored.
using RunOptions = std::map<std::string, std::string>;

namespace detail {

void save_position(Checkpoint& to, const TrainingPosition& position, const RunOptions& options);
/// Throws CheckpointError naming the first option that differs.
[[nodiscard]] TrainingPosition load_position(const Checkpoint& from, const RunOptions& options);
inline constexpr std::string_view position_state = "loader";
void set_bytes(Checkpoint& to, const std::string& name, std::string bytes);
void save_states(Checkpoint& to, std::span<Stateful* const> states);
void load_states(const Checkpoint& from, std::span<Stateful* const> states);

}   // namespace detail

/// Writes model, optimizer, the callbacks' states and the position to one file, atomically. Call it between two steps,
/// best at the end of an epoch. Throws CheckpointError.
template <SavableLearner L>
void save_checkpoint(const std::filesystem::path& file, const L& learner, const TrainingPosition& position,
                     std::span<Stateful* const> states = {}, const RunOptions& options = {}) {
    Checkpoint checkpoint;
    learner.save(checkpoint);
    detail::save_position(checkpoint, position, options);
    detail::save_states(checkpoint, states);
    checkpoint.write(file);
}

/// Restores what save_checkpoint() wrote; a fit that starts there (TrainingPosition) then continues as if never
/// interrupted. Within an epoch that needs the loader's position, too (LoaderPosition). States are matched by name,
/// those with equal names in their order. Throws CheckpointError naming the file when it is not a checkpoint, truncated
/// or modified, has other options or another model, or lacks a state; learner and states are then unchanged, but a
/// loader goes on from where it is, as after restore() of its own state().
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
    std::filesystem::path file;   ///< with keep > 1 the number of epochs is added: run.ckpt becomes run-0004.ckpt
    std::size_t every = 1;        ///< a checkpoint after each epoch whose number, from 1, is a multiple of it, ≥ 1
    /// Also a checkpoint after each training step whose number, from 1 and with first_step, is a multiple of it; 0:
    /// none. Needs a LoaderPosition among the states; then `keep` must be 1, and best_only false.
    std::size_t every_steps = 0;
    std::size_t keep = 1;     ///< number of latest files to keep; 0: all
    bool best_only = false;   ///< save only when the monitored value is the best so far; `every` must be 1
    MonitorOptions monitor{};
    RunOptions run{};             ///< stored in the file, for load_checkpoint to compare
    std::size_t first_step = 0;   ///< training steps of the run before this fit: TrainingPosition::steps
};

/// Stores a loader's position in checkpoints, so that a resumed run draws what the interrupted one had not drawn.
/// Loading refuses a loader of other data or another order (CheckpointError).
template <class Loader>
    requires requires(Loader& loader, std::string state) {
        { std::as_const(loader).state() } -> std::same_as<std::string>;
        loader.restore(state);
    }
class LoaderPosition final : public Stateful {
public:
    /// The loader must outlive it.
    explicit LoaderPosition(Loader& loader) noexcept : loader_{&loader} {}
    [[nodiscard]] std::string_view state_name() const noexcept override { return detail::position_state; }
    void save(Checkpoint& to, const std::string& prefix) const override {
        detail::set_bytes(to, prefix + "bytes", loader_->state());
    }
    void load(const Checkpoint& from, const std::string& prefix) override {
        const Checkpoint::Array* const bytes = from.find(prefix + "bytes");
        if (bytes == nullptr)
            from.refuse("has no position of the loader");
        try {
            loader_->restore(std::string{reinterpret_cast<const char*>(bytes->data.data()), bytes->data.size()});
        } catch (const std::invalid_argument& error) {
            from.refuse(error.what());
        }
    }

private:
    Loader* loader_;
};

/// Decides when a checkpoint is due and how its file is named; independent of the learner.
class CheckpointPlan {
public:
    /// Throws std::invalid_argument naming option and value; `best_only` needs the recorder.
    CheckpointPlan(CheckpointOptions options, std::span<Stateful* const> states, const MetricsRecorder* recorder);

    /// Call it when a fit begins, with its first epoch.
    void restart(std::size_t first_epoch);
    /// Whether a checkpoint is due at the end of this epoch.
    [[nodiscard]] bool due(std::size_t epoch);
    /// The file for this number of finished epochs.
    [[nodiscard]] std::filesystem::path file_of(std::size_t epochs) const;
    /// Call it when a file was written: removes the files that are no longer kept, except one that cannot be removed.
    void made(std::size_t epochs);
    [[nodiscard]] const CheckpointOptions& options() const noexcept { return options_; }

private:
    CheckpointOptions options_;
    std::optional<Monitor> monitor_;
    std::vector<std::size_t> made_;   // epochs of the files that are kept
};

/// Saves a checkpoint at the ends of epochs, except of one whose training was cut short (by a cancel or `max_steps`),
/// since a resumed run would miss its rest; with `every_steps` also within epochs. It runs after the recorder and
/// ReduceOnPlateau and before EarlyStopping.
template <SavableLearner L>
class CheckpointCallback final : public EventCallback<CheckpointCallback<L>> {
public:
    /// `states` is what else a resumed run needs, usually recorder, schedule and accumulation. All arguments must
    /// outlive the callback. Throws std::invalid_argument naming option and value.
    CheckpointCallback(const L& learner, CheckpointOptions options, std::vector<Stateful*> states = {},
                       const MetricsRecorder* recorder = nullptr)
        : learner_{&learner}, states_{std::move(states)}, plan_{std::move(options), states_, recorder} {}

    [[nodiscard]] std::string_view name() const noexcept override { return "CheckpointCallback"; }
    [[nodiscard]] int order() const noexcept override { return 61; }
    [[nodiscard]] EventSet events() const noexcept override {
        const EventSet all = EventCallback<CheckpointCallback>::events();
        return plan_.options().every_steps != 0 ? all : all.without(Event::after_batch);
    }
    void before_fit(const LoopState& state) { plan_.restart(state.epoch); }
    void before_epoch() { trained_ = false; }
    void after_batch(const LoopState& state) {
        const std::size_t every = plan_.options().every_steps;
        const TrainingPosition position{state.epoch, plan_.options().first_step + state.train_steps + 1};
        if (every != 0 && state.training.value_or(false) && position.steps % every == 0)
            save(position);
    }
    void after_train(const LoopState& state) { trained_ = !state.batches || state.batch >= *state.batches; }
    void after_epoch(const LoopState& state) {
        if (!trained_ || !plan_.due(state.epoch))
            return;
        save({state.epoch + 1, plan_.options().first_step + state.train_steps});
        plan_.made(state.epoch + 1);
    }

    /// The position of the last file written in this run; 0 steps if there is none.
    [[nodiscard]] const TrainingPosition& saved() const noexcept { return saved_; }

private:
    void save(const TrainingPosition& position) {
        save_checkpoint(plan_.file_of(position.epochs), *learner_, position, states_, plan_.options().run);
        saved_ = position;
    }

    const L* learner_;
    std::vector<Stateful*> states_;
    CheckpointPlan plan_;
    TrainingPosition saved_;
    bool trained_ = false;   // the current epoch's training has reached its end
};

}   // namespace drawpoint
