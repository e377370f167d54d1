#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "instrumentation/trace/block_file.hpp"
#include "instrumentation/trace/trace_parser.hpp"

namespace drawpoint {

/// Parses the blocks of a recording's file one after the other, but for those that are damaged. Throws TraceDamage if
/// nothing can be read of it, or nothing more.
class TraceBlocks {
public:
    /// `most_bytes`: as `LedgerBuilder`'s. Throws as BlockFile does.
    TraceBlocks(const std::filesystem::path& path, std::uint64_t most_bytes) : file_{path}, parser_{most_bytes} {}

    /// Parses the rest of the file, with the packets that are whole in a block that is cut at its end.
    void read_all();
    /// Parses blocks that are in the file now, until they are `most_bytes` or more. What may still be being written at
    /// the file's end is left to the next call.
    void read_some(std::uint64_t most_bytes);
    /// Where the next block begins.
    [[nodiscard]] std::uint64_t position() const noexcept { return at_; }

    /// What is damaged or cut so far, as a message; empty if nothing is.
    [[nodiscard]] std::string message() const;
    [[nodiscard]] bool is_damaged() const noexcept { return !damage_.empty(); }
    /// Whether the file begins as a recording does.
    [[nodiscard]] bool is_ours();
    [[nodiscard]] TraceParser& parser() noexcept { return parser_; }
    [[nodiscard]] const TraceParser& parser() const noexcept { return parser_; }

private:
    enum class End : std::uint8_t { of_file, may_move };   // of what is there now
    std::uint64_t read_block(std::uint64_t at, End);
    void skip(std::string what, std::uint64_t from, std::uint64_t to);

    BlockFile file_;
    TraceParser parser_;
    std::uint64_t at_ = 0;   // of the next block
    std::string damage_;     // the first
    std::string cut_;        // where the file ends within a block
    std::uint64_t places_ = 0, lost_bytes_ = 0;
};

}   // namespace drawpoint
