#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cli/command_line.hpp"
#include "cli/data.hpp"
#include "cli/machine.hpp"
#include "cli/profiling.hpp"
#include "cli/recording.hpp"
#include "cli/report_output.hpp"
#include "cli/run_page.hpp"
#include "cli/training.hpp"
#include <drawpoint/diagnosis/blame/blame.hpp>
#include <drawpoint/instrumentation/report/detail/output_file.hpp>
#include <drawpoint/instrumentation/detail/replaced_file.hpp>
#include <drawpoint/instrumentation/facts.hpp>
#include <drawpoint/instrumentation/host/detail/serve_process.hpp>
#include <drawpoint/instrumentation/host/detail/signals.hpp>
#include <drawpoint/instrumentation/recorder/recorder.hpp>
#include <drawpoint/loop/callbacks/progress_bar.hpp>
#include <drawpoint/pipeline/cache/sample_cache.hpp>
#include <drawpoint/pipeline/loader/data_loader.hpp>
#include <drawpoint/pipeline/torch/worker_threads.hpp>

namespace drawpoint::cli {
namespace {

constexpr std::chrono::minutes longest_logging{10};   // of a run that has ended

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

/// Throws Failure unless a recording can go to this file: opening a pipe would wait for its reader.
void check_recording_file(const std::string& file) {
    std::error_code unknown;
    const std::filesystem::file_status status = std::filesystem::status(file, unknown);
    if (exists(status) && !is_regular_file(status) && !is_character_file(status))
        throw Failure{fmt::format("{}: neither a file nor a character device, so no recording goes there", file)};
}

/// Throws Failure unless a checkpoint can be written to this file. Done before the epoch that would be lost.
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

std::unique_ptr<Recorder> make_recorder(const ProfileOptions& options) {
    RecorderOptions recording{.limit_bytes = options.recording_limit, .operator_limit_bytes = options.recording_limit};
    const std::string_view style = style_of(options.profiler.value);
    if (needs_every_row(options.report) || (!style.empty() && needs_every_row(style)))
        recording.ledger_bytes = 0;
    for (const Injection& injection : options.inject)
        if (injection.kind == InjectionKind::drop_events)
            recording.drop_share = injection.share;
    return options.profiler.value == ProfilerKind::none
               ? std::make_unique<Recorder>(recording)
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

/// Names where the samples come from that held the loop up: a recording has their numbers alone. What goes wrong here
/// must not cost the rest.
void record_paths(Recorder& recorder, const Data& data) {
    constexpr std::size_t most = 20;   // more than a page shows
    try {
        const Ledger ledger = recorder.ledger();
        const Blame found = blame(ledger);
        for (const SlowSample& slow : std::span{found.slow_samples}.first(std::min(found.slow_samples.size(), most))) {
            const SampleRow& row = ledger.samples[slow.sample];
            const SampleSource* const source = row.pipeline == 0 ? data.train.get() : data.valid.get();
            const std::string path =
                source != nullptr && row.index < source->size() ? source->path(row.index) : std::string{};
            if (!path.empty())
                recorder.set_fact(facts::sample_path(row.pipeline, row.index), path);
        }
    } catch (const std::exception& error) {
        complain(fmt::format("the paths of slow samples are not recorded: {}", error.what()));
    }
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

/// Trains while the recorder records, and ends the recording.
Outcome train_and_record(const ProfileOptions& options, const Data& data, Recorder& recorder, CallbackList& callbacks,
                         ProgressBar& progress, StopRequest& stop) {
    Outcome outcome;
    Usage before, after;
    {
        const std::size_t workers = options.loader.num_workers * (data.valid ? 2 : 1);
        Runtime runtime{{.max_threads = std::max<std::size_t>(1, workers), .on_worker_start = limit_torch_threads},
                        recorder};
        Loaders loaders{runtime, options, data};
        const SampleCache* const held_out = data.valid ? data.valid->cache() : nullptr;
        const bool same_cache = held_out == data.train->cache();
        const StopRequest::Watch watch{stop, loaders.all()};
        Profiling profiling{options, recorder, callbacks};
        before = Usage::now();
        outcome = train_model(options, data.classes, runtime, loaders, callbacks, stop);
        after = Usage::now();
        profiling.end();
        progress.clear();
        record_outcome(recorder, outcome, loaders, same_cache ? held_out : nullptr, before, after);
        set_cache_facts(recorder, {data.train->cache(), same_cache ? nullptr : held_out});
    }
    record_paths(recorder, data);
    record_cost(recorder, after.cpu_s - before.cpu_s);
    recorder.finish();   // before the report, so that its ledger has the last reading of the machine, as the file has
    return outcome;
}

/// Whether what is written to it can be read again: not so with /dev/null.
bool can_be_read(const std::filesystem::path& recording) {
    std::error_code unknown;
    const std::filesystem::file_status file = std::filesystem::status(recording, unknown);
    return !recording.empty() && (!exists(file) || is_regular_file(file));
}

/// Has the recording logged while it grows, by a process beside this one; a run without a recording is logged when it
/// ends. Throws Failure if that process does not start.
std::unique_ptr<ServeProcess> log_beside(const ProfileOptions& options, bool has_file) {
    if (options.logs.empty() || !has_file || !can_be_read(options.output))
        return nullptr;
    std::vector<std::string> words;
    for (const RunLog& log : options.logs)
        words.push_back(fmt::format("--log={}={}", log.format, log.path));
    try {
        return std::make_unique<ServeProcess>("--log", words, longest_logging);
    } catch (const std::runtime_error& error) {
        throw Failure{error.what()};
    }
}

/// Throws UsageError if a file that the run writes is another one that it writes or reads. The checkpoint may be the
/// one that the run goes on from.
void check_apart(const ProfileOptions& options, const OutputOptions& output, const std::string& config, bool has_file) {
    using Named = std::pair<std::string, std::string>;
    std::vector<Named> read{{"--config", config}, {"--targets", options.targets}};
    if (!options.data.value)
        read.emplace_back("--data", options.data.text);
    if (options.validates_elsewhere())
        read.emplace_back("--valid", options.valid.text);
    std::vector<Named> written{{"--html", options.html}, {"--checkpoint", options.checkpoint}};
    if (has_file)
        written.emplace_back("-o", options.output);
    for (const std::string& file : output.json_files)
        written.emplace_back("--json", file);
    for (const RunLog& log : options.logs)
        for (const std::string& file : files_of(log))
            written.emplace_back("--log " + log.format, file);
    const auto check = [](const Named& a, const Named& b) {
        if (!a.second.empty() && same_file(a.second, b.second))
            throw UsageError{fmt::format("{} {} and {} {} name the same file", a.first, a.second, b.first, b.second)};
    };
    for (std::size_t i = 0; i < written.size(); ++i) {
        for (const Named& one : read)
            check(one, written[i]);
        if (written[i].first != "--checkpoint")
            check({"--resume", options.resume}, written[i]);
        for (std::size_t other = 0; other < i; ++other)
            check(written[other], written[i]);
    }
}

/// Prints the report asked for; after drawpoint's own as text also the one on what only this --profiler records.
void print_run(Recorder& recorder, ReportRequest request, ProfilerKind profiler, const OutputOptions& output) {
    const RecordingState recording = recorder.state();
    // Logs and pages show steps one by one: the file has more of them than the ledger of a running program.
    const bool shows_steps = !request.logs.empty() || !request.html.empty();
    const Ledger ledger = shows_steps && can_be_read(recording.file) && recording.error.empty()
                              ? read_run(recording.file.string()).ledger
                              : recorder.ledger();
    Summary summary = summary_of(ledger, request.drop_first_batch);
    FirstFailure failures;
    summary.recording.file = recording.file.string();
    if (!recording.file.empty())
        summary.recording.bytes = static_cast<std::int64_t>(recording.bytes);
    if (!recording.error.empty())
        summary.recording.error = recording.error;
    if (!ledger.steps.empty() || output.form == OutputOptions::Form::json || !request.html.empty() ||
        !request.logs.empty())
        failures.run([&] { print_report(ledger, summary, request, output); });
    const bool is_own = request.style == "drawpoint";
    request.style = style_of(profiler);
    if (is_own && output.form == OutputOptions::Form::text && !request.style.empty()) {
        print("\n");
        print_style(ledger, request);
    }
    failures.rethrow();
}

}   // namespace

int profile(const Invocation& invocation) {
    ProfileOptions options;
    CommandLine line{invocation, "Trains a model on a data set through the DataLoader, records, prints the report."};
    options.add_to(line.app());
    bool full = false;
    add_full(line.app(), full);
    OutputFlags flags{line.app(), true};
    if (!line.parse())
        return exit_ok;
    options.check_together();
    const OutputOptions output = flags.read();
    ReportRequest request{.style = options.report,
                          .full = full,
                          .drop_first_batch = options.drop_first_batch,
                          .command_line = invocation.line,
                          .html = options.html,
                          .logs = options.logs,
                          .picture = std::nullopt};
    check_request(request, output);
    check_device(options);

    // A file at its size limit and a closed pipe are errors to report, not reasons to die.
    std::signal(SIGXFSZ, SIG_IGN);
    std::signal(SIGPIPE, SIG_IGN);
    std::signal(SIGCHLD, SIG_DFL);   // or nobody could ask how a child ended
    StopRequest stop;
    Signals signals{[&stop](int signal) { stop.ask(signal); }};

    const bool has_file = options.profiler.value != ProfilerKind::none;
    check_apart(options, output, line.config(), has_file);
    if (has_file)
        check_recording_file(options.output);
    if (!options.checkpoint.empty())
        check_checkpoint_file(options.checkpoint);
    check_files(output, "-o", has_file ? options.output : "");
    check_files(output, "--checkpoint", options.checkpoint);
    check_page(options.html, "-o", has_file ? options.output : "");
    const Data data = open_data(options);
    check_run_logs(options.logs);
    const auto logging = log_beside(options, has_file);   // before the recorder, which it outlives
    const auto recorder = make_recorder(options);
    record_facts(*recorder, invocation, line, data);
    ProgressBar progress{recorder->clock(), {.colour = output.colour_on_stderr(), .prefix = "drawpoint: "}};
    CallbackList callbacks;
    callbacks.add(stop);
    callbacks.add(progress);

    const Outcome outcome = train_and_record(options, data, *recorder, callbacks, progress, stop);
    if (const std::string error = recorder->state().error; !error.empty())
        complain("the recording ends early: " + error);
    if (!outcome.error.empty())
        complain(outcome.error);
    FirstFailure failures;
    bool logs_failed = false;
    if (logging) {
        const auto code = logging->end();
        if (code != exit_interrupted)   // else the run was too short for it to begin
            request.logs.clear();
        logs_failed = code == exit_failed;   // and it has said why
        if (!code)
            failures.run([] {
                throw Failure{"the logs end early, their process was killed: drawpoint export writes them anew"};
            });
    }
    failures.run([&] { print_run(*recorder, request, options.profiler.value, output); });
    failures.rethrow();
    return stop.asked() ? exit_interrupted : outcome.error.empty() && !logs_failed ? exit_ok : exit_failed;
}

}   // namespace drawpoint::cli
