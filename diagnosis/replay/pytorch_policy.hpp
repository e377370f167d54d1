#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include <drawpoint/instrumentation/ledger/order_rule.hpp>

namespace drawpoint {

/// Decides about batches as PyTorch's DataLoader does with workers (torch/utils/data/dataloader.py of torch 2.13): the
/// indices of `prefetch_depth` batches are sent at first, and of one more at each draw. A batch is one worker's: in
/// order the next in turn, else the next in turn of which fewer than prefetch_depth / num_workers are sent and not
/// drawn. Batches are drawn in order, or as they are complete. Time is the driver's. Slots 0 … prefetch_depth are
/// places of batches that are sent and not given back. One thread.
class PyTorchPolicy {
public:
    PyTorchPolicy(std::size_t num_workers, std::size_t prefetch_depth, OrderRule);

    struct Sent {
        std::uint64_t batch;
        std::uint32_t slot, worker;
    };

    /// Lets `batches` more be sent.
    void extend(std::uint64_t batches) noexcept;
    [[nodiscard]] std::uint64_t limit() const noexcept { return limit_; }   ///< batches that may be sent, in all

    /// The next batch whose indices are sent now; nullopt: none.
    [[nodiscard]] std::optional<Sent> send();
    void complete(std::uint32_t slot);
    /// The slot of the next batch that can be drawn, each once; nullopt: none.
    [[nodiscard]] std::optional<std::uint32_t> hand_over();
    void drawn(std::uint32_t slot) noexcept;
    void give_back(std::uint32_t slot) { free_.push_back(slot); }

private:
    [[nodiscard]] std::uint32_t next_worker() noexcept;

    std::size_t num_workers_, prefetch_depth_;
    bool in_order_;
    std::uint64_t limit_ = 0, sent_ = 0, turn_ = 0;
    std::size_t undrawn_ = 0;
    std::vector<std::size_t> undrawn_of_;           // by worker
    std::vector<std::uint32_t> free_, worker_of_;   // worker_of_: by slot
    std::vector<bool> complete_;                    // by slot
    std::deque<std::uint32_t> next_;                // slots in the order in which they can be drawn
};

}   // namespace drawpoint
