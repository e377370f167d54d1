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

/// The formats in which a ledger can be exported for other programs.
enum class ExportFormat : std::uint8_t { chrome, speedscope, folded, pprof, csv, json };
inline constexpr std::size_t export_format_count = 6;

/// The name on the command line. Static storage.
[[nodiscard]] std::string_view name_of(ExportFormat) noexcept;
[[nodiscard]] std::optional<ExportFormat> export_format(std::string_view name) noexcept;
/// The usual extension of files in this format: ".pt.trace.json", ".pb.gz" … Static storage.
[[nodiscard]] std::string_view extension_of(ExportFormat) noexcept;

/// Writes the ledger in one format. `trace_name`: see ChromeTraceOptions.
void write_export(const Ledger&, ExportFormat, std::ostream&, std::string_view trace_name = {});

/// Exports into a file, compressed if its name ends in `.gz` (a pprof profile always is). Throws as `write_file_whole`
/// does.
void export_file(const Ledger&, ExportFormat, const std::filesystem::path&);

/// Replaces `file` by the output of `write`, or leaves it unchanged on failure: the output goes to a temporary file
/// that is renamed when complete. Compressed if `gzip`. A pipe or device is written to directly. Throws
/// std::system_error naming `file`, or what `write` throws; the temporary file is then removed.
void write_file_whole(const std::filesystem::path& file, bool gzip, const std::function<void(std::ostream&)>& write);

/// The path that PyTorch's `tensorboard_trace_handler` gives a trace: `FOLDER/WORKER.TIME.pt.trace.json`, with `.gz` if
/// compressed; TIME is Unix time in nanoseconds. Default of `worker_name`: `HOST_PID`. Creates the folder with its
/// parents. Throws std::runtime_error "Can't create directory: FOLDER".
[[nodiscard]] std::filesystem::path tensorboard_trace_file(const std::filesystem::path& folder,
                                                           std::string_view worker_name = {}, bool use_gzip = false);

}   // namespace drawpoint
