#include "cli/verification.hpp"

#include <algorithm>
#include <array>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/program.hpp"
#include <drawpoint/diagnosis/steady/detail/steady_run.hpp>
#include <drawpoint/diagnosis/verdict/detail/refutation.hpp>
#include <drawpoint/diagnosis/whatif/whatif_report.hpp>
#include <drawpoint/instrumentation/trace/trace.hpp>

namespace drawpoint::cli {
namespace {

namespace fs = std::filesystem;

class Folder {
public:
    Folder() {
        path_ = (fs::temp_directory_path() / "drawpoint-verify-XXXXXX").string();
        if (!mkdtemp(path_.data()))
            throw Failure{fmt::format("{}: no folder for the runs: {}", path_, std::generic_category().message(errno))};
    }
    ~Folder() {
        std::error_code ignored;
        fs::remove_all(path_, ignored);
    }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;
    [[nodiscard]] std::string file(std::string_view name) const { return path_ + "/" + std::string{name}; }

private:
    std::string path_;
};

/// Ignores Ctrl-C while it lives: the run that gets it too ends, and that ends this program.
class LeaveSignalsToRun {
public:
    LeaveSignalsToRun() : before_{std::signal(SIGINT, SIG_IGN)} {}
    ~LeaveSignalsToRun() { std::signal(SIGINT, before_); }
    LeaveSignalsToRun(const LeaveSignalsToRun&) = delete;
    LeaveSignalsToRun& operator=(const LeaveSignalsToRun&) = delete;

private:
    void (*before_)(int);
};

/// The recorded options of `profile`, without the setting and the files it wrote.
std::vector<std::string> recorded_arguments(const Ledger& ledger) {
    constexpr std::array<std::string_view, 4> own{"num-workers", "prefetch-depth", "order", "batch-size"};
    std::vector<std::string> arguments{"profile"};
    for (const auto& [name, value] : recorded_options(ledger))
        if (std::ranges::find(own, name) == own.end())
            arguments.push_back(fmt::format("--{}={}", name, value));
    if (arguments.size() == 1)
        throw Failure{"--verify: the recording does not say how to run it again (drawpoint profile records it)"};
    return arguments;
}

std::string last_line(const std::string& file) {
    std::ifstream stream{file};
    std::string line, last;
    while (std::getline(stream, line))
        if (!line.empty())
            last = line;
    constexpr std::string_view ours = "drawpoint: ";
    return last.starts_with(ours) ? last.substr(ours.size()) : last;
}

int run(const std::vector<std::string>& arguments, const std::string& err) {
    std::vector<std::string> words{"drawpoint"}, variables;
    words.insert(words.end(), arguments.begin(), arguments.end());
    for (char** variable = environ; *variable; ++variable)   // the recorded options include what these set
        if (!std::string_view{*variable}.starts_with("DRAWPOINT_"))
            variables.emplace_back(*variable);
    const auto pointers = [](std::vector<std::string>& texts) {
        std::vector<char*> all;
        for (std::string& text : texts)
            all.push_back(text.data());
        all.push_back(nullptr);
        return all;
    };
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&files, STDERR_FILENO, err.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0600);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    sigset_t as_usual;
    sigemptyset(&as_usual);
    sigaddset(&as_usual, SIGINT);
    posix_spawnattr_setsigdefault(&attributes, &as_usual);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
    pid_t child = 0;
    const int error =
        posix_spawn(&child, "/proc/self/exe", &files, &attributes, pointers(words).data(), pointers(variables).data());
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    if (error != 0)
        throw Failure{fmt::format("--verify: cannot start a run: {}", std::generic_category().message(error))};
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/// Runs once with this setting. Returns the throughput in batches/s.
double measure(const Folder& folder, std::vector<std::string> arguments, const LoaderSetting& setting,
               std::vector<std::string>& doubts) {
    const std::string recording = folder.file("run.pftrace"), err = folder.file("err");
    for (const auto& [name, value] : {std::pair{"num-workers", std::to_string(setting.num_workers)},
                                      {"prefetch-depth", std::to_string(setting.prefetch_depth)},
                                      {"batch-size", std::to_string(setting.batch_size)},
                                      {"order", to_string(setting.order)},
                                      {"output", recording}})
        arguments.push_back(fmt::format("--{}={}", name, value));
    if (const int code = run(arguments, err); code != exit_ok)
        throw Failure{fmt::format("--verify: a run with num_workers {}, prefetch_depth {} ended with exit code {}: {}",
                                  setting.num_workers, setting.prefetch_depth, code, last_line(err))};
    const SteadyRun steady = prepare(read_trace(recording).ledger);
    if (!(steady.run.batches_per_s > 0))
        throw Failure{"--verify: the run is too short to measure: it has no steady steps"};
    for (const std::string& reason : steady.trust.texts())
        if (std::ranges::find(doubts, reason) == doubts.end())
            doubts.push_back(reason);
    return steady.run.batches_per_s;
}

double gain_of(double after, double before) { return before > 0 ? after / before - 1 : 0; }

}   // namespace

double Verification::Side::measured() const {
    std::vector<double> rates = measured_batches_per_s;
    std::ranges::sort(rates);
    const std::size_t half = rates.size() / 2;
    return rates.empty() ? 0 : rates.size() % 2 ? rates[half] : (rates[half - 1] + rates[half]) / 2;
}

Verification verify_setting(const Ledger& ledger, const Whatif& predicted, std::size_t rounds) {
    const std::vector<std::string> arguments = recorded_arguments(ledger);
    Verification found;
    const WhatifRow& row = predicted.rows[predicted.recommended];
    found.recorded.setting = predicted.recorded;
    const Interval& replayed = predicted.as_recorded.batches_per_s;   // to be scaled as the rows are
    found.recorded.predicted = predicted.recorded_batches_per_s > 0
                                   ? replayed.times(predicted.recorded_batches_per_s / replayed.median)
                                   : replayed;
    found.recommended.setting = row.setting;
    found.recommended.predicted = row.prediction.batches_per_s;
    const Folder folder;
    const LeaveSignalsToRun signals;
    for (std::size_t round = 0; round < rounds; ++round) {
        complain(fmt::format("--verify: round {} of {}", round + 1, rounds));
        std::array<Verification::Side*, 2> sides{&found.recorded, &found.recommended};
        if (round % 2 == 1)   // so that a drift of the machine affects both alike
            std::ranges::reverse(sides);
        for (Verification::Side* side : sides)
            side->measured_batches_per_s.push_back(measure(folder, arguments, side->setting, found.doubts));
    }
    return found;
}

std::string to_text(const Verification& found, TextOptions options) {
    TextTable table{.titles = {"  batches/s", "predicted", "90 %", "measured", "error"}};
    for (const auto* side : {&found.recorded, &found.recommended})
        table.rows.push_back({fmt::format("  num_workers {}, prefetch_depth {}, order {}", side->setting.num_workers,
                                          side->setting.prefetch_depth, to_string(side->setting.order)),
                              fmt::format("{:.4g}", side->predicted.median),
                              fmt::format("{:.4g} … {:.4g}", side->predicted.low, side->predicted.high),
                              fmt::format("{:.4g}", side->measured()),
                              fmt::format("{:+.1f} %", 100 * gain_of(side->predicted.median, side->measured()))});
    const double gain = gain_of(found.recommended.measured(), found.recorded.measured());
    std::string text = fmt::format(
        "verified by {} runs of each, in turns:\n{}  gain: predicted {:+.1f} %, measured {}\n",
        found.recorded.measured_batches_per_s.size(), to_text(table, options),
        100 * gain_of(found.recommended.predicted.median, found.recorded.predicted.median),
        styled(fmt::format("{:+.1f} %", 100 * gain), gain > 0 ? TextStyle::green : TextStyle::red, options.colour));
    for (const std::string& doubt : found.doubts)
        text += fmt::format("  {} {}\n", styled("not to be trusted:", TextStyle::red, options.colour), doubt);
    return text;
}

nlohmann::ordered_json to_json(const Verification& found) {
    const auto side_json = [](const Verification::Side& side) {
        return nlohmann::ordered_json{{"num_workers", side.setting.num_workers},
                                      {"prefetch_depth", side.setting.prefetch_depth},
                                      {"order", to_string(side.setting.order)},
                                      {"batch_size", side.setting.batch_size},
                                      {"predicted_batches_per_s", side.predicted.median},
                                      {"low", side.predicted.low},
                                      {"high", side.predicted.high},
                                      {"measured_batches_per_s", side.measured()},
                                      {"runs_batches_per_s", side.measured_batches_per_s}};
    };
    return {{"recorded", side_json(found.recorded)},
            {"recommended", side_json(found.recommended)},
            {"predicted_gain", gain_of(found.recommended.predicted.median, found.recorded.predicted.median)},
            {"measured_gain", gain_of(found.recommended.measured(), found.recorded.measured())},
            {"doubts", found.doubts}};
}

}   // namespace drawpoint::cli
