#pragma once

#include <exception>
#include <memory>
#include <string>
#include <string_view>

#include <drawpoint/instrumentation/event.hpp>

namespace drawpoint {

/// Thrown by a callback to leave a level of the loop early, as in fastai. The levels are fit, epoch, train or valid,
/// batch, and step or backward; each has a subclass. A level X is left, by way of after_cancel_X and after_X, if its
/// cancel is thrown in before_X or in anything inside the level. Thrown in after_cancel_X or after_X, or where its
/// level is not active, the cancel leaves the fit.
///
/// Unlike in fastai, a cancel of a batch, step or backward thrown in before_draw skips that draw: no sample is
/// consumed, but it counts as one of the pass's `size()` draws, so that the pass ends with batches that were not drawn,
/// which are dropped. A pass of unknown size that skips every draw never ends.
///
/// The reason it gives is in `LoopState::cancel_reason` from then on; that of a CancelFit is why the run stopped, in
/// its recording and report.
class Cancel : public std::exception {
public:
    Cancel() = default;
    explicit Cancel(std::string_view reason) : reason_{std::make_shared<const std::string>(reason)} {}

    /// Empty: none was given.
    [[nodiscard]] std::string_view reason() const noexcept { return reason_ ? std::string_view{*reason_} : ""; }

private:
    std::shared_ptr<const std::string> reason_;   // shared, since copying an exception must not throw
};

/// Skips the rest of the batch and continues with after_batch.
class CancelBatch final : public Cancel {
public:
    using Cancel::Cancel;
    [[nodiscard]] const char* what() const noexcept override { return "batch cancelled"; }
};
/// Skips the backward pass and continues with after_backward.
class CancelBackward final : public Cancel {
public:
    using Cancel::Cancel;
    [[nodiscard]] const char* what() const noexcept override { return "backward cancelled"; }
};
/// Skips the optimizer's step and continues with after_step.
class CancelStep final : public Cancel {
public:
    using Cancel::Cancel;
    [[nodiscard]] const char* what() const noexcept override { return "step cancelled"; }
};
/// Ends the training pass and continues with after_train.
class CancelTrain final : public Cancel {
public:
    using Cancel::Cancel;
    [[nodiscard]] const char* what() const noexcept override { return "train cancelled"; }
};
/// Ends the validation pass and continues with after_validate.
class CancelValid final : public Cancel {
public:
    using Cancel::Cancel;
    [[nodiscard]] const char* what() const noexcept override { return "valid cancelled"; }
};
/// Ends the epoch and continues with after_epoch.
class CancelEpoch final : public Cancel {
public:
    using Cancel::Cancel;
    [[nodiscard]] const char* what() const noexcept override { return "epoch cancelled"; }
};
/// Ends the fit and continues with after_fit.
class CancelFit final : public Cancel {
public:
    using Cancel::Cancel;
    [[nodiscard]] const char* what() const noexcept override { return "fit cancelled"; }
};

}   // namespace drawpoint
