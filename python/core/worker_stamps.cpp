#include "python/core/worker_stamps.hpp"

#include <time.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>

#include "python/core/collected.hpp"
#include "python/core/process_clock.hpp"

namespace drawpoint::python {
namespace nb = nanobind;

namespace {

std::int64_t process_cpu_ns() noexcept {
    timespec time{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

}   // namespace

void WorkerStamps::begin_batches() noexcept {
    worker_cpu_ns_ = ThreadUsage::cpu_ns();
    process_cpu_ns_ = process_cpu_ns();
}

void WorkerStamps::begin_sample(std::uint64_t index) noexcept {
    index_ = index;
    measured_ = budget_.next();
    seen_ = {};
    any_ = false;
    in_sample_ = true;
    if (measured_) {
        begin_run_queue_ns_ = usage_.run_queue_ns();
        begin_cpu_ns_ = last_cpu_ns_ = first_cpu_ns_ = ThreadUsage::cpu_ns();
    }
    begin_ns_ = now_ns();
}

void WorkerStamps::begin_stage() noexcept {
    stage_begin_ns_ = now_ns();
    if (measured_ && in_sample_)
        stage_begin_cpu_ns_ = ThreadUsage::cpu_ns();
}

void WorkerStamps::end_stage(std::size_t stage) noexcept {
    if (!in_sample_)
        return;
    Seen& seen = seen_[stage];
    const bool is_first = !std::exchange(any_, true);
    if (!seen.any)
        seen.begin_ns = stage_begin_ns_;
    seen.any = true;
    if (measured_) {
        if (is_first)
            first_cpu_ns_ = stage_begin_cpu_ns_;
        last_cpu_ns_ = ThreadUsage::cpu_ns();
        seen.cpu_ns += last_cpu_ns_ - stage_begin_cpu_ns_;
    }
    seen.ns += now_ns() - stage_begin_ns_;
}

void WorkerStamps::end_sample(std::uint32_t samples) {
    const std::int64_t end_ns = now_ns();
    in_sample_ = false;
    SampleRecord sample;
    sample.row.index = index_;
    sample.row.samples = samples;
    sample.row.begin_ns = begin_ns_;
    sample.stage_count = static_cast<std::uint32_t>(stages_);
    std::int64_t cpu_ns = 0;
    if (measured_) {
        cpu_ns = ThreadUsage::cpu_ns();
        const std::int64_t run_queue_ns = usage_.run_queue_ns();
        sample.row.cpu_ns = cpu_ns - begin_cpu_ns_;
        if (run_queue_ns != no_stamp && begin_run_queue_ns_ != no_stamp)
            sample.row.run_queue_ns = run_queue_ns - begin_run_queue_ns_;
    }
    // What a measured sample costs: two readings of each counter, and two of the CPU time for each stage.
    budget_.took(end_ns - begin_ns_, static_cast<std::uint32_t>(2 * std::max<std::size_t>(stages_, 2)));
    // The stages are those of the pipeline, in its order: one that this sample did not pass takes no time.
    std::int64_t at_ns = begin_ns_;
    for (std::size_t i = 0; i < stages_; ++i) {
        StageRow& stage = sample.stages[i];
        if (i == 0) {
            std::int64_t until_ns = end_ns;
            for (const Seen& one : seen_)
                if (one.any)
                    until_ns = std::min(until_ns, one.begin_ns);
            stage = {begin_ns_, until_ns - begin_ns_,
                     measured_ ? (any_ ? first_cpu_ns_ : cpu_ns) - begin_cpu_ns_ : no_stamp};
        } else if (i + 1 == stages_) {
            stage = {at_ns, end_ns - at_ns, measured_ ? (any_ ? cpu_ns - last_cpu_ns_ : 0) : no_stamp};
        } else if (seen_[i].any) {
            const std::int64_t from_ns = std::max(seen_[i].begin_ns, at_ns);
            stage = {from_ns, std::clamp<std::int64_t>(seen_[i].ns, 0, end_ns - from_ns),
                     measured_ ? seen_[i].cpu_ns : no_stamp};
        } else {
            stage = {at_ns, 0, measured_ ? 0 : no_stamp};
        }
        at_ns = stage.begin_ns + stage.ns;
    }
    pack(samples_, sample);
    if (batch_.first_ns == no_stamp)
        batch_.first_ns = begin_ns_;
    batch_.last_ns = end_ns;
    batch_.size += samples;
}

void WorkerStamps::drop() noexcept {
    in_sample_ = false;
    batch_ = {};
    samples_.clear();
    number_ = -1;
}

void WorkerStamps::begin_collate() noexcept {
    collate_begin_run_queue_ns_ = usage_.run_queue_ns();
    collate_begin_cpu_ns_ = ThreadUsage::cpu_ns();
    batch_.collate_begin_ns = now_ns();
}

Stamped WorkerStamps::stamped(nb::object batch) {
    batch_.collate_end_ns = now_ns();
    const std::int64_t cpu_ns = ThreadUsage::cpu_ns(), all_ns = process_cpu_ns();
    batch_.collate_cpu_ns = cpu_ns - collate_begin_cpu_ns_;
    batch_.worker_cpu_ns = cpu_ns - std::exchange(worker_cpu_ns_, cpu_ns);
    batch_.process_cpu_ns = all_ns - std::exchange(process_cpu_ns_, all_ns);
    if (const std::int64_t ns = usage_.run_queue_ns(); ns != no_stamp && collate_begin_run_queue_ns_ != no_stamp)
        batch_.collate_run_queue_ns = ns - collate_begin_run_queue_ns_;
    batch_.number = std::exchange(number_, -1);
    batch_.worker = worker_;
    return {std::move(batch), std::exchange(batch_, {}), std::exchange(samples_, {})};
}

namespace {

/// A Python callable that is a stage of a sample.
class TimedCall {
public:
    TimedCall(nb::object call, std::shared_ptr<WorkerStamps> stamps, std::size_t stage)
        : call_{std::move(call)}, stamps_{std::move(stamps)}, stage_{stage} {}
    /// A new reference; null: Python's error is set.
    [[nodiscard]] PyObject* call(PyObject* arguments, PyObject* named) const noexcept {
        const nb::object call = call_;   // stays, should the collector clear this meanwhile
        stamps_->begin_stage();
        PyObject* const result = PyObject_Call(call.ptr(), arguments, named);
        if (result != nullptr)
            stamps_->end_stage(stage_);
        return result;
    }
    [[nodiscard]] const nb::object& wrapped() const noexcept { return call_; }
    void each_held(auto visit) { visit(call_); }

private:
    nb::object call_;
    std::shared_ptr<WorkerStamps> stamps_;
    std::size_t stage_;
};

/// What Python calls: nanobind's look-up of overloads would take longer than the stamps.
PyObject* call_timed(PyObject* self, PyObject* arguments, PyObject* named) noexcept {
    if (!nb::inst_ready(self)) {
        PyErr_SetString(PyExc_TypeError, "drawpoint: a TimedCall that wraps nothing");
        return nullptr;
    }
    return nb::inst_ptr<TimedCall>(self)->call(arguments, named);
}

/// The iterator of an IterableDataset, each of whose items is a sample.
class TimedIterator {
public:
    TimedIterator(nb::object iterator, std::shared_ptr<WorkerStamps> stamps)
        : iterator_{std::move(iterator)}, stamps_{std::move(stamps)} {
        stamps_->drop();   // of a last batch that was dropped
    }
    nb::object next() {
        stamps_->begin_sample(count_);
        PyObject* const item = PyIter_Next(iterator_.ptr());
        if (item == nullptr) {
            if (PyErr_Occurred() != nullptr) {
                nb::python_error error;
                stamps_->drop();
                throw error;
            }
            throw nb::stop_iteration();
        }
        stamps_->end_sample(1);
        ++count_;
        return nb::steal(item);
    }

    void each_held(auto visit) { visit(iterator_); }

private:
    nb::object iterator_;
    std::shared_ptr<WorkerStamps> stamps_;
    std::uint64_t count_ = 0;
};

/// A number in the data set; 0 for other keys.
std::uint64_t index_of(nb::handle key) noexcept {
    if (!PyLong_Check(key.ptr()))
        return 0;
    const unsigned long long index = PyLong_AsUnsignedLongLongMask(key.ptr());
    if (PyErr_Occurred() != nullptr)
        PyErr_Clear();
    return index;
}

/// The batch's number, if the list of indices brings it.
void note_number(WorkerStamps& stamps, nb::handle indices) {
    if (!PyList_CheckExact(indices.ptr()) && nb::hasattr(indices, "drawpoint_number"))
        stamps.set_number(nb::cast<std::int64_t>(indices.attr("drawpoint_number")));
}

/// `[dataset[index] for index in indices]`, stamped.
nb::list get_items(WorkerStamps& stamps, nb::handle dataset, nb::handle indices) {
    note_number(stamps, indices);
    nb::list items;
    for (const nb::handle index : indices) {
        stamps.begin_sample(index_of(index));
        PyObject* const item = PyObject_GetItem(dataset.ptr(), index.ptr());
        if (item == nullptr) {
            stamps.drop();
            throw nb::python_error();
        }
        stamps.end_sample(1);
        items.append(nb::steal(item));
    }
    return items;
}

/// `get(indices)`, which makes all samples of a batch together, stamped.
nb::object get_run(WorkerStamps& stamps, const nb::object& get, nb::handle indices, std::uint32_t count) {
    if (stamps.in_sample())   // one that asks for another one
        return get(indices);
    note_number(stamps, indices);
    stamps.begin_sample(0);
    try {
        nb::object items = get(indices);
        stamps.end_sample(std::max<std::uint32_t>(count, 1));
        return items;
    } catch (...) {
        stamps.drop();
        throw;
    }
}

// How a batch is pickled. Python pickles an object's arguments in their order: what is pickled last is stamped once the
// batch is pickled.

/// What is pickled last.
struct Rest {
    BatchStamps stamps;
    std::vector<std::byte> samples;
    std::int64_t begin_cpu_ns = 0;
};

nb::object bytes_of(const BatchStamps& stamps) {
    return nb::bytes(reinterpret_cast<const char*>(&stamps), sizeof stamps);
}

nb::tuple reduce(nb::handle self) {
    Stamped& stamped = *nb::inst_ptr<Stamped>(self);
    stamped.stamps.delivery_begin_ns = now_ns();
    Rest rest{stamped.stamps, std::move(stamped.samples), ThreadUsage::cpu_ns()};
    return nb::make_tuple(self.type(), nb::make_tuple(stamped.batch, nb::cast(std::move(rest))));
}

nb::tuple reduce_rest(nb::handle self) {
    const Rest& rest = *nb::inst_ptr<Rest>(self);
    BatchStamps stamps = rest.stamps;
    stamps.delivery_end_ns = now_ns();
    stamps.delivery_cpu_ns = ThreadUsage::cpu_ns() - rest.begin_cpu_ns;
    return nb::make_tuple(self.type(),
                          nb::make_tuple(bytes_of(stamps), nb::bytes(reinterpret_cast<const char*>(rest.samples.data()),
                                                                     rest.samples.size())));
}

void set_rest(Rest* made, const nb::bytes& stamps, const nb::bytes& samples) {
    if (stamps.size() != sizeof made->stamps)
        throw nb::value_error("drawpoint: stamps of another version");
    Rest& rest = *new (made) Rest;
    std::memcpy(&rest.stamps, stamps.c_str(), sizeof rest.stamps);
    const auto* const first = reinterpret_cast<const std::byte*>(samples.c_str());
    rest.samples.assign(first, first + samples.size());
}

}   // namespace

void add_worker_stamps(nb::module_& module) {
    nb::class_<WorkerStamps>(module, "WorkerStamps")
        .def(nb::init<std::size_t, std::uint32_t>(), nb::arg("stages"), nb::arg("worker"))
        .def("get_items", &get_items, nb::arg("dataset"), nb::arg("indices"))
        .def("get_run", &get_run, nb::arg("get"), nb::arg("indices"), nb::arg("count"))
        .def("note_number", &note_number, nb::arg("indices"))
        .def("begin_batches", &WorkerStamps::begin_batches)
        .def("begin_collate", &WorkerStamps::begin_collate)
        .def("drop", &WorkerStamps::drop)
        .def("stamped", &WorkerStamps::stamped, nb::arg("batch").none());
    const PyType_Slot timed_call[] = {collected<TimedCall>[0],
                                      collected<TimedCall>[1],
                                      {Py_tp_call, reinterpret_cast<void*>(&call_timed)},
                                      {0, nullptr}};
    nb::class_<TimedCall>(module, "TimedCall", nb::type_slots(timed_call))
        .def(nb::init<nb::object, std::shared_ptr<WorkerStamps>, std::size_t>())
        .def("__setattr__", [](const TimedCall& call, const nb::str& name,
                               const nb::object& value) { nb::setattr(call.wrapped(), name, value); })
        .def("__delattr__", [](const TimedCall& call, const nb::str& name) { nb::delattr(call.wrapped(), name); })
        .def("__reduce__",   // as what it wraps
             [](const TimedCall& call) {
                 return nb::make_tuple(nb::module_::import_("drawpoint.watching").attr("_same"),
                                       nb::make_tuple(call.wrapped()));
             })
        .def_prop_ro("drawpoint_wrapped", &TimedCall::wrapped)
        .def("__bool__", [](const TimedCall& call) { return PyObject_IsTrue(call.wrapped().ptr()) == 1; })
        .def("__len__", [](const TimedCall& call) { return nb::len(call.wrapped()); })
        .def("__iter__", [](const TimedCall& call) { return nb::iter(call.wrapped()); })
        .def("__getitem__",
             [](const TimedCall& call, const nb::object& key) { return nb::object(call.wrapped()[key]); })
        .def("__getattr__",
             [](const TimedCall& call, const nb::str& name) { return nb::getattr(call.wrapped(), name); })
        .def("__repr__", [](const TimedCall& call) { return nb::repr(call.wrapped()); });
    nb::class_<TimedIterator>(module, "TimedIterator", nb::type_slots(collected<TimedIterator>))
        .def(nb::init<nb::object, std::shared_ptr<WorkerStamps>>())
        .def("__iter__", [](const nb::object& self) { return self; })
        .def("__next__", &TimedIterator::next);
    nb::class_<Rest>(module, "Rest").def("__init__", &set_rest).def("__reduce__", [](const nb::object& self) {
        return reduce_rest(self);
    });
    nb::class_<Stamped>(module, "Stamped", nb::type_slots(collected<Stamped>))
        .def(
            "__init__",
            [](Stamped* made, nb::object batch, Rest& rest) {
                new (made) Stamped{std::move(batch), rest.stamps, std::move(rest.samples)};
            },
            nb::arg("batch").none(), nb::arg("rest"))
        .def("__reduce__", [](const nb::object& self) { return reduce(self); })
        .def("pin_memory",
             [](const nb::object& self) {   // what PyTorch's pin thread calls
                 Stamped& stamped = *nb::inst_ptr<Stamped>(self);
                 stamped.batch =
                     nb::module_::import_("torch.utils.data._utils.pin_memory").attr("pin_memory")(stamped.batch);
                 stamped.stamps.pinned_ns = now_ns();
                 return self;
             })
        .def_prop_ro("batch", [](const Stamped& stamped) { return stamped.batch; });
    module.def("clock_scale", &clock_scale);
    module.def("set_clock_scale", &set_clock_scale, nb::arg("scale").none());
}

}   // namespace drawpoint::python
