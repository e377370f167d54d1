#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include <drawpoint/instrumentation/ledger/ledger.hpp>

namespace drawpoint {

/// Reads a recording while it is written: each call reads what is new, so that following a run costs what reading it
/// once costs. Its program writes a block about every 0.8 seconds, or sooner when there are 64 KiB of records. A block
/// that is not whole yet is no damage; it is read once it is. One thread at a time.
class TraceFollower {
public:
    /// `most_bytes`: as in read_trace; beyond it the oldest steps are folded. Throws std::system_error naming a file
    /// that can't be read, and TraceError for one that is no regular file. Reads nothing yet.
    explicit TraceFollower(const std::filesystem::path&, std::uint64_t most_bytes = 8u << 20);
    ~TraceFollower();
    TraceFollower(const TraceFollower&) = delete;
    TraceFollower& operator=(const TraceFollower&) = delete;

    /// Reads the next blocks: at least one if there is a whole one, no further one once they are `most_bytes`. False:
    /// nothing new is there. Throws TraceError for a file that is no recording, or has another format, and
    /// std::system_error.
    bool read(std::uint64_t most_bytes = 1u << 20);
    /// Reads what is left once nobody writes it any more: also what is whole of a block that is cut. Throws as `read`.
    void read_rest();

    /// What was read so far, sorted; passes and operators that have not ended are not `ended`. Copies the rows kept.
    [[nodiscard]] Ledger ledger() const;
    /// The rows without copying or sorting them, as they came, without passes that have not ended. Valid
    /// until the next read.
    [[nodiscard]] const Ledger& rows() const noexcept;
    /// What is damaged, as `ReadTrace::warning`; after `read_rest` also where it is cut. Empty if nothing is.
    [[nodiscard]] std::string warning() const;

private:
    bool read(bool rest, std::uint64_t most_bytes);

    struct Impl;

    std::unique_ptr<Impl> impl_;
};

}   // namespace drawpoint
