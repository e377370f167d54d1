#include "check.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <span>

#include <fmt/format.h>

#include <drawpoint/pipeline/image/resize.hpp>

namespace drawpoint::bench {
namespace {

// two decoders and two resizes, each off by at most one level, and float32 rounding
constexpr double same_filter_levels = 2.001;
constexpr double other_filter_levels = 8;   // on average; two different pictures differ by about 60

using Samples = std::multimap<std::int64_t, std::span<const float>>;

Samples by_target(const std::vector<BatchCopy>& batches, std::size_t values) {
    Samples samples;
    for (const BatchCopy& batch : batches)
        for (std::size_t i = 0; i < batch.targets.size() && (i + 1) * values <= batch.data.size(); ++i)
            samples.emplace(batch.targets[i], std::span{batch.data}.subspan(i * values, values));
    return samples;
}

Check compare_unordered(const std::vector<BatchCopy>& ours, const std::vector<BatchCopy>& theirs, std::size_t values) {
    const Samples a = by_target(ours, values), b = by_target(theirs, values);
    const bool equal = std::ranges::equal(a, b, [](const auto& x, const auto& y) {
        return x.first == y.first && std::ranges::equal(x.second, y.second);
    });
    return {.passed = equal, .what = equal ? "the same samples, in another order" : "OTHER SAMPLES"};
}

}   // namespace

std::vector<std::size_t> batches_to_check(const Workload& workload) {
    const std::size_t batches = workload.batches();
    if (workload.kind == "straggler") {
        std::vector<std::size_t> all(batches);
        std::iota(all.begin(), all.end(), std::size_t{0});
        return all;
    }
    std::vector<std::size_t> some{0, batches / 2, batches - 1};
    some.erase(std::unique(some.begin(), some.end()), some.end());
    return some;
}

Check check_batches(const std::vector<BatchCopy>& ours, const std::vector<BatchCopy>& theirs, const Entry& entry) {
    const Workload& workload = entry.workload;
    if (entry.is_bound)
        return {.passed = true, .what = "a bound: delivers nothing"};
    if (workload.order != "in")
        return compare_unordered(ours, theirs, workload.values());
    const auto deviation = ChannelNormalization::imagenet().standard_deviation;
    const bool pictures = workload.reads_photos();
    const std::size_t plane = std::size_t{workload.side} * workload.side;
    Check check;
    double sum = 0;
    std::size_t values = 0;
    for (std::size_t b = 0; b < ours.size(); ++b) {
        const BatchCopy &mine = ours[b], &other = theirs[b];
        if (mine.targets != other.targets)
            return {.what = "OTHER SAMPLES or another order"};
        if (mine.data.size() != other.data.size())
            return {.what = fmt::format("{} VALUES in a batch, not {}", other.data.size(), mine.data.size())};
        for (std::size_t i = 0; i < mine.data.size(); ++i) {
            const double unit = pictures ? static_cast<double>(deviation[i / plane % 3]) * 255 : 1;
            const double difference =
                std::abs(static_cast<double>(mine.data[i]) - static_cast<double>(other.data[i])) * unit;
            check.max_difference = std::isnan(difference) ? INFINITY : std::max(check.max_difference, difference);
            sum += difference;
        }
        values += mine.data.size();
    }
    check.mean_difference = sum / static_cast<double>(values);
    if (!pictures) {
        check.passed = check.max_difference == 0;
        check.what = check.passed ? "equal values" : "OTHER VALUES";
    } else if (check.max_difference <= same_filter_levels) {
        check.passed = true;
        check.what = fmt::format("pixels within {:.1f} levels", check.max_difference);
    } else {
        check.passed = !entry.same_filter && check.mean_difference <= other_filter_levels;
        check.what =
            fmt::format("{}, {:.1f} levels apart on average",
                        check.passed ? "the same crops, another resize" : "PIXELS DIFFER", check.mean_difference);
    }
    return check;
}

}   // namespace drawpoint::bench
