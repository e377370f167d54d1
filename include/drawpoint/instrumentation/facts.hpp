#pragma once

#include <cstdint>
#include <string>
#include <string_view>

/// Keys of the facts (`Ledger::facts`) that reports and exports read besides the rows, so that a report made later from
/// the file says what the live one said. Numbers are decimal text; one that cannot be read counts as absent. All facts
/// are optional. Each group below says who sets it; a program does so with `Recorder::set_fact`.
namespace drawpoint::facts {

// The run. Set by the program that trains.
inline constexpr std::string_view command = "run.command";   ///< the command line
inline constexpr std::string_view version = "run.version";   ///< of drawpoint
/// Why the run ended early; absent: it did not, or nobody said. `fit` sets it to the reason of a CancelFit.
inline constexpr std::string_view stopped = "run.stopped";
/// A digest of the indices and targets trained on, in their order: 16 hex digits.
inline constexpr std::string_view digest = "run.digest";
/// 0 … 1, of the last validation pass, without validation of the last training pass.
inline constexpr std::string_view accuracy = "run.accuracy";
inline constexpr std::string_view classes = "run.classes";   ///< number of classes of the data set
/// `option.NAME`: the value of the program's option NAME.
inline constexpr std::string_view option_prefix = "option.";
inline constexpr std::string_view clock = "clock.name";   ///< the clock of the stamps: `AnyClock::name`

/// `loader.asked_prefetch_depth.NAME`: the prefetch_depth that loader NAME (`PipelineRow::name`, which a recorder keeps
/// unique) was asked for, if its memory budget allowed only less. Set by the loader.
inline constexpr std::string_view asked_depth_prefix = "loader.asked_prefetch_depth.";
/// `loader.batches.NAME`: batches of a whole pass of loader NAME. Set by the loader.
inline constexpr std::string_view batches_prefix = "loader.batches.";
/// `loader.persistent_workers.NAME`: "true" if the workers of the PyTorch loader NAME outlive a pass.
inline constexpr std::string_view persistent_workers_prefix = "loader.persistent_workers.";
/// `loader.on_error.NAME`: "skip" or "substitute", if samples of loader NAME that cannot be made do not end the run.
/// Set by the loader.
inline constexpr std::string_view on_error_prefix = "loader.on_error.";
/// `sample.path.LOADER.INDEX`: where sample INDEX of the loader with this number (of `Ledger::pipelines`) comes from.
/// Set by the program at the end of the run, for samples that held the loop up.
inline constexpr std::string_view sample_path_prefix = "sample.path.";
[[nodiscard]] inline std::string sample_path(std::uint32_t loader, std::uint64_t index) {
    return std::string{sample_path_prefix} + std::to_string(loader) + "." + std::to_string(index);
}

// Memory. Set by the program at the end of the run, from the sums of its loaders' counters and memory plans.
inline constexpr std::string_view slots_bytes = "memory.slots_bytes";   ///< batch memory of the loaders, at the end
inline constexpr std::string_view peak_bytes = "memory.peak_bytes";     ///< largest resident size of the process so far
inline constexpr std::string_view loader_peak_bytes = "memory.loader_peak_bytes";   ///< most that the loaders held
inline constexpr std::string_view planned_bytes = "memory.planned_bytes";   ///< by the loaders, before the first sample
/// Batches that took new memory because the program still held the old (`LoaderCounters::slots_replaced`).
inline constexpr std::string_view slots_replaced = "memory.slots_replaced";
// Of all threads of the process during the fit, divided by the batches drawn.
inline constexpr std::string_view allocations_per_batch = "memory.allocations_per_batch";
inline constexpr std::string_view minor_faults_per_batch = "memory.minor_faults_per_batch";

/// The device that the batches went to, e.g. "cuda:0", if its steps were timed. Set by the loader.
inline constexpr std::string_view device = "device.name";
inline constexpr std::string_view device_buffers = "device.buffers";   ///< batches that it can hold
inline constexpr std::string_view device_copies = "device.copies";     ///< how they are copied there: a word of Copies

inline constexpr std::string_view read_retries = "reads.retries";   ///< reads that loaders repeated; set by the program

// The caches of decoded samples, all together; absent: there is none. The program calls `set_cache_facts` at the end.
inline constexpr std::string_view cache_hits = "cache.hits";                   ///< samples found in a cache
inline constexpr std::string_view cache_misses = "cache.misses";               ///< samples that had to be made
inline constexpr std::string_view cache_samples = "cache.samples";             ///< held at the end
inline constexpr std::string_view cache_bytes = "cache.bytes";                 ///< their size
inline constexpr std::string_view cache_budget_bytes = "cache.budget_bytes";   ///< the size allowed
inline constexpr std::string_view cache_origin = "cache.origin";   ///< "memory", or which file and what was in it

// The cost of recording. Set by the program at the end, from `Recorder::state`.
inline constexpr std::string_view recording_events = "recording.events";   ///< `RecordingState::events`
inline constexpr std::string_view ns_per_event = "recording.ns_per_event";
/// (events × ns_per_event + CPU time of the writer thread) / CPU time of the process during the fit.
inline constexpr std::string_view share_of_cpu = "recording.share_of_cpu";

// The machine. Set by the program.
inline constexpr std::string_view machine_cpu = "machine.cpu";              ///< the processor's name
inline constexpr std::string_view machine_cores = "machine.cores_usable";   ///< by affinity and quota, a whole number
inline constexpr std::string_view machine_kernel = "machine.kernel";        ///< the operating system's
inline constexpr std::string_view machine_compiler = "machine.compiler";
/// `machine.library.NAME`: the version of library NAME.
inline constexpr std::string_view machine_library_prefix = "machine.library.";

// What the shares of host rows refer to. Set by a recorder that records such rows (`RecorderOptions::host_period`).
/// `usable_cores`; may be fractional. Predictions and trust use it, and `machine_cores` only if it is absent.
inline constexpr std::string_view host_cores = "host.cores_usable";
inline constexpr std::string_view host_affinity_cores = "host.cores_by_affinity";   ///< cores that `HostRow` sums over
inline constexpr std::string_view host_sleep_cpu_ns = "host.sleep_cpu_ns";   ///< CPU time of one sleep and wake-up
inline constexpr std::string_view host_online_cores = "host.cores_online";   ///< of the machine, whoever may use them
inline constexpr std::string_view host_tick_ns = "host.tick_ns";             ///< between two ticks of the kernel
inline constexpr std::string_view host_base_slice_ns =
    "host.base_slice_ns";   ///< the scheduler's; absent: not readable
inline constexpr std::string_view host_migration_cost_ns = "host.migration_cost_ns";   ///< likewise

// What exported traces contain besides the rows. Set by the program; in an imported trace, by the import.
inline constexpr std::string_view process_id = "process.id";
inline constexpr std::string_view process_name = "process.name";
inline constexpr std::string_view loop_tid = "process.loop_tid";             ///< the system's id of the loop's thread
inline constexpr std::string_view unix_offset_ns = "clock.unix_offset_ns";   ///< Unix time minus the recording's clock
inline constexpr std::string_view rank = "distributed.rank";
inline constexpr std::string_view world_size = "distributed.world_size";
inline constexpr std::string_view backend = "distributed.backend";
/// Of an imported trace: what its profiler says that it cost, summed over all threads (its events "overhead").
inline constexpr std::string_view trace_overhead_ns = "trace.overhead_ns";
/// `trace.metadata.KEY`: JSON that becomes the member KEY of an exported Chrome trace (`write_chrome_trace`).
inline constexpr std::string_view metadata_prefix = "trace.metadata.";

// What the stack sampler did and cost. It sets them when it starts and when it stops (sampling/stack_sampler.hpp).
inline constexpr std::string_view sampling_backend = "sampling.backend";   ///< "perf_event" or "timers"
/// Why perf_event was not available, or "sampling ended early: " and why.
inline constexpr std::string_view sampling_refused = "sampling.refused";
inline constexpr std::string_view sampling_kernel = "sampling.kernel";   ///< time in the kernel: "sampled", "excluded"
inline constexpr std::string_view sampling_symbols = "sampling.symbols";   ///< the library that names functions
inline constexpr std::string_view sampling_rate_asked_hz = "sampling.rate_asked_hz";   ///< per second of CPU time
/// Achieved: (samples + lost) / CPU time of the sampled threads.
inline constexpr std::string_view sampling_rate_hz = "sampling.rate_hz";
inline constexpr std::string_view sampling_cpu_s = "sampling.cpu_s";   ///< CPU time of the sampler itself
/// `sampling_cpu_s` / (the same + CPU time of the sampled threads).
inline constexpr std::string_view sampling_share_of_cpu = "sampling.share_of_cpu";
inline constexpr std::string_view sampling_samples = "sampling.samples";               ///< number of samples recorded
inline constexpr std::string_view sampling_lost = "sampling.lost";                     ///< number of samples lost
inline constexpr std::string_view sampling_threads = "sampling.threads";               ///< number of threads sampled
inline constexpr std::string_view sampling_unsampled = "sampling.unsampled_threads";   ///< number that could not be
/// `sampling.thread.TID`: the system's name of the thread with this id.
inline constexpr std::string_view sampling_thread_prefix = "sampling.thread.";

}   // namespace drawpoint::facts
