#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace drawpoint {

struct RecorderOptions {
    /// Most bytes of the file, without operators. When it is reached, older steps are folded, with their batches and
    /// samples, into totals (`Folded`), in the live ledger too; what is left, at most a quarter of the limit and 12 MiB
    /// of rows, is written into a new file that takes the place of the present one. So all totals stay exact. What is
    /// never folded (see `ledger_bytes`) may exceed it. Writing anew needs room for both files; if it fails, it is
    /// tried once more, and then the recording ends. A pipe has no limit, nor has a file that was moved.
    std::uint64_t limit_bytes = 256u << 20;
    /// Most bytes of operators, allocations, stack samples and what they name, in the file or, without one, in memory.
    /// Operators, allocations and stack samples beyond it are dropped and counted; names, frames and stacks may take as
    /// much again, and are then no longer kept. The live ledger has all of these: with a file, they take memory besides
    /// the file's bytes.
    std::uint64_t operator_limit_bytes = 256u << 20;
    std::uint32_t ring_records = 1u << 14;   ///< size of each thread's ring, in 64-byte records: a power of two ≥ 64
    /// Most bytes of steps, batches and samples in the live ledger, which takes up to 2.5 times as much memory; 0: any
    /// number. When there are more, the older half of the steps is folded, with their batches and samples, into totals
    /// (`Folded`), so that memory does not grow with the number of steps: all totals stay exact, percentiles are within
    /// 1 %. Batches that are drawn without steps are folded, too. Up to 1024 older rows of the host are kept, and all
    /// passes, failures, facts and operators; passes take about 300 bytes per epoch. The file keeps rows longer, up to
    /// `limit_bytes`.
    std::uint64_t ledger_bytes = 24u << 20;
    /// The same for the number of steps. It should be more than four times the loaders' depth, or a kept batch may lack
    /// samples.
    std::size_t ledger_steps = 0;
    double drop_share = 0.0;   ///< for experiments: share of sample records to drop (and count), 0 … 1
    /// How often the writer records what the machine and this process use (`Ledger::host`), besides at the beginning,
    /// at the end and when a ledger is asked for. 0, or a ManualClock: never, not even then. About 100 bytes per row.
    std::chrono::milliseconds host_period{200};
};
static_assert(std::is_trivially_destructible_v<RecorderOptions>);

}   // namespace drawpoint
