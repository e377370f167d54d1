#include "instrumentation/export/tracks.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <span>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include <drawpoint/instrumentation/facts.hpp>
#include "instrumentation/ledger/step_slices.hpp"
#include <drawpoint/instrumentation/detail/wrapping.hpp>

namespace drawpoint {
namespace {

using Kind = TrackSlice::Kind;
using Slices = std::vector<TrackSlice>;

constexpr std::uint64_t first_worker_tid = first_own_tid + 1, first_slot_tid = first_own_tid + (1u << 20),
                        first_overlap_tid = first_own_tid + (2u << 20), device_tid = first_own_tid + (3u << 20);

std::optional<std::uint64_t> number_fact(const Ledger& ledger, std::string_view key) {
    const auto text = ledger.fact(key);
    std::uint64_t number = 0;
    if (!text ||
        std::from_chars(text->data(), text->data() + text->size(), number).ptr != text->data() + text->size() ||
        text->empty())
        return std::nullopt;
    return number;
}

std::string_view name_at(const Ledger& ledger, std::uint32_t name) {
    return name < ledger.names.size() ? std::string_view{ledger.names[name]} : std::string_view{};
}

/// The time covered by calls of one kind on a thread, to check whether they show a step or draw of the loop already.
class Covered {
public:
    void add(std::int64_t begin_ns, std::int64_t ns) { intervals_.emplace_back(begin_ns, wrapping_sum(begin_ns, ns)); }
    void sort() { std::sort(intervals_.begin(), intervals_.end()); }
    [[nodiscard]] bool empty() const noexcept { return intervals_.empty(); }
    [[nodiscard]] bool holds(std::int64_t at_ns) const {
        const auto next = std::upper_bound(intervals_.begin(), intervals_.end(), at_ns,
                                           [](std::int64_t at, const auto& interval) { return at < interval.first; });
        return next != intervals_.begin() && at_ns < std::prev(next)->second;
    }

private:
    std::vector<std::pair<std::int64_t, std::int64_t>> intervals_;
};

/// Distributes slices over as many tracks as needed for the slices of each to nest. A slice goes to the track of the
/// shortest slice that encloses it.
std::vector<Slices> nested(Slices slices) {
    std::stable_sort(slices.begin(), slices.end(), [](const TrackSlice& a, const TrackSlice& b) {
        return std::tuple{a.begin_ns, b.end_ns, a.kind} < std::tuple{b.begin_ns, a.end_ns, b.kind};
    });
    struct Lane {
        Slices slices;
        std::vector<std::int64_t> open;
    };
    std::vector<Lane> lanes(1);
    for (const TrackSlice& slice : slices) {
        Lane* best = nullptr;
        for (Lane& lane : lanes) {
            while (!lane.open.empty() && lane.open.back() <= slice.begin_ns)
                lane.open.pop_back();
            const bool around = !lane.open.empty() && slice.end_ns <= lane.open.back();
            if (around && (!best || best->open.empty() || lane.open.back() < best->open.back()))
                best = &lane;
            else if (lane.open.empty() && !best)
                best = &lane;
        }
        if (!best)
            best = &lanes.emplace_back();
        best->open.push_back(slice.end_ns);
        best->slices.push_back(slice);
    }
    std::vector<Slices> result;
    for (Lane& lane : lanes)
        result.push_back(std::move(lane.slices));
    return result;
}

class Tracks {
public:
    Tracks(const Ledger& ledger, const std::function<void(const Track&)>& take) : ledger_{ledger}, take_{take} {}

    std::uint64_t all() {
        for (std::size_t i = 0; i < ledger_.operators.size(); ++i)
            calls_[ledger_.operators[i].thread].push_back(static_cast<std::uint32_t>(i));
        loop();
        threads(false);
        workers();
        batch_slots();
        device();
        threads(true);
        for (const auto& [thread, rows] : calls_)   // the rest are calls on threads that the ledger does not have
            left_out_ += rows.size();
        return left_out_;
    }

private:
    void add(Kind kind, std::size_t row, std::string_view name, std::int64_t begin_ns, std::int64_t end_ns) {
        if (end_ns < begin_ns)
            ++left_out_;
        else
            slices_.push_back({kind, static_cast<std::uint32_t>(row), name, begin_ns, end_ns});
    }

    /// Adds a part of a batch's life.
    void add_part(std::uint32_t row, std::string_view name, std::int64_t begin_ns, std::int64_t end_ns) {
        if (begin_ns != no_stamp && end_ns != no_stamp && end_ns != begin_ns)
            add(Kind::batch_piece, row, name, begin_ns, end_ns);
    }

    void add_calls(std::uint32_t thread) {
        const auto calls = calls_.find(thread);
        if (calls == calls_.end())
            return;
        for (const std::uint32_t row : calls->second) {
            const OperatorRow& call = ledger_.operators[row];
            add(Kind::call, row, name_at(ledger_, call.name), call.begin_ns, wrapping_sum(call.begin_ns, call.ns));
        }
        calls_.erase(calls);
    }

    void hand_over(std::string name, std::uint64_t tid, std::int32_t device = -1, bool is_loop = false) {
        std::vector<Slices> lanes = nested(std::exchange(slices_, {}));
        for (std::size_t i = 0; i < lanes.size(); ++i)
            take_({.name = i == 0 ? name : fmt::format("{} (overlapping)", name),
                   .tid = i == 0 ? tid : first_overlap_tid + next_overlap_++,
                   .device = device,
                   .is_loop = is_loop,
                   .slices = std::move(lanes[i])});
    }

    void loop() {
        const auto thread = loop_thread_of(ledger_);
        // Steps and draws annotated by an operator profiler or another program are not shown again.
        Covered steps, draws;
        if (thread)
            for (const std::uint32_t row : calls_[*thread]) {
                const OperatorRow& call = ledger_.operators[row];
                const std::string_view name = name_at(ledger_, call.name);
                if (name.starts_with("ProfilerStep#"))
                    steps.add(call.begin_ns, call.ns);
                else if (name.starts_with("enumerate(DataLoader)#"))
                    draws.add(call.begin_ns, call.ns);
            }
        steps.sort();
        draws.sort();

        // In an imported trace the loop's rows were made from the calls, which show everything already.
        const bool told = !draws.empty() || ledger_.fact("trace.schemaVersion");

        for (std::size_t i = 0; i < ledger_.passes.size() && !told; ++i) {
            const PassRow& pass = ledger_.passes[i];
            add(Kind::pass, i, name_of(pass.kind), pass.begin_ns, pass.end_ns);
            for (const SpanRow& piece : ledger_.spans_of(pass))
                if (piece.ns != 0)
                    add(Kind::piece, i, name_of(piece.span), piece.begin_ns, wrapping_sum(piece.begin_ns, piece.ns));
        }
        std::vector<StepSlice> inner;
        for (std::size_t i = 0; i < ledger_.steps.size(); ++i) {
            const StepRow& step = ledger_.steps[i];
            const std::int64_t draw_end_ns = wrapping_sum(step.draw_begin_ns, step.draw_ns);
            const std::int64_t whole_ns = step.draw_ns + step.batch_ns;
            if (!steps.holds(step.draw_begin_ns + whole_ns / 2))
                add(Kind::step, i, name_of(Action::step), step.draw_begin_ns,
                    wrapping_sum(step.draw_begin_ns, whole_ns));
            if (!draws.holds(step.draw_begin_ns + step.draw_ns / 2))
                add(Kind::draw, i, name_of(Action::draw), step.draw_begin_ns, draw_end_ns);
            if (told)
                continue;
            find_step_slices(step, ledger_.spans_of(step), inner);
            for (const StepSlice& slice : inner)
                add(Kind::piece, i, slice.name, slice.begin_ns, slice.end_ns);
        }
        for (std::size_t i = 0; i < ledger_.ends_of_data.size(); ++i) {
            const EndOfDataRow& end = ledger_.ends_of_data[i];
            add(Kind::end_of_data, i, name_of(Action::end_of_data), end.begin_ns, wrapping_sum(end.begin_ns, end.ns));
        }
        if (thread)
            add_calls(*thread);
        if (!slices_.empty())
            hand_over("loop", loop_tid_of(ledger_), -1, true);
    }

    /// Emits the tracks of the host's threads or of device streams. Rows of the same device and number are one thread.
    void threads(bool of_devices) {
        std::map<std::pair<std::int32_t, std::uint64_t>, std::vector<std::uint32_t>> by_tid;
        for (std::size_t i = 0; i < ledger_.threads.size(); ++i)
            if ((ledger_.threads[i].device >= 0) == of_devices && calls_.contains(static_cast<std::uint32_t>(i)))
                by_tid[{ledger_.threads[i].device, ledger_.threads[i].tid}].push_back(static_cast<std::uint32_t>(i));
        for (const auto& [key, rows] : by_tid) {
            for (const std::uint32_t row : rows)
                add_calls(row);
            const std::string& name = ledger_.threads[rows.front()].name;
            const std::string_view what = of_devices ? "stream" : "thread";
            if (!slices_.empty())
                hand_over(name.empty() ? fmt::format("{} {}", what, key.second)
                                       : fmt::format("{} {} ({})", what, key.second, name),
                          key.second, key.first);
        }
    }

    void workers() {
        struct Rows {
            std::vector<std::uint32_t> samples, collated;
        };
        std::map<std::uint16_t, Rows> by_worker;
        for (std::size_t i = 0; i < ledger_.samples.size(); ++i)
            by_worker[ledger_.samples[i].worker].samples.push_back(static_cast<std::uint32_t>(i));
        for (std::size_t i = 0; i < ledger_.batches.size(); ++i)
            if (ledger_.batches[i].collate_worker)
                by_worker[*ledger_.batches[i].collate_worker].collated.push_back(static_cast<std::uint32_t>(i));
        for (const auto& [worker, rows] : by_worker) {
            for (const std::uint32_t row : rows.collated)
                add_part(row, "collate", ledger_.batches[row].collate_begin_ns, ledger_.batches[row].collate_end_ns);
            for (const std::uint32_t row : rows.samples) {
                const SampleRow& sample = ledger_.samples[row];
                add(Kind::sample, row, "sample", sample.begin_ns, end_of(ledger_, sample));
                const std::span<const StageRow> stages = ledger_.stages_of(sample);
                for (std::size_t i = 0; i < stages.size(); ++i) {
                    const bool named = sample.pipeline < ledger_.pipelines.size() &&
                                       i < ledger_.pipelines[sample.pipeline].stages.size();
                    add(Kind::stage, row,
                        named ? std::string_view{ledger_.pipelines[sample.pipeline].stages[i]} : "stage",
                        stages[i].begin_ns, wrapping_sum(stages[i].begin_ns, stages[i].ns));
                }
            }
            if (!slices_.empty())
                hand_over(fmt::format("worker {}", worker), first_worker_tid + worker);
        }
    }

    void batch_slots() {
        std::map<std::pair<std::uint16_t, std::uint32_t>, std::vector<std::uint32_t>> by_slot;
        for (std::size_t i = 0; i < ledger_.batches.size(); ++i)
            by_slot[{ledger_.batches[i].pipeline, ledger_.batches[i].slot}].push_back(static_cast<std::uint32_t>(i));
        std::uint64_t tid = first_slot_tid;
        for (const auto& [key, rows] : by_slot) {
            for (const std::uint32_t row : rows) {
                const BatchRow& batch = ledger_.batches[row];
                const auto life = life_of(batch);
                if (!life)
                    continue;
                add(Kind::batch, row, "in flight", life->first, life->second);
                if (!batch.collate_worker)
                    add_part(row, "collate", batch.collate_begin_ns, batch.collate_end_ns);
                add_part(row, "transfer", batch.transfer_issue_ns, batch.transfer_done_ns);
                add_part(row, "ready", batch.offered_ns, batch.taken_ns);
            }
            const std::string_view pipeline =
                key.first < ledger_.pipelines.size() ? std::string_view{ledger_.pipelines[key.first].name} : "";
            if (!slices_.empty())
                hand_over(fmt::format("{}{}batch slot {}", pipeline, pipeline.empty() ? "" : " ", key.second), tid);
            ++tid;
        }
    }

    void device() {
        const auto part = [&](std::size_t row, std::string_view name, std::int64_t begin_ns, std::int64_t end_ns) {
            if (begin_ns != end_ns)
                add(Kind::device_step, row, name, begin_ns, end_ns);
        };
        for (std::size_t i = 0; i < ledger_.device_steps.size(); ++i) {
            const DeviceStepRow& step = ledger_.device_steps[i];
            part(i, "dry", step.free_ns, step.queued_ns);
            part(i, "copy wait", step.queued_ns, step.begin_ns);
            part(i, "device step", step.begin_ns, step.end_ns);
        }
        if (!slices_.empty())
            hand_over("device", device_tid);
        for (std::size_t i = 0; i < ledger_.transfers.size(); ++i)
            add(Kind::copy, i, "copy", ledger_.transfers[i].begin_ns, ledger_.transfers[i].end_ns);
        if (!slices_.empty())
            hand_over("copies", device_tid + 1);
    }

    const Ledger& ledger_;
    const std::function<void(const Track&)>& take_;
    std::map<std::uint32_t, std::vector<std::uint32_t>> calls_;   // by thread; only threads not emitted yet
    Slices slices_;                                               // of the current track
    std::uint64_t left_out_ = 0, next_overlap_ = 0;
};

}   // namespace

std::optional<std::uint32_t> loop_thread_of(const Ledger& ledger) {
    const auto find = [&](auto is_it) -> std::optional<std::uint32_t> {
        const auto found = std::find_if(ledger.threads.begin(), ledger.threads.end(),
                                        [&](const ThreadRow& row) { return row.device < 0 && is_it(row); });
        if (found == ledger.threads.end())
            return std::nullopt;
        return static_cast<std::uint32_t>(found - ledger.threads.begin());
    };
    if (const auto tid = number_fact(ledger, facts::loop_tid))
        return find([&](const ThreadRow& row) { return row.tid == *tid; });
    // The thread with calls named like steps, else the one with most calls inside steps.
    std::vector<std::size_t> inside(ledger.threads.size());
    for (const OperatorRow& call : ledger.operators) {
        if (call.thread >= inside.size() || ledger.threads[call.thread].device >= 0)
            continue;
        if (name_at(ledger, call.name).starts_with("ProfilerStep#"))
            return call.thread;
        const auto next =
            std::upper_bound(ledger.steps.begin(), ledger.steps.end(), call.begin_ns,
                             [](std::int64_t at, const StepRow& step) { return at < step.draw_begin_ns; });
        if (next == ledger.steps.begin())
            continue;
        const StepRow& step = *std::prev(next);
        if (wrapping_difference(call.begin_ns, step.draw_begin_ns) <
            static_cast<std::uint64_t>(step.draw_ns + step.batch_ns))
            ++inside[call.thread];
    }
    const auto most = std::max_element(inside.begin(), inside.end());
    if (most == inside.end() || *most == 0)
        return std::nullopt;
    return static_cast<std::uint32_t>(most - inside.begin());
}

std::uint64_t loop_tid_of(const Ledger& ledger) {
    if (const auto tid = number_fact(ledger, facts::loop_tid))
        return *tid;
    if (const auto thread = loop_thread_of(ledger))
        return ledger.threads[*thread].tid;
    return number_fact(ledger, facts::process_id).value_or(1);
}

std::uint64_t process_of(const Ledger& ledger) {
    const auto process = number_fact(ledger, facts::process_id);
    return process ? *process : loop_tid_of(ledger);
}

std::uint64_t for_each_track(const Ledger& ledger, const std::function<void(const Track&)>& take) {
    return Tracks{ledger, take}.all();
}

std::int64_t end_of(const Ledger& ledger, const SampleRow& sample) noexcept {
    const std::span<const StageRow> stages = ledger.stages_of(sample);
    return stages.empty() ? sample.begin_ns : wrapping_sum(stages.back().begin_ns, stages.back().ns);
}

std::optional<std::pair<std::int64_t, std::int64_t>> life_of(const BatchRow& batch) noexcept {
    std::optional<std::pair<std::int64_t, std::int64_t>> life;
    for (const std::int64_t stamp :
         {batch.admitted_ns, batch.first_claim_ns, batch.last_done_ns, batch.collate_begin_ns, batch.collate_end_ns,
          batch.transfer_issue_ns, batch.transfer_done_ns, batch.offered_ns, batch.taken_ns})
        if (stamp != no_stamp)
            life =
                life ? std::pair{std::min(life->first, stamp), std::max(life->second, stamp)} : std::pair{stamp, stamp};
    return life;
}

}   // namespace drawpoint
