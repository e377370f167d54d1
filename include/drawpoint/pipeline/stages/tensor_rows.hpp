#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <drawpoint/pipeline/loader/core/sample_source.hpp>

namespace drawpoint {

/// Samples that are the rows of an array in memory, which it only views. One timed stage, `copy`. A value.
class TensorRows final : public SampleSource {
public:
    /// `data` holds n × layout.bytes() bytes, `targets` n values or none; without, all are 0. Both must outlive every
    /// use, or belong to `owner`. Throws std::invalid_argument saying which size does not fit.
    TensorRows(std::span<const std::byte> data, const SampleLayout& layout, std::span<const std::int64_t> targets = {},
               std::shared_ptr<const void> owner = nullptr);

    [[nodiscard]] std::size_t size() const noexcept override { return size_; }
    [[nodiscard]] SampleLayout layout() const noexcept override { return layout_; }
    [[nodiscard]] std::vector<std::string> stages() const override { return {"copy"}; }
    [[nodiscard]] std::string path(std::uint64_t) const override { return {}; }
    [[nodiscard]] std::unique_ptr<WorkerScratch> make_scratch() const override;
    void fill(SampleTask&, WorkerScratch&) const override;
    [[nodiscard]] bool fills_runs() const noexcept override { return true; }
    void fill_run(SampleRun&, WorkerScratch&) const override;
    [[nodiscard]] std::string random_part() const override { return {}; }

private:
    std::span<const std::byte> data_;
    SampleLayout layout_;
    std::span<const std::int64_t> targets_;
    std::shared_ptr<const void> owner_;
    std::size_t size_ = 0;
};

}   // namespace drawpoint
