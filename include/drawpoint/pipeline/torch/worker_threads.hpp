#pragma once

namespace drawpoint {

/// Makes LibTorch's operators run on a single thread when the calling thread calls them; other threads are not
/// affected. For `RuntimeOptions::on_worker_start`, so that operators inside a data set do not start a thread team for
/// each worker. `at::set_num_threads(1)` would also change the default of every thread started later. Does nothing if
/// LibTorch's operators do not use OpenMP.
void limit_torch_threads() noexcept;

}   // namespace drawpoint
