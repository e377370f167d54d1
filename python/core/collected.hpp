#pragma once

#include <nanobind/nanobind.h>

namespace drawpoint::python {

/// Slots by which Python's collector of cycles sees what objects of type `T` hold: those that `T::each_held(visit)`
/// shows.
template <class T>
inline PyType_Slot collected[] = {
    {Py_tp_traverse, reinterpret_cast<void*>(+[](PyObject* self, visitproc visit, void* arg) -> int {
         Py_VISIT(Py_TYPE(self));
         int stopped = 0;
         if (nanobind::inst_ready(self))
             nanobind::inst_ptr<T>(self)->each_held([&](nanobind::object& held) {
                 if (stopped == 0 && held.is_valid())
                     stopped = visit(held.ptr(), arg);
             });
         return stopped;
     })},
    {Py_tp_clear, reinterpret_cast<void*>(+[](PyObject* self) -> int {
         nanobind::inst_ptr<T>(self)->each_held([](nanobind::object& held) { held.reset(); });
         return 0;
     })},
    {0, nullptr}};

}   // namespace drawpoint::python
