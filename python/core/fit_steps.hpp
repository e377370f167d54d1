#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nanobind/nanobind.h>

#include <drawpoint/instrumentation/report/fastxtend.hpp>
#include <drawpoint/instrumentation/report/fastxtend_log.hpp>

#include "python/core/recording.hpp"

namespace drawpoint::python {

/// The fits that a framework runs, whose callbacks say when passes, draws and the actions of a step begin and end. A
/// watched loader of the same recording adds what its workers do. What a cancel or an exception leaves open ends as its
/// pass does. Outside a fit nothing is recorded. Used with the interpreter's lock held.
class FitSteps {
public:
    /// `mode`: "throughput" or "simple", of the report and the live values. Throws nanobind::value_error for another,
    /// std::runtime_error if the recording is closed.
    FitSteps(std::shared_ptr<Recording> recording, const std::string& mode, std::size_t rolling_average,
             bool drop_first_batch);
    FitSteps(const FitSteps&) = delete;
    FitSteps& operator=(const FitSteps&) = delete;
    ~FitSteps();

    void before_fit();
    /// `kind`: "epoch", "train" or "valid". Ends one of that kind that is open.
    void before_pass(const std::string& kind, std::uint32_t epoch);
    void before_draw(bool trains);
    /// The draw has brought a batch of `size` samples, which is where the model is. 0: as a watched loader said, or 1.
    void before_batch(bool trains, std::uint32_t size);
    /// What the step did since the last call is the action that this event ends: "after_pred", "after_loss",
    /// "before_backward", "before_step", "after_step" or "after_batch", whose callbacks follow. `cancels`: a training
    /// step that ends between its loss and its optimizer's step was cancelled.
    void mark(const std::string& event, bool cancels);
    /// The step is over. Returns the samples a second to log after it, or none.
    std::vector<FastxtendLogValue> after_batch();
    void after_pass(const std::string& kind);
    void after_fit();
    /// Ends the fit where it is.
    void leave();

    [[nodiscard]] bool is_in_draw() const noexcept { return where_ == Where::draw; }
    [[nodiscard]] bool is_in_batch() const noexcept { return where_ == Where::batch; }
    [[nodiscard]] std::uint32_t epoch() const noexcept { return epoch_; }   ///< of the pass, in the recording

    /// Whether the fit has had a training pass.
    [[nodiscard]] bool trained() const noexcept { return trained_; }
    /// The report of the fit that after_fit() ended, texts and cells; None: it was left before. O(recording).
    [[nodiscard]] nanobind::object report();

private:
    [[nodiscard]] bool fits() const noexcept;
    void begin_step(bool trains);
    void leave_step();
    void leave_to(std::size_t depth);

    std::shared_ptr<Recording> recording_;
    ProfileMode mode_;
    std::size_t rolling_average_;
    bool drop_first_batch_;
    FastxtendLiveLog live_;
    std::vector<PassKind> open_;                  // outermost first
    std::uint32_t first_epoch_ = 0, epoch_ = 0;   // of the recording: of this fit's first pass, of the last one
    std::array<std::uint32_t, 2> numbers_{};      // of the epoch's next batch, of training and of validation
    enum class Where : std::uint8_t { outside, draw, batch } where_ = Where::outside;
    bool trains_ = true, is_cancelled_ = false, trained_ = false, whole_ = false;
    Event last_{};   // of the step
    std::optional<FastxtendValues> values_;
};

void add_fit_steps(nanobind::module_&);

}   // namespace drawpoint::python
