#pragma once

#include <filesystem>
#include <span>
#include <stdexcept>
#include <string>

#include <drawpoint/instrumentation/ledger/ledger.hpp>

namespace drawpoint {

/// A file that is not a recording, or one whose first damage comes before any row. what() names the file and the place.
struct TraceError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// A recording read back.
struct ReadTrace {
    Ledger ledger;
    /// Where reading stopped and why ("run.pftrace: bytes 65070 to 130093 are damaged (checksum)", "…: cut at byte 4096"):
    /// the rows before it are in the ledger. Empty: the whole file was read.
    std::string warning;
    bool damaged = false;   ///< the warning is about damage, not about a file cut short
};

/// Reads a recording into the ledger that was live when it was written: equal field by field. Memory is bounded by a small
/// multiple of the file. Throws TraceError, or std::system_error naming a file that can't be read.
[[nodiscard]] ReadTrace read_trace(const std::filesystem::path&);

}   // namespace drawpoint
