#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <drawpoint/pipeline/stages/array_rows.hpp>
#include <drawpoint/pipeline/loader/sample_source.hpp>
#include <drawpoint/pipeline/storage/array_file.hpp>

namespace drawpoint {

/// The whole number in the `bytes` bytes from `from` on: 1, 2, 4 or 8; unsigned only if it is shorter than 8.
[[nodiscard]] std::int64_t whole_number(const std::byte* from, std::size_t bytes, bool big_endian,
                                        bool is_signed) noexcept;

/// A file's share of the rows.
struct ArrayPart {
    std::string path;
    std::uint64_t offset = 0;       ///< of its first record in the file
    std::uint64_t first = 0;        ///< its first record's index
    std::uint64_t count = 0;        ///< records
    std::optional<DataFile> file;   ///< none: the rows are in memory
};

/// Rows of equal records, from one or more files. Immutable once made.
struct ArrayData final : SampleReads {
    SampleLayout layout;                 // of a sample as it is stored
    std::size_t record_bytes = 0;        // from record to record
    std::size_t data_at = 0;             // of the values in a record
    bool big_endian = false;             // the values, until they are in memory, and the label
    std::optional<RecordLabel> label;    // none once the records are in memory
    std::vector<std::int64_t> targets;   // none: the label, or 0; in memory the labels too
    std::vector<ArrayPart> parts;
    bool sequential = false;   // ArrayOptions
    std::size_t size = 0;
    std::unique_ptr<std::byte[], void (*)(std::byte*)> records{nullptr, nullptr};   // all of them, or null

    [[nodiscard]] const ArrayPart& part_of(std::uint64_t index) const noexcept;
    [[nodiscard]] std::uint64_t offset_of(std::uint64_t index) const noexcept;   ///< in its part's file
    /// The target of sample `index`, whose record lies at `record`. Throws ArrayFileError: a label that is none of the
    /// classes.
    [[nodiscard]] std::int64_t target_of(std::uint64_t index, const std::byte* record) const;
    /// Makes values as files have them this machine's.
    void to_native(std::byte* values, std::size_t bytes) const noexcept;

    void read(std::uint64_t index, std::vector<std::byte>& contents) const override;
    [[nodiscard]] std::optional<FileRange> location(std::uint64_t index) const noexcept override;

    /// Memory for the records.
    void take_memory();
    /// Makes the records in memory native, and targets of their labels: afterwards there is no label.
    void finish_memory();
};

}   // namespace drawpoint
