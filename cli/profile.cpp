#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include <asio/error.hpp>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cli/command_line.hpp>
#include <cli/compute.hpp>
#include <cli/data.hpp>
#include <cli/machine.hpp>
#include <cli/profiling.hpp>
#include <cli/report_output.hpp>
#include <cli/signals.hpp>
#include <drawpoint/instrumentation/recorder.hpp>
#include <drawpoint/instrumentation/report/facts.hpp>
#include <drawpoint/loop/callbacks/checkpoint.hpp>
#include <drawpoint/loop/callbacks/progress_bar.hpp>
#include <drawpoint/loop/fit.hpp>
#include <drawpoint/loop/torch/learner.hpp>
#include <drawpoint/pipeline/data_loader.hpp>
#include <drawpoint/pipeline/sample_cache.hpp>
#include <drawpoint/pipeline/torch/worker_threads.hpp>
#include <instrumentation/replaced_file.hpp>
#include <pipeline/batch_digest.hpp>

namespace drawpoint::cli {
namespace {

/// Passes a wish to stop on to the loop, and to loaders it may be waiting for.
class StopRequest final : public Callback {
public:
    [[nodiscard]] std::string_view name() const noexcept override { return "StopRequest"; }
    [[nodiscard]] EventSet events() const noexcept override { return {Event::before_draw}; }
    void on(Event, LoopState&) override {
        if (asked())
            throw CancelFit{};
    }

    /// Any thread.
    void ask(int signal) noexcept {
        signal_.store(signal, std::memory_order_release);
        const std::lock_guard lock{mutex_};
        for (DataLoader* loader : loaders_)
            loader->request_stop();
    }
    [[nodiscard]] bool asked() const noexcept { return signal_.load(std::memory_order_acquire) != 0; }
    [[nodiscard]] std::string_view reason() const noexcept {
        return signal_.load(std::memory_order_acquire) == SIGTERM ? "SIGTERM" : "Ctrl-C";
    }

    /// Ends the watch with its scope, which ends before the loaders do.
    class Watch {
    public:
        Watch(StopRequest& stop, std::vector<DataLoader*> loaders) : stop_{&stop} { stop.watch(std::move(loaders)); }
        Watch(const Watch&) = delete;
        Watch& operator=(const Watch&) = delete;
        ~Watch() { stop_->watch({}); }

    private:
        StopRequest* stop_;
    };

private:
    void watch(std::vector<DataLoader*> loaders) {
        const std::lock_guard lock{mutex_};
        loaders_ = std::move(loaders);
        if (asked())
            for (DataLoader* loader : loaders_)
                loader->request_stop();
    }

    std::atomic<int> signal_{0};   // that asked; 0: none did
    std::mutex mutex_;
    std::vector<DataLoader*> loaders_;
};

/// What the process has used so far.
struct Usage {
    double cpu_s = 0;
    std::int64_t minor_faults = 0, peak_bytes = 0;

    static Usage now() {
        rusage usage{};
        getrusage(RUSAGE_SELF, &usage);
        const auto seconds = [](const timeval& time) {
            return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
        };
        return {seconds(usage.ru_utime) + seconds(usage.ru_stime), usage.ru_minflt, usage.ru_maxrss * 1024};
    }
};

/// A learner that notes which samples it was given to train on, in their order. The pixels are left out: a pass over them
/// would take its milliseconds from every step.
template <class L>
class Noting {
public:
    explicit Noting(L& learner) noexcept : learner_{&learner} {}
    void begin_phase(bool training) {
        training_ = training;
        learner_->begin_phase(training);
    }
    void forward(Batch& batch) {
        if (training_) {
            digest_.add(std::as_bytes(batch.indices()));
            digest_.add(std::as_bytes(batch.targets()));
        }
        learner_->forward(batch);
    }
    void loss(Batch& batch) { learner_->loss(batch); }
    void backward() { learner_->backward(); }
    void opt_step() { learner_->opt_step(); }
    void zero_grad() { learner_->zero_grad(); }
    void end_batch() noexcept {
        if constexpr (ForgettingLearner<L>)
            learner_->end_batch();
    }
    [[nodiscard]] double loss_value() const { return learner_->loss_value(); }
    [[nodiscard]] std::string digest() const { return digest_.hex(); }

private:
    L* learner_;
    BatchDigest digest_;
    bool training_ = true;
};

/// Callbacks that leave the list with their scope.
class ScopedCallbacks {
public:
    explicit ScopedCallbacks(CallbackList& list) noexcept : list_{&list} {}
    ScopedCallbacks(const ScopedCallbacks&) = delete;
    ScopedCallbacks& operator=(const ScopedCallbacks&) = delete;
    ~ScopedCallbacks() {
        for (Callback* callback : added_)
            list_->remove(*callback);
    }
    void add(Callback& callback) {
        added_.push_back(&callback);
        list_->add(callback);
    }

private:
    CallbackList* list_;
    std::vector<Callback*> added_;
};

/// How a fit went.
struct Outcome {
    std::optional<std::string> stopped;   ///< why it ended early
    std::string error;                    ///< what is wrong; empty: nothing
    std::optional<double> accuracy;
    std::string digest;
};

struct Loaders {
    DataLoader train;
    std::optional<DataLoader> valid;
    std::size_t inputs;   // values of a sample
};

/// An error's text without the C++ stack that LibTorch adds, and with what to do where its words do not tell.
std::string in_our_words(std::string error) {
    for (const std::string_view stack : {"\nException raised from", "\nframe #0"})
        error.resize(std::min(error.size(), error.find(stack)));
    if (error.find("Expected more than 1 value per channel") != error.npos)
        error += " (a batch of one sample: try --drop-last or another --batch-size)";
    return error;
}

/// Throws Failure for what a recording cannot be written to; opening a pipe would wait for its reader.
void check_recording_file(const std::string& file) {
    std::error_code unknown;
    const std::filesystem::file_status status = std::filesystem::status(file, unknown);
    if (exists(status) && !is_regular_file(status) && !is_character_file(status))
        throw Failure{fmt::format("{}: neither a file nor a character device, so no recording goes there", file)};
}

/// Throws Failure for what a checkpoint cannot be written to, before the epoch that would be lost.
void check_checkpoint_file(const std::filesystem::path& file) {
    std::error_code unknown;
    const std::filesystem::file_status status = std::filesystem::status(file, unknown);
    if (exists(status) && !is_regular_file(status))
        throw Failure{fmt::format("--checkpoint {}: not a file", file.string())};
    try {
        ReplacedFile{file};
    } catch (const std::system_error& error) {
        throw Failure{fmt::format("--checkpoint {}: {}", file.string(), error.code().message())};
    }
}

template <class L>
Outcome train(L& learner, Runtime& runtime, Loaders& loaders, const FitOptions& fit_options, CallbackList& callbacks,
              const StopRequest& stop) {
    Outcome outcome;
    Noting<L> noting{learner};
    try {
        if (loaders.valid)
            run(runtime, fit(noting, loaders.train, *loaders.valid, fit_options, callbacks, runtime.recorder()));
        else
            run(runtime, fit(noting, loaders.train, fit_options, callbacks, runtime.recorder()));
        if constexpr (requires { learner.metrics(); })
            if (const auto metrics = learner.metrics(); metrics.seen > 0)
                outcome.accuracy = metrics.accuracy();
    } catch (const std::system_error& error) {
        if (error.code() != asio::error::operation_aborted)
            outcome.error = error.what();
        else if (!stop.asked())   // a loader stops by itself for this alone
            outcome.error = "the loader stopped: there is no memory for its workers";
    } catch (const std::exception& error) {
        outcome.error = error.what();
    }
    outcome.error = in_our_words(std::move(outcome.error));
    outcome.digest = noting.digest();
    if (stop.asked())
        outcome.stopped = stop.reason();
    else if (!outcome.error.empty())
        outcome.stopped = "error: " + outcome.error;
    else if (fit_options.max_steps > 0 &&
             fit_options.max_steps < (fit_options.epochs - fit_options.first_epoch) * loaders.train.batches_per_epoch())
        outcome.stopped = fmt::format("--steps {}", fit_options.max_steps);
    return outcome;
}

std::unique_ptr<Recorder> make_recorder(const ProfileOptions& options, const std::vector<Injection>& injections) {
    RecorderOptions recording{.limit_bytes = options.recording_limit_bytes(),
                              .operator_limit_bytes = options.recording_limit_bytes()};
    for (const Injection& injection : injections)
        if (injection.kind == InjectionKind::drop_events)
            recording.drop_share = injection.share;
    return options.profiler == "none" ? std::make_unique<Recorder>(recording)
                                      : std::make_unique<Recorder>(std::filesystem::path{options.output}, recording);
}

void record_facts(Recorder& recorder, const Invocation& invocation, const CommandLine& line, const Data& data) {
    recorder.set_fact(facts::command, invocation.line);
    recorder.set_fact(facts::version, DRAWPOINT_VERSION);
    recorder.set_fact(facts::clock, recorder.clock().name());
    recorder.set_fact(facts::process_id, std::to_string(getpid()));
    recorder.set_fact(facts::process_name, "drawpoint");
    recorder.set_fact(facts::loop_tid, std::to_string(gettid()));   // run() is called on this thread
    const auto unix_ns =
        std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch());
    recorder.set_fact(facts::unix_offset_ns, std::to_string(unix_ns.count() - recorder.now_ns()));
    recorder.set_fact(facts::classes, std::to_string(data.classes));
    for (const auto& [name, value] : line.effective())
        recorder.set_fact(std::string{facts::option_prefix} + name, value);
    const Machine machine = this_machine();
    recorder.set_fact(facts::machine_cpu, machine.cpu);
    recorder.set_fact(facts::machine_kernel, machine.kernel);
    recorder.set_fact(facts::machine_compiler, machine.compiler);
    recorder.set_fact(facts::machine_cores, std::to_string(machine.cores_usable.value_or(1)));
    for (const auto& [name, version] : machine.libraries)
        recorder.set_fact(std::string{facts::machine_library_prefix} + name, version);
}

void record_outcome(Recorder& recorder, const Outcome& outcome, const Loaders& loaders, const SampleCache* shared_cache,
                    const Usage& before, const Usage& after) {
    LoaderCounters counters = loaders.train.counters();
    std::uint64_t planned = loaders.train.memory_plan().planned_bytes;
    if (loaders.valid) {
        const LoaderCounters valid = loaders.valid->counters();
        const MemoryPlan& plan = loaders.valid->memory_plan();
        planned += plan.planned_bytes - (shared_cache ? plan.cache_bytes : 0);
        counters.slots_bytes += valid.slots_bytes;
        counters.peak_bytes +=
            valid.peak_bytes - (shared_cache && !shared_cache->in_file() ? shared_cache->counters().bytes : 0);
        counters.slots_replaced += valid.slots_replaced;
        counters.read_retries += valid.read_retries;
        counters.batches_taken += valid.batches_taken;
    }
    recorder.set_fact(facts::planned_bytes, std::to_string(planned));
    recorder.set_fact(facts::loader_peak_bytes, std::to_string(counters.peak_bytes));
    recorder.set_fact(facts::slots_bytes, std::to_string(counters.slots_bytes));
    recorder.set_fact(facts::slots_replaced, std::to_string(counters.slots_replaced));
    recorder.set_fact(facts::read_retries, std::to_string(counters.read_retries));
    recorder.set_fact(facts::peak_bytes, std::to_string(after.peak_bytes));
    if (counters.batches_taken > 0)
        recorder.set_fact(facts::minor_faults_per_batch,
                          fmt::format("{}", static_cast<double>(after.minor_faults - before.minor_faults) /
                                                static_cast<double>(counters.batches_taken)));
    recorder.set_fact(facts::digest, outcome.digest);
    if (outcome.stopped)
        recorder.set_fact(facts::stopped, *outcome.stopped);
    if (outcome.accuracy)
        recorder.set_fact(facts::accuracy, fmt::format("{}", *outcome.accuracy));
}

void record_cost(Recorder& recorder, double cpu_s) {
    const RecordingState state = recorder.state();
    recorder.set_fact(facts::recording_events, std::to_string(state.events));
    recorder.set_fact(facts::ns_per_event, fmt::format("{}", state.ns_per_event));
    if (cpu_s > 0)
        recorder.set_fact(
            facts::share_of_cpu,
            fmt::format("{}",
                        (static_cast<double>(state.events) * state.ns_per_event / 1e9 + state.writer_cpu_s) / cpu_s));
}

/// Gives each loader half of what --memory-budget leaves beside the caches, and its cache. Throws UsageError when they leave
/// nothing.
void share_budget(const ProfileOptions& options, const Data& data, LoaderOptions& train, LoaderOptions& valid) {
    if (train.memory_budget == 0 || !data.valid)
        return;
    const auto bytes_of = [](const SampleCache* cache) {
        return cache != nullptr && !cache->in_file() ? cache->counters().budget_bytes : 0;
    };
    const std::uint64_t of_train = bytes_of(data.train->cache()), of_valid = bytes_of(data.valid->cache());
    const std::uint64_t caches = of_train + (data.valid->cache() == data.train->cache() ? 0 : of_valid);
    if (train.memory_budget <= caches)
        throw UsageError{
            fmt::format("--memory-budget {} leaves nothing beside --cache {}", options.memory_budget, options.cache)};
    const std::uint64_t half = std::max<std::uint64_t>((train.memory_budget - caches) / 2, 1);   // 0 were none
    train.memory_budget = half + of_train;
    valid.memory_budget = half + of_valid;
}

/// What a run must have in common with the one it resumes, so that it goes on as that would have.
RunOptions resumable_options(const ProfileOptions& options, const Loaders& loaders) {
    return {{"--model", options.model},
            {"--optimizer", options.optimizer},
            {"--batch-size", std::to_string(options.batch_size)},
            {"--drop-last", options.drop_last ? "true" : "false"},
            {"--seed", std::to_string(options.seed)},
            {"--valid", options.valid},
            {"batches an epoch", std::to_string(loaders.train.batches_per_epoch())},
            {"--image-size", std::to_string(options.image_size)},
            {"--resize-filter", options.resize_filter}};
}

/// Loads what `--resume` names. Throws Failure when nothing is left to train.
TrainingPosition resume(const ProfileOptions& options, TorchLearner& learner, const Loaders& loaders) {
    const TrainingPosition position = load_checkpoint(options.resume, learner, {}, resumable_options(options, loaders));
    if (options.learning_rate)
        learner.set_learning_rate(*options.learning_rate);
    if (position.epochs >= static_cast<std::size_t>(options.epochs))
        throw Failure{fmt::format("--resume {}: epochs finished: {}, so --epochs {} leaves nothing to train",
                                  options.resume, position.epochs, options.epochs)};
    return position;
}

Outcome train_model(const ProfileOptions& options, const std::vector<Injection>& injections, std::size_t classes,
                    Runtime& runtime, Loaders& loaders, CallbackList& callbacks, const StopRequest& stop) {
    FitOptions fit_options{.epochs = static_cast<std::size_t>(options.epochs),
                           .max_steps = static_cast<std::size_t>(options.steps),
                           .record_loss = options.model != "none"};
    const auto seed = static_cast<std::uint64_t>(options.seed);
    const std::chrono::nanoseconds own{static_cast<std::int64_t>(options.compute_ms * 1e6)};
    const Delay delay = delay_of(injections, own, seed);
    if (options.model == "none") {
        WaitingLearner learner{delay};
        return train(learner, runtime, loaders, fit_options, callbacks, stop);
    }
    SlowForward slow{delay};
    const Model model = options.model == "mlp"        ? mlp(loaders.inputs, classes, {256}, seed)
                        : options.model == "resnet18" ? resnet18(classes, seed)
                                                      : small_cnn(classes, seed);
    const bool adam = options.optimizer == "adam";
    TorchLearner learner{model,
                         {.optimizer = adam ? Optimizer::adam : Optimizer::sgd,
                          .learning_rate = options.learning_rate.value_or(adam ? 1e-3 : 1e-2)}};
    const TrainingPosition position = options.resume.empty() ? TrainingPosition{} : resume(options, learner, loaders);
    fit_options.first_epoch = position.epochs;
    std::optional<CheckpointCallback<TorchLearner>> checkpoint;
    ScopedCallbacks added{callbacks};
    if (delay.base().count() > 0)
        added.add(slow);
    if (!options.checkpoint.empty())
        added.add(checkpoint.emplace(learner, CheckpointOptions{.file = options.checkpoint,
                                                                .run = resumable_options(options, loaders),
                                                                .first_step = position.steps}));
    return train(learner, runtime, loaders, fit_options, callbacks, stop);
}

}   // namespace

int profile(const Invocation& invocation) {
    ProfileOptions options;
    CommandLine line{invocation, "Trains a model on a data set through the DataLoader, records, prints the report."};
    options.add_to(line.app());
    const OutputFlags flags{line.app(), true};
    if (!line.parse())
        return exit_ok;
    options.check();
    const OutputOptions output = flags.read();
    ReportRequest request{
        .style = options.report, .drop_first_batch = options.drop_first_batch, .command_line = invocation.line};
    check_request(request, output);
    const bool has_file = options.profiler != "none";
    const std::vector<Injection> injections = injections_of(options);

    // A file at its size limit and a closed pipe are errors to report, not reasons to die.
    std::signal(SIGXFSZ, SIG_IGN);
    std::signal(SIGPIPE, SIG_IGN);
    StopRequest stop;
    Signals signals{[&stop](int signal) { stop.ask(signal); }};

    if (has_file)
        check_recording_file(options.output);
    if (!options.checkpoint.empty())
        check_checkpoint_file(options.checkpoint);
    check_files(output, "-o", has_file ? options.output : "");
    check_files(output, "--checkpoint", options.checkpoint);
    const Data data = open_data(options, injections);
    const auto recorder = make_recorder(options, injections);
    record_facts(*recorder, invocation, line, data);
    ProgressBar progress{recorder->clock(), {.colour = output.colour_on_stderr(), .prefix = "drawpoint: "}};
    CallbackList callbacks;
    callbacks.add(stop);
    callbacks.add(progress);

    Outcome outcome;
    Usage before, after;
    {
        const auto workers = static_cast<std::size_t>(options.num_workers);
        Runtime runtime{{.max_threads = std::max<std::size_t>(1, workers * (data.valid ? 2 : 1)),
                         .on_worker_start = limit_torch_threads},
                        *recorder};
        LoaderOptions loader_options{.batch_size = static_cast<std::size_t>(options.batch_size),
                                     .num_workers = workers,
                                     .prefetch_depth = static_cast<std::size_t>(options.prefetch_depth),
                                     .seed = static_cast<std::uint64_t>(options.seed),
                                     .drop_last = options.drop_last,
                                     .order = options.batch_order().first,
                                     .max_overtakes = options.batch_order().second,
                                     .read_concurrency = static_cast<std::size_t>(options.read_concurrency),
                                     .memory_budget = options.memory_budget_bytes()};
        LoaderOptions valid_options = loader_options;
        valid_options.drop_last = false;
        const SampleCache* const held_out = data.valid ? data.valid->cache() : nullptr;
        const bool same_cache = held_out == data.train->cache();
        share_budget(options, data, loader_options, valid_options);
        Loaders loaders{.train{runtime, *data.train, *data.train_sampler, loader_options, "train"},
                        .valid{},
                        .inputs = data.train->layout().values()};
        std::vector<DataLoader*> watched{&loaders.train};
        if (data.valid)
            watched.push_back(
                &loaders.valid.emplace(runtime, *data.valid, *data.valid_sampler, valid_options, "valid"));
        const StopRequest::Watch watch{stop, std::move(watched)};
        Profiling profiling{options, *recorder, callbacks};
        before = Usage::now();
        outcome = train_model(options, injections, data.classes, runtime, loaders, callbacks, stop);
        after = Usage::now();
        profiling.end();
        progress.clear();
        record_outcome(*recorder, outcome, loaders, same_cache ? held_out : nullptr, before, after);
        set_cache_facts(*recorder, {data.train->cache(), same_cache ? nullptr : held_out});
    }
    record_cost(*recorder, after.cpu_s - before.cpu_s);
    const Ledger ledger = recorder->ledger();
    recorder->finish();
    const RecordingState recording = recorder->state();
    if (!recording.error.empty())
        complain("the recording ends early: " + recording.error);
    if (!outcome.error.empty())
        complain(outcome.error);

    Summary summary = summary_of(ledger, options.drop_first_batch);
    summary.recording.file = recording.file.string();
    if (!recording.file.empty())
        summary.recording.bytes = static_cast<std::int64_t>(recording.bytes);
    if (!recording.error.empty())
        summary.recording.error = recording.error;
    if (!ledger.steps.empty() || output.form == OutputOptions::Form::json)
        print_report(ledger, summary, request, output);
    request.style = style_of_profiler(options.profiler);
    if (options.report == "drawpoint" && output.form == OutputOptions::Form::text && !request.style.empty())
        print("\n" + text_of(ledger, request));
    return stop.asked() ? exit_interrupted : outcome.error.empty() ? exit_ok : exit_failed;
}

}   // namespace drawpoint::cli
