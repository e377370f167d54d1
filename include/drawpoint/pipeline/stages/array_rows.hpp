#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <drawpoint/pipeline/stages/image_stages.hpp>
#include <drawpoint/pipeline/loader/core/sample_source.hpp>

namespace drawpoint {

struct ArrayData;     // the rows; pipeline/stages/array_data.hpp
struct ArrayFloats;   // means and deviations

/// Samples that are the rows of array files, as returned by idx(), npy(), mnist(), cifar10(), cifar100() and
/// raw_records(). The rows are in memory if they fit, else read from disk, adjacent ones in one piece. One timed stage:
/// `copy` or `read`, each also with `+to_float`. A value; copies share the rows. Samples that cannot be read throw
/// ArrayFileError or std::filesystem::filesystem_error.
class ArrayRows final : public SampleSource {
public:
    explicit ArrayRows(std::shared_ptr<const ArrayData>);

    /// The same rows as float32: (value / 255 - mean) / standard deviation, computed while they are copied. Pass one
    /// mean and deviation per channel (the first of three dimensions), one for all, or none for 0 and 1. Throws
    /// std::invalid_argument unless the values are uint8, the counts fit and every deviation is above 0.
    [[nodiscard]] ArrayRows to_float(std::vector<float> mean = {}, std::vector<float> standard_deviation = {}) const;

    /// Whether the rows are in memory.
    [[nodiscard]] bool in_memory() const noexcept;

    [[nodiscard]] std::size_t size() const noexcept override;
    [[nodiscard]] SampleLayout layout() const noexcept override;
    [[nodiscard]] std::vector<std::string> stages() const override;
    /// The file, and the offset of the sample in it; in a compressed file the offset in the decompressed data.
    [[nodiscard]] std::string path(std::uint64_t index) const override;
    [[nodiscard]] std::unique_ptr<WorkerScratch> make_scratch() const override;
    void fill(SampleTask&, WorkerScratch&) const override;
    [[nodiscard]] bool fills_runs() const noexcept override;
    void fill_run(SampleRun&, WorkerScratch&) const override;
    [[nodiscard]] const SampleReads* reads() const noexcept override;
    [[nodiscard]] std::string random_part() const override { return {}; }

private:
    std::shared_ptr<const ArrayData> data_;
    std::shared_ptr<const ArrayFloats> floats_;   // null: values are not converted
};

/// As ArrayRows::to_float() with its means and deviations.
[[nodiscard]] ArrayRows operator|(const ArrayRows&, const Normalize&);

/// How array files are read.
struct ArrayOptions {
    /// Largest data kept in memory, bytes, read when the source is made; larger data stays on disk. Default: half of
    /// the machine's available memory.
    std::optional<std::uint64_t> memory_limit = std::nullopt;
    /// The order in which rows on disk are drawn. false, shuffled: rows are read one by one ahead of the workers, up to
    /// the loader's read_concurrency at once. true, mostly sequential: the workers read adjacent rows in one piece.
    bool sequential = false;
};

// All of these throw ArrayFileError naming the file and the offset of what is wrong, std::filesystem::filesystem_error
// for a file that cannot be read, and std::invalid_argument for arguments that do not fit the files. Files compressed
// by gzip are decompressed into memory, and refused if the memory limit is too low for that.

/// The rows of an idx file (n × up to 4 dimensions), compressed by gzip or not, with the n integers of another as
/// targets; with an empty path all targets are 0.
[[nodiscard]] ArrayRows idx(const std::filesystem::path& data, const std::filesystem::path& targets = {},
                            const ArrayOptions& = {});

/// As idx() for numpy's .npy: versions 1 to 3, either byte order, C order; bool, int8 … int64, uint8, float16 …
/// float64.
[[nodiscard]] ArrayRows npy(const std::filesystem::path& data, const std::filesystem::path& targets = {},
                            const ArrayOptions& = {});

/// MNIST, Fashion-MNIST or KMNIST in torchvision's folder layout: uint8 of 1 × 28 × 28.
[[nodiscard]] ArrayRows mnist(const std::filesystem::path& folder, bool train = true, const ArrayOptions& = {});

/// CIFAR-10 in its binary version: uint8 of 3 × 32 × 32, targets 0 … 9.
[[nodiscard]] ArrayRows cifar10(const std::filesystem::path& folder, bool train = true, const ArrayOptions& = {});

enum class Cifar100Labels : std::uint8_t { fine, coarse };   ///< the 100 classes, or their 20 superclasses

/// CIFAR-100 in its binary version: uint8 of 3 × 32 × 32.
[[nodiscard]] ArrayRows cifar100(const std::filesystem::path& folder, bool train = true,
                                 Cifar100Labels = Cifar100Labels::fine, const ArrayOptions& = {});

/// The target in a record: one integer.
struct RecordLabel {
    std::uint64_t at = 0;                  ///< offset in the record, bytes
    ScalarType type = ScalarType::uint8;   ///< uint8 or int8 … int64
    std::int64_t classes = 0;              ///< labels are 0 … classes - 1; 0: any number
};

/// Files of fixed-length records.
struct RawRecords {
    std::vector<std::filesystem::path> paths;   ///< in the order of the samples
    SampleLayout layout;                        ///< of the values in one record
    std::uint64_t header_bytes = 0;             ///< to skip at the beginning of each file
    std::uint64_t record_bytes = 0;             ///< from record to record; 0: layout.bytes()
    std::uint64_t data_at = 0;                  ///< offset of the values in the record, bytes
    std::optional<RecordLabel> label = std::nullopt;
    bool big_endian = false;   ///< byte order of values and label
};

/// The records as samples.
[[nodiscard]] ArrayRows raw_records(const RawRecords&, const ArrayOptions& = {});

}   // namespace drawpoint
