#pragma once

#include <iosfwd>

#include <drawpoint/instrumentation/ledger/ledger.hpp>

namespace drawpoint {

/// Writes an XSpace for XProf (TensorBoard's page "Profile"): the plane "/host:CPU" with a line for each thread, worker
/// and batch slot. Steps carry the statistics `_r` and `step_num`, draws `_ipl_stage_name`, by which its input pipeline
/// page counts them as input time. XProf leaves the first and the last of more than five steps out. What devices did
/// is not written. Sorted ledger. O(rows log rows); holds the file in memory. A failing stream shows in its state. Any
/// thread.
void write_xplane(const Ledger&, std::ostream&);

}   // namespace drawpoint
