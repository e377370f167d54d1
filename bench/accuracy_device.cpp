// How often the verdict on a run on a device is right: `./run bench accuracy --family device`.

#include <cstdio>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <drawpoint/diagnosis/verdict/verdict_report.hpp>
#include <drawpoint/instrumentation/report/json.hpp>
#include <drawpoint/instrumentation/report/machine.hpp>
#include <drawpoint/instrumentation/statistics.hpp>

#include "accuracy/device_case.hpp"
#include "accuracy/truth.hpp"
#include "program.hpp"

namespace {

using namespace drawpoint;
using namespace drawpoint::bench;
using Json = nlohmann::ordered_json;

Json json_of(const DeviceScore& score) {
    Json gains = Json::array();
    for (const DeviceGain& gain : score.truth.gains)
        gains.push_back({{"of", gain.key}, {"real", gain.gain}});
    Json predicted = Json::array();
    for (const Intervention& change : score.said.interventions)
        predicted.push_back({{"of", change.key()}, {"predicted", change.gain.median}});
    return {{"case", score.of.name},
            {"right", score.is_right()},
            {"truth", words_of(score.truth.verdicts)},
            {"verdict", to_string(score.said.verdict)},
            {"abstained", score.said.abstained ? Json(*score.said.abstained) : Json(nullptr)},
            {"replay_error", score.replay_error},
            {"real_gains", gains},
            {"predicted_gains", predicted}};
}

int run_family(std::uint64_t seed, const std::vector<std::size_t>& cases, bool verbose,
               const std::optional<std::string>& json, const std::string& command) {
    std::size_t right = 0, words = 0;
    std::vector<double> replay_errors, gain_errors;
    Json rows = Json::array();
    for (const std::size_t number : cases) {
        const DeviceScore score = score_device_case(draw_device_case(seed, number), seed * 1'000'003 + 2 * number);
        right += score.is_right() ? 1 : 0;
        words += score.truth.verdicts.size();
        replay_errors.push_back(score.replay_error);
        gain_errors.insert(gain_errors.end(), score.gain_errors.begin(), score.gain_errors.end());
        if (verbose || !score.is_right())
            fmt::print(stderr, "{}\n", line_of(score));
        if (verbose)
            fmt::print(stderr, "{}\n{}\n", to_text(score.of), to_text(score.said));
        rows.push_back(json_of(score));
    }
    const auto at = [](const std::vector<double>& values, double q) {
        return values.empty() ? 0 : statistics::quantile(values, q);
    };
    Json document = json_document("drawpoint.accuracy-device/1", {DRAWPOINT_VERSION, command}, this_machine());
    document["seed"] = seed;
    document["cases"] = cases.size();
    document["right"] = right;
    document["right_words"] = words;
    document["replay_error_median"] = at(replay_errors, 0.5);
    document["replay_error_p90"] = at(replay_errors, 0.9);
    document["gain_error_median"] = at(gain_errors, 0.5);
    document["gain_error_p90"] = at(gain_errors, 0.9);
    document["predictions"] = gain_errors.size();
    document["scored"] = std::move(rows);
    if (json) {
        std::FILE* const file = json->empty() ? stdout : std::fopen(json->c_str(), "w");
        if (file == nullptr)
            throw std::runtime_error{"cannot write " + *json};
        fmt::print(file, "{}\n", document.dump(1));
        if (json->empty())
            return 0;
        if (std::fclose(file) != 0)
            throw std::runtime_error{"cannot write " + *json};
    }
    fmt::print("seed {}: {} of {} verdicts right ({:.1f} %); the truths have {} words\n", seed, right, cases.size(),

               100.0 * static_cast<double>(right) / static_cast<double>(cases.size()), words);
    fmt::print("the replay of the recorded setting is off by {:.2f} % (median), {:.2f} % (90th percentile)\n",
               100 * at(replay_errors, 0.5), 100 * at(replay_errors, 0.9));
    fmt::print("predicted rates of {} changes are off by {:.2f} % (median), {:.2f} % (90th percentile)\n",
               gain_errors.size(), 100 * at(gain_errors, 0.5), 100 * at(gain_errors, 0.9));
    return 0;
}

}   // namespace

int main(int argc, char** argv) {
    std::string family = "device", json;
    std::size_t cases = 100;
    std::vector<std::size_t> only;
    std::optional<std::uint64_t> seed;
    bool verbose = false;
    CLI::App app{"how often a verdict on a run on a device is right, on simulated runs whose truth is computed",
                 "drawpoint bench accuracy --family device"};
    app.add_option("--family", family, "device")->check(CLI::IsMember({"device"}));
    app.add_option("--cases", cases, "how many are drawn [100]")->check(CLI::Range(1, 100'000));
    app.add_option("--seed", seed, "of the cases [drawn anew]");
    app.add_option("--only", only, "numbers of cases, by commas [all]")->delimiter(',')->excludes("--cases");
    app.add_flag("--verbose", verbose, "what each case is, and what was said of it");
    CLI::Option* const json_option =
        app.add_option("--json", json, "JSON on stdout in place of the table; --json=FILE: beside it")->expected(0, 1);
    return run_program(app, "accuracy", argc, argv, [&](const std::string& command) {
        const std::uint64_t drawn = seed ? *seed : std::random_device{}();
        if (only.empty())
            for (std::size_t number = 1; number <= cases; ++number)
                only.push_back(number);
        return run_family(drawn, only, verbose, json_option->count() > 0 ? std::optional{json} : std::nullopt, command);
    });
}
