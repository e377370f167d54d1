#include <drawpoint/loop/torch/torch_profiler.hpp>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <map>
#include <random>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <drawpoint/instrumentation/export/chrome.hpp>
#include <drawpoint/instrumentation/export/file.hpp>
#include <drawpoint/instrumentation/export/memory_timeline.hpp>
#include <drawpoint/instrumentation/ledger/ledger_window.hpp>
#include <drawpoint/instrumentation/facts.hpp>
#include <drawpoint/loop/torch/op_profiler.hpp>

namespace drawpoint {
namespace {

struct Window {
    std::int64_t from_ns, to_ns;
    [[nodiscard]] bool holds(std::int64_t at_ns) const noexcept { return from_ns <= at_ns && at_ns <= to_ns; }
};

TorchProfilerOptions checked(TorchProfilerOptions options) {
    if (!options.warn)
        options.warn = [](std::string_view text) { fmt::print(stderr, "drawpoint: {}\n", text); };
    const std::vector<ProfilerActivity> activities = options.activities.value_or(supported_activities());
    if (activities.empty())
        throw std::invalid_argument{"No valid profiler activities found"};
    for (std::size_t i = 0; i < activities.size(); ++i) {
        const ProfilerActivity activity = activities[i];
        if (std::find(activities.begin(), activities.begin() + static_cast<std::ptrdiff_t>(i), activity) !=
            activities.begin() + static_cast<std::ptrdiff_t>(i))
            throw std::invalid_argument{fmt::format("Activity {} specified more than once", name_of(activity))};
        if (activity != ProfilerActivity::cpu)
            throw std::invalid_argument{
                fmt::format("activities: {} cannot be profiled here: its kernels would come from Kineto's device "
                            "tracing, which this build does not use; CPU can",
                            name_of(activity))};
    }
    if (options.with_modules)
        throw std::invalid_argument{
            "with_modules: only TorchScript knows the modules of an operator, and LibTorch runs "
            "modules of C++; annotate them with profile_region"};
    for (const std::string& name : options.experimental_config)
        throw std::invalid_argument{fmt::format(
            "experimental_config: {} is a setting of Kineto's device tracing, which this build does not use", name)};
    if (options.use_cuda)
        options.warn("`use_cuda` is deprecated, use `activities` argument instead");
    return options;
}

std::string random_uuid() {
    std::random_device random;
    std::string text;
    for (int i = 0; i < 4; ++i)
        text += fmt::format("{:08X}", random());
    return text;
}

std::int64_t unix_now_ns() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
        .count();
}

/// -1 for "cpu", 2 for "cuda:2".
std::int32_t device_number(std::string_view device) {
    if (device == "cpu")
        return -1;
    const std::size_t colon = device.find(':');
    std::int32_t number = 0;
    const char* const end = device.data() + device.size();
    if (colon != device.npos && colon != 0)
        if (const auto read = std::from_chars(device.data() + colon + 1, end, number);
            read.ec == std::errc{} && read.ptr == end && number >= 0)
            return number;
    throw std::invalid_argument{fmt::format("device: '{}' is none; there are \"cpu\" and \"cuda:0\"", device)};
}

}   // namespace

std::string_view name_of(ProfilerActivity activity) noexcept {
    static constexpr std::array<std::string_view, 6> names{"CPU", "XPU", "CUDA", "HPU", "MTIA", "PrivateUse1"};
    return names[static_cast<std::size_t>(activity)];
}

std::vector<ProfilerActivity> supported_activities() { return {ProfilerActivity::cpu}; }

namespace {

/// Copies the sequence numbers of a backward function X to the engine's "evaluate_function: X" around it, which begins
/// before they are known. Kineto does the same.
void complete_evaluations(Ledger& ledger) {
    constexpr std::string_view prefix = "autograd::engine::evaluate_function: ";
    for (std::size_t i = 0; i + 1 < ledger.operators.size(); ++i) {
        OperatorRow& outer = ledger.operators[i];
        const OperatorRow& inner = ledger.operators[i + 1];
        const std::string_view name = ledger.names[outer.name];
        if (inner.thread == outer.thread && name.starts_with(prefix) &&
            name.substr(prefix.size()) == ledger.names[inner.name]) {
            outer.sequence = inner.sequence;
            outer.forward_thread = inner.forward_thread;
        }
    }
}

}   // namespace

struct TorchProfiler::Impl {
    Impl(TorchProfiler& self, Recorder& to, TorchProfilerOptions given)
        : recorder{&to},
          options{checked(std::move(given))},
          ops{to,
              {.record_shapes = options.record_shapes,
               .profile_memory = options.profile_memory,
               .with_stack = options.with_stack,
               .with_flops = options.with_flops}},
          machine{{.start = [this] { start_trace(); },
                   .stop = [this] { stop_trace(); },
                   .trace_ready =
                       [this, &self] {
                           if (options.on_trace_ready)
                               options.on_trace_ready(self);
                       },
                   .begin_step =
                       [this](std::int64_t) {
                           if (!steps_by_draw)
                               begin_range();
                       },
                   .end_step = [this](std::int64_t) { end_range(); },
                   .warn = options.warn},
                  options.schedule} {
        if (!options.execution_trace.empty())
            execution_trace.emplace(options.execution_trace);
    }

    void start_trace() {
        trace_id = options.custom_trace_id_callback ? options.custom_trace_id_callback() : random_uuid();
        const auto set = [this](std::string_view key, std::string_view json) { set_metadata(key, json); };
        set("trace_id", nlohmann::json(trace_id).dump());
        const std::array flags{
            std::pair{"profile_memory", options.profile_memory}, std::pair{"with_stack", options.with_stack},
            std::pair{"record_shapes", options.record_shapes}, std::pair{"with_flops", options.with_flops}};
        for (const auto& [name, on] : flags)
            if (on)
                set(name, "1");
        for (const auto& [key, json] : preset)
            set(key, json);
        if (!options.acc_events)
            windows.clear();
        trace.reset();
        const std::int64_t from_ns = boundary();
        ops.start();
        ops.collect_operators(collecting);
        if (execution_trace)
            execution_trace->start();
        windows.push_back({from_ns, no_stamp});
        started = true;
    }

    void stop_trace() {
        ops.stop();
        if (execution_trace)
            execution_trace->stop();
        if (!windows.empty() && windows.back().to_ns == no_stamp)   // false if start_trace() threw
            windows.back().to_ns = recorder->now_ns();
        trace.reset();
    }

    // A step's range is recorded when operators are: in the steps that the schedule makes active.
    void begin_range() {
        end_range();
        if (!ops.started() || !options.schedule)
            return;
        const std::int64_t number = step_number ? step_number() : machine.step_num();
        const std::uint32_t name = recorder->add_name(fmt::format("ProfilerStep#{}", number));
        range = recorder->begin_operator({.name = name}, boundary());
    }
    void end_range() {
        if (range)
            recorder->end_operator(*range, boundary());
        range.reset();
    }
    /// The time of the current transition.
    [[nodiscard]] std::int64_t boundary() const noexcept {
        return boundary_ns != no_stamp ? boundary_ns : recorder->now_ns();
    }

    void set_metadata(std::string_view key, std::string_view json) {
        recorder->set_fact(fmt::format("{}{}", facts::metadata_prefix, key), json);
    }
    static void check_json(std::string_view key, std::string_view value) {
        if (!nlohmann::json::accept(value))
            throw std::invalid_argument{fmt::format("metadata '{}' is no JSON: {}", key, value)};
    }

    void need_started(std::string_view what) const {
        if (!started && !machine.running())
            throw std::logic_error{fmt::format("Profiler must be initialized before {}", what)};
    }

    Ledger everything() const {
        Ledger ledger = recorder->ledger();
        if (!ledger.fact(facts::unix_offset_ns))
            ledger.set_fact(facts::unix_offset_ns, std::to_string(unix_now_ns() - recorder->now_ns()));
        if (!ledger.fact(facts::process_id))
            ledger.set_fact(facts::process_id, std::to_string(::getpid()));
        complete_evaluations(ledger);
        return ledger;
    }

    /// A ledger with the rows inside the windows.
    Ledger cut(std::span<const Window> from) const {
        const std::int64_t now = recorder->now_ns();
        if (from.empty())
            return window(everything(), now, now);
        std::vector<Window> ended(from.begin(), from.end());
        if (ended.back().to_ns == no_stamp)
            ended.back().to_ns = now;
        const Ledger all = everything();
        const std::int64_t kept_from_ns = all.folded.steps != 0 ? all.folded.until_ns : ended.front().from_ns;
        Ledger ledger = window(all, std::max(ended.front().from_ns, kept_from_ns), ended.back().to_ns);
        if (ended.size() > 1) {
            const auto outside = [&](std::int64_t at_ns) {
                return std::ranges::none_of(ended, [&](const Window& one) { return one.holds(at_ns); });
            };
            std::erase_if(ledger.operators, [&](const OperatorRow& row) { return outside(row.begin_ns); });
            std::erase_if(ledger.allocations, [&](const AllocationRow& row) { return outside(row.at_ns); });
        }
        return ledger;
    }

    Recorder* recorder;
    TorchProfilerOptions options;
    OpProfiler ops;
    std::optional<ExecutionTraceObserver> execution_trace;
    ScheduledProfiler machine;
    std::map<std::string, std::string> preset;
    std::string trace_id;
    std::vector<Window> windows;                 // of the last cycle, or of all with acc_events
    std::optional<Ledger> trace;                 // their rows, cut when first asked for
    std::optional<std::uint32_t> range;          // the open ProfilerStep
    bool started = false;                        // a cycle has been, or is being recorded
    bool collecting = true;                      // operators are recorded (toggle_collection_dynamic)
    bool steps_by_draw = false;                  // a TorchProfilerCallback opens and closes the ranges
    bool step_over = false;                      // the end of a fit has ended the current step
    std::int64_t boundary_ns = no_stamp;         // time of the draw that begins or ends a step
    std::function<std::int64_t()> step_number;   // number in a range's name; empty: the machine's number
};

TorchProfiler::TorchProfiler(Recorder& recorder, TorchProfilerOptions options)
    : impl_{std::make_unique<Impl>(*this, recorder, std::move(options))} {}

TorchProfiler::~TorchProfiler() {
    try {
        if (running())
            stop();
    } catch (const std::exception& error) {
        impl_->options.warn(error.what());
    }
}

void TorchProfiler::start() { impl_->machine.start(); }
void TorchProfiler::step() { impl_->machine.step(); }
void TorchProfiler::stop() { impl_->machine.stop(); }
bool TorchProfiler::running() const noexcept { return impl_->machine.running(); }
bool TorchProfiler::recorded() const noexcept { return impl_->started; }
void TorchProfiler::number_steps(std::function<std::int64_t()> number) { impl_->step_number = std::move(number); }
std::int64_t TorchProfiler::step_num() const noexcept { return impl_->machine.step_num(); }
ProfilerAction TorchProfiler::current_action() const noexcept { return impl_->machine.current_action(); }
const TorchProfilerOptions& TorchProfiler::options() const noexcept { return impl_->options; }
const std::string& TorchProfiler::get_trace_id() const noexcept { return impl_->trace_id; }

const Ledger& TorchProfiler::ledger() {
    impl_->need_started("accessing events");
    const bool open = !impl_->windows.empty() && impl_->windows.back().to_ns == no_stamp;
    if (!impl_->trace || open)
        impl_->trace = impl_->cut(impl_->windows);
    return *impl_->trace;
}

std::vector<OperatorEvent> TorchProfiler::events() { return drawpoint::events(ledger()); }

std::vector<OperatorAverage> TorchProfiler::key_averages(const KeyAveragesOptions& options) {
    impl_->need_started("getting key averages");
    return drawpoint::key_averages(ledger(), options);
}

void TorchProfiler::export_chrome_trace(const std::filesystem::path& path) {
    impl_->need_started("exporting chrome trace");
    const bool last_of_many = impl_->windows.size() > 1;
    const Ledger last = last_of_many ? impl_->cut(std::span{impl_->windows}.last(1)) : Ledger{};
    const Ledger& trace = last_of_many ? last : ledger();
    const std::string name = path.string();
    write_file_whole(path, path.extension() == ".gz",
                     [&](std::ostream& out) { write_chrome_trace(trace, out, {.trace_name = name}); });
}

void TorchProfiler::export_stacks(const std::filesystem::path& path, std::string_view metric) {
    impl_->need_started("exporting stacks");
    if (!impl_->options.with_stack)
        throw std::invalid_argument{"export_stacks() requires with_stack=True"};
    const std::string text = drawpoint::export_stacks(ledger(), metric);
    write_file_whole(path, false, [&](std::ostream& out) { out << text; });
}

void TorchProfiler::export_memory_timeline(const std::filesystem::path& path, std::string_view device) {
    std::string missing;
    const auto need = [&](std::string_view name, bool on) {
        if (!on)
            missing += fmt::format("{}{}=True", missing.empty() ? "" : ", ", name);
    };
    need("record_shapes", impl_->options.record_shapes);
    need("profile_memory", impl_->options.profile_memory);
    need("with_stack", impl_->options.with_stack);
    if (!missing.empty())
        throw std::invalid_argument{missing + " required for memory profiling."};
    impl_->need_started("exporting a memory timeline");
    drawpoint::export_memory_timeline(ledger(), path, device_number(device));
}

void TorchProfiler::toggle_collection_dynamic(bool enable, std::span<const ProfilerActivity> activities) {
    if (!impl_->started)
        return;
    for (const ProfilerActivity activity : activities)
        if (activity != ProfilerActivity::cpu)
            throw std::invalid_argument{
                fmt::format("toggle_collection_dynamic: nothing of {} is collected here; CPU is", name_of(activity))};
    if (activities.empty())
        return;
    impl_->collecting = enable;
    impl_->ops.collect_operators(enable);
}

void TorchProfiler::add_metadata(std::string_view key, std::string_view value) {
    impl_->set_metadata(key, json_string(value));
}

void TorchProfiler::add_metadata_json(std::string_view key, std::string_view value) {
    Impl::check_json(key, value);
    impl_->set_metadata(key, value);
}

void TorchProfiler::preset_metadata_json(std::string_view key, std::string_view value) {
    Impl::check_json(key, value);
    impl_->preset.insert_or_assign(std::string{key}, std::string{value});
}

TorchProfilerScope::~TorchProfilerScope() noexcept(false) {
    if (std::uncaught_exceptions() == exceptions_) {
        profiler_->stop();
        return;
    }
    try {
        profiler_->stop();
    } catch (const std::exception& error) {   // the exception in flight takes precedence
        profiler_->options().warn(error.what());
    }
}

EventSet TorchProfilerCallback::events() const noexcept {
    return {Event::before_fit,  Event::before_draw,        Event::before_batch,
            Event::after_train, Event::after_cancel_train, Event::after_fit};
}

void TorchProfilerCallback::on(Event event, LoopState& state) {
    TorchProfiler::Impl& impl = *profiler_->impl_;
    switch (event) {
    case Event::before_fit:
        impl.steps_by_draw = true;
        if (const bool over = std::exchange(impl.step_over, false); !profiler_->running()) {
            if (over)
                impl.machine.skip_step();
            profiler_->start();
        }
        break;
    case Event::before_draw: before_draw(state); break;
    case Event::before_batch: drawn_ = true; break;
    case Event::after_train:
    case Event::after_cancel_train:   // validation belongs to no step
        impl.boundary_ns = state.track != nullptr ? state.track->last_ns() : no_stamp;
        impl.end_range();
        impl.boundary_ns = no_stamp;
        if (!drawn_ && !state.batches)
            in_step_ = false;   // this draw only found the end of the data: the next draw takes over its step
        break;
    default: fit_over(); break;
    }
}

void TorchProfilerCallback::before_draw(const LoopState& state) {
    TorchProfiler::Impl& impl = *profiler_->impl_;
    if (!profiler_->running())
        return;
    // Uses the loop's own clock reading, so that range and step record have the same begin and end.
    impl.boundary_ns = state.track != nullptr ? state.track->step().draw_begin_ns : no_stamp;
    std::exception_ptr thrown;
    if (std::exchange(in_step_, true)) {
        try {
            profiler_->step();
        } catch (...) {
            thrown = std::current_exception();
        }
    }
    drawn_ = false;
    impl.begin_range();
    impl.boundary_ns = no_stamp;
    if (thrown)
        std::rethrow_exception(thrown);
}

bool TorchProfilerCallback::fit_over() noexcept {
    TorchProfiler::Impl& impl = *profiler_->impl_;
    try {
        if (impl.steps_by_draw && profiler_->running())
            profiler_->stop();
    } catch (const std::exception& error) {
        impl.options.warn(error.what());
    }
    impl.steps_by_draw = false;
    impl.step_over |= std::exchange(in_step_, false);
    return false;
}

std::function<void(TorchProfiler&)> tensorboard_trace_handler(std::filesystem::path dir, std::string worker_name,
                                                              bool use_gzip) {
    return [dir = std::move(dir), worker = std::move(worker_name), use_gzip](TorchProfiler& profiler) {
        profiler.export_chrome_trace(tensorboard_trace_file(dir, worker, use_gzip));
    };
}

}   // namespace drawpoint
