#include <drawpoint/diagnosis/whatif/whatif.hpp>

#include <algorithm>
#include <stdexcept>
#include <tuple>

#include <fmt/format.h>

namespace drawpoint {
namespace {

template <class Number>
std::vector<Number> numbers(std::vector<Number> asked, Number recorded) {
    if (asked.empty())
        asked.push_back(recorded);
    std::ranges::sort(asked);
    const auto twice = std::ranges::unique(asked);
    asked.erase(twice.begin(), twice.end());
    return asked;
}

/// Steps per replication so that the grid stays within the limit of samples; at least 50, even if they exceed it.
std::size_t steps_of(const RecordedRun& run, std::size_t settings, std::size_t largest_batch,
                     const WhatifOptions& options) {
    constexpr std::size_t least = 50;
    const std::size_t a_step =
        settings * std::max<std::size_t>(1, options.predict.replications) * std::max<std::size_t>(1, largest_batch);
    const std::size_t recorded = options.predict.steps > 0 ? options.predict.steps : run.steps.size();
    const std::size_t each = options.most_samples / a_step;
    return std::clamp(each - std::min(each, options.predict.warm_up_steps), std::min(least, recorded), recorded);
}

/// `a` is no worse in workers, memory and speed, and better in one.
bool dominates(const WhatifRow& a, const WhatifRow& b) {
    const std::size_t workers_a = a.setting.num_workers, workers_b = b.setting.num_workers;
    const std::uint64_t bytes_a = a.prediction.peak_bytes, bytes_b = b.prediction.peak_bytes;
    return workers_a <= workers_b && bytes_a <= bytes_b && a.samples_per_s >= b.samples_per_s &&
           (workers_a < workers_b || bytes_a < bytes_b || a.samples_per_s > b.samples_per_s);
}

bool smaller(const WhatifRow& a, const WhatifRow& b) {
    const auto key = [](const WhatifRow& row) {
        return std::tuple{row.setting.num_workers, row.prediction.peak_bytes, row.setting.prefetch_depth,
                          row.setting.order, row.setting.batch_size};
    };
    return key(a) < key(b);
}

}   // namespace

Whatif whatif(const RecordedRun& run, const WhatifGrid& grid, const WhatifOptions& options) {
    if (!run.unusable.empty())
        throw std::invalid_argument{"the run cannot be replayed: " + run.unusable};
    const auto workers = numbers(grid.num_workers, run.setting.num_workers);
    const auto depths = numbers(grid.prefetch_depth, prefetch_of(run.setting));
    const auto sizes = numbers(grid.batch_size, run.setting.batch_size);
    const auto orders = numbers(grid.order, run.setting.order);
    const std::size_t settings = workers.size() * depths.size() * sizes.size() * orders.size();
    if (settings > options.most_rows)
        throw std::invalid_argument{
            fmt::format("{} settings are more than the {} that can be predicted at once", settings, options.most_rows)};
    PredictOptions predicting = options.predict;
    predicting.steps = steps_of(run, settings + 1, std::max(sizes.back(), run.setting.batch_size), options);

    Whatif found{.recorded = run.setting,
                 .recorded_batches_per_s = run.batches_per_s,
                 .recorded_draw_share = run.draw_share,
                 .as_recorded = predict(run, run.setting, {}, predicting),
                 .rows = {}};
    // The replay is assumed to be off by the same factor everywhere as for the recorded setting, where the truth is
    // known.
    const double off = run.batches_per_s > 0 ? found.as_recorded.batches_per_s.median / run.batches_per_s : 1;
    for (const std::size_t size : sizes)
        for (const OrderRule order : orders)
            for (const std::size_t worker_count : workers)
                for (const std::size_t depth : depths) {
                    LoaderSetting setting = with_prefetch(with_workers(run.setting, worker_count), depth);
                    setting.batch_size = size;
                    setting.order = order;
                    const bool is_pytorch = setting.kind == LoaderKind::pytorch;
                    if (!fits_memory(run, setting) ||   // the loader would refuse it
                        (is_pytorch && setting.prefetch_depth > loader_limits::most_pytorch_depth))
                        continue;
                    if (is_pytorch && worker_count == 0 && workers.size() > 1)
                        continue;   // has no prefetch_factor, so it has no place in the map
                    WhatifRow& row = found.rows.emplace_back(WhatifRow{.setting = setting});
                    row.recorded = row.setting == run.setting && grid.change == Change{};
                    row.prediction = predict(run, row.setting, grid.change, predicting);
                    row.prediction.batches_per_s = row.prediction.batches_per_s.times(1 / off);
                    row.samples_per_s = row.prediction.batches_per_s.median * static_cast<double>(size);
                }
    const auto& rows = found.rows;
    if (rows.empty())
        throw std::invalid_argument{
            run.setting.memory_budget != 0
                ? fmt::format("no setting of the grid fits the memory_budget of {} bytes", run.setting.memory_budget)
                : fmt::format("no setting of the grid has num_workers x prefetch_factor of at most {}",
                              loader_limits::most_pytorch_depth)};
    found.best = static_cast<std::size_t>(std::ranges::max_element(rows, {}, &WhatifRow::samples_per_s) - rows.begin());
    const double enough = 0.98 * rows[found.best].samples_per_s;
    found.recommended = found.best;
    for (std::size_t i = 0; i < rows.size(); ++i)
        if (rows[i].samples_per_s >= enough && smaller(rows[i], rows[found.recommended]))
            found.recommended = i;
    for (WhatifRow& row : found.rows)
        row.on_frontier = std::ranges::none_of(rows, [&](const WhatifRow& other) { return dominates(other, row); });
    const LoaderSetting& chosen = rows[found.recommended].setting;
    found.on_edge = (workers.size() > 1 && chosen.num_workers == workers.back()) ||
                    (depths.size() > 1 && prefetch_of(chosen) == depths.back());
    return found;
}

}   // namespace drawpoint
