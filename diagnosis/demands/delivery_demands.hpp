#pragma once

#include <cstdint>
#include <span>

#include <drawpoint/diagnosis/demands/recorded_run.hpp>

namespace drawpoint {

/// What it takes to bring batches from the worker processes that made them to the loop, and what these processes
/// compute besides samples, collating and pickling.
class DeliveryDemands {
public:
    /// `batches`: positions in Ledger::batches. `slowdown`: how much longer than it computes a thread takes that only
    /// waits for a core.
    DeliveryDemands(const Ledger&, std::span<const std::uint32_t> batches, double slowdown);

    /// Sets what the loop does to receive the batch, for which its draw took `ns` once the batch was sent, and what
    /// other threads of the worker's process do to send it. `rest_cpu_ns` becomes all that the worker's thread computed
    /// for the batch.
    void set(BatchDemand&, const BatchRow&, std::int64_t ns) const noexcept;

private:
    double slowdown_;
    // Each for one sample; below 0: not measured.
    double receive_cpu_ns_ = -1, receive_run_queue_ns_ = -1;
    double beside_cpu_ns_ = 0;   // of the process's threads that neither make samples nor pickle
};

}   // namespace drawpoint
