#pragma once

#include <memory>

#include "pipeline/loader/reading/read_ahead.hpp"

namespace drawpoint {

/// Reads through an io_uring of its own, on one thread that opens, sizes and hands out buffers and otherwise sleeps. Null: the
/// kernel refuses, or the build has no liburing.
[[nodiscard]] std::unique_ptr<Readers> make_read_ring(ReadAhead&);

}   // namespace drawpoint
