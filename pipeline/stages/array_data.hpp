#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <drawpoint/pipeline/stages/array_rows.hpp>
#include <drawpoint/pipeline/loader/core/sample_source.hpp>
#include <drawpoint/pipeline/storage/array_file.hpp>

namespace drawpoint {

/// Reads the integer of 1, 2, 4 or 8 `bytes` at `from`; 8 bytes are always signed.
[[nodiscard]] std::int64_t whole_number(const std::byte* from, std::size_t bytes, bool big_endian,
                                        bool is_signed) noexcept;

/// The rows that come from one file.
struct ArrayPart {
    std::string path;
    std::uint64_t offset = 0;       ///< of its first record in the file, bytes
    std::uint64_t first = 0;        ///< index of its first record
    std::uint64_t count = 0;        ///< number of records
    std::optional<DataFile> file;   ///< none: the rows are in memory
};

/// Rows of equal records, from one or more files. Immutable once made.
struct ArrayData final : SampleReads {
    SampleLayout layout;                 // of a sample as it is stored
    std::size_t record_bytes = 0;        // from record to record
    std::size_t data_at = 0;             // offset of the values in a record
    bool big_endian = false;             // values (until they are in memory) and label
    std::optional<RecordLabel> label;    // none once the records are in memory
    std::vector<std::int64_t> targets;   // empty: taken from the label, or 0; in memory it holds the labels too
    std::vector<ArrayPart> parts;
    bool sequential = false;   // as in ArrayOptions
    std::size_t size = 0;
    std::unique_ptr<std::byte[], void (*)(std::byte*)> records{nullptr, nullptr};   // all records, or null

    [[nodiscard]] const ArrayPart& part_of(std::uint64_t index) const noexcept;
    [[nodiscard]] std::uint64_t offset_of(std::uint64_t index) const noexcept;   ///< in its part's file
    /// Target of sample `index`, whose record is at `record`. Throws ArrayFileError for a label outside the classes.
    [[nodiscard]] std::int64_t target_of(std::uint64_t index, const std::byte* record) const;
    /// Converts values from the files' byte order to this machine's.
    void to_native(std::byte* values, std::size_t bytes) const noexcept;

    void read(std::uint64_t index, std::vector<std::byte>& contents) const override;
    [[nodiscard]] std::optional<FileRange> location(std::uint64_t index) const noexcept override;

    /// Allocates memory for the records.
    void take_memory();
    /// Converts the records in memory to this machine's byte order, and moves their labels to `targets`.
    void finish_memory();
};

}   // namespace drawpoint
