#pragma once

#include <nanobind/nanobind.h>

namespace drawpoint::python {

void add_watch(nanobind::module_&);

}   // namespace drawpoint::python
