#pragma once

#include <memory>

#include <nanobind/nanobind.h>

#include <drawpoint/pipeline/loader/core/sample_source.hpp>

namespace drawpoint::python {

/// A source of samples, as Python holds it.
struct Source {
    std::shared_ptr<const SampleSource> samples;
};

void add_sources(nanobind::module_&);

}   // namespace drawpoint::python
