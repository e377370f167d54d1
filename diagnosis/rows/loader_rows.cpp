#include <drawpoint/diagnosis/rows/detail/loader_rows.hpp>

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>

#include <drawpoint/instrumentation/detail/wrapping.hpp>

namespace drawpoint {
namespace {

using Key = std::tuple<std::uint16_t, std::uint32_t, std::uint32_t>;
Key key_of(const BatchRow& row) { return {row.pipeline, row.epoch, row.batch}; }
Key key_of(const SampleRow& row) { return {row.pipeline, row.epoch, row.batch}; }

}   // namespace

std::int64_t end_ns(std::int64_t begin_ns, std::int64_t ns) noexcept {
    const std::int64_t sum = wrapping_sum(begin_ns, std::max<std::int64_t>(ns, 0));
    return sum < begin_ns ? std::numeric_limits<std::int64_t>::max() : sum;
}

std::int64_t length_ns(std::int64_t from_ns, std::int64_t to_ns) noexcept {
    constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    return to_ns <= from_ns ? 0 : static_cast<std::int64_t>(std::min(wrapping_difference(to_ns, from_ns), most));
}

std::int64_t end_ns(const Ledger& ledger, const SampleRow& sample) noexcept {
    const auto stages = ledger.stages_of(sample);
    return stages.empty() ? sample.begin_ns : end_ns(stages.back().begin_ns, stages.back().ns);
}

std::int64_t draw_end_ns(const StepRow& step) noexcept { return end_ns(step.draw_begin_ns, step.draw_ns); }
std::int64_t end_ns(const StepRow& step) noexcept { return end_ns(draw_end_ns(step), step.batch_ns); }

LoaderRows::LoaderRows(const Ledger& ledger) : ledger_{&ledger} {
    match_steps();
    match_samples();
    find_releases();
    sort_orders();
}

void LoaderRows::match_steps() {
    struct Drawn {
        std::int64_t taken_ns;
        std::uint32_t batch;
        bool used = false;
    };
    std::vector<Drawn> drawn;
    for (std::uint32_t i = 0; i < ledger_->batches.size(); ++i)
        if (const BatchRow& row = ledger_->batches[i]; row.status != BatchStatus::abandoned && row.taken_ns != no_stamp)
            drawn.push_back({row.taken_ns, i});
    std::ranges::stable_sort(drawn, {}, &Drawn::taken_ns);

    constexpr std::ptrdiff_t most = 64;   // a draw takes one batch: limits the search if the clock stands still
    for (const StepRow& step : ledger_->steps) {
        const std::int64_t until_ns = draw_end_ns(step);
        Drawn* best = nullptr;
        const auto first = std::ranges::lower_bound(drawn, step.draw_begin_ns, {}, &Drawn::taken_ns);
        for (auto at = first; at != drawn.end() && at->taken_ns <= until_ns && at - first < most; ++at) {
            const BatchRow& row = ledger_->batches[at->batch];
            if (at->used || (row.status == BatchStatus::taken) != (step.size > 0))
                continue;
            best = &*at;
            if (row.epoch == step.epoch && row.batch == step.batch)
                break;
        }
        if (best)
            best->used = true;
        batch_of_step_.push_back(best ? best->batch : nothing);
    }
}

void LoaderRows::match_samples() {
    const auto& batches = ledger_->batches;
    const auto& samples = ledger_->samples;
    batch_of_sample_.assign(samples.size(), nothing);
    samples_of_batch_.resize(batches.size());
    for (std::uint32_t i = 0; i < samples.size(); ++i) {
        const auto same =
            std::ranges::equal_range(batches, key_of(samples[i]), {}, [](const BatchRow& row) { return key_of(row); });
        if (same.empty())
            continue;
        // If several passes have the same number: the last batch that was admitted before the sample began.
        auto of = std::ranges::upper_bound(same, samples[i].begin_ns, {}, &BatchRow::admitted_ns);
        of -= of != same.begin();
        batch_of_sample_[i] = static_cast<std::uint32_t>(of - batches.begin());
        ++samples_of_batch_[batch_of_sample_[i]].count;
    }
    std::uint32_t first = 0;
    for (Slice& slice : samples_of_batch_) {
        slice.first = first;
        first += slice.count;
        slice.count = 0;
    }
    samples_.resize(first);
    std::vector<std::uint64_t> recorded(batches.size());
    for (std::uint32_t i = 0; i < samples.size(); ++i)
        if (const std::uint32_t batch = batch_of_sample_[i]; batch != nothing) {
            Slice& slice = samples_of_batch_[batch];
            samples_[slice.first + slice.count++] = i;
            recorded[batch] += samples[i].samples;
        }
    for (std::size_t i = 0; i < batches.size(); ++i)
        whole_.push_back(recorded[i] >= batches[i].size);
}

void LoaderRows::sort_orders() {
    const auto& orders = ledger_->orders;
    orders_.resize(orders.size());
    std::iota(orders_.begin(), orders_.end(), 0u);
    std::ranges::sort(orders_, {}, [&orders](std::uint32_t i) {
        return std::tuple{orders[i].pipeline, orders[i].epoch, orders[i].begin_ns, i};
    });
}

std::span<const std::uint32_t> LoaderRows::orders_of(std::uint16_t pipeline, std::uint32_t epoch) const noexcept {
    const auto same = std::ranges::equal_range(orders_, std::pair{pipeline, epoch}, {}, [this](std::uint32_t i) {
        return std::pair{ledger_->orders[i].pipeline, ledger_->orders[i].epoch};
    });
    return {same.begin(), same.end()};
}

void LoaderRows::find_releases() {
    const auto& batches = ledger_->batches;
    for (const BatchRow& row : batches)
        released_ns_.push_back(std::max(row.taken_ns, row.admitted_ns));
    for (std::size_t i = 0; i < batch_of_step_.size(); ++i)
        if (batch_of_step_[i] != nothing)
            released_ns_[batch_of_step_[i]] = std::max(released_ns_[batch_of_step_[i]], end_ns(ledger_->steps[i]));
    slots_.resize(ledger_->pipelines.size());
    for (std::size_t i = 0; i < batches.size(); ++i)
        if (batches[i].pipeline < slots_.size() && batches[i].admitted_ns != no_stamp) {
            slots_[batches[i].pipeline].admitted_ns.push_back(batches[i].admitted_ns);
            slots_[batches[i].pipeline].released_ns.push_back(released_ns_[i]);
        }
    for (Slots& slots : slots_) {
        std::ranges::sort(slots.admitted_ns);
        std::ranges::sort(slots.released_ns);
    }
}

LoaderSetting LoaderRows::setting_at(std::uint16_t pipeline, std::int64_t at_ns) const noexcept {
    const LoaderSetting first = pipeline < ledger_->pipelines.size()
                                    ? setting_of(ledger_->pipelines[pipeline])
                                    : LoaderSetting{.num_workers = 0, .prefetch_depth = 0};
    for (auto at = std::ranges::upper_bound(ledger_->settings, at_ns, {}, &SettingRow::at_ns);
         at != ledger_->settings.begin();)
        if ((--at)->pipeline == pipeline)
            return changed_by(*at, first);
    return first;
}

TimeRange LoaderRows::slot_free(std::uint16_t pipeline, TimeRange range) const noexcept {
    if (pipeline >= slots_.size())
        return {range.to_ns, range.to_ns};
    const Slots& slots = slots_[pipeline];
    const auto released = std::ranges::upper_bound(slots.released_ns, range.from_ns);
    const auto taken = (std::ranges::upper_bound(slots.admitted_ns, range.from_ns) - slots.admitted_ns.begin()) -
                       (released - slots.released_ns.begin());
    if (taken <= static_cast<std::ptrdiff_t>(setting_at(pipeline, range.from_ns).prefetch_depth))
        return range;
    return {released == slots.released_ns.end() ? range.to_ns : std::min(*released, range.to_ns), range.to_ns};
}

}   // namespace drawpoint
