#pragma once

#include <string>
#include <utility>
#include <vector>

#include <drawpoint/diagnosis/verdict/verdict.hpp>

namespace drawpoint {

/// What to run to see whether the prediction holds: a command line where the run was made by one, without the options
/// whose value is among `defaults`.
[[nodiscard]] std::string how_to_refute(const Ledger&, const Intervention& advice, const OptionValues& defaults = {});

/// The option of `drawpoint profile` that makes this setting: "--num-workers 4"; empty: it is none.
[[nodiscard]] std::string option_of(const Intervention&);

/// The options of `drawpoint profile` that made this run, name and value, as its recording says: those alone that tell of
/// data, model, loader and faults. None that writes, whatever the file says. Without one named data: none.
[[nodiscard]] OptionValues recorded_options(const Ledger&);

}   // namespace drawpoint
