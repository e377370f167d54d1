#pragma once

#include <nanobind/nanobind.h>

#include "python/core/lease.hpp"

namespace drawpoint::python {

/// The array as a DLPack capsule, of version 1.0 if `versioned`. It holds a reference to the lease, whether it is
/// consumed or not.
[[nodiscard]] nanobind::object to_capsule(const Array&, bool versioned);

void add_arrays(nanobind::module_&);

}   // namespace drawpoint::python
