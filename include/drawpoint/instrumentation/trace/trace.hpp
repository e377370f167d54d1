#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <stdexcept>
#include <string>

#include <drawpoint/instrumentation/ledger/ledger.hpp>

namespace drawpoint {

/// Thrown for a file that is not a recording, has another format, or is damaged before its first row. what() names the
/// file and the place.
struct TraceError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// The contents of a recording.
struct ReadTrace {
    Ledger ledger;   ///< sorted
    /// What is damaged ("run.pftrace: bytes 65070 to 130093 are damaged (checksum), and 2 other places (…)") or where
    /// the file is cut ("…: cut at byte 4096"). Empty if the whole file was read, also if the program was killed
    /// exactly between two blocks: then only passes and operators that are not `ended` may show it.
    std::string warning;
    /// Parts of the file are damaged. The ledger has the rows of all others, and `dropped` rows (`damaged_part`) for
    /// those missing; from versions before this one, only the rows before the first damaged part.
    bool damaged = false;
};

/// Reads a recording (`run.pftrace`), also one whose program was killed. The ledger of a finished one equals, field by
/// field, the live one of the recorder that wrote it, except that the file has rows that the live ledger folded
/// (`RecorderOptions::ledger_bytes`). A file of another format number throws; in the same format, fields and rows that
/// this version does not know are skipped. `most_bytes`: as `RecorderOptions::ledger_bytes`; 0: all rows are kept, and
/// memory is a small multiple of the file's size. Throws TraceError, or std::system_error naming a file that can't be
/// read. Any thread.
[[nodiscard]] ReadTrace read_trace(const std::filesystem::path&, std::uint64_t most_bytes = 0);

}   // namespace drawpoint
