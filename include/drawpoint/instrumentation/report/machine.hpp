#pragma once

#include <drawpoint/instrumentation/report/summary.hpp>

namespace drawpoint {

/// This machine, and the compiler of this library, for the head of a document. Without libraries.
[[nodiscard]] Machine this_machine();

}   // namespace drawpoint
