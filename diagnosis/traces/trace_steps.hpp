#pragma once

#include <drawpoint/diagnosis/traces/trace_split.hpp>

namespace drawpoint {

/// Sets `steps`, `has_draws`, `steps_by_draw`, `iterator` and `notes`; marks boundaries, but no warm-up.
void find_steps(const Ledger&, TraceSplit&);

}   // namespace drawpoint
