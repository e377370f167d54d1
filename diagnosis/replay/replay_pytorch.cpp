// The simulated loader: PyTorch's, whose workers are processes that send their batches to the loop's.
#include <algorithm>
#include <utility>

#include "diagnosis/replay/replay_loader.hpp"

namespace drawpoint {

void ReplayLoader::turn_pytorch() {
    const std::uint64_t usual = options_.setting.batch_size;
    while (const auto batch = pytorch_->send()) {
        const std::uint64_t size = first_size_ != 0 ? std::exchange(first_size_, 0) : usual;
        begin_slot(batch->slot, static_cast<std::uint32_t>(std::min(size, pass_end_ - admitted_samples_)));
        sent_[batch->worker].push_back(batch->slot);
        Worker& worker = workers_[batch->worker];
        if (worker.state == WorkerState::parked) {
            worker.state = WorkerState::waking;
            // Nothing starts at the replay's own begin.
            const std::int64_t starts_ns =
                next_epoch_ > 1 ? pass_start_ns_ + batch->worker * demands_.worker_gap_ns() : time_.now_ns();
            time_.wait(batch->worker, std::max(starts_ns - time_.now_ns(), wake_ns_));
        }
    }
    while (const auto slot = pytorch_->hand_over())
        publish(*slot);
}

/// The worker's batch is made: other threads of its process send it, one batch at a time, while it makes the next.
void ReplayLoader::begin_sending(std::uint32_t number) {
    Slot& s = slots_[workers_[number].slot];
    s.row.worker_cpu_ns = std::exchange(workers_[number].batch_cpu_ns, 0);
    machine_.holds_slots(slots_bytes_ += s.arrays = demands_.batch_at(s.position, s.size).bytes);
    sending_[number].push_back(workers_[number].slot);
    if (sending_[number].size() == 1)
        start_sender(number);
}

void ReplayLoader::start_sender(std::uint32_t number) {
    Slot& s = slots_[sending_[number].front()];
    const std::int64_t cpu_ns = demands_.batch_at(s.position, s.size).send_cpu_ns;
    s.row.delivery_begin_ns = time_.now_ns();
    s.row.delivery_cpu_ns = cpu_ns;
    s.row.process_cpu_ns = s.row.worker_cpu_ns + cpu_ns;
    if (cpu_ns > 0)
        time_.compute(static_cast<std::uint32_t>(workers_.size()) + 1 + number, cpu_ns);
    else
        step_sender(number);
}

void ReplayLoader::step_sender(std::uint32_t number) {
    const std::uint32_t slot = sending_[number].front();
    sending_[number].pop_front();
    slots_[slot].row.delivery_end_ns = time_.now_ns();
    pytorch_->complete(slot);
    turn_pytorch();
    if (!sending_[number].empty())
        start_sender(number);
}

}   // namespace drawpoint
