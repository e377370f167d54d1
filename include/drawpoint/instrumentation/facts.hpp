#pragma once

#include <string_view>

/// Keys of the facts that a report reads besides the rows. The program that trains sets them with `Recorder::set_fact`,
/// so that a report made later from the file says what the live one said. Numbers are decimal text.
namespace drawpoint::facts {

inline constexpr std::string_view command = "run.command";   ///< the command line
inline constexpr std::string_view version = "run.version";   ///< of drawpoint
inline constexpr std::string_view stopped = "run.stopped";   ///< why the run ended early; absent: not said
/// Of the indices and targets trained on, in order: 16 hex digits.
inline constexpr std::string_view digest = "run.digest";
/// Of the last validation, else of the last epoch: 0 … 1.
inline constexpr std::string_view accuracy = "run.accuracy";
inline constexpr std::string_view classes = "run.classes";     ///< how many the data set has
inline constexpr std::string_view option_prefix = "option.";   ///< prefix of an option's name: its value
inline constexpr std::string_view clock = "clock.name";        ///< the clock that the stamps come from

/// Prefix of a loader's name (`PipelineRow::name`, which a recorder keeps unique): the prefetch_depth it was asked for,
/// if its memory budget allowed only less.
inline constexpr std::string_view asked_depth_prefix = "loader.asked_prefetch_depth.";

inline constexpr std::string_view slots_bytes = "memory.slots_bytes";
inline constexpr std::string_view peak_bytes = "memory.peak_bytes";
inline constexpr std::string_view loader_peak_bytes = "memory.loader_peak_bytes";   ///< most that the loaders held
inline constexpr std::string_view planned_bytes = "memory.planned_bytes";   ///< by the loaders, before the first sample
inline constexpr std::string_view slots_replaced = "memory.slots_replaced";
inline constexpr std::string_view allocations_per_batch = "memory.allocations_per_batch";
inline constexpr std::string_view minor_faults_per_batch = "memory.minor_faults_per_batch";

inline constexpr std::string_view read_retries = "reads.retries";   ///< reads repeated, by both loaders

// What a cache of samples did (`set_cache_facts`); absent: no cache.
inline constexpr std::string_view cache_hits = "cache.hits";
inline constexpr std::string_view cache_misses = "cache.misses";
inline constexpr std::string_view cache_samples = "cache.samples";   ///< held at the end
inline constexpr std::string_view cache_bytes = "cache.bytes";
inline constexpr std::string_view cache_budget_bytes = "cache.budget_bytes";
inline constexpr std::string_view cache_origin = "cache.origin";   ///< "memory", or which file and what was in it

inline constexpr std::string_view recording_events = "recording.events";
inline constexpr std::string_view ns_per_event = "recording.ns_per_event";
inline constexpr std::string_view share_of_cpu = "recording.share_of_cpu";

inline constexpr std::string_view machine_cpu = "machine.cpu";
inline constexpr std::string_view machine_cores = "machine.cores_usable";
inline constexpr std::string_view machine_kernel = "machine.kernel";
inline constexpr std::string_view machine_compiler = "machine.compiler";
inline constexpr std::string_view machine_library_prefix = "machine.library.";   ///< prefix of its name: its version

// What the shares of host rows refer to; set by a recorder that writes such rows.
inline constexpr std::string_view host_cores = "host.cores_usable";   ///< `usable_cores`; may be fractional
inline constexpr std::string_view host_affinity_cores = "host.cores_by_affinity";   ///< cores that `HostRow` sums over
inline constexpr std::string_view host_sleep_cpu_ns = "host.sleep_cpu_ns";   ///< CPU time of one sleep and wake-up

// What exported traces contain besides the rows.
inline constexpr std::string_view process_id = "process.id";
inline constexpr std::string_view process_name = "process.name";
inline constexpr std::string_view loop_tid = "process.loop_tid";             ///< the system's id of the loop's thread
inline constexpr std::string_view unix_offset_ns = "clock.unix_offset_ns";   ///< Unix time minus the recording's clock
inline constexpr std::string_view rank = "distributed.rank";
inline constexpr std::string_view world_size = "distributed.world_size";
inline constexpr std::string_view backend = "distributed.backend";
inline constexpr std::string_view trace_overhead_ns = "trace.overhead_ns";   ///< the profiler's own, over all threads
/// Prefix of a key of the trace's own metadata: its value as JSON.
inline constexpr std::string_view metadata_prefix = "trace.metadata.";

// What the sampler did and cost (sampling/stack_sampler.hpp).
inline constexpr std::string_view sampling_backend = "sampling.backend";   ///< "perf_event" or "timers"
inline constexpr std::string_view sampling_refused = "sampling.refused";   ///< why perf_event was not available
inline constexpr std::string_view sampling_kernel = "sampling.kernel";   ///< time in the kernel: "sampled", "excluded"
inline constexpr std::string_view sampling_symbols = "sampling.symbols";   ///< the library that names functions
inline constexpr std::string_view sampling_rate_asked_hz = "sampling.rate_asked_hz";
inline constexpr std::string_view sampling_rate_hz = "sampling.rate_hz";   ///< achieved, per second of CPU time
inline constexpr std::string_view sampling_cpu_s = "sampling.cpu_s";       ///< of the sampler itself
inline constexpr std::string_view sampling_share_of_cpu = "sampling.share_of_cpu";
inline constexpr std::string_view sampling_samples = "sampling.samples";
inline constexpr std::string_view sampling_lost = "sampling.lost";
inline constexpr std::string_view sampling_threads = "sampling.threads";
inline constexpr std::string_view sampling_unsampled = "sampling.unsampled_threads";
inline constexpr std::string_view sampling_thread_prefix = "sampling.thread.";   ///< prefix of a thread id: its name

}   // namespace drawpoint::facts
