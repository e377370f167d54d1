#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <drawpoint/pipeline/stages/image_stages.hpp>
#include <drawpoint/pipeline/loader/sample_source.hpp>

namespace drawpoint {

struct ArrayData;     // the rows; pipeline/stages/array_data.hpp
struct ArrayFloats;   // means and deviations

/// Samples that are the rows of array files: what idx(), npy(), mnist(), cifar10(), cifar100() and raw_records()
/// return. In memory if they fit, else read from disk, neighbours in one piece. One timed stage: `copy`, `read` or
/// either with `+to_float`. A value; copies share the rows. Failed samples throw ArrayFileError or
/// std::filesystem::filesystem_error.
class ArrayRows final : public SampleSource {
public:
    explicit ArrayRows(std::shared_ptr<const ArrayData>);

    /// The same rows as float32: (value / 255 - mean) / standard deviation, made while they are copied. One mean and
    /// deviation for each channel, which is the first of three dimensions, or one for all; none: 0 and 1. Throws
    /// std::invalid_argument unless the values are uint8, the numbers fit and every deviation is above 0.
    [[nodiscard]] ArrayRows to_float(std::vector<float> mean = {}, std::vector<float> standard_deviation = {}) const;

    /// Whether the rows are in memory.
    [[nodiscard]] bool in_memory() const noexcept;

    [[nodiscard]] std::size_t size() const noexcept override;
    [[nodiscard]] SampleLayout layout() const noexcept override;
    [[nodiscard]] std::vector<std::string> stages() const override;
    /// The file, and the byte in it where the sample begins: in the unpacked data if the file is packed.
    [[nodiscard]] std::string path(std::uint64_t index) const override;
    [[nodiscard]] std::unique_ptr<WorkerScratch> make_scratch() const override;
    void fill(SampleTask&, WorkerScratch&) const override;
    [[nodiscard]] bool fills_runs() const noexcept override;
    void fill_run(SampleRun&, WorkerScratch&) const override;
    [[nodiscard]] const SampleReads* reads() const noexcept override;
    [[nodiscard]] std::string random_part() const override { return {}; }

private:
    std::shared_ptr<const ArrayData> data_;
    std::shared_ptr<const ArrayFloats> floats_;   // null: values stay as they are
};

/// As ArrayRows::to_float() with its means and deviations.
[[nodiscard]] ArrayRows operator|(const ArrayRows&, const Normalize&);

/// How array files are read.
struct ArrayOptions {
    /// The most bytes that are kept in memory, read when the source is made; larger data stays on disk. By default half
    /// of what the machine has available.
    std::optional<std::uint64_t> memory_limit = std::nullopt;
    /// How rows on disk are drawn. Shuffled: read one by one ahead of the workers, as many at once as the loader's
    /// read_concurrency says. Mostly in order: true, and the workers read neighbours in one piece.
    bool sequential = false;
};

// All of these throw ArrayFileError naming the file and the byte where it is not what it should be,
// std::filesystem::filesystem_error for a file that cannot be read and std::invalid_argument for arguments that do not
// fit. Files packed by gzip are unpacked into memory, and refused if the limit is too low for that.

/// The rows of an idx file (n × up to 4 dimensions), packed by gzip or not, with the n whole numbers of another as
/// targets; an empty path: all 0.
[[nodiscard]] ArrayRows idx(const std::filesystem::path& data, const std::filesystem::path& targets = {},
                            const ArrayOptions& = {});

/// As idx() for numpy's .npy: versions 1 to 3, either byte order, C order; bool, int8 … int64, uint8, float16 …
/// float64.
[[nodiscard]] ArrayRows npy(const std::filesystem::path& data, const std::filesystem::path& targets = {},
                            const ArrayOptions& = {});

/// MNIST, Fashion-MNIST or KMNIST as torchvision lays them out in `folder`: uint8 of 1 × 28 × 28.
[[nodiscard]] ArrayRows mnist(const std::filesystem::path& folder, bool train = true, const ArrayOptions& = {});

/// CIFAR-10 in its binary version: uint8 of 3 × 32 × 32, targets 0 … 9.
[[nodiscard]] ArrayRows cifar10(const std::filesystem::path& folder, bool train = true, const ArrayOptions& = {});

enum class Cifar100Labels : std::uint8_t { fine, coarse };   ///< 100 classes, or the 20 they belong to

/// CIFAR-100 in its binary version: uint8 of 3 × 32 × 32.
[[nodiscard]] ArrayRows cifar100(const std::filesystem::path& folder, bool train = true,
                                 Cifar100Labels = Cifar100Labels::fine, const ArrayOptions& = {});

/// Where a record holds its target: one whole number.
struct RecordLabel {
    std::uint64_t at = 0;                  ///< bytes from the record's beginning
    ScalarType type = ScalarType::uint8;   ///< uint8 or int8 … int64
    std::int64_t classes = 0;              ///< labels are 0 … classes - 1; 0: any number
};

/// Files of records that all have the same length.
struct RawRecords {
    std::vector<std::filesystem::path> paths;   ///< one after another
    SampleLayout layout;                        ///< of the values in one record
    std::uint64_t header_bytes = 0;             ///< at the beginning of each file
    std::uint64_t record_bytes = 0;             ///< from record to record; 0: layout.bytes()
    std::uint64_t data_at = 0;                  ///< of the values in the record, in bytes
    std::optional<RecordLabel> label = std::nullopt;
    bool big_endian = false;   ///< values and label
};

/// The records as samples.
[[nodiscard]] ArrayRows raw_records(const RawRecords&, const ArrayOptions& = {});

}   // namespace drawpoint
