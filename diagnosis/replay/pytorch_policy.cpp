#include "diagnosis/replay/pytorch_policy.hpp"

#include <algorithm>

namespace drawpoint {

PyTorchPolicy::PyTorchPolicy(std::size_t num_workers, std::size_t prefetch_depth, OrderRule order)
    : num_workers_{num_workers},
      prefetch_depth_{prefetch_depth},
      in_order_{order == OrderRule::in_order()},
      undrawn_of_(num_workers),
      worker_of_(prefetch_depth + 1),
      complete_(prefetch_depth + 1) {
    for (std::size_t slot = prefetch_depth + 1; slot-- != 0;)
        free_.push_back(static_cast<std::uint32_t>(slot));
}

void PyTorchPolicy::extend(std::uint64_t batches) noexcept {
    if (sent_ == limit_)
        turn_ = 0;   // a new pass
    limit_ += batches;
}

std::optional<PyTorchPolicy::Sent> PyTorchPolicy::send() {
    if (sent_ == limit_ || undrawn_ >= prefetch_depth_ || free_.empty())
        return std::nullopt;
    const std::uint32_t slot = free_.back(), worker = next_worker();
    free_.pop_back();
    worker_of_[slot] = worker;
    complete_[slot] = false;
    ++undrawn_of_[worker];
    ++undrawn_;
    if (in_order_)
        next_.push_back(slot);
    return Sent{sent_++, slot, worker};
}

std::uint32_t PyTorchPolicy::next_worker() noexcept {
    const auto in_turn = [this] { return static_cast<std::uint32_t>(turn_++ % num_workers_); };
    std::uint32_t worker = in_turn();
    if (in_order_)
        return worker;
    const std::size_t share = std::max<std::size_t>(prefetch_depth_ / num_workers_, 1);
    for (std::size_t tried = 1; undrawn_of_[worker] >= share && tried < num_workers_; ++tried)
        worker = in_turn();
    return worker;
}

void PyTorchPolicy::complete(std::uint32_t slot) {
    complete_[slot] = true;
    if (!in_order_)
        next_.push_back(slot);
}

std::optional<std::uint32_t> PyTorchPolicy::hand_over() {
    if (next_.empty() || !complete_[next_.front()])
        return std::nullopt;
    const std::uint32_t slot = next_.front();
    next_.pop_front();
    return slot;
}

void PyTorchPolicy::drawn(std::uint32_t slot) noexcept {
    --undrawn_of_[worker_of_[slot]];
    --undrawn_;
}

}   // namespace drawpoint
