#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include <drawpoint/pipeline/loader/core/sample_source.hpp>
#include <drawpoint/pipeline/stages/tensor_rows.hpp>

namespace torch::data::datasets {
struct TensorDataset;
}

namespace drawpoint {
namespace detail {

/// A torch::data dataset, type-erased.
class TorchExamples {
public:
    virtual ~TorchExamples() = default;
    [[nodiscard]] virtual std::unique_ptr<TorchExamples> clone() const = 0;
    [[nodiscard]] virtual std::optional<std::size_t> size() const = 0;
    /// The data, and the target or an undefined tensor.
    [[nodiscard]] virtual std::pair<at::Tensor, at::Tensor> get(std::size_t index) = 0;
};

template <class Dataset>
class TorchExamplesOf final : public TorchExamples {
public:
    explicit TorchExamplesOf(Dataset dataset) : dataset_{std::move(dataset)} {}
    std::unique_ptr<TorchExamples> clone() const override { return std::make_unique<TorchExamplesOf>(dataset_); }
    std::optional<std::size_t> size() const override { return dataset_.size(); }
    std::pair<at::Tensor, at::Tensor> get(std::size_t index) override {
        if constexpr (requires { dataset_.get(index); })
            return parts(dataset_.get(index));
        else
            return parts(dataset_.get_batch(std::vector<std::size_t>{index}).at(0));
    }

private:
    template <class Example>
    static std::pair<at::Tensor, at::Tensor> parts(Example example) {
        if constexpr (requires {
                          { example.target } -> std::convertible_to<at::Tensor>;
                      })
            return {std::move(example.data), std::move(example.target)};
        else
            return {std::move(example.data), at::Tensor{}};
    }
    Dataset dataset_;
};

}   // namespace detail

/// Samples of any map-style dataset of torch::data (with `size()` and `get(i)`, or `get_batch` of single examples). It
/// has one timed stage, `get`, which copies the example's tensor into the batch. All examples must have the type (one
/// of `ScalarType`) and shape of the first. Targets are single integers, or 0 if there are none. Every worker uses its
/// own copy of the dataset.
class TorchDataset final : public SampleSource {
public:
    /// Reads example 0. Throws std::invalid_argument saying why the dataset cannot be used.
    explicit TorchDataset(std::unique_ptr<detail::TorchExamples> examples);

    [[nodiscard]] std::size_t size() const noexcept override { return size_; }
    [[nodiscard]] SampleLayout layout() const noexcept override { return layout_; }
    [[nodiscard]] std::vector<std::string> stages() const override { return {"get"}; }
    [[nodiscard]] std::string path(std::uint64_t) const override { return {}; }
    [[nodiscard]] std::unique_ptr<WorkerScratch> make_scratch() const override;
    void fill(SampleTask&, WorkerScratch&) const override;

private:
    std::shared_ptr<const detail::TorchExamples> examples_;
    std::size_t size_ = 0;
    SampleLayout layout_;
};

/// A dataset of torch::data as a source of samples.
template <class Dataset>
[[nodiscard]] TorchDataset from_torch(Dataset dataset) {
    return TorchDataset{std::make_unique<detail::TorchExamplesOf<Dataset>>(std::move(dataset))};
}

/// Samples that are the rows of a tensor in memory; targets are the integers of another tensor, or 0. Rows are copied
/// in runs, not one by one. Memory is shared with the tensors where they are contiguous (and the targets int64), so
/// later changes to them are visible. Throws std::invalid_argument saying why the tensors cannot be used.
[[nodiscard]] TensorRows from_tensors(const at::Tensor& data, const at::Tensor& targets = {});

/// As from_tensors().
[[nodiscard]] TensorRows from_torch(const torch::data::datasets::TensorDataset& dataset);

}   // namespace drawpoint
