#include "truth.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <drawpoint/diagnosis/paired/symmetry_test.hpp>

namespace drawpoint::bench {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view schema = "drawpoint.accuracy-truth/2";

Json json_of(const Interval& interval) {
    return {{"median", interval.median}, {"low", interval.low}, {"high", interval.high}};
}

/// A line for each field and each element of a list of objects, so that what has changed is seen.
std::string lines_of(const Json& json) {
    std::string text, separator = "{\n";
    for (const auto& [key, value] : json.items()) {
        text += fmt::format("{}  {}: ", std::exchange(separator, ",\n"), Json(key).dump());
        if (!value.is_array() || value.empty() || !value.front().is_object()) {
            text += value.dump();
            continue;
        }
        for (const char* before = "[\n    "; const Json& element : value)
            text += std::exchange(before, ",\n    ") + element.dump();
        text += "\n  ]";
    }
    return text + "\n}\n";
}

std::set<Verdict> verdicts_in(const Json& words) {
    std::set<Verdict> verdicts;
    for (const Json& word : words) {
        const std::optional<Verdict> verdict = verdict_of(word.get<std::string>());
        if (!verdict)
            throw std::invalid_argument{fmt::format("{} is no verdict", word.dump())};
        verdicts.insert(*verdict);
    }
    return verdicts;
}

Interval interval_of(const Json& json) { return {json.at("median"), json.at("low"), json.at("high")}; }

}   // namespace

const MeasuredGain* Truth::find(std::string_view key) const {
    const auto found = std::ranges::find(gains, canonical(key), &MeasuredGain::key);
    return found == gains.end() ? nullptr : &*found;
}

void decide(Truth& truth, const Case& of) {
    std::ranges::stable_sort(truth.gains, std::ranges::greater{},
                             [](const MeasuredGain& measured) { return measured.gain.median; });
    truth.changes.clear();
    truth.verdicts.clear();
    const double best = truth.gains.empty() ? 0 : truth.gains.front().gain.median;
    if (best < least_gain) {
        truth.verdicts = {Verdict::compute_bound, Verdict::balanced};
        return;
    }
    for (const MeasuredGain& measured : truth.gains)
        if (measured.gain.median >= least_gain && advantage(truth.gains.front(), measured).low <= tie) {
            truth.changes.insert(measured.key);
            truth.verdicts.merge(verdicts_of(of, measured.key));
        }
    if (truth.changes.contains(std::string{words_of(Lever::compute).key}) && truth.changes.size() > 1)
        truth.verdicts.insert(Verdict::balanced);
}

Interval advantage(const MeasuredGain& one, const MeasuredGain& other) {
    std::vector<double> differences;
    for (std::size_t round = 0; round < std::min(one.rounds.size(), other.rounds.size()); ++round)
        differences.push_back(one.rounds[round] - other.rounds[round]);
    if (const double difference = one.gain.median - other.gain.median; differences.empty())
        return {difference, difference, difference};
    return centre_of(differences, 0.1);
}

bool is_control(const Truth& truth) {
    return std::ranges::all_of(truth.verdicts, [](Verdict verdict) {
        return verdict == Verdict::compute_bound || verdict == Verdict::balanced;
    });
}

std::vector<std::string> words_of(const std::set<Verdict>& verdicts) {
    std::vector<std::string> words;
    for (const Verdict verdict : verdicts)
        words.emplace_back(to_string(verdict));
    return words;
}

Interval median_interval(std::vector<double> values) {
    std::ranges::sort(values);
    const std::size_t n = values.size();
    const double median = (values[(n - 1) / 2] + values[n / 2]) / 2;
    // The chance that the true median lies outside [k-th smallest, k-th largest] is twice the chance that fewer than k
    // of n coins show heads.
    std::size_t from = 0;
    double below = std::pow(0.5, n), term = below;
    for (std::size_t k = 1; k < n / 2; ++k) {
        term *= static_cast<double>(n - k + 1) / static_cast<double>(k);
        below += term;
        if (2 * below > 0.1)
            break;
        from = k;
    }
    return {median, values[from], values[n - 1 - from]};
}

void write_truth(const std::filesystem::path& path, const Truth& truth) {
    Json json{{"schema", schema},
              {"case", truth.name},
              {"case_digest", fmt::format("{:016x}", truth.case_digest)},
              {"date", truth.date},
              {"cpu", truth.cpu},
              {"cores", truth.cores},
              {"rounds", truth.rounds},
              {"rounds_refused", truth.rounds_refused},
              {"foreign_share_median", truth.foreign_share_median},
              {"foreign_share_max", truth.foreign_share_max},
              {"verdicts", words_of(truth.verdicts)},
              {"changes", truth.changes},
              {"batches_per_s", json_of(truth.batches_per_s)},
              {"peak_bytes", truth.peak_bytes},
              {"gains", Json::array()},
              {"grid", Json::array()}};
    for (const MeasuredGain& measured : truth.gains)
        json["gains"].push_back({{"change", measured.key},
                                 {"median", measured.gain.median},
                                 {"low", measured.gain.low},
                                 {"high", measured.gain.high},
                                 {"rounds", measured.rounds}});
    for (const MeasuredCell& cell : truth.grid)
        json["grid"].push_back({{"num_workers", cell.num_workers},
                                {"prefetch_depth", cell.prefetch_depth},
                                {"batches_per_s", json_of(cell.batches_per_s)},
                                {"peak_bytes", cell.peak_bytes}});
    write_text(path, lines_of(json));
}

Truth read_truth(const std::filesystem::path& path) {
    try {
        const Json json = Json::parse(read_text(path));
        if (json.at("schema") != schema)
            throw std::invalid_argument{"not " + std::string{schema}};
        Truth truth{.name = json.at("case"),
                    .case_digest = std::stoull(json.at("case_digest").get<std::string>(), nullptr, 16),
                    .date = json.at("date"),
                    .cpu = json.at("cpu"),
                    .cores = json.at("cores"),
                    .rounds = json.at("rounds"),
                    .rounds_refused = json.at("rounds_refused"),
                    .foreign_share_median = json.at("foreign_share_median"),
                    .foreign_share_max = json.at("foreign_share_max"),
                    .batches_per_s = interval_of(json.at("batches_per_s")),
                    .peak_bytes = json.at("peak_bytes"),
                    .changes = json.at("changes"),
                    .verdicts = verdicts_in(json.at("verdicts"))};
        for (const Json& gain : json.at("gains"))
            truth.gains.push_back({gain.at("change"), interval_of(gain), gain.at("rounds")});
        for (const Json& cell : json.at("grid"))
            truth.grid.push_back({cell.at("num_workers"), cell.at("prefetch_depth"),
                                  interval_of(cell.at("batches_per_s")), cell.at("peak_bytes")});
        return truth;
    } catch (const std::exception& error) {
        throw std::invalid_argument{fmt::format("{}: {}", path.string(), error.what())};
    }
}

}   // namespace drawpoint::bench
