#include "python/core/recording.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <stdexcept>
#include <string_view>

#include <unistd.h>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include <drawpoint/instrumentation/facts.hpp>
#include <drawpoint/instrumentation/report/machine.hpp>
#include <drawpoint/instrumentation/report/summary.hpp>
#include <drawpoint/instrumentation/report/text.hpp>

#include "python/core/fit_steps.hpp"
#include "python/core/process_clock.hpp"

namespace drawpoint::python {
namespace nb = nanobind;
namespace {

std::vector<Recording*>& open_recordings() {
    static std::vector<Recording*> all;
    return all;
}

}   // namespace

Recording::Recording(const std::optional<std::string>& file, std::shared_ptr<ManualClock> clock)
    : file_{file}, clock_{std::move(clock)} {
    const AnyClock read = clock_ ? AnyClock{*clock_} : process_clock();
    recorder_ = file_ ? std::make_unique<Recorder>(*file_, RecorderOptions{}, read)
                      : std::make_unique<Recorder>(RecorderOptions{}, read);
    recorder_->set_fact(facts::version, DRAWPOINT_VERSION);
    recorder_->set_fact(facts::process_id, std::to_string(::getpid()));
    recorder_->set_fact(facts::process_name, "python");
    recorder_->set_fact(facts::loop_tid, std::to_string(::gettid()));
    recorder_->set_fact(facts::clock, recorder_->clock().name());
    const auto unix_ns = std::chrono::nanoseconds{std::chrono::system_clock::now().time_since_epoch()};
    recorder_->set_fact(facts::unix_offset_ns, std::to_string(unix_ns.count() - recorder_->now_ns()));
    const Machine machine = this_machine();
    recorder_->set_fact(facts::machine_cpu, machine.cpu);
    recorder_->set_fact(facts::machine_kernel, machine.kernel);
    recorder_->set_fact(facts::machine_compiler, machine.compiler);
    if (machine.cores_usable)
        recorder_->set_fact(facts::machine_cores, std::to_string(*machine.cores_usable));
    track_ = std::make_unique<LoopTrack>(*recorder_);
    track_->begin_pass(PassKind::fit, 0);
    in_fit_ = true;
    open_recordings().push_back(this);
}

Recording::~Recording() {
    if (fork_.is_forked()) {   // whose writer is missing
        std::erase(open_recordings(), this);
        (void)track_.release();
        (void)recorder_.release();
        return;
    }
    close();
}

LoopTrack& Recording::track() {
    if (fork_.is_forked())
        throw std::runtime_error{"drawpoint: " + named() + " is another process's"};
    if (!track_)
        throw std::runtime_error{"drawpoint: " + named() + " is closed"};
    return *track_;
}

namespace {

/// What mark() records: the action's piece, and the events that follow it, which nobody acts on.
struct Marked {
    std::string_view word;
    Span span;
    std::array<Event, 2> after;
    std::size_t events;
};
constexpr std::array marked{
    Marked{"forward", Span::forward, {Event::after_pred}, 1},
    Marked{"loss", Span::loss, {Event::after_loss, Event::before_backward}, 2},
    Marked{"backward", Span::backward, {Event::after_backward, Event::before_step}, 2},
    Marked{"opt_step", Span::opt_step, {Event::after_step}, 1},
    Marked{"zero_grad", Span::zero_grad, {}, 0},
    Marked{"other", Span::other, {}, 0},
};

}   // namespace

void Recording::mark(const std::string& action) {
    const auto found = std::ranges::find(marked, action, &Marked::word);
    if (found == marked.end())
        throw nb::value_error("drawpoint: mark() knows forward, loss, backward, opt_step, zero_grad and other");
    if (!is_open() || (driver_ != nullptr ? !driver_->is_in_batch() : stepping_ == nullptr))
        return;
    track_->mark(found->span);
    for (std::size_t i = 0; i < found->events; ++i)
        track_->mark_until(span_of(found->after[i]), track_->last_ns());
}

std::string Recording::report() {
    if (fork_.is_forked())
        throw std::runtime_error{"drawpoint: " + named() + " is another process's"};
    const nb::gil_scoped_release computing;
    return to_text(summarize(recorder_->ledger()));
}

void Recording::close() {
    if (!is_open())
        return;
    if (driver_ != nullptr)
        driver_->leave();
    end_passes_after(nullptr);
    std::erase(open_recordings(), this);
    end_fit();
    track_.reset();
    const nb::gil_scoped_release waits;
    recorder_->finish();
}

void Recording::begin_fit(FitSteps& driver) {
    LoopTrack& track = this->track();
    if (driver_ != nullptr)
        driver_->leave();
    end_passes_after(nullptr);
    if (in_fit_ && track.steps() > 0)   // of other loops
        end_fit();
    track.mark(Span::between);
    if (!in_fit_)
        track.begin_pass(PassKind::fit, 0);
    in_fit_ = true;
    driver_ = &driver;
    drawn_.reset();
}

void Recording::end_fit() {
    driver_ = nullptr;
    if (!std::exchange(in_fit_, false))
        return;
    track_->mark(Span::between);
    track_->end_pass();
}

void Recording::end_passes_after(const LoopSteps* kept) {
    leave_step();
    while (!passes_.empty() && passes_.back() != kept)
        passes_.back()->end_pass();
}

void Recording::leave_step() {
    if (stepping_ != nullptr)
        stepping_->end_step();
}

LoopSteps::~LoopSteps() { end_pass(); }

std::uint32_t LoopSteps::begin_pass(std::uint32_t epoch, std::uint32_t first_batch) {
    end_pass();
    epoch_ = epoch;
    batch_ = first_batch;
    if (!records() || recording_->drawing_ != nullptr)
        return epoch_;
    is_driven_ = recording_->driver_ != nullptr;
    if (is_driven_) {
        in_pass_ = true;
        return epoch_ = recording_->driver_->epoch();
    }
    recording_->leave_step();
    LoopTrack& track = recording_->track();
    track.mark(Span::between);
    track.begin_pass(phase_ == Phase::train ? PassKind::train : PassKind::valid, epoch);
    recording_->passes_.push_back(this);
    in_pass_ = true;
    return epoch_;
}

void LoopSteps::begin_draw() {
    if (draws_ || !in_pass_ || !records() || recording_->drawing_ != nullptr)
        return;
    if (is_driven_) {
        draws_ = recording_->driver_ != nullptr && recording_->driver_->is_in_draw();
        return;
    }
    recording_->leave_step();
    recording_->track().begin_step(phase_, epoch_, batch_);
    recording_->drawing_ = this;
    draws_ = true;
}

void LoopSteps::end_draw(std::uint32_t size, std::uint32_t batch) {
    if (!std::exchange(draws_, false))
        return;
    if (is_driven_) {   // the framework goes on with it before its step begins
        recording_->drawn_ = DrawnBatch{size, batch};
        ++batch_;
        return;
    }
    recording_->drawing_ = nullptr;
    LoopTrack& track = recording_->track();
    track.end_draw(size, batch);
    if (recording_->divides_)
        track.mark_until(span_of(Event::before_batch), track.last_ns());
    recording_->stepping_ = this;
    ++batch_;
}

void LoopSteps::fail_draw() {
    if (!std::exchange(draws_, false) || !records())
        return;
    ++batch_;
    if (is_driven_) {
        recording_->draw_failed_ = true;
        return;
    }
    recording_->drawing_ = nullptr;
    LoopTrack& track = recording_->track();
    track.mark(Span::starved);
    track.end_step(StepStatus::failed, std::nullopt);
    track.mark(Span::between);
}

void LoopSteps::leave_draw() {
    if (!std::exchange(draws_, false) || !records() || is_driven_)
        return;
    recording_->drawing_ = nullptr;
    LoopTrack& track = recording_->track();
    track.mark(Span::starved);
    track.end_of_data();
    track.mark(Span::between);
}

void LoopSteps::end_step() {
    LoopTrack& track = recording_->track();
    track.mark(recording_->divides_ ? Span::other : Span::forward);
    if (recording_->divides_)
        track.mark_until(span_of(Event::after_batch), track.last_ns());
    track.end_step(StepStatus::complete, std::nullopt);
    track.mark(Span::between);
    recording_->stepping_ = nullptr;
}

void LoopSteps::end_pass() {
    if (!in_pass_ || !records())
        return;
    leave_draw();
    if (is_driven_) {
        in_pass_ = false;
        return;
    }
    recording_->end_passes_after(this);
    recording_->track().end_pass();
    recording_->passes_.pop_back();
    in_pass_ = false;
}

void close_recordings() {
    while (!open_recordings().empty()) {
        Recording* const last = open_recordings().back();
        if (last->is_open())
            last->close();
        else   // a forked child's copy
            open_recordings().pop_back();
    }
}

void add_recording(nb::module_& module) {
    nb::module_::import_("atexit").attr("register")(nb::cpp_function(&close_recordings));
    nb::class_<ManualClock>(module, "ManualClock", "A clock for tests: its time is what they say.")
        .def(nb::init<std::int64_t>(), nb::arg("start_ns") = 0)
        .def(
            "advance", [](ManualClock& self, std::int64_t ns) { self.advance(std::chrono::nanoseconds{ns}); },
            nb::arg("ns"))
        .def_prop_ro("now_ns", &ManualClock::now_ns);
    nb::class_<Recording>(module, "Recording",
                          "A recording, `run.pftrace`, of one or several loops of this process: `drawpoint diagnose` "
                          "and Perfetto read it. Written while it runs.\n\n`record=` of a DataLoader and of watch() "
                          "takes one, or the name of a file. Raises OSError if the file cannot be written; if that "
                          "happens later, training goes on and the file ends early.\n\nWithout a file it is in memory. "
                          "clock: a ManualClock, for tests.")
        .def(nb::init<const std::optional<std::string>&, std::shared_ptr<ManualClock>>(), nb::arg("file") = nb::none(),
             nb::arg("clock") = nb::none())
        .def("report", &Recording::report, "The report on what is recorded so far, as text.")
        .def("mark", &Recording::mark, nb::arg("action"),
             "What the loop did since the last mark was this action of the step: forward, loss, backward, opt_step, "
             "zero_grad or other. Nothing outside every step. A third of a microsecond.")
        .def("divide_steps", &Recording::divide_steps, "From now on steps are divided by mark().")
        .def("close", &Recording::close, "Ends the file. Idempotent.")
        .def_prop_ro("file", &Recording::file)
        .def("__enter__", [](const nb::object& self) { return self; })
        .def("__exit__", [](Recording& self, const nb::args&) { self.close(); });
}

}   // namespace drawpoint::python
