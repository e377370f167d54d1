#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <drawpoint/pipeline/loader/sample_source.hpp>

#include "case.hpp"
#include "rig.hpp"

namespace drawpoint::bench {

/// A case's samples, made as it says: each waits and burns, or decodes a picture, in stages that are stamped. Sample i is the
/// i-th drawn. Thread-safe like any source.
class CaseSource final : public SampleSource {
public:
    /// `pictures`: for a case that decodes them; taken in turn. Null: none. Throws std::invalid_argument where the case needs
    /// them.
    CaseSource(const Case&, std::size_t samples, double turns_per_us, std::shared_ptr<const Pictures> pictures);

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
    /// Decodes, and returns what is left of so much work, in µs.
    [[nodiscard]] double left_after_decoding(const CaseStage&, double work_us, SampleTask&, WorkerScratch*) const;

    Case case_;
    std::size_t samples_;
    double turns_per_us_;
    std::shared_ptr<const Pictures> pictures_;
    std::vector<double> read_factors_;
    std::vector<std::vector<double>> factors_;   // by stage
    Reads reads_{*this};
    mutable std::atomic<std::int64_t> line_free_ns_{0};   // when all reads promised so far have passed
};

}   // namespace drawpoint::bench
