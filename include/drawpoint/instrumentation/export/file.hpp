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

/// What a ledger is exported as, for other programs to read.
enum class ExportFormat : std::uint8_t { chrome, speedscope, folded, pprof, csv, json };
inline constexpr std::size_t export_format_count = 6;

/// The name on the command line. Static storage.
[[nodiscard]] std::string_view name_of(ExportFormat) noexcept;
[[nodiscard]] std::optional<ExportFormat> export_format(std::string_view name) noexcept;
/// What a file of this format is called by custom: ".pt.trace.json", ".pb.gz" … Static storage.
[[nodiscard]] std::string_view extension_of(ExportFormat) noexcept;

/// Writes the ledger in one format. `trace_name`: see ChromeTraceOptions.
void write_export(const Ledger&, ExportFormat, std::ostream&, std::string_view trace_name = {});

/// Exports into a file, compressed where its name ends in `.gz` (a pprof profile always is). Throws as
/// `write_file_whole` does.
void export_file(const Ledger&, ExportFormat, const std::filesystem::path&);

/// Makes `file` what `write` writes, or leaves it as it was: another file takes its place when it is complete.
/// Compressed where `gzip`. What is no regular file (a pipe, a device) is written to directly. Throws std::system_error
/// naming `file`, or what `write` throws; the temporary file is gone then.
void write_file_whole(const std::filesystem::path& file, bool gzip, const std::function<void(std::ostream&)>& write);

/// Where PyTorch's `tensorboard_trace_handler` puts a trace: `FOLDER/WORKER.TIME.pt.trace.json`, with `.gz` where
/// compressed; TIME is Unix time in nanoseconds. `worker_name` empty: `HOST_PID`. Creates the folder with its parents.
/// Throws std::runtime_error "Can't create directory: FOLDER".
[[nodiscard]] std::filesystem::path tensorboard_trace_file(const std::filesystem::path& folder,
                                                           std::string_view worker_name = {}, bool use_gzip = false);

}   // namespace drawpoint
