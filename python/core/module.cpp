#include <nanobind/nanobind.h>

#include "python/core/arrays.hpp"
#include "python/core/fit_steps.hpp"
#include "python/core/loader.hpp"
#include "python/core/recording.hpp"
#include "python/core/sources.hpp"
#include "python/core/watch.hpp"
#include "python/core/worker_stamps.hpp"

NB_MODULE(_core, module) {
    nanobind::set_leak_warnings(false);   // of what global variables still hold when the interpreter ends
    module.attr("__version__") = DRAWPOINT_VERSION;
    drawpoint::python::add_arrays(module);
    drawpoint::python::add_sources(module);
    drawpoint::python::add_recording(module);
    drawpoint::python::add_fit_steps(module);
    drawpoint::python::add_loader(module);
    drawpoint::python::add_worker_stamps(module);
    drawpoint::python::add_watch(module);
}
