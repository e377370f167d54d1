#pragma once

#include <exception>
#include <memory>
#include <string>
#include <string_view>

#include <drawpoint/instrumentation/event.hpp>

namespace drawpoint {

/// What a callback throws to leave a level of the loop early, as in fastai. It is caught when thrown in its level's
/// before_X event or body; thrown in its own after_X or after_cancel_X it goes one level up, where no level of its own
/// is open it leaves the fit. Unlike fastai's, one of a batch, step or backward thrown in before_draw skips that draw:
/// no sample is consumed, one of `size()` turns is used up, what is undrawn at the pass's end is dropped. A pass of
/// unknown size whose draws are all skipped never ends. What it says of its reason stands in `LoopState::cancel_reason`
/// from then on; that of a CancelFit is why the run stopped, in its recording and its report.
class Cancel : public std::exception {
public:
    Cancel() = default;
    explicit Cancel(std::string_view reason) : reason_{std::make_shared<const std::string>(reason)} {}

    /// Empty: it did not say.
    [[nodiscard]] std::string_view reason() const noexcept { return reason_ ? std::string_view{*reason_} : ""; }

private:
    std::shared_ptr<const std::string> reason_;   // shared, since copying an exception must not throw
};

/// Skips the rest of the batch and goes on with after_batch.
class CancelBatch final : public Cancel {
public:
    using Cancel::Cancel;
    [[nodiscard]] const char* what() const noexcept override { return "batch cancelled"; }
};
/// Skips the backward pass and goes on with after_backward.
class CancelBackward final : public Cancel {
public:
    using Cancel::Cancel;
    [[nodiscard]] const char* what() const noexcept override { return "backward cancelled"; }
};
/// Skips stepping the optimizer and goes on with after_step.
class CancelStep final : public Cancel {
public:
    using Cancel::Cancel;
    [[nodiscard]] const char* what() const noexcept override { return "step cancelled"; }
};
/// Ends the training pass and goes on with after_train.
class CancelTrain final : public Cancel {
public:
    using Cancel::Cancel;
    [[nodiscard]] const char* what() const noexcept override { return "train cancelled"; }
};
/// Ends the validation pass and goes on with after_validate.
class CancelValid final : public Cancel {
public:
    using Cancel::Cancel;
    [[nodiscard]] const char* what() const noexcept override { return "valid cancelled"; }
};
/// Ends the epoch and goes on with after_epoch.
class CancelEpoch final : public Cancel {
public:
    using Cancel::Cancel;
    [[nodiscard]] const char* what() const noexcept override { return "epoch cancelled"; }
};
/// Ends the fit and goes on with after_fit.
class CancelFit final : public Cancel {
public:
    using Cancel::Cancel;
    [[nodiscard]] const char* what() const noexcept override { return "fit cancelled"; }
};

}   // namespace drawpoint
