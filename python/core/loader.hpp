#pragma once

#include <nanobind/nanobind.h>

namespace drawpoint::python {

void add_loader(nanobind::module_&);

}   // namespace drawpoint::python
