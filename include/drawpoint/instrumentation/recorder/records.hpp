#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <drawpoint/instrumentation/ledger/ledger.hpp>

namespace drawpoint {

struct RecorderOptions {
    std::uint64_t limit_bytes =
        256u << 20;   ///< of the file, for slices, flows and samples; steps and batches always stay
    /// Of the file, or without one of memory, for operators, allocations, stack samples and what they name: operators,
    /// allocations and stack samples that come later are dropped and counted.
    std::uint64_t operator_limit_bytes = 256u << 20;
    std::uint32_t ring_records = 1u << 14;   ///< 64-byte records a ring holds, a power of two ≥ 64
    /// 0: the live ledger keeps every row. n: once it holds more than n steps, all but the last n / 2 are folded with
    /// their batches and samples (`Ledger::folded`), so that memory is bounded however long the run; passes, failures
    /// and facts stay, some 300 bytes an epoch, and up to 1024 of the host's rows. More than four times the loaders' depth, or a batch kept may lack
    /// samples. The file keeps every row.
    std::size_t ledger_steps = 0;
    double drop_share = 0.0;   ///< throws away this share of sample records, counted: for experiments, 0 … 1
    /// How often the writer looks at what the machine and this process use (`Ledger::host`), besides once at the begin, at
    /// the end and where a ledger is asked for; 0: never, and never where the clock is a ManualClock. Some 100 bytes a row.
    std::chrono::milliseconds host_period{200};
};
static_assert(std::is_trivially_destructible_v<RecorderOptions>);

/// What a batch's records keep, decided when it is admitted (whole batches are thinned, never parts).
struct BatchDetail {
    bool samples = true;   ///< one record a sample
    bool slices = true;    ///< its stages' slices and flows in the file
};

/// Longest list of stages a sample record takes.
inline constexpr std::size_t max_stages = 8;
/// Most pieces one step record takes.
inline constexpr std::size_t max_step_spans = 40;

/// What is known of an operator when it begins; as in `OperatorRow`.
struct OperatorBegin {
    OperatorKind kind = OperatorKind::user_annotation;
    std::uint32_t name = 0, shapes = nothing, stack = nothing;
    std::int64_t sequence = -1;
    std::uint64_t forward_thread = 0, flops = 0;
};

/// One sample as a worker hands it over: complete when pushed.
struct SampleRecord {
    SampleRow row;   ///< `stages` unused
    bool slices = true;
    std::uint32_t stage_count = 0;
    std::array<StageRow, max_stages> stages{};
};

}   // namespace drawpoint
