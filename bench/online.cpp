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
#include <nlohmann/json.hpp>

#include <drawpoint/instrumentation/report/json.hpp>
#include <drawpoint/instrumentation/report/machine.hpp>

#include "accuracy/change.hpp"
#include "accuracy/online_case.hpp"
#include "program.hpp"

namespace {

using namespace drawpoint;
using namespace drawpoint::bench;

struct Options {
    std::filesystem::path cases{DRAWPOINT_BENCH_DIR "/accuracy/cases"};
    std::vector<std::string> only;
    std::string data;
    bool json = false;
};

void print(const std::string& name, const OnlineCase& tuned) {
    for (const OnlinePhase& phase : tuned.phases)
        fmt::print("{:<30} {:>5} {:>9.1f} {:>14.1f} {:>9.1f}  {}; {}\n", name, phase.pace, 100 * phase.behind,
                   100 * phase.worst_window, 100 * phase.untuned_window, to_string(phase.reached),
                   to_string(phase.best));
    for (const TunerDecision& decision : tuned.decisions)
        fmt::print("    step {:>4}: {} -> {}: predicted {:+.1f} %, obtained {:+.1f} %, {}: {}\n", decision.step,
                   to_string(decision.from), to_string(decision.to), 100 * decision.predicted_gain.median,
                   100 * decision.obtained_gain, decision.kept ? "kept" : "taken back", decision.why);
    std::fflush(stdout);
}

nlohmann::ordered_json json_of(const std::string& name, const OnlineCase& tuned) {
    nlohmann::ordered_json phases = nlohmann::ordered_json::array();
    for (const OnlinePhase& phase : tuned.phases)
        phases.push_back({{"pace", phase.pace},
                          {"reached", to_string(phase.reached)},
                          {"best", to_string(phase.best)},
                          {"behind", phase.behind},
                          {"worst_window", phase.worst_window},
                          {"untuned_window", phase.untuned_window}});
    return {{"case", name}, {"phases", phases}};
}

int run_all(const Options& options, const std::string& command) {
    prctl(PR_SET_TIMERSLACK, 1'000);   // 1 µs, in ns; threads inherit it: sleeps end on time
    Rig rig{options.data};
    nlohmann::ordered_json document = json_document("drawpoint.online/1", {DRAWPOINT_VERSION, command}, this_machine());
    document["cases"] = nlohmann::ordered_json::array();
    if (!options.json)
        fmt::print("{:<30} {:>5} {:>9} {:>14} {:>9}  {}\n", "case", "pace", "behind %", "worst window %", "untuned %",
                   "after 300 steps; best");
    for (const Case& of : read_cases(options.cases)) {
        if (of.grid_workers.empty() ||
            (!options.only.empty() && std::ranges::find(options.only, of.name) == options.only.end()))
            continue;
        const OnlineCase tuned = tune_online(of, rig);
        document["cases"].push_back(json_of(of.name, tuned));
        if (!options.json)
            print(of.name, tuned);
    }
    if (options.json)
        fmt::print("{}", json_text(document));
    return 0;
}

}   // namespace

int main(int argc, char** argv) {
    Options options;
    CLI::App app{"what a tuner in the training loop comes to, and what trying costs", "drawpoint bench online"};
    app.add_option("--cases", options.cases, "folder with a file a case [bench/accuracy/cases]")
        ->check(CLI::ExistingDirectory);
    app.add_option("--only", options.only, "cases that have a grid, by commas [all]")->delimiter(',');
    add_data_option(app, options.data);
    app.add_flag("--json", options.json, "JSON on stdout, not a table");
    return run_program(app, "online", argc, argv,
                       [&](const std::string& command) { return run_all(options, command); });
}
