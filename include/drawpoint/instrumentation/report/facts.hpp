#pragma once

#include <string_view>

/// Keys of the facts a report reads beside the rows. Whoever runs a training sets them through `Recorder::set_fact`, so
/// that a report made later from the file says what the live one said. Numbers are decimal text.
namespace drawpoint::facts {

inline constexpr std::string_view command = "run.command";   ///< the command line
inline constexpr std::string_view version = "run.version";   ///< of drawpoint
inline constexpr std::string_view stopped = "run.stopped";   ///< why the run ended early; absent: it did not
inline constexpr std::string_view digest =
    "run.digest";   ///< of the indices and targets trained on, in order: 16 hex digits
inline constexpr std::string_view accuracy =
    "run.accuracy";                                          ///< 0 … 1, of the last validation, else of the last epoch
inline constexpr std::string_view classes = "run.classes";   ///< of the data set
inline constexpr std::string_view option_prefix = "option.";   ///< + the option's name: its value
inline constexpr std::string_view clock = "clock.name";        ///< which clock the stamps come from

inline constexpr std::string_view slots_bytes = "memory.slots_bytes";
inline constexpr std::string_view peak_bytes = "memory.peak_bytes";
inline constexpr std::string_view slots_replaced = "memory.slots_replaced";
inline constexpr std::string_view allocations_per_batch = "memory.allocations_per_batch";
inline constexpr std::string_view minor_faults_per_batch = "memory.minor_faults_per_batch";

inline constexpr std::string_view recording_events = "recording.events";
inline constexpr std::string_view ns_per_event = "recording.ns_per_event";
inline constexpr std::string_view share_of_cpu = "recording.share_of_cpu";

inline constexpr std::string_view machine_cpu = "machine.cpu";
inline constexpr std::string_view machine_cores = "machine.cores_usable";
inline constexpr std::string_view machine_kernel = "machine.kernel";
inline constexpr std::string_view machine_compiler = "machine.compiler";
inline constexpr std::string_view machine_library_prefix = "machine.library.";   ///< + its name: its version

}   // namespace drawpoint::facts
