#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <nanobind/nanobind.h>

#include <drawpoint/instrumentation/host/detail/fork_check.hpp>
#include <drawpoint/instrumentation/recorder/loop_track.hpp>

namespace drawpoint::python {

class LoopSteps;

/// A recording that loops of this process share. Used with the interpreter's lock held. In a forked child it does
/// nothing.
class Recording {
public:
    explicit Recording(const std::string& file);
    Recording(const Recording&) = delete;
    Recording& operator=(const Recording&) = delete;
    ~Recording();

    /// Throws std::runtime_error if it is closed, or another process's.
    [[nodiscard]] LoopTrack& track();
    [[nodiscard]] Recorder& recorder() noexcept { return *recorder_; }
    [[nodiscard]] const std::string& file() const noexcept { return file_; }
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
    friend class LoopSteps;
    void end_passes_after(const LoopSteps*);   // null: all
    void leave_step();                         // that is open, whosever

    std::string file_;
    ForkCheck fork_;
    std::unique_ptr<Recorder> recorder_;
    std::unique_ptr<LoopTrack> track_;
    std::vector<LoopSteps*> passes_;   // that are open, outermost first
    LoopSteps* stepping_ = nullptr;    // whose step is open
    LoopSteps* drawing_ = nullptr;     // whose draw is
    bool divides_ = false;
};

/// The draws and steps of one loop in a recording: what the program does after a draw belongs to its step. If loops of
/// one recording alternate, a step ends where another loop begins; one within another's draw is not recorded.
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
    void begin_pass(std::uint32_t epoch, std::uint32_t first_batch);
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
    bool in_pass_ = false, draws_ = false;
};

/// Ends all recordings of this process that are open.
void close_recordings();

void add_recording(nanobind::module_&);

}   // namespace drawpoint::python
