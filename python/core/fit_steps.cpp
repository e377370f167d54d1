#include "python/core/fit_steps.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <drawpoint/instrumentation/ledger/ledger.hpp>
#include <drawpoint/instrumentation/report/fastxtend.hpp>

namespace drawpoint::python {
namespace nb = nanobind;
namespace {

/// The events that a pass begins and ends with.
const ActionSpan& events_of(PassKind kind) { return action_spans[static_cast<std::size_t>(kind)]; }
static_assert(action_spans[static_cast<std::size_t>(PassKind::valid)].action == Action::valid);

PassKind kind_named(const std::string& name) {
    for (const PassKind kind : {PassKind::epoch, PassKind::train, PassKind::valid})
        if (name_of(kind) == name)
            return kind;
    throw nb::value_error("drawpoint: a pass is an epoch, train or valid");
}

/// How deep passes of a kind nest.
int level_of(PassKind kind) { return kind == PassKind::fit ? 0 : kind == PassKind::epoch ? 1 : 2; }

/// The piece of a step that ends with this event.
struct Ending {
    Event event;
    Span piece;
};
constexpr std::array endings{
    Ending{Event::after_pred, Span::forward},    Ending{Event::after_loss, Span::loss},
    Ending{Event::before_backward, Span::other}, Ending{Event::before_step, Span::backward},
    Ending{Event::after_step, Span::opt_step},
};

ProfileMode mode_named(const std::string& name) {
    if (name == "throughput")
        return ProfileMode::throughput;
    if (name == "simple")
        return ProfileMode::simple;
    throw nb::value_error("drawpoint: the mode of a profile is throughput or simple");
}

nb::object number(const std::optional<double>& value) { return value ? nb::object(nb::float_(*value)) : nb::none(); }

}   // namespace

FitSteps::FitSteps(std::shared_ptr<Recording> recording, const std::string& mode, std::size_t rolling_average,
                   bool drop_first_batch)
    : recording_{std::move(recording)},
      mode_{mode_named(mode)},
      rolling_average_{rolling_average},
      drop_first_batch_{drop_first_batch},
      live_{mode_, rolling_average_, drop_first_batch_} {
    (void)recording_->track();   // which says if it is closed
}

FitSteps::~FitSteps() {
    leave();
    if (recording_->driver_ == this)   // a forked child's copy
        recording_->driver_ = nullptr;
}

void FitSteps::before_fit() {
    recording_->begin_fit(*this);
    open_ = {PassKind::fit};
    recording_->track().mark_until(span_of(Event::before_fit), recording_->track().last_ns());
    live_ = FastxtendLiveLog{mode_, rolling_average_, drop_first_batch_};
    first_epoch_ = epoch_ = recording_->next_epoch_;
    numbers_ = {};
    trained_ = whole_ = false;
    values_.reset();
}

void FitSteps::before_pass(const std::string& kind, std::uint32_t epoch) {
    if (!fits())
        return;
    const PassKind begun = kind_named(kind);
    const auto first = std::ranges::find_if(open_, [&](PassKind open) { return level_of(open) >= level_of(begun); });
    leave_to(static_cast<std::size_t>(first - open_.begin()));
    if (first_epoch_ + epoch != epoch_)
        numbers_ = {};   // else a pass goes on that another one interrupted
    epoch_ = first_epoch_ + epoch;
    recording_->next_epoch_ = std::max(recording_->next_epoch_, epoch_ + 1);
    LoopTrack& track = recording_->track();
    track.begin_pass(begun, epoch_);   // the time before it is its own, or a fit of many epochs would have many pieces
    track.mark(Span::between);
    open_.push_back(begun);
    trained_ |= begun == PassKind::train;
    track.mark_until(span_of(events_of(begun).from.event), track.last_ns());
}

void FitSteps::before_draw(bool trains) {
    if (!fits())
        return;
    leave_step();
    recording_->track().mark(Span::between);
    begin_step(trains);
    recording_->track().mark_until(span_of(Event::before_draw), recording_->track().last_ns());
}

void FitSteps::before_batch(bool trains, std::uint32_t size) {
    if (!fits())
        return;
    if (where_ == Where::batch)
        leave_step();
    if (where_ == Where::outside)   // a loop that does not say when it draws
        begin_step(trains);
    LoopTrack& track = recording_->track();
    const std::optional<DrawnBatch> drawn = std::exchange(recording_->drawn_, std::nullopt);
    track.mark(drawn ? Span::transfer : Span::starved);
    std::uint32_t& number = numbers_[trains_ ? 0 : 1];
    track.end_draw(size != 0 ? size : drawn ? drawn->size : 1, drawn ? drawn->number : number);
    ++number;
    where_ = Where::batch;
    track.mark_until(span_of(Event::before_batch), track.last_ns());
    last_ = Event::before_batch;
    is_cancelled_ = false;
}

void FitSteps::mark(const std::string& event, bool cancels) {
    if (!fits() || where_ != Where::batch)
        return;
    LoopTrack& track = recording_->track();
    if (event == name_of(Event::after_batch)) {
        track.mark(last_ == Event::after_step ? Span::zero_grad : Span::other);
        is_cancelled_ = cancels && trains_ && last_ != Event::after_step && last_ != Event::after_loss;
        last_ = Event::after_batch;
        return;
    }
    const auto found = std::ranges::find_if(endings, [&](const Ending& one) { return name_of(one.event) == event; });
    if (found == endings.end())
        throw nb::value_error("drawpoint: no action of a step ends with this event");
    track.mark(found->piece);
    track.mark_until(span_of(found->event), track.last_ns());
    last_ = found->event;
}

std::vector<FastxtendLogValue> FitSteps::after_batch() {
    if (!fits() || where_ != Where::batch)
        return {};
    LoopTrack& track = recording_->track();
    track.mark(last_ == Event::after_batch ? span_of(Event::after_batch) : Span::forward);
    if (last_ != Event::after_batch)
        track.mark_until(span_of(Event::after_batch), track.last_ns());
    std::vector<FastxtendLogValue> values;
    if (trains_) {
        StepRow step = track.step();
        step.batch_ns = track.last_ns() - step.draw_begin_ns - step.draw_ns;   // the step has not ended yet
        if (const auto batch = fastxtend_batch(step, track.step_spans()))
            values = live_.add(*batch);
    }
    track.end_step(is_cancelled_ ? StepStatus::cancelled : StepStatus::complete, std::nullopt);
    where_ = Where::outside;
    return values;
}

void FitSteps::after_pass(const std::string& kind) {
    const auto found = std::ranges::find(open_, kind_named(kind));
    if (!fits() || found == open_.end())
        return;
    leave_to(static_cast<std::size_t>(found - open_.begin()) + 1);
    LoopTrack& track = recording_->track();
    track.mark(Span::between);
    track.end_steps();
    track.mark(Span::between);   // which took a while
    track.mark_until(span_of(events_of(open_.back()).to.event), track.last_ns());
    track.end_pass();
    open_.pop_back();
}

void FitSteps::after_fit() {
    if (!fits())
        return;
    leave_to(1);
    LoopTrack& track = recording_->track();
    track.mark(Span::between);
    track.mark_until(span_of(Event::after_fit), track.last_ns());
    leave();
    whole_ = true;
}

void FitSteps::leave() {
    if (!fits())
        return;
    whole_ = false;
    leave_to(1);
    open_.clear();
    recording_->end_fit();
}

bool FitSteps::fits() const noexcept { return recording_->driver_ == this && recording_->is_open(); }

void FitSteps::begin_step(bool trains) {
    trains_ = trains;
    recording_->draw_failed_ = false;
    recording_->track().begin_step(trains ? Phase::train : Phase::valid, epoch_, numbers_[trains ? 0 : 1]);
    where_ = Where::draw;
}

void FitSteps::leave_step() {
    LoopTrack& track = recording_->track();
    recording_->drawn_.reset();
    if (where_ == Where::draw && std::exchange(recording_->draw_failed_, false)) {
        track.mark(Span::starved);
        track.end_step(StepStatus::failed, std::nullopt);
    } else if (where_ == Where::draw) {
        track.mark(Span::starved);
        track.end_of_data();
    } else if (where_ == Where::batch) {
        track.mark(Span::other);
        track.end_step(StepStatus::cancelled, std::nullopt);
    }
    where_ = Where::outside;
}

void FitSteps::leave_to(std::size_t depth) {
    leave_step();
    for (; open_.size() > depth; open_.pop_back()) {
        recording_->track().mark(Span::between);
        recording_->track().end_pass();
    }
}

nb::object FitSteps::report() {
    if (!whole_)
        return nb::none();
    if (!values_) {
        const nb::gil_scoped_release computing;
        values_ = fastxtend_values(recording_->recorder().ledger());
    }
    const FastxtendReport report = fastxtend_report(*values_, mode_, drop_first_batch_);
    nb::list results;
    for (const FastxtendRow& row : report.rows)
        results.append(nb::make_tuple(row.phase, row.action, number(row.mean_s), number(row.std_dev_s), row.calls,
                                      row.samples_per_second, number(row.total_s), row.percent_of_total));
    nb::dict log;
    for (const FastxtendSummary& summary : fastxtend_final_log(*values_, mode_, report.first_batch_dropped))
        log[nb::cast(summary.name)] = nb::cast(summary.values);
    nb::dict all;
    all["columns"] = nb::cast(column_titles(report));
    all["cells"] = nb::cast(formatted_cells(report));
    all["results"] = results;
    all["plain"] = nb::cast(to_plain(report));
    all["markdown"] = nb::cast(to_markdown(report));
    all["csv"] = nb::cast(to_csv(report));
    all["log"] = log;
    return all;
}

void add_fit_steps(nb::module_& module) {
    nb::class_<FitSteps>(module, "FitSteps")
        .def(nb::init<std::shared_ptr<Recording>, const std::string&, std::size_t, bool>(), nb::arg("recording"),
             nb::arg("mode") = "simple", nb::arg("rolling_average") = 10, nb::arg("drop_first_batch") = true)
        .def("before_fit", &FitSteps::before_fit)
        .def("before_pass", &FitSteps::before_pass, nb::arg("kind"), nb::arg("epoch"))
        .def("before_draw", &FitSteps::before_draw, nb::arg("trains"))
        .def("before_batch", &FitSteps::before_batch, nb::arg("trains"), nb::arg("size"))
        .def("mark", &FitSteps::mark, nb::arg("event"), nb::arg("cancels") = true)
        .def_prop_ro("trained", &FitSteps::trained)
        .def("after_batch",
             [](FitSteps& self) {
                 nb::dict values;
                 for (const FastxtendLogValue& value : self.after_batch())
                     values[nb::str(value.name.data(), value.name.size())] = value.value;
                 return values;
             })
        .def("after_pass", &FitSteps::after_pass, nb::arg("kind"))
        .def("after_fit", &FitSteps::after_fit)
        .def("leave", &FitSteps::leave)
        .def("report", &FitSteps::report);
}

}   // namespace drawpoint::python
