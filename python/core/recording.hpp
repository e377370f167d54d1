#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nanobind/nanobind.h>

#include <drawpoint/instrumentation/clock.hpp>
#include <drawpoint/instrumentation/host/detail/fork_check.hpp>
#include <drawpoint/instrumentation/recorder/loop_track.hpp>

namespace drawpoint::python {

class FitSteps;
class LoopSteps;

/// A batch that a watched loader has brought.
struct DrawnBatch {
    std::uint32_t size, number;
};

/// A recording that loops of this process share. Used with the interpreter's lock held. In a forked child it does
/// nothing.
class Recording {
public:
    /// Without a file it is in memory. `clock`: null is the process's.
    explicit Recording(const std::optional<std::string>& file, std::shared_ptr<ManualClock> clock = nullptr);
    Recording(const Recording&) = delete;
    Recording& operator=(const Recording&) = delete;
    ~Recording();

    /// Throws std::runtime_error if it is closed, or another process's.
    [[nodiscard]] LoopTrack& track();
    [[nodiscard]] Recorder& recorder() noexcept { return *recorder_; }
    [[nodiscard]] const std::optional<std::string>& file() const noexcept { return file_; }
    [[nodiscard]] bool is_open() const noexcept { return track_ != nullptr && !fork_.is_forked(); }
    /// What the program did since the last mark was this action of the open step: "forward", "loss", "backward",
    /// "opt_step", "zero_grad" or "other". Nothing outside every step. Throws nanobind::value_error for another word.
    void mark(const std::string& action);
    /// From now on steps are divided by mark().
    void divide_steps() noexcept { divides_ = true; }
    /// The report on what is recorded so far.
    [[nodiscard]] std::string report();
    /// Ends all passes and the file. Idempotent.
    void close();

private:
    friend class FitSteps;
    friend class LoopSteps;
    void begin_fit(FitSteps&);   // which begins and ends passes and steps until end_fit()
    void end_fit();
    void end_passes_after(const LoopSteps*);   // null: all
    void leave_step();                         // that is open, whosever
    [[nodiscard]] std::string named() const { return file_ ? "the recording " + *file_ : "the recording"; }

    std::optional<std::string> file_;
    std::shared_ptr<ManualClock> clock_;
    ForkCheck fork_;
    std::unique_ptr<Recorder> recorder_;
    std::unique_ptr<LoopTrack> track_;
    std::vector<LoopSteps*> passes_;   // that are open, outermost first
    LoopSteps* stepping_ = nullptr;    // whose step is open
    LoopSteps* drawing_ = nullptr;     // whose draw is
    bool divides_ = false, in_fit_ = false;
    FitSteps* driver_ = nullptr;        // whose fit is open
    std::optional<DrawnBatch> drawn_;   // what the open draw of that fit has brought
    bool draw_failed_ = false;          // it raised
    std::uint32_t next_epoch_ = 0;      // of the next fit's first pass
};

/// The draws and steps of one loop in a recording: what the program does after a draw belongs to its step. If loops of
/// one recording alternate, a step ends where another loop begins; one within another's draw is not recorded. In a
/// framework's fit (FitSteps), that says when steps and passes begin and end.
class LoopSteps {
public:
    /// `recording` may be null: then nothing is recorded.
    LoopSteps(std::shared_ptr<Recording> recording, Phase phase) noexcept
        : recording_{std::move(recording)}, phase_{phase} {}
    LoopSteps(const LoopSteps&) = delete;
    LoopSteps& operator=(const LoopSteps&) = delete;
    ~LoopSteps();

    [[nodiscard]] bool records() const noexcept { return recording_ && recording_->is_open(); }
    [[nodiscard]] LoopTrack& track() { return recording_->track(); }
    [[nodiscard]] const std::shared_ptr<Recording>& recording() const noexcept { return recording_; }

    /// Ends the pass before. `first_batch`: number of the first that is drawn.
    /// Returns the pass's epoch in the recording.
    std::uint32_t begin_pass(std::uint32_t epoch, std::uint32_t first_batch);
    /// Nothing, where a draw has begun.
    void begin_draw();
    [[nodiscard]] bool draws() const noexcept { return draws_; }
    /// At the track's last reading.
    void end_draw(std::uint32_t size, std::uint32_t batch);
    /// It failed, now.
    void fail_draw();
    /// It found the end, or is given up, now.
    void leave_draw();
    void end_pass();

private:
    friend class Recording;
    void end_step();

    std::shared_ptr<Recording> recording_;
    Phase phase_;
    std::uint32_t epoch_ = 0, batch_ = 0;
    bool in_pass_ = false, draws_ = false, is_driven_ = false;   // is_driven_: its pass is within a framework's fit
};

/// Ends all recordings of this process that are open.
void close_recordings();

void add_recording(nanobind::module_&);

}   // namespace drawpoint::python
