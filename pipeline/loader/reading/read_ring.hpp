#pragma once

#include <memory>

#include "pipeline/loader/reading/read_ahead.hpp"

namespace drawpoint {

/// Makes readers that use an io_uring of their own, driven by one thread. Null: the kernel refuses, or the build has no
/// liburing.
[[nodiscard]] std::unique_ptr<Readers> make_read_ring(ReadAhead&);

}   // namespace drawpoint
