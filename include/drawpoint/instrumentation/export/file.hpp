#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>

#include <drawpoint/instrumentation/ledger/ledger.hpp>

namespace drawpoint {

/// The formats in which a ledger can be exported for other programs: write_chrome_trace, write_speedscope,
/// write_folded, write_pprof, write_csv_steps, write_json_ledger, write_xplane.
enum class ExportFormat : std::uint8_t { chrome, speedscope, folded, pprof, csv, json, xplane };
inline constexpr std::size_t export_format_count = 7;

/// The format's name: "chrome", "speedscope" … Static storage.
[[nodiscard]] std::string_view name_of(ExportFormat) noexcept;
/// The format with this name, if there is one.
[[nodiscard]] std::optional<ExportFormat> export_format(std::string_view name) noexcept;
/// The usual extension of files in this format: ".pt.trace.json", ".pb.gz" … Static storage.
[[nodiscard]] std::string_view extension_of(ExportFormat) noexcept;

/// Writes a sorted ledger in one format. `trace_name`: see ChromeTraceOptions. A failing stream shows in its state;
/// with `pprof` it throws std::runtime_error. Any thread.
void write_export(const Ledger&, ExportFormat, std::ostream&, std::string_view trace_name = {});

/// Exports into a file, compressed if its name ends in `.gz` (a pprof profile always is). Throws as `write_file_whole`
/// does. Any thread.
void export_file(const Ledger&, ExportFormat, const std::filesystem::path&);

/// Replaces `file` by the output of `write`, or leaves it unchanged on failure: the output goes to a temporary file
/// that is renamed when complete. Compressed if `gzip`. A pipe or device is written to directly. Throws
/// std::system_error naming `file` (also if `write` leaves its stream in a failed state), or what `write` throws; the
/// temporary file is then removed.
void write_file_whole(const std::filesystem::path& file, bool gzip, const std::function<void(std::ostream&)>& write);

/// The path that PyTorch's `tensorboard_trace_handler` gives a trace: `FOLDER/WORKER.TIME.pt.trace.json`, with `.gz` if
/// compressed; TIME is Unix time in nanoseconds. Default of `worker_name`: `HOST_PID`. Creates the folder with its
/// parents. Throws std::runtime_error "Can't create directory: FOLDER".
[[nodiscard]] std::filesystem::path tensorboard_trace_file(const std::filesystem::path& folder,
                                                           std::string_view worker_name = {}, bool use_gzip = false);

}   // namespace drawpoint
