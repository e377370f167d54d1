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
        if (ns == no_stamp)
            return;
        sum_ns += static_cast<double>(bounded_ns(ns));
        samples += size;
    }
    [[nodiscard]] double value() const noexcept { return samples > 0 ? sum_ns / samples : -1; }
};

}   // namespace

DeliveryDemands::DeliveryDemands(const Ledger& ledger, std::span<const std::uint32_t> batches, double slowdown)
    : slowdown_{slowdown} {
    SampleMean receives, queues, works, all, pickles;
    for (const std::uint32_t at : batches) {
        const BatchRow& row = ledger.batches[at];
        receives.add(row.receive_cpu_ns, row.size);
        queues.add(row.receive_run_queue_ns, row.size);
        works.add(row.worker_cpu_ns, row.size);
        all.add(row.process_cpu_ns, row.size);
        pickles.add(row.delivery_cpu_ns, row.size);
    }
    receive_cpu_ns_ = receives.value();
    receive_run_queue_ns_ = queues.value();
    if (all.samples > 0)
        beside_cpu_ns_ = std::max(all.value() - works.value() - std::max(pickles.value(), 0.0), 0.0);
}

void DeliveryDemands::set(BatchDemand& demand, const BatchRow& row, std::int64_t ns) const noexcept {
    const auto of_batch = [&row](double sample_ns) -> std::int64_t {
        return bounded_ns(std::llround(std::max(sample_ns, 0.0) * row.size));
    };
    const std::int64_t all_ns = bounded_ns(ns);
    demand.send_cpu_ns = row.delivery_cpu_ns == no_stamp ? 0 : bounded_ns(row.delivery_cpu_ns);
    demand.rest_cpu_ns = row.worker_cpu_ns == no_stamp ? 0 : bounded_ns(row.worker_cpu_ns);
    if (receive_cpu_ns_ < 0) {   // a recording that does not tell
        demand.transfer = {.cpu_ns = all_ns};
        return;
    }
    const auto measured = [&](std::int64_t own_ns, double mean_ns) {
        return own_ns == no_stamp ? of_batch(mean_ns) : bounded_ns(own_ns);
    };
    const std::int64_t own_ns = std::min(measured(row.receive_cpu_ns, receive_cpu_ns_), all_ns),
                       queued_ns = std::min(measured(row.receive_run_queue_ns, receive_run_queue_ns_), all_ns - own_ns);
    // Each tensor's memory is handed over by a thread of the worker's process, while the loop waits for it.
    const std::int64_t beside_ns = of_batch(beside_cpu_ns_), awaited_ns = std::min(beside_ns, all_ns - own_ns);
    demand.send_cpu_ns = bounded_ns(demand.send_cpu_ns + beside_ns - awaited_ns);
    demand.transfer.cpu_ns = own_ns + awaited_ns;
    demand.transfer.wait_ns = std::max<std::int64_t>(
        all_ns - own_ns - queued_ns - std::llround(static_cast<double>(awaited_ns) * slowdown_), 0);
}

}   // namespace drawpoint
