#include "chrome_flows.hpp"

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

#include "instrumentation/export/tracks.hpp"

namespace drawpoint {
namespace {

/// Moves the end of an arrow into a slice; the slice's end time itself is outside of it.
std::int64_t inside(std::int64_t at_ns, std::pair<std::int64_t, std::int64_t> slice) noexcept {
    return std::max(slice.first, std::min(at_ns, slice.second - 1));
}

}   // namespace

ChromeFlows::ChromeFlows(const Ledger& ledger, ChromeEvents& events, std::uint64_t process, std::uint64_t loop_tid)
    : ledger_{ledger}, events_{events}, process_{process}, loop_tid_{loop_tid}, tid_of_call_(ledger.operators.size()) {
    for (const OperatorRow& call : ledger.operators)
        if (on_a_device(call.kind) && call.correlation != 0)
            kernels_.insert(call.correlation);
}

void ChromeFlows::host(std::string_view category, std::uint64_t from_tid, std::int64_t from_ns, std::uint64_t to_tid,
                       std::int64_t to_ns) {
    if (to_ns < from_ns)   // readers drop flows that end before they begin
        return;
    const std::uint64_t id = next_flow_++;
    const auto pid = static_cast<std::int64_t>(process_);
    events_.flow("s", category, id, pid, from_tid, from_ns);
    events_.flow("f", category, id, pid, to_tid, to_ns);
}

void ChromeFlows::device(const OperatorRow& row, std::int64_t pid, std::uint64_t tid, std::int64_t begin_ns) {
    if (row.correlation == 0)
        return;
    if (row.kind == OperatorKind::runtime && kernels_.contains(row.correlation)) {
        if (const auto [at, is_new] = device_flows_.try_emplace(row.correlation, next_flow_); is_new) {
            ++next_flow_;
            events_.flow("s", "ac2g", at->second, pid, tid, begin_ns);
        }
    } else if (on_a_device(row.kind)) {
        if (const auto at = device_flows_.find(row.correlation); at != device_flows_.end())
            events_.flow("f", "ac2g", at->second, pid, tid, begin_ns);
    }
}

void ChromeFlows::forward_backward() {
    std::map<std::int64_t, std::uint32_t> forward;
    std::map<std::pair<std::int64_t, std::uint64_t>, std::uint32_t> backward;
    const auto keep_last = [&](auto& calls, auto key, std::uint32_t row) {
        const auto [at, is_new] = calls.try_emplace(key, row);
        if (!is_new && ledger_.operators[row].begin_ns >= ledger_.operators[at->second].begin_ns)
            at->second = row;
    };
    for (std::uint32_t i = 0; i < ledger_.operators.size(); ++i) {
        const OperatorRow& call = ledger_.operators[i];
        if (call.sequence < 0 || !tid_of_call_[i])
            continue;
        if (call.forward_thread == 0)
            keep_last(forward, call.sequence, i);
        else
            keep_last(backward, std::pair{call.sequence, call.forward_thread}, i);
    }
    for (const auto& [key, to] : backward)
        if (const auto from = forward.find(key.first); from != forward.end())
            host("fwdbwd", *tid_of_call_[from->second], ledger_.operators[from->second].begin_ns, *tid_of_call_[to],
                 ledger_.operators[to].begin_ns);
}

void ChromeFlows::loader() {
    std::map<std::tuple<std::uint16_t, std::uint32_t, std::uint32_t>, std::uint32_t> batches;
    for (const auto& [row, tid] : batch_tids_) {
        const BatchRow& batch = ledger_.batches[row];
        batches[{batch.pipeline, batch.epoch, batch.batch}] = row;
        if (batch.status != BatchStatus::taken || batch.taken_ns == no_stamp || batch.offered_ns == no_stamp)
            continue;
        const auto next =
            std::upper_bound(ledger_.steps.begin(), ledger_.steps.end(), batch.taken_ns,
                             [](std::int64_t at, const StepRow& step) { return at < step.draw_begin_ns; });
        if (next == ledger_.steps.begin())
            continue;
        const StepRow& step = *std::prev(next);
        const std::int64_t last_ns = step.draw_begin_ns + step.draw_ns + step.batch_ns - 1;
        if (batch.taken_ns <= last_ns)
            host("dataloader", tid, inside(batch.offered_ns, *life_of(batch)), loop_tid_, batch.taken_ns);
    }
    for (const auto& [row, tid] : sample_tids_) {
        const SampleRow& sample = ledger_.samples[row];
        const auto batch = batches.find({sample.pipeline, sample.epoch, sample.batch});
        if (batch != batches.end())
            host("dataloader", tid, sample.begin_ns, batch_tids_[batch->second],
                 inside(end_of(ledger_, sample), *life_of(ledger_.batches[batch->second])));
    }
}

}   // namespace drawpoint
