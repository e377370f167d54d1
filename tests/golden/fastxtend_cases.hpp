#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <drawpoint/instrumentation/report/fastxtend.hpp>
#include "golden/golden_files.hpp"

namespace golden {

inline std::vector<double> numbers(const Json& lists, const std::string& name) {
    std::vector<double> values;
    if (const auto list = lists.find(name); list != lists.end())
        for (const Json& value : *list)
            values.push_back(number(value));
    return values;
}

inline std::vector<drawpoint::FastxtendBatch> batches_of(const Json& lists, const std::string& phase) {
    const auto draws = numbers(lists, phase + "_draw"), batches = numbers(lists, phase + "_batch");
    const auto sizes = numbers(lists, phase + "_bs");
    std::vector<drawpoint::FastxtendBatch> all(draws.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
        all[i].size = static_cast<std::int64_t>(sizes.at(i));
        all[i].draw = draws[i];
        all[i].batch = batches.at(i);
    }
    const auto fill = [&](const char* name, std::optional<double> drawpoint::FastxtendBatch::* stage) {
        const auto values = numbers(lists, phase + name);
        for (std::size_t i = 0; i < values.size(); ++i)
            all.at(i).*stage = values[i];
    };
    fill(phase == "train" ? "_forward" : "_predict", &drawpoint::FastxtendBatch::forward);
    fill("_loss", &drawpoint::FastxtendBatch::loss);
    fill("_backward", &drawpoint::FastxtendBatch::backward);
    fill("_opt_step", &drawpoint::FastxtendBatch::opt_step);
    fill("_zero_grad", &drawpoint::FastxtendBatch::zero_grad);
    return all;
}

/// Converts the original's lists of durations ("train_draw": [seconds …]) to values of a report.
inline drawpoint::FastxtendValues values_of(const Json& lists) {
    drawpoint::FastxtendValues values;
    if (const auto fit = numbers(lists, "fit"); !fit.empty())
        values.fit = fit[0];
    values.epoch = numbers(lists, "epoch");
    values.train = numbers(lists, "train");
    values.valid = numbers(lists, "valid");
    values.train_batches = batches_of(lists, "train");
    values.valid_batches = batches_of(lists, "valid");
    return values;
}

inline drawpoint::ProfileMode mode_of(const Case& one) {
    const std::string mode = one.input.at("mode");
    if (mode != "throughput" && mode != "simple")
        throw std::runtime_error("unknown mode " + mode);
    return mode == "throughput" ? drawpoint::ProfileMode::throughput : drawpoint::ProfileMode::simple;
}

/// Whether the case has this option; recorded runs of `fit` have it among their `options`.
inline bool drops_first_batch(const Case& one) {
    const Json& options = one.input.contains("options") ? one.input.at("options") : one.input;
    return options.at("drop_first_batch").get<bool>();
}

}   // namespace golden
