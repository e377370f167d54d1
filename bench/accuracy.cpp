// Measures how often a verdict is right: on real pipelines with known faults, compares what each change really gains
// with what `diagnose` and the rules of other tools say.

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include <sys/prctl.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <drawpoint/instrumentation/report/machine.hpp>

#include "accuracy/fresh_case.hpp"
#include "accuracy/score.hpp"
#include "accuracy/truth.hpp"
#include "program.hpp"

namespace {

using namespace drawpoint;
using namespace drawpoint::bench;

volatile std::sig_atomic_t interrupted = 0;

struct Options {
    std::filesystem::path cases{DRAWPOINT_BENCH_DIR "/accuracy/cases"}, truth, folder;
    std::size_t fresh = 0;
    std::optional<std::uint64_t> seed;
    std::vector<std::string> only;
    bool measure_truth = false;
    MeasureOptions measure;
    ScoreOptions score;
    std::string data;
    std::optional<std::string> json;
};

std::vector<Case> chosen_cases(const Options& options) {
    std::vector<Case> cases = read_cases(options.cases);
    for (const std::string& name : options.only)
        if (std::ranges::find(cases, name, &Case::name) == cases.end())
            throw std::invalid_argument{fmt::format("--only {}: no such case in {}", name, options.cases.string())};
    if (!options.only.empty())
        std::erase_if(cases,
                      [&](const Case& of) { return std::ranges::find(options.only, of.name) == options.only.end(); });
    return cases;
}

std::filesystem::path truth_file(const Options& options, const Case& of) { return options.truth / (of.name + ".json"); }

/// The truth that was measured for this version of the case, on this machine; absent: there is none.
std::optional<Truth> measured_truth(const Options& options, const Case& of) {
    if (!std::filesystem::exists(truth_file(options, of)))
        return std::nullopt;
    try {
        Truth truth = read_truth(truth_file(options, of));
        const Machine machine = this_machine();
        if (truth.case_digest == of.digest && truth.cpu == machine.cpu &&
            truth.cores == static_cast<std::size_t>(machine.cores_usable.value_or(0)))
            return truth;
    } catch (const std::exception& error) {   // of another version of this program, or damaged
        fmt::print(stderr, "{}: no truth: {}\n", of.name, error.what());
    }
    return std::nullopt;
}

/// The same for the same build of this program.
std::string own_digest() { return fmt::format("{:016x}", std::hash<std::string>{}(read_text("/proc/self/exe"))); }

/// Throws std::runtime_error if the folder of fresh cases was begun by another build.
void check_build(const std::filesystem::path& folder) {
    const std::filesystem::path file = folder / "build";
    if (!std::filesystem::exists(file)) {
        std::filesystem::create_directories(folder);
        write_text(file, own_digest());
    } else if (read_text(file) != own_digest()) {
        throw std::runtime_error{fmt::format(
            "{} was begun by another build of this program: remove it, or choose another --folder", folder.string())};
    }
}

/// Measures one truth. Returns 1, and says why, if that cannot be done here.
int measure(const Options& options, const Case& of, Rig& rig) {
    std::filesystem::create_directories(options.truth);
    try {
        if (const std::optional<Truth> truth = measure_truth(of, rig, options.measure)) {
            write_truth(truth_file(options, of), *truth);
            fmt::print(stderr, "{}: {} (best gain {:+.1f} %)\n", of.name,
                       fmt::join(bench::words_of(truth->verdicts), ", "), 100 * truth->gains.front().gain.median);
        }
        return 0;
    } catch (const NotMeasured& error) {
        fmt::print(stderr, "{}\n", error.what());
        return 1;
    } catch (const std::exception& error) {   // the others can still be measured
        fmt::print(stderr, "{}: {}\n", of.name, error.what());
        return 1;
    }
}

int measure_all(const Options& options, const std::vector<Case>& cases, Rig& rig) {
    std::vector<Case> todo;
    for (const Case& of : cases)
        if (of.kind != "adversarial" && !measured_truth(options, of))
            todo.push_back(of);
    double seconds = 0;
    for (const Case& of : todo) {
        if (interrupted != 0)
            return 130;
        const CaseRun probe = run_case(of, rig);
        seconds += static_cast<double>(runs_needed(of, options.measure) * (of.steps + warm_up_steps(of))) /
                   probe.batches_per_s;
    }
    fmt::print(stderr, "{} of {} cases to be measured: at most about {:.0f} minutes\n", todo.size(), cases.size(),
               seconds / 60);
    int status = 0;
    for (const Case& of : todo)
        if (interrupted == 0)
            status = std::max(status, measure(options, of, rig));
    return interrupted != 0 ? 130 : status;
}

int score_all(const Options& options, const std::vector<Case>& cases, Rig& rig, const std::string& command) {
    std::vector<Scored> scored;
    for (const Case& of : cases) {
        if (interrupted != 0)
            return 130;
        std::optional<Truth> truth;
        if (of.kind != "adversarial")
            truth = measured_truth(options, of);
        if (truth)
            decide(*truth, of);   // by the rule of today
        scored.push_back(score_case(of, truth, rig, options.score));
        fmt::print(stderr, "{}\n", line_of(scored.back()));
    }
    const Score score = score_of(scored);
    const std::string document = json_of(score, {DRAWPOINT_VERSION, command});
    if (options.json && options.json->empty()) {
        fmt::print("{}", document);
        return 0;
    }
    if (options.json) {
        std::FILE* const file = std::fopen(options.json->c_str(), "w");
        if (file == nullptr)
            throw std::runtime_error{"cannot write " + *options.json};
        fmt::print(file, "{}", document);
        std::fclose(file);
    }
    fmt::print("{}", table_of(score));
    return 0;
}

/// Draws the cases that are not there, and records each before its truth is measured: that recording counts. Nothing
/// is done again that a run before has done in this folder.
int measure_fresh(Options& options, Rig& rig) {
    options.cases = options.folder / "cases";
    options.truth = options.folder / "truth";
    options.score.recordings = options.folder / "recordings";
    std::filesystem::create_directories(options.cases);
    for (std::size_t number = 1; number <= options.fresh; ++number) {
        const std::string name = fmt::format("fresh-{}-{:03}", *options.seed, number);
        if (const auto file = options.cases / (name + ".json"); !std::filesystem::exists(file))
            write_text(file, draw_case(*options.seed, number));
        options.only.push_back(name);
    }
    int status = 0;
    for (const Case& of : chosen_cases(options)) {
        if (interrupted != 0)
            return 130;
        try {
            record_case(of, rig, options.score);
        } catch (const std::exception& error) {
            fmt::print(stderr, "{}: not recorded: {}\n", of.name, error.what());
            status = 1;
        }
        if (!measured_truth(options, of))
            status = std::max(status, measure(options, of, rig));
    }
    return interrupted != 0 ? 130 : status;
}

int run_all(Options options, const std::string& command) {
    if (options.truth.empty())
        options.truth = options.cases.lexically_normal().parent_path() / "truth";
    options.measure.stopped = [] { return interrupted != 0; };
    std::signal(SIGINT, [](int) { interrupted = 1; });
    prctl(PR_SET_TIMERSLACK, 1'000);   // 1 µs, in ns; threads inherit it: sleeps end on time
    if (options.fresh > 0) {
        if (!options.seed)
            options.seed = std::random_device{}();
        if (options.folder.empty())
            options.folder = fmt::format("accuracy-{}", *options.seed);
        fmt::print(stderr, "seed {}, in {}\n", *options.seed, options.folder.string());
        check_build(options.folder);
    }
    Rig rig{options.data};
    int status = 0;
    if (options.fresh > 0) {
        status = measure_fresh(options, rig);
        if (status == 130)
            return status;
    }
    const std::vector<Case> cases = chosen_cases(options);
    return options.measure_truth ? measure_all(options, cases, rig)
                                 : std::max(status, score_all(options, cases, rig, command));
}

}   // namespace

int main(int argc, char** argv) {
    Options options;
    std::string json;
    CLI::App app{"how often a verdict is right: diagnose and other tools' rules on pipelines with measured causes",
                 "drawpoint bench accuracy"};
    std::string family = "loader";
    app.add_option("--family", family,
                   "loader, or device: cases of runs on a device, which have options of their own [loader]")
        ->check(CLI::IsMember({"loader", "device"}));
    app.add_option("--cases", options.cases, "folder with a file a case [bench/accuracy/cases]")
        ->check(CLI::ExistingDirectory);
    app.add_option("--truth", options.truth, "folder of what was measured [truth, beside the cases]");
    app.add_option("--only", options.only, "cases, by commas [all]")->delimiter(',');
    app.add_flag("--measure-truth", options.measure_truth,
                 "measures what each change gains, of cases that have no truth; goes on where it was stopped");
    CLI::Option* const fresh =
        app.add_option("--fresh", options.fresh, "draws so many cases, measures their truth, and scores them")
            ->check(CLI::Range(1, 10'000))
            ->excludes("--cases", "--truth", "--only", "--measure-truth");
    app.add_option("--seed", options.seed, "of the cases that are drawn [drawn anew]")->needs(fresh);
    app.add_option("--folder", options.folder,
                   "where their files, recordings and truths are kept; goes on where it was stopped [accuracy-SEED]")
        ->needs(fresh);
    CLI::Option* const rounds =
        app.add_option("--rounds", options.measure.rounds, "rounds of runs in turns, at least [10; with --fresh 5]")
            ->check(CLI::Range(2, 1000));
    app.add_option("--most-rounds", options.measure.most_rounds,
                   "rounds in all, of a change whose gain is not known well enough [21]")
        ->check(CLI::Range(2, 1000));
    CLI::Option* const grid_rounds =
        app.add_option("--grid-rounds", options.measure.grid_rounds, "the same, of every setting [3; with --fresh 5]")
            ->check(CLI::Range(1, 100));
    app.add_option("--most-foreign", options.measure.most_foreign,
                   "of the cores that others may take during a round, as a share [0.15]")
        ->check(CLI::Range(0.0, 1.0));
    app.add_option(
           "--neighbour", options.score.neighbour,
           "cores that another process takes while cases are recorded; what is predicted is the run without it [0]")
        ->check(CLI::Range(0.0, 1.0));
    app.add_option("--passes", options.score.passes,
                   "times that a recording goes over the case's samples, adversarial cases excepted [4]")
        ->check(CLI::Range(1, 1000));
    app.add_option("--recordings", options.score.recordings,
                   "folder in which recordings are kept; those that are there already are judged as they are")
        ->excludes(fresh);
    app.add_flag("!--no-tune", options.score.tunes, "leaves out the tuner");
    add_data_option(app, options.data);
    CLI::Option* const json_option =
        app.add_option("--json", json, "JSON on stdout in place of the table; --json=FILE: beside it")->expected(0, 1);
    return run_program(app, "accuracy", argc, argv, [&](const std::string& command) {
        if (family == "device")   // `./run bench` has run the other program
            throw std::runtime_error{"--family device is what bench_accuracy_device runs"};
        if (json_option->count() > 0)
            options.json = json;
        if (options.fresh > 0 && rounds->count() == 0)
            options.measure.rounds = 5;   // a change that is not known well enough then has more
        if (options.fresh > 0 && grid_rounds->count() == 0)
            options.measure.grid_rounds = 5;
        return run_all(options, command);
    });
}
