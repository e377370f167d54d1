#pragma once

#include <string>
#include <utility>
#include <vector>

#include <drawpoint/diagnosis/verdict/verdict.hpp>

namespace drawpoint {

/// What to run to see whether the prediction holds. If `drawpoint profile` made the recording it is a command line,
/// which leaves out the options whose value is among `defaults`.
[[nodiscard]] std::string how_to_refute(const Ledger&, const Intervention& advice, const OptionValues& defaults = {});

/// The option of `drawpoint profile` that makes this setting: "--num-workers 4". Empty: the change is no setting.
[[nodiscard]] std::string option_of(const Intervention&);

/// The options of `drawpoint profile` that made this recording, name and value: only those that select data, model,
/// loader and faults, never one that writes a file, whatever the recording says. Empty if there is no option `data`.
[[nodiscard]] OptionValues recorded_options(const Ledger&);

}   // namespace drawpoint
