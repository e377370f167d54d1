#pragma once

#include <cstdint>
#include <span>

#include <drawpoint/diagnosis/demands/recorded_run.hpp>

namespace drawpoint {

/// What it takes to bring batches from the worker processes that made them to the loop. A draw that waits receives
/// other workers' batches meanwhile, which counts as its own.
class DeliveryDemands {
public:
    /// `batches`: positions in Ledger::batches, which must stay. `took_ns`: by position, for how long its draw received
    /// the batch once it was sent. `slowdown`: how much longer than it computes a thread takes that only waits for a
    /// core. `interval_ns`: between two batches of a worker, which sending one cannot have exceeded.
    DeliveryDemands(const Ledger&, std::span<const std::uint32_t> batches, std::span<const std::int64_t> took_ns,
                    double slowdown, double interval_ns);

    /// Sets what the loop does to receive the batch at this position, and what its worker's process does to send it.
    /// `rest_cpu_ns` becomes all that the worker's thread computed for the batch.
    void set(BatchDemand&, std::uint32_t at) const noexcept;
    /// CPU time of the loop's thread for all batches.
    [[nodiscard]] double received_cpu_ns() const noexcept { return received_cpu_ns_; }

private:
    const Ledger* ledger_;
    std::span<const std::int64_t> took_ns_;
    double slowdown_, interval_ns_;
    double receive_cpu_ns_, receive_run_queue_ns_;   // for one sample; below 0: not measured
    double beside_cpu_ns_ = 0;   // for one sample, of the process's threads that neither make samples nor pickle
    double received_cpu_ns_ = 0;
};

}   // namespace drawpoint
