#pragma once

namespace drawpoint {

/// Lets LibTorch's operators run on one thread where the calling thread calls them, and on as many as before elsewhere:
/// for `RuntimeOptions::on_worker_start`, so that operators inside a data set do not start a team per worker beside the
/// model's. `at::set_num_threads(1)` would also change what every thread made later begins with. Does nothing where
/// LibTorch's operators do not run on OpenMP.
void limit_torch_threads() noexcept;

}   // namespace drawpoint
