#include "python/core/watch.hpp"

#include <algorithm>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <drawpoint/instrumentation/facts.hpp>

#include "python/core/collected.hpp"
#include "python/core/recording.hpp"
#include "python/core/worker_stamps.hpp"

namespace drawpoint::python {
namespace nb = nanobind;
namespace {

/// Samples in a batch, as far as that can be seen.
class SizeOf {
public:
    /// `look`: the same in Python, for whatever is not seen here.
    explicit SizeOf(nb::object look) : look_{std::move(look)} {}

    [[nodiscard]] std::uint32_t operator()(nb::handle batch) {
        PyObject* part = batch.ptr();
        for (int depth = 0; depth < 4; ++depth) {   // its first part
            if (Py_TYPE(part) == type_) {
                const Py_ssize_t size = PyObject_Size(part);
                if (size > 0)
                    return static_cast<std::uint32_t>(std::min<Py_ssize_t>(size, UINT32_MAX));
                PyErr_Clear();
                return 1;
            }
            PyObject* first = nullptr;
            Py_ssize_t at = 0;
            if (PyTuple_CheckExact(part) && PyTuple_Size(part) > 0)
                first = PyTuple_GetItem(part, 0);
            else if (PyList_CheckExact(part) && PyList_Size(part) > 0)
                first = PyList_GetItem(part, 0);
            else if (!PyDict_CheckExact(part) || PyDict_Next(part, &at, nullptr, &first) == 0)
                break;
            part = first;
        }
        const nb::object last = nb::borrow(part);   // whatever the look does to the batch
        const auto size = nb::cast<std::uint32_t>(look_(batch));
        // Of a tensor or an array, len() is quicker than its shape.
        if (type_ == nullptr && PyObject_HasAttrString(part, "shape") != 0 && PyObject_Size(part) == size)
            type_ = Py_TYPE(part);
        PyErr_Clear();
        return size;
    }
    void each_held(auto visit) { visit(look_); }

private:
    nb::object look_;
    PyTypeObject* type_ = nullptr;   // that has a shape, whose first number is its length
};

/// What is known of a PyTorch loader.
struct TorchLoader {
    std::vector<std::string> stages;
    std::uint32_t batch_size = 0, num_workers = 0, prefetch_factor = 2;   // batch_size 0: as the first batch's
    bool in_order = true, persistent_workers = false;
    std::int64_t batches = -1;   // of a pass; below 0: not known
};

/// The loop over a watched iterable: its draws and steps and, of a PyTorch loader, its batches and samples.
class Watch {
public:
    Watch(std::shared_ptr<Recording> recording, const std::string& name, bool trains)
        : recording_{std::move(recording)}, steps_{recording_, trains ? Phase::train : Phase::valid}, name_{name} {
        (void)recording_->track();   // which says if it is closed
    }

    void set_torch_loader(std::vector<std::string> stages, std::uint32_t batch_size, std::uint32_t num_workers,
                          std::uint32_t prefetch_factor, bool in_order, bool persistent_workers, std::int64_t batches) {
        torch_ = TorchLoader{std::move(stages), batch_size,         num_workers, prefetch_factor,
                             in_order,          persistent_workers, batches};
        depth_ = std::max<std::uint32_t>(num_workers * prefetch_factor, 1);
        for (std::uint32_t i = 0; i < std::max<std::uint32_t>(num_workers, 1); ++i)
            workers_.push_back(recording_->recorder().add_worker());
        if (batch_size != 0)
            declare(batch_size);
    }

    /// A pass begins, with its first draw, which waits for what iter() does. Returns its number.
    std::uint64_t begin_pass(std::uint32_t epoch) {
        epoch_ = steps_.begin_pass(epoch, 0);
        steps_.begin_draw();
        drawn_ = 0;
        offered_ns_ = no_stamp;
        sent_ns_.clear();
        pass_begin_ns_ = steps_.records() ? steps_.track().last_ns() : 0;
        started_ns_ = pass_begin_ns_;
        start_cpu_ns_ = ThreadUsage::cpu_ns();
        return ++pass_;
    }
    [[nodiscard]] bool is_current(std::uint64_t pass) const noexcept { return pass == pass_; }
    /// iter() is done; its workers are these processes.
    void begun(const std::vector<std::int64_t>& children) {
        if (!steps_.records())
            return;
        started_ns_ = recording_->recorder().now_ns();
        start_cpu_ns_ = ThreadUsage::cpu_ns() - start_cpu_ns_;
        for (const std::int64_t child : children)
            recording_->recorder().add_child(child);
    }
    void begin_draw() {
        steps_.begin_draw();
        if (torch_ && torch_->num_workers != 0 && steps_.records())
            begin_receiving();
    }
    void fail_draw() { steps_.fail_draw(); }
    void end_pass() { steps_.end_pass(); }

    /// The draw brought a batch of an iterable of which nothing else is known.
    void end_draw(std::uint32_t size) {
        if (!steps_.draws() || !steps_.records())
            return;
        steps_.track().mark(Span::starved);
        steps_.end_draw(size, drawn_++);
    }
    /// It brought a batch of a PyTorch loader.
    void end_draw(Stamped& stamped, std::uint32_t size) {
        if (!steps_.draws() || !steps_.records())
            return;
        const BatchStamps& stamps = stamped.stamps;
        const bool has_workers = torch_->num_workers != 0;
        const std::uint32_t number = stamps.number >= 0 ? static_cast<std::uint32_t>(stamps.number) : drawn_;
        // In order, it is there once all before it are.
        std::int64_t there_ns =
            has_workers ? std::max(stamps.delivery_end_ns, stamps.pinned_ns) : stamps.collate_end_ns;
        if (torch_->in_order)
            there_ns = offered_ns_ = std::max(offered_ns_, there_ns);
        LoopTrack& track = steps_.track();
        track.mark_until(Span::starved, there_ns);
        track.mark(has_workers ? Span::transfer : Span::handoff);
        if (!pipeline_)
            declare(size);
        if (drawn_ == 0 && has_workers)
            record_start(stamps.first_ns);
        const std::int64_t taken_ns = track.last_ns();
        record(stamped, number, size, there_ns, taken_ns, end_receiving(taken_ns));
        sent_ns_[drawn_ + depth_] = taken_ns;   // each draw sends the indices of one more batch
        ++drawn_;
        steps_.end_draw(size, number);
    }
    void set_sample_bytes(double bytes) noexcept { sample_bytes_ = bytes; }
    [[nodiscard]] bool is_of_torch() const noexcept { return torch_.has_value(); }
    [[nodiscard]] bool wants_sample_bytes() const noexcept { return sample_bytes_ < 0; }

private:
    /// What the loop's thread did in a draw.
    struct Received {
        std::int64_t cpu_ns = no_stamp, run_queue_ns = no_stamp;
    };
    void begin_receiving() noexcept {
        measured_ = budget_.next();
        if (!measured_)
            return;
        begun_.run_queue_ns = usage_.run_queue_ns();
        begun_.cpu_ns = ThreadUsage::cpu_ns();
    }
    [[nodiscard]] Received end_receiving(std::int64_t taken_ns) noexcept {
        constexpr std::uint32_t readings = 4;
        if (const std::int64_t before_ns = std::exchange(received_ns_, taken_ns); before_ns != no_stamp)
            budget_.took(taken_ns - before_ns, readings);
        Received received;
        if (!std::exchange(measured_, false) || !usage_.is_attached())
            return received;
        received.cpu_ns = ThreadUsage::cpu_ns() - begun_.cpu_ns;
        if (const std::int64_t ns = usage_.run_queue_ns(); ns != no_stamp && begun_.run_queue_ns != no_stamp)
            received.run_queue_ns = ns - begun_.run_queue_ns;
        return received;
    }

    /// Says what loader it is, once the size of a batch is known.
    void declare(std::uint32_t size) {
        Recorder& recorder = recording_->recorder();
        pipeline_ =
            recorder.add_pipeline({.name = name_,
                                   .stages = torch_->stages,
                                   .batch_size = torch_->batch_size != 0 ? torch_->batch_size : size,
                                   .num_workers = torch_->num_workers,
                                   .prefetch_depth = depth_,
                                   .order = torch_->in_order ? OrderRule::in_order() : OrderRule::out_of_order(),
                                   .kind = LoaderKind::pytorch});
        const std::string name = recorder.pipeline_name(*pipeline_);
        recorder.set_fact(std::string{facts::persistent_workers_prefix} + name,
                          torch_->persistent_workers ? "true" : "false");
        if (torch_->batches >= 0)
            recorder.set_fact(std::string{facts::batches_prefix} + name, std::to_string(torch_->batches));
    }

    /// Starting the workers is what the pass's order is of our own loader: the first draw waits for it.
    void record_start(std::int64_t first_ns) {
        started_ns_ = std::max(started_ns_, first_ns);
        recording_->recorder().push(OrderRow{.begin_ns = pass_begin_ns_,
                                             .ns = started_ns_ - pass_begin_ns_,
                                             .cpu_ns = start_cpu_ns_,
                                             .epoch = epoch_,
                                             .pipeline = *pipeline_,
                                             .worker = std::nullopt});
    }

    void record(Stamped& stamped, std::uint32_t number, std::uint32_t size, std::int64_t there_ns,
                std::int64_t taken_ns, const Received& received) {
        const BatchStamps& stamps = stamped.stamps;
        Recorder& recorder = recording_->recorder();
        const std::uint16_t worker = workers_[std::min<std::size_t>(stamps.worker, workers_.size() - 1)].worker();
        recorder.add_samples({.pipeline = *pipeline_,
                              .worker = worker,
                              .epoch = epoch_,
                              .batch = number,
                              .bytes = std::move(stamped.samples)});
        std::int64_t sent_ns = sent_by(number);
        const bool has_workers = torch_->num_workers != 0;
        if (stamps.first_ns != no_stamp)
            sent_ns = has_workers ? std::min(sent_ns, stamps.first_ns) : stamps.first_ns;
        recorder.push(BatchRow{.epoch = epoch_,
                               .batch = number,
                               .slot = number % (depth_ + 1),
                               .pipeline = *pipeline_,
                               .status = BatchStatus::taken,
                               .collate_worker = worker,
                               .size = size,
                               .bytes = static_cast<std::uint64_t>(std::max(sample_bytes_, 0.0) * size),
                               .admitted_ns = sent_ns,
                               .first_claim_ns = stamps.first_ns,
                               .last_done_ns = stamps.last_ns,
                               .collate_begin_ns = stamps.collate_begin_ns,
                               .collate_end_ns = stamps.collate_end_ns,
                               .collate_cpu_ns = stamps.collate_cpu_ns,
                               .collate_run_queue_ns = stamps.collate_run_queue_ns,
                               .offered_ns = there_ns,
                               .taken_ns = taken_ns,
                               .delivery_begin_ns = stamps.delivery_begin_ns,
                               .delivery_end_ns = stamps.delivery_end_ns,
                               .delivery_cpu_ns = stamps.delivery_cpu_ns,
                               .worker_cpu_ns = has_workers ? stamps.worker_cpu_ns : no_stamp,
                               .process_cpu_ns = has_workers ? stamps.process_cpu_ns : no_stamp,
                               .receive_cpu_ns = received.cpu_ns,
                               .receive_run_queue_ns = received.run_queue_ns});
    }
    /// When this batch's indices were sent, as the pass began or at a draw.
    [[nodiscard]] std::int64_t sent_by(std::uint32_t number) {
        const auto found = sent_ns_.extract(number);
        return found.empty() ? started_ns_ : found.mapped();
    }

    std::shared_ptr<Recording> recording_;
    LoopSteps steps_;
    std::string name_;
    std::optional<TorchLoader> torch_;
    std::uint32_t depth_ = 1;
    std::optional<std::uint16_t> pipeline_;   // once it is declared
    std::vector<WorkerTrack> workers_;        // whose numbers they have
    double sample_bytes_ = -1;                // below 0: not known
    std::uint32_t epoch_ = 0, drawn_ = 0;
    std::int64_t pass_begin_ns_ = 0, started_ns_ = 0, offered_ns_ = no_stamp;
    std::int64_t start_cpu_ns_ = 0;   // of the loop's thread, for iter()
    std::uint64_t pass_ = 0;
    ReadingBudget budget_;   // for what the loop's thread does in draws
    ThreadUsage usage_;
    bool measured_ = false;
    Received begun_;
    std::int64_t received_ns_ = no_stamp;                       // when the batch before was taken
    std::unordered_map<std::uint32_t, std::int64_t> sent_ns_;   // by number, of batches that are not drawn
};

/// One pass over what is watched.
class WatchedPass {
public:
    /// `owner`: what must live as long as the pass.
    WatchedPass(std::shared_ptr<Watch> watch, std::uint64_t number, nb::object iterator, nb::object size_of,
                nb::object bytes_of, nb::object owner)
        : watch_{std::move(watch)},
          number_{number},
          iterator_{std::move(iterator)},
          size_of_{std::move(size_of)},
          bytes_of_{std::move(bytes_of)},
          owner_{std::move(owner)} {}
    ~WatchedPass() { end(); }
    WatchedPass(const WatchedPass&) = delete;
    WatchedPass& operator=(const WatchedPass&) = delete;

    /// Invalid: it is over.
    nb::object next() {
        const std::shared_ptr<Watch> watch = watch_;   // stays, should the pass end meanwhile
        if (!watch || !iterator_.is_valid())
            return {};
        const bool is_current = watch->is_current(number_);   // else another pass has begun: this one is not recorded
        if (is_current)
            watch->begin_draw();
        nb::object item = nb::steal(PyIter_Next(iterator_.ptr()));
        if (!item.is_valid()) {
            if (PyErr_Occurred() != nullptr) {
                nb::python_error error;   // takes it, for what follows
                if (is_current)
                    watch->fail_draw();
                throw error;
            }
            end();
            return {};
        }
        if (!watch->is_of_torch() || !nb::isinstance<Stamped>(item)) {
            if (is_current)
                watch->end_draw(size_of_(item));
            return item;
        }
        Stamped& stamped = *nb::inst_ptr<Stamped>(item);
        const std::uint32_t size = stamped.stamps.size != 0   // else its data set could not be stamped
                                       ? stamped.stamps.size
                                       : size_of_(stamped.batch);
        if (watch->wants_sample_bytes())   // of the first batch: its draw is longer by that
            watch->set_sample_bytes(nb::cast<double>(bytes_of_(stamped.batch)) / size);
        if (is_current)
            watch->end_draw(stamped, size);
        return std::move(stamped.batch);
    }
    void each_held(auto visit) {
        visit(iterator_);
        size_of_.each_held(visit);
        visit(bytes_of_);
        visit(owner_);
    }
    void end() noexcept {
        const auto watch = std::exchange(watch_, nullptr);
        if (watch && watch->is_current(number_))
            watch->end_pass();
    }

private:
    std::shared_ptr<Watch> watch_;   // null: the pass is over
    std::uint64_t number_;
    nb::object iterator_;
    SizeOf size_of_;
    nb::object bytes_of_, owner_;
};

/// What Python calls for the next batch, without nanobind's look-up of methods.
PyObject* next_of(PyObject* self) noexcept {
    try {
        if (!nb::inst_ready(self))
            throw std::runtime_error{"drawpoint: a pass of nothing"};
        return nb::inst_ptr<WatchedPass>(self)->next().release().ptr();
    } catch (nb::python_error& error) {
        error.restore();
    } catch (const std::exception& error) {
        PyErr_SetString(PyExc_RuntimeError, error.what());
    }
    return nullptr;
}

}   // namespace

void add_watch(nb::module_& module) {
    nb::class_<Watch>(module, "Watch")
        .def(nb::init<std::shared_ptr<Recording>, const std::string&, bool>(), nb::arg("recording"), nb::arg("name"),
             nb::arg("trains"))
        .def("set_torch_loader", &Watch::set_torch_loader, nb::arg("stages"), nb::arg("batch_size"),
             nb::arg("num_workers"), nb::arg("prefetch_factor"), nb::arg("in_order"), nb::arg("persistent_workers"),
             nb::arg("batches"))
        .def("begin_pass", &Watch::begin_pass, nb::arg("epoch"))
        .def("begun", &Watch::begun, nb::arg("children"))
        .def("end_pass", &Watch::end_pass);
    const PyType_Slot pass[] = {collected<WatchedPass>[0],
                                collected<WatchedPass>[1],
                                {Py_tp_iter, reinterpret_cast<void*>(&PyObject_SelfIter)},
                                {Py_tp_iternext, reinterpret_cast<void*>(&next_of)},
                                {0, nullptr}};
    nb::class_<WatchedPass>(module, "WatchedPass", nb::type_slots(pass))
        .def(nb::init<std::shared_ptr<Watch>, std::uint64_t, nb::object, nb::object, nb::object, nb::object>(),
             nb::arg("watch"), nb::arg("number"), nb::arg("iterator"), nb::arg("size_of"), nb::arg("bytes_of"),
             nb::arg("owner"));
}

}   // namespace drawpoint::python
