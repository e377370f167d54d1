#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <drawpoint/pipeline/loader/core/sample_source.hpp>

#include "case.hpp"
#include "rig.hpp"

namespace drawpoint::bench {

/// The samples of a case. Making one waits, burns core time or decodes a picture, in timed stages. Sample i is the i-th
/// drawn. Thread-safe, like any source.
class CaseSource final : public SampleSource {
public:
    /// `pictures` are decoded in turn; null if the case decodes none. Throws std::invalid_argument if the case needs
    /// them and they are null.
    CaseSource(const Case&, std::size_t samples, std::shared_ptr<const Pictures> pictures);

    [[nodiscard]] std::size_t size() const noexcept override { return samples_; }
    [[nodiscard]] SampleLayout layout() const noexcept override;
    [[nodiscard]] std::vector<std::string> stages() const override;
    [[nodiscard]] std::string path(std::uint64_t) const override { return {}; }
    [[nodiscard]] std::unique_ptr<WorkerScratch> make_scratch() const override;
    void fill(SampleTask&, WorkerScratch&) const override;
    [[nodiscard]] const SampleReads* reads() const noexcept override { return case_.read.any() ? &reads_ : nullptr; }

private:
    class Reads final : public SampleReads {
    public:
        explicit Reads(const CaseSource& of) noexcept : of_{&of} {}
        void read(std::uint64_t index, std::vector<std::byte>& contents) const override;
        [[nodiscard]] std::optional<FileRange> location(std::uint64_t) const noexcept override { return std::nullopt; }

    private:
        const CaseSource* of_;
    };

    [[nodiscard]] double disturbed(std::uint64_t index) const noexcept;
    /// Decodes, and returns what remains of `work_us` (scaled to the picture), in µs; may be negative.
    [[nodiscard]] double left_after_decoding(const CaseStage&, double work_us, SampleTask&, WorkerScratch*) const;

    Case case_;
    std::size_t samples_;
    std::shared_ptr<const Pictures> pictures_;
    std::vector<double> read_factors_;
    std::vector<std::vector<double>> factors_;   // per stage, then per sample
    Reads reads_{*this};
    // when the shared line will have transferred all reads begun so far
    mutable std::atomic<std::int64_t> line_free_ns_{0};
};

}   // namespace drawpoint::bench
