// Measures a tuner in the training loop: the setting it reaches after 300 steps, and 300 steps after the loop's own
// time changes, compared with the best setting of the case's grid; and what its trials cost.

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include <sys/prctl.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "accuracy/change.hpp"
#include "accuracy/online_case.hpp"
#include "program.hpp"

namespace {

using namespace drawpoint;
using namespace drawpoint::bench;

int run_all(const std::filesystem::path& folder, const std::vector<std::string>& only, const std::string& data) {
    prctl(PR_SET_TIMERSLACK, 1'000);   // 1 µs, in ns; threads inherit it: sleeps end on time
    Rig rig{data};
    fmt::print("{:<30} {:>5} {:>9} {:>14} {:>9}  {}\n", "case", "pace", "behind %", "worst window %", "untuned %",
               "after 300 steps; best");
    for (const Case& of : read_cases(folder)) {
        if (of.grid_workers.empty() || (!only.empty() && std::ranges::find(only, of.name) == only.end()))
            continue;
        const OnlineCase tuned = tune_online(of, rig);
        for (const OnlinePhase& phase : tuned.phases)
            fmt::print("{:<30} {:>5} {:>9.1f} {:>14.1f} {:>9.1f}  {}; {}\n", of.name, phase.pace, 100 * phase.behind,
                       100 * phase.worst_window, 100 * phase.untuned_window, to_string(phase.reached),
                       to_string(phase.best));
        for (const TunerDecision& decision : tuned.decisions)
            fmt::print("    step {:>4}: {} -> {}: predicted {:+.1f} %, obtained {:+.1f} %, {}: {}\n", decision.step,
                       to_string(decision.from), to_string(decision.to), 100 * decision.predicted_gain.median,
                       100 * decision.obtained_gain, decision.kept ? "kept" : "taken back", decision.why);
        std::fflush(stdout);
    }
    return 0;
}

}   // namespace

int main(int argc, char** argv) {
    std::filesystem::path cases{DRAWPOINT_BENCH_DIR "/accuracy/cases"};
    std::vector<std::string> only;
    std::string data;
    CLI::App app{"what a tuner in the training loop comes to, and what trying costs", "drawpoint bench online"};
    app.add_option("--cases", cases, "folder with a file a case [bench/accuracy/cases]")->check(CLI::ExistingDirectory);
    app.add_option("--only", only, "cases that have a grid, by commas [all]")->delimiter(',');
    add_data_option(app, data);
    return run_program(app, "online", argc, argv, [&](const std::string&) { return run_all(cases, only, data); });
}
