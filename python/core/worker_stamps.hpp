#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <nanobind/nanobind.h>

#include <drawpoint/instrumentation/host/detail/thread_usage.hpp>
#include <drawpoint/instrumentation/recorder/detail/packed_samples.hpp>
#include <drawpoint/instrumentation/recorder/detail/reading_budget.hpp>

namespace drawpoint::python {

/// Stamps of one batch of a PyTorch loader. It travels as bytes.
struct BatchStamps {
    std::int64_t number = -1;   ///< in its pass; below 0: not known
    std::int64_t first_ns = no_stamp, last_ns = no_stamp;
    std::int64_t collate_begin_ns = no_stamp, collate_end_ns = no_stamp;
    std::int64_t collate_cpu_ns = no_stamp, collate_run_queue_ns = no_stamp;
    std::int64_t delivery_begin_ns = no_stamp, delivery_end_ns = no_stamp, delivery_cpu_ns = no_stamp;
    std::int64_t worker_cpu_ns = no_stamp, process_cpu_ns = no_stamp;   ///< since the batch before
    std::int64_t pinned_ns = no_stamp;
    std::uint32_t worker = 0, size = 0;
};

/// A batch on its way from the process that made it, with its stamps and its packed samples. Pickling it stamps when
/// that began and ended.
struct Stamped {
    void each_held(auto visit) { visit(batch); }
    nanobind::object batch;
    BatchStamps stamps;
    std::vector<std::byte> samples;
};

/// Stamps the samples that one thread makes. Each has `stages` stages: the first from its begin to the first of those
/// that are told apart, the last after them.
class WorkerStamps {
public:
    WorkerStamps(std::size_t stages, std::uint32_t worker) noexcept : stages_{stages}, worker_{worker} {
        begin_batches();
    }
    /// What the thread and its process computed until now is of no batch.
    void begin_batches() noexcept;

    void begin_sample(std::uint64_t index) noexcept;
    void begin_stage() noexcept;
    void end_stage(std::size_t stage) noexcept;
    /// `samples`: that were made together. Throws std::bad_alloc.
    void end_sample(std::uint32_t samples);
    [[nodiscard]] bool in_sample() const noexcept { return in_sample_; }
    /// The sample failed: it and all of its batch are dropped.
    void drop() noexcept;
    void begin_collate() noexcept;
    /// The batch, with the samples since the last one.
    [[nodiscard]] Stamped stamped(nanobind::object batch);
    void set_number(std::int64_t number) noexcept { number_ = number; }   ///< of the batch that is being made

private:
    struct Seen {
        std::int64_t begin_ns = 0, ns = 0, cpu_ns = 0;
        bool any = false;
    };
    const std::size_t stages_;
    const std::uint32_t worker_;
    ThreadUsage usage_;
    ReadingBudget budget_;
    bool in_sample_ = false, measured_ = false;
    std::uint64_t index_ = 0;
    std::int64_t begin_ns_ = 0, begin_cpu_ns_ = 0, begin_run_queue_ns_ = 0;
    std::int64_t stage_begin_ns_ = 0, stage_begin_cpu_ns_ = 0, first_cpu_ns_ = 0, last_cpu_ns_ = 0;
    std::array<Seen, max_stages> seen_{};
    bool any_ = false;   // of them
    std::int64_t collate_begin_cpu_ns_ = 0, collate_begin_run_queue_ns_ = 0;
    std::int64_t worker_cpu_ns_ = 0, process_cpu_ns_ = 0;   // as the batch before was made
    std::int64_t number_ = -1;
    BatchStamps batch_;
    std::vector<std::byte> samples_;
};

void add_worker_stamps(nanobind::module_&);

}   // namespace drawpoint::python
