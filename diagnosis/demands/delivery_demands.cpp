#include "diagnosis/demands/delivery_demands.hpp"

#include <algorithm>
#include <cmath>

#include "diagnosis/demands/demand_limit.hpp"

namespace drawpoint {
namespace {

/// The mean for a sample of something that was measured for some batches.
struct SampleMean {
    double sum_ns = 0, samples = 0;
    void add(std::int64_t ns, std::uint32_t size) noexcept {
        if (ns == no_stamp || size == 0)
            return;
        sum_ns += static_cast<double>(bounded_ns(ns));
        samples += size;
    }
    [[nodiscard]] double value() const noexcept { return samples > 0 ? sum_ns / samples : -1; }
};

}   // namespace

DeliveryDemands::DeliveryDemands(const Ledger& ledger, std::span<const std::uint32_t> batches,
                                 std::span<const std::int64_t> took_ns, double slowdown, double interval_ns)
    : ledger_{&ledger}, took_ns_{took_ns}, slowdown_{slowdown}, interval_ns_{interval_ns} {
    SampleMean receives, queues, works, all, pickles;
    double samples = 0, took = 0;
    for (const std::uint32_t at : batches) {
        const BatchRow& row = ledger.batches[at];
        receives.add(row.receive_cpu_ns, row.size);
        queues.add(row.receive_run_queue_ns, row.size);
        works.add(row.worker_cpu_ns, row.size);
        all.add(row.process_cpu_ns, row.size);
        pickles.add(row.delivery_cpu_ns, row.size);
        samples += row.size;
        took += static_cast<double>(bounded_ns(took_ns[at]));
    }
    receive_cpu_ns_ = receives.value();
    receive_run_queue_ns_ = queues.value();
    if (all.samples > 0)
        beside_cpu_ns_ = std::max(all.value() - works.value() - std::max(pickles.value(), 0.0), 0.0);
    received_cpu_ns_ = receive_cpu_ns_ < 0 ? took : receive_cpu_ns_ * samples;
}

void DeliveryDemands::set(BatchDemand& demand, std::uint32_t at) const noexcept {
    const BatchRow& row = ledger_->batches[at];
    const std::int64_t all_ns = bounded_ns(took_ns_[at]);
    const auto measured = [](std::int64_t ns) { return ns == no_stamp ? 0 : bounded_ns(ns); };
    demand.send_cpu_ns = measured(row.delivery_cpu_ns);
    demand.rest_cpu_ns = measured(row.worker_cpu_ns);
    if (receive_cpu_ns_ < 0) {   // a recording that does not tell
        demand.transfer = {.cpu_ns = all_ns};
        return;
    }
    // Of the time that is there, as much as a batch usually takes or, if this one was measured, as that took.
    const auto part = [&](std::int64_t own_ns, double sample_ns, std::int64_t most_ns) -> std::int64_t {
        const double usual_ns = std::max(sample_ns, 0.0) * row.size;
        return std::min<std::int64_t>(
            own_ns != no_stamp ? bounded_ns(own_ns) : std::llround(std::min(usual_ns, static_cast<double>(most_ns))),
            most_ns);
    };
    const std::int64_t own_ns = part(row.receive_cpu_ns, receive_cpu_ns_, all_ns),
                       queued_ns = part(row.receive_run_queue_ns, receive_run_queue_ns_, all_ns - own_ns);
    // Each tensor's memory is handed over by a thread of the worker's process, while the loop waits for it. What is
    // more was computed for sending, or by threads of a sample's own, several at once: then it is more than fits.
    const std::int64_t awaited_ns = part(no_stamp, beside_cpu_ns_, all_ns - own_ns),
                       slowed_ns = part(no_stamp, beside_cpu_ns_ * slowdown_, all_ns - own_ns - queued_ns);
    const std::int64_t beside_ns = part(no_stamp, beside_cpu_ns_, most_demand_ns - 1);
    const auto fits_ns = static_cast<std::int64_t>(std::min(interval_ns_, static_cast<double>(most_demand_ns - 1)));
    demand.send_cpu_ns += std::clamp<std::int64_t>(fits_ns - demand.send_cpu_ns, 0, beside_ns - awaited_ns);
    demand.transfer = {.cpu_ns = own_ns + awaited_ns,
                       .wait_ns =
                           std::max<std::int64_t>(all_ns - own_ns - queued_ns - std::max(awaited_ns, slowed_ns), 0)};
}

}   // namespace drawpoint
