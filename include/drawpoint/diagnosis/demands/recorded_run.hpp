#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <drawpoint/instrumentation/ledger/ledger.hpp>
#include <drawpoint/instrumentation/recorder/records.hpp>
#include <drawpoint/pipeline/loader/loader_setting.hpp>

namespace drawpoint {

/// Work: on a core (nanoseconds of a whole core that nothing disturbs), and off it (asleep, reading, a device).
struct Demand {
    std::int64_t cpu_ns = 0, wait_ns = 0;
    [[nodiscard]] std::int64_t ns() const noexcept { return cpu_ns + wait_ns; }
    bool operator==(const Demand&) const = default;
};

/// What one sample asks of whoever makes it. Kept together: a large picture is read and decoded long.
struct SampleDemand {
    std::uint64_t index = 0, bytes = 0;
    std::uint32_t batch = 0;   ///< of `RecordedRun::batches`
    /// Ahead of the worker, or by it where nothing is read ahead; 0 where the first stage reads for itself.
    Demand read;
    std::array<Demand, max_stages> stages{};
};

/// What one batch asks beside its samples: to be collated, and moved to a device.
struct BatchDemand {
    Demand collate;
    std::int64_t transfer_ns = 0;
    std::uint64_t bytes = 0;   ///< of its memory
    std::uint32_t size = 0;    ///< samples; 0: batch_size. Demands of a batch of another size are in proportion
};

/// What one step asks of the loop, from the draw's end to the next draw's begin. `threads`: cores that its compute's
/// `cpu_ns` is spread over while it runs (LibTorch's own threads), ≥ 1.
struct StepDemand {
    Demand compute;   ///< while the loop holds the batch
    double threads = 1;
    bool spins = false;          ///< the loop's own waits for the others on its core; `compute` has no CPU of that
    std::uint32_t size = 0;      ///< samples, as in BatchDemand
    std::int64_t pause_ns = 0;   ///< after it, in no step: a validation, an epoch's end
    Demand after;   ///< on one thread once the batch is given back: between steps, and callbacks before the next draw
};

/// One recorded run of one loader in steady state, as demands: what a replay takes up under any setting. A value.
struct RecordedRun {
    std::string pipeline;
    std::vector<std::string> stages;     ///< names
    LoaderSetting setting;               ///< it ran with
    std::vector<SampleDemand> samples;   ///< in the sampler's order
    std::vector<BatchDemand> batches;    ///< of setting.batch_size samples each, in order
    std::vector<StepDemand> steps;
    double cores = 1;                  ///< usable: affinity and quota
    double foreign_cores = 0;          ///< of these, what others took on average while this ran
    double foreign_cores_spread = 0;   ///< its standard deviation (the caller sets both)
    double batches_per_s = 0;          ///< measured, over the steady steps
    double draw_share = 0;             ///< of their time
    /// Of a bandwidth that all reads share: they pass it one after the other, each once its own latency is over. 0: none was
    /// seen (the caller sets both).
    double line_ns_per_byte = 0;
    std::int64_t line_latency_ns = 0;
    std::uint64_t other_bytes = 0;    ///< of the loader's memory that no setting changes (cache, order)
    std::uint64_t worker_bytes = 0;   ///< a worker's
    std::size_t pass_batches = 0;     ///< batches a pass has; 0: the recording tells of no pass's end
    std::size_t pass_samples = 0;     ///< likewise its samples; 0: replayed as one pass without end
    std::size_t first_in_pass = 0;    ///< samples of its pass that came before the first
    std::int64_t overhead_ns = 0;     ///< of a worker's core between two samples: claims, records
    std::int64_t sleep_cpu_ns = 0;    ///< of a core, to go to sleep and to wake: a part of what waits; 0: not known
    bool reads_ahead = false;         ///< samples were seen to be read ahead: `SampleDemand::read` is theirs
    bool collates = false;            ///< batches are made of finished samples, and admitted by their bytes
    /// CPU was measured of some samples (else all of a sample is taken for computing), and of some steps (else all of a
    /// step is taken for waiting, but for what `host` rows show that no worker computed).
    bool cpu_measured = false, loop_cpu_measured = false;
    /// Why it cannot be replayed ("samples were thinned …"); empty: it can.
    std::string unusable;
};

/// Reads a sorted ledger: its first loader that trained, from `first_step` on (warm-up ends where `blame` says).
/// Samples
/// whose CPU was not measured get their stages' shares. Throws nothing: what is missing is said in `unusable`. O(rows).
[[nodiscard]] RecordedRun recorded_run(const Ledger&, std::size_t first_step);

}   // namespace drawpoint
