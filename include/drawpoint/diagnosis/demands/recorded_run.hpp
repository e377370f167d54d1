#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <drawpoint/diagnosis/demands/scheduler_times.hpp>
#include <drawpoint/instrumentation/ledger/copies.hpp>
#include <drawpoint/instrumentation/ledger/ledger.hpp>
#include <drawpoint/instrumentation/ledger/records.hpp>
#include <drawpoint/pipeline/loader/machine/loader_setting.hpp>

namespace drawpoint {

/// What a piece of work asks for: `cpu_ns` nanoseconds of one undisturbed core, and `wait_ns` of waiting off it
/// (asleep, for a read, for a device). Waiting for a core is not included: a replay makes its own.
struct Demand {
    std::int64_t cpu_ns = 0, wait_ns = 0;
    [[nodiscard]] std::int64_t ns() const noexcept { return cpu_ns + wait_ns; }
    bool operator==(const Demand&) const = default;
};

/// What it takes to make one sample. Its parts are kept together, because a large picture takes long both to read and
/// to decode.
struct SampleDemand {
    std::uint64_t index = 0, bytes = 0;   ///< its index in the data set; bytes read from storage
    std::uint32_t batch = 0;              ///< index into `RecordedRun::batches`
    /// Its read, ahead of the worker or by the worker; 0 if the first stage includes it.
    Demand read;
    std::int64_t behind_ns = 0;   ///< of the time of its read, until the one before it, by their ends, had ended
    std::array<Demand, max_stages> stages{};   ///< by stage, in the order of `RecordedRun::stages`
    std::int64_t unstamped_ns = 0;             ///< core time from its begin to its end that is in no stage
};

/// What one batch takes besides its samples: collating, and the transfer to a device.
struct BatchDemand {
    Demand collate;
    /// Waiting for the copy to a device; without `RecordedRun::device_buffers` the draw waits for it. Of a PyTorch
    /// loader with workers: what its draw takes to receive it, once it is sent.
    Demand transfer;
    /// Of a PyTorch loader, core time in the worker's process: of other threads than the worker's, to send it; of the
    /// worker's thread, besides samples and collating.
    std::int64_t send_cpu_ns = 0, rest_cpu_ns = 0;
    std::uint64_t bytes = 0;   ///< memory of the batch
    std::uint32_t size = 0;    ///< samples; 0: batch_size. A replayed batch of another size takes proportionally
};

/// What one step takes of a device, once the device has its batch and the loop has ended its draw.
struct DeviceDemand {
    std::int64_t ns = 0;   ///< for all its work; proportional to the batch's size, as is `first_ns`
    /// From the loop's last command to the end of that work, at least.
    std::int64_t lag_ns = 0;
    /// Of the loop's `compute`, waiting for a single kernel of the device: without this wait, `ns` would be as much
    /// shorter, too. Only where `first_ns` is 0.
    std::int64_t kernel_wait_ns = 0;
    /// The loop itself takes about as long as `ns`, which may be the time it took to give the device this work.
    bool is_launch_bound = false;
    /// The loop waits in the step, after `wait_at` of its `compute` (0 … 1), until the device has worked for first_ns;
    /// 0: it does not wait.
    std::int64_t first_ns = 0;
    double wait_at = 0;
    bool operator==(const DeviceDemand&) const = default;
};

/// What one step takes of the loop, from the draw's end to the next draw's begin.
struct StepDemand {
    /// While the loop holds the batch, without waiting for a device; proportional to the batch's size.
    Demand compute;
    DeviceDemand device;
    /// Cores that `compute.cpu_ns` is spread over while it runs (LibTorch's own threads), ≥ 1.
    double threads = 1;
    /// The loop's thread keeps its core while it waits for the other threads. `compute` does not include that waiting.
    bool spins = false;
    std::uint32_t size = 0;      ///< samples, as in BatchDemand
    std::int64_t pause_ns = 0;   ///< after the step and outside of all steps: a validation, the end of an epoch
    /// On one thread, after the batch was given back: between steps, and callbacks before the next draw. The same for
    /// all batch sizes.
    Demand after;
};

/// The steady part of a recorded run of one loader (from the end of the warm-up, or from the last change of its
/// setting, on), as demands that can be replayed under any setting. A value.
struct RecordedRun {
    std::string pipeline;                ///< the loader's name
    std::vector<std::string> stages;     ///< names
    LoaderSetting setting;               ///< the recorded one; `prefetch_depth` as asked for, before any memory budget
    std::vector<SampleDemand> samples;   ///< in the sampler's order; of the batches recorded with all their samples
    std::vector<BatchDemand> batches;    ///< the same batches, in the order in which they were admitted
    std::vector<StepDemand> steps;       ///< all training steps, in order
    /// Batches that a device holds, which was timed; 0: there is none.
    std::size_t device_buffers = 0;
    Copies copies{};                   ///< to that device
    Demand order;                      ///< what the sampler takes for the order of a pass, mean; 0: it computes none
    double cores = 1;                  ///< usable: affinity and quota
    double foreign_cores = 0;          ///< that others or a hypervisor used, mean; set by `steady_run` alone
    double foreign_cores_spread = 0;   ///< its standard deviation; likewise
    double batches_per_s = 0;          ///< measured over `steps`
    double draw_share = 0;             ///< part of the time of `steps` that is draws, measured
    /// The bandwidth that all reads share, if they do: each read takes its own latency, then the reads take turns to
    /// transfer their bytes. 0: no such sharing was seen. `steady_run` sets both, `recorded_run` does not.
    double line_ns_per_byte = 0;
    std::int64_t line_latency_ns = 0;
    std::uint64_t other_bytes = 0;    ///< of the loader's memory: what no setting changes (cache, order)
    std::uint64_t worker_bytes = 0;   ///< memory of each worker
    std::size_t pass_batches = 0;     ///< batches in a pass; 0: the recording does not show the end of a pass
    std::size_t pass_samples = 0;     ///< samples in a pass; 0: replayed as one endless pass
    std::size_t first_in_pass = 0;    ///< samples of the pass before the first recorded one
    std::int64_t overhead_ns = 0;     ///< core time of a worker between two samples: claiming, recording
    std::int64_t sleep_cpu_ns = 0;    ///< core time to go to sleep and wake up, in each demand that waits; 0: not known
    std::int64_t loop_wake_ns = 0;    ///< until the suspended loop ran once its batch was there; 0: not known
    std::int64_t read_wake_ns = 0;    ///< until a worker ran once the read that it waited for had ended; 0: not known
    SchedulerTimes scheduler;         ///< of the recorded machine
    /// If the loop's threads spin while they wait for each other: their work may be as little as this share of what
    /// `steps` say, since nothing tells spinning from work; `steady_run` chooses. 1: it is what they say.
    double least_loop_work = 1;
    /// What a recording does not tell, chosen by `steady_run`: whether the loop waits in a step before it computes, or
    /// afterwards; and, if its threads spin, whether all but its own yield their cores before they sleep.
    bool loop_waits_first = false, helpers_yield = false;
    bool persistent_workers = false;   ///< of a PyTorch loader: its workers outlive a pass
    std::int64_t worker_gap_ns = 0;    ///< else: from when one begins its first batch of a pass to when the next does
    bool reads_ahead = false;          ///< samples were read ahead: `SampleDemand::read` holds those reads
    bool collates = false;             ///< batches are collated from finished samples, and admitted by their bytes
    /// CPU time was measured for some samples (else a sample counts as computing all the time), and for some steps
    /// (else a step counts as waiting all the time, except for the CPU time in `host` rows that no worker used).
    bool cpu_measured = false, loop_cpu_measured = false;
    /// Why the run cannot be replayed ("samples were thinned …"); empty: it can.
    std::string unusable;
};

/// The demands of a sorted ledger's first loader that trained, from `first_step` on, an index into `Ledger::steps`:
/// usually `Blame::first_steady_step`. CPU time that was not measured is estimated from similar samples that were.
/// Never refuses a ledger: `unusable` says what is missing. O(rows log rows). Any thread.
[[nodiscard]] RecordedRun recorded_run(const Ledger&, std::size_t first_step);

}   // namespace drawpoint
