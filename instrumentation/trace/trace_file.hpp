#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include <drawpoint/instrumentation/detail/replaced_file.hpp>

namespace drawpoint {

/// The file of a recording: composes blocks in memory and writes each with one system call. A failed write ends the
/// file; later calls do nothing. Locked (flock) while it is open. Use by one thread at a time. Throws std::bad_alloc.
class TraceFile {
public:
    /// When it takes its place: once its first block is written, or at `take_place()`, instead of one of this process
    /// that is open and keeps its lock until then.
    enum class Place : std::uint8_t { at_first_block, when_asked };

    /// Opens the file. One that is there is replaced when the first block is written, so that a recording is not lost
    /// to one that fails at once. Pipes and devices are written to as they are; one that takes nothing for two seconds
    /// ends the recording. Throws std::system_error naming the file if it can't be opened or another recording is
    /// being written to it.
    explicit TraceFile(const std::filesystem::path&, Place = Place::at_first_block);
    /// Does not write the current block: without `close()` the file ends with the last block written.
    ~TraceFile();
    TraceFile(const TraceFile&) = delete;
    TraceFile& operator=(const TraceFile&) = delete;

    [[nodiscard]] bool is_open() const noexcept { return fd_ >= 0; }
    /// Whether it has its name, so that another one can take its place: it is no pipe, no device, and was not moved.
    [[nodiscard]] bool is_in_place() const noexcept;
    /// The packets of the current block. Append complete packets only.
    [[nodiscard]] std::string& block() noexcept { return block_; }
    [[nodiscard]] const std::string& block() const noexcept { return block_; }
    /// Add to the file's totals, which the block headers contain.
    void count_record() noexcept { ++records_; }
    void count_dropped(std::uint64_t records) noexcept { dropped_ += records; }

    void end_block();
    void end_block_if_large() {
        if (block_.size() >= block_bytes)
            end_block();
    }
    /// Ends the block if its first packet is nearly a second old.
    void end_block_if_due(std::chrono::steady_clock::time_point now);
    /// Ends the block unless it is empty, and closes the file.
    void close();
    /// Ends the block and puts the file into its place.
    void take_place();
    /// Ends the file as it is, for this reason (as `error()`).
    void end_early(std::string error);

    [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }
    /// Why the file ended early; empty if it did not.
    [[nodiscard]] const std::string& error() const noexcept { return error_; }

private:
    static constexpr std::size_t block_bytes = 64u << 10;

    void write_all(std::string_view);
    void replace();
    void close_before() noexcept;
    void end() noexcept;   // closes what is open
    [[nodiscard]] std::string what(int error) const;

    const std::filesystem::path path_, absolute_;   // as given; the same wherever the program goes
    const Place place_;
    /// Opens and locks the file of this name, and makes an empty one if there is none.
    [[nodiscard]] int open_locked();

    int before_ = -1;            // what is to be replaced, locked; -1: it is replaced
    bool made_before_ = false;   // it was not there, and goes again if it is not replaced
    std::optional<ReplacedFile> replaced_;
    int fd_ = -1;   // of `replaced_`, if there is one
    std::string error_, block_;
    std::uint64_t bytes_ = 0, records_ = 0, dropped_ = 0;
    std::optional<std::chrono::steady_clock::time_point> block_begin_;
};

}   // namespace drawpoint
