#include "fresh_case.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <drawpoint/pipeline/rng.hpp>

namespace drawpoint::bench {
namespace {

using Json = nlohmann::ordered_json;

/// What a case is drawn with.
class Draws {
public:
    Draws(std::uint64_t seed, std::size_t number) : random_{seed, 0, number} {}

    double between(double low, double high) { return low + (high - low) * random_.uniform(); }
    /// Every factor between them is as likely as any other.
    double by_factor(double low, double high) { return low * std::pow(high / low, random_.uniform()); }
    bool chance(double probability) { return random_.uniform() < probability; }
    template <class T>
    T one_of(std::span<const T> choices) {
        return choices[std::min(static_cast<std::size_t>(random_.uniform() * static_cast<double>(choices.size())),
                                choices.size() - 1)];
    }

private:
    CounterRng random_;
};

/// To three digits: a case is read by people, too.
double rounded(double value) {
    if (value <= 0)
        return 0;
    const double digits = std::pow(10, 2 - std::floor(std::log10(value)));
    return std::round(value * digits) / digits;
}

void set(Json& object, const char* name, double value) {
    if (value > 0)
        object[name] = rounded(value);
}

void draw_variation(Json& of, Draws& draws) {
    set(of, "sigma", draws.by_factor(0.03, 0.6));
    if (draws.chance(0.25)) {
        set(of, "rare_share", draws.by_factor(0.01, 0.1));
        set(of, "rare_factor", draws.by_factor(4, 40));
    }
    if (draws.chance(0.2))
        of["by_size"] = true;
}

/// Shares of a sum, of which none is below a tenth of the mean.
std::vector<double> draw_shares(std::size_t count, Draws& draws) {
    std::vector<double> shares(count);
    double sum = 0;
    for (double& share : shares)
        sum += share = draws.by_factor(0.1, 1);
    for (double& share : shares)
        share /= sum;
    return shares;
}

constexpr double run_us = 300'000, bytes = 100'000, least_sleep_us = 60;
constexpr std::array<std::size_t, 9> batch_sizes{2, 4, 8, 16, 16, 32, 64, 128, 200};
constexpr std::array<std::size_t, 10> worker_counts{1, 1, 2, 2, 2, 3, 4, 4, 8, 12};
constexpr std::array<std::size_t, 5> depths{1, 2, 2, 4, 8};
constexpr std::array<std::size_t, 4> read_counts{2, 4, 8, 16};
constexpr std::array<std::string_view, 7> names{"decode", "augment", "tokenize", "pad", "parse", "normalize", "mix"};

}   // namespace

std::string draw_case(std::uint64_t seed, std::size_t number) {
    Draws draws{seed, number};
    const std::size_t batch_size = draws.one_of<std::size_t>(batch_sizes);
    const std::size_t workers = draws.one_of<std::size_t>(worker_counts);
    const double loop_us = draws.by_factor(1'000, 8'000);   // of a step
    // What a batch takes of a few workers, over the loop's step: on both sides of the limit.
    const double load = draws.by_factor(0.5, 4);
    const double batch_us = load * loop_us * static_cast<double>(std::min<std::size_t>(workers, 3));
    const double step_us = std::max(loop_us, batch_us / static_cast<double>(std::min<std::size_t>(workers, 2)));
    Json setting{{"num_workers", workers}, {"prefetch_depth", draws.one_of<std::size_t>(depths)}};
    if (draws.chance(0.2))
        setting["order"] = draws.chance(0.5) ? Json("out") : Json(std::size_t{2});

    const double collate_us = draws.chance(0.3) ? std::min(draws.between(0.02, 0.5) * batch_us, 0.8 * loop_us) : 0;
    double sample_us = std::max((batch_us - collate_us) / static_cast<double>(batch_size), 5.0);

    Json read = Json::object();
    if (draws.chance(0.5)) {
        const double read_us = draws.between(0.1, 0.8) * sample_us;
        const bool ahead = draws.chance(0.5);
        const std::size_t readers = ahead ? draws.one_of<std::size_t>(read_counts) : workers;
        if (ahead)
            setting["read_concurrency"] = readers;
        if (draws.chance(0.3)) {   // a line that all share, and that takes about as long as the rest
            const double line_us = draws.by_factor(0.3, 2) * sample_us / static_cast<double>(workers);
            read["bytes"] = bytes;
            set(read, "megabytes_per_s", bytes / line_us);
        }
        const double latency_us = read_us * static_cast<double>(readers) / static_cast<double>(workers);
        set(read, "latency_us", std::max(latency_us, least_sleep_us));
        draw_variation(read, draws);
        sample_us -= std::min(read_us, 0.9 * sample_us);
    }

    const std::size_t count = 1 + static_cast<std::size_t>(draws.between(0, 3.999));
    const std::vector<double> shares = draw_shares(count, draws);
    const auto first = static_cast<std::size_t>(draws.between(0, static_cast<double>(names.size()) - 0.001));
    Json stages = Json::array();
    for (std::size_t i = 0; i < count; ++i) {
        const double us = shares[i] * sample_us;
        const double waiting_us = draws.chance(0.15) && us > 2 * least_sleep_us ? draws.between(0.5, 1) * us : 0;
        Json stage{{"name", std::string{names[(first + i) % names.size()]}}};
        set(stage, "wait_us", waiting_us);
        set(stage, "work_us", std::max(us - waiting_us, 1.0));
        draw_variation(stage, draws);
        stages.push_back(std::move(stage));
    }

    const double transfer_us = draws.chance(0.2) ? draws.between(0.05, 0.6) * loop_us : 0;
    const double on_cores = draws.chance(0.4) ? 0 : draws.chance(0.4) ? 1 : draws.between(0, 1);
    Json consumer = Json::object();
    set(consumer, "wait_us", (1 - on_cores) * loop_us);
    set(consumer, "work_us", on_cores * loop_us);
    if (on_cores > 0 && draws.chance(0.15))
        consumer["threads"] = 2;
    set(consumer, "jitter", draws.by_factor(0.01, 0.5));
    if (draws.chance(0.2)) {
        consumer["burst_length"] = static_cast<std::size_t>(draws.between(2, 8.999));
        set(consumer, "burst_factor", draws.between(1.3, 1.95));
    }

    Json json{{"about", "drawn at random"},
              {"kind", "compound"},
              {"injected", "random"},
              {"batch_size", batch_size},
              {"steps", static_cast<std::size_t>(std::clamp(run_us / step_us, 50.0, 200.0))},
              {"setting", std::move(setting)}};
    if (!read.empty())
        json["read"] = std::move(read);
    json["stages"] = std::move(stages);
    set(json, "collate_us", collate_us);
    set(json, "transfer_us", transfer_us);
    json["consumer"] = std::move(consumer);
    if (draws.chance(1.0 / 3))
        json["grid"] = {{"num_workers", {1, 2, 4}}, {"prefetch_depth", {1, 2, 8}}};
    return json.dump(2) + "\n";
}

}   // namespace drawpoint::bench
