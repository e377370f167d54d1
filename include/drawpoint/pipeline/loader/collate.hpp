#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <drawpoint/pipeline/loader/batch_slots.hpp>
#include <drawpoint/pipeline/loader/sample_buffer.hpp>
#include <drawpoint/pipeline/loader/sample_source.hpp>

namespace drawpoint {

/// The samples of a batch that is complete but for its collation, in the batch's order.
struct FinishedSamples {
    std::span<const SampleBuffer> samples;   ///< ≥ 1
    std::span<const std::int64_t> targets;   ///< of each sample
    std::span<const std::uint64_t> indices;
    std::uint64_t epoch = 0, seed = 0;   ///< anything random is keyed by these and the indices
};

/// One array of a collated batch.
class BatchPart {
public:
    BatchPart() = default;
    BatchPart(BatchPart&& other) noexcept;
    BatchPart& operator=(BatchPart&&) = delete;
    ~BatchPart();

    [[nodiscard]] std::string_view name() const noexcept { return name_; }
    [[nodiscard]] ScalarType type() const noexcept { return type_; }
    [[nodiscard]] std::span<const std::int64_t> shape() const noexcept { return {shape_.data(), rank_}; }
    [[nodiscard]] std::span<std::byte> data() const noexcept;
    /// To `retain()` beyond the batch, for a tensor over it.
    [[nodiscard]] SlotMemory& memory() const noexcept { return *memory_; }

private:
    friend class CollatedBatch;
    std::string name_;
    ScalarType type_ = ScalarType::float32;
    std::array<std::int64_t, 5> shape_{};
    std::size_t rank_ = 0, bytes_ = 0;
    SlotMemory* memory_ = nullptr;
};

/// What a collate function writes: named arrays in memory that is used again for the next batch. One thread at a time.
class CollatedBatch {
public:
    /// Forgets the arrays; their memory is for the next.
    void clear() noexcept { used_ = 0; }
    /// An array more, contents undefined: the first is the batch's data. 1 … 5 sizes ≥ 0. Allocates only beyond the largest so
    /// far at this place. Throws std::invalid_argument naming what is wrong with the name (empty or given twice), the sizes or
    /// their number; std::bad_alloc.
    std::span<std::byte> add(std::string_view name, ScalarType, std::span<const std::int64_t> shape);
    /// The same as values of type T, whose size must be the type's.
    template <class T>
    std::span<T> add_values(std::string_view name, ScalarType type, std::span<const std::int64_t> shape) {
        const std::span<std::byte> bytes = add(name, type, shape);
        return {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)};
    }

    [[nodiscard]] std::span<const BatchPart> parts() const noexcept { return std::span{parts_}.first(used_); }
    /// By name; null: there is none.
    [[nodiscard]] const BatchPart* find(std::string_view name) const noexcept;
    /// Bytes held, in use or not.
    [[nodiscard]] std::uint64_t bytes() const noexcept;
    /// Leaves the memory to those who retain it: the next arrays get new memory.
    void release_memory() noexcept;
    /// Forgets the arrays and leaves only the memory that somebody retains to them; of how many arrays that was.
    std::size_t release_shared() noexcept;

private:
    std::vector<BatchPart> parts_;
    std::size_t used_ = 0;
};

/// Makes a batch of finished samples (`LoaderOptions::collate`): run by the worker that completes the batch, timed as `collate`.
/// const and thread-safe. What it throws fails the batch, as does adding no array.
class Collate {
public:
    virtual ~Collate() = default;
    [[nodiscard]] virtual std::string name() const = 0;
    virtual void collate(const FinishedSamples&, CollatedBatch&) const = 0;
};

struct PadOptions {
    double value = 0;              ///< written where no sample is
    std::size_t multiple_of = 1;   ///< padded sizes are rounded up to a multiple of this, ≥ 1
    bool mask = true;              ///< whether there is an array `mask`
};

/// The default: every size that varies is padded to the batch's largest. Gives `data` [n, sizes…]; `lengths`, int64 [n], or
/// [n, k] where k sizes vary; `mask`, boolean [n, padded sizes…], 1 where a sample is.
class PadCollate final : public Collate {
public:
    /// `layout` is a sample's: a size of 0 varies from sample to sample, at least one of them. Throws std::invalid_argument
    /// naming the field and value, also for a value that the type does not hold.
    explicit PadCollate(const SampleLayout& layout, PadOptions options = {});
    [[nodiscard]] std::string name() const override { return "pad"; }
    /// Throws std::invalid_argument naming the sample whose shape is not of the layout.
    void collate(const FinishedSamples&, CollatedBatch&) const override;

private:
    SampleLayout layout_;
    PadOptions options_;
    std::array<std::byte, 8> fill_{};   // one padded value
};

/// A user's function of `(const FinishedSamples&, CollatedBatch&)` under a name: `collate_with("graph", merge_graphs)`.
class FunctionCollate final : public Collate {
public:
    using Function = std::function<void(const FinishedSamples&, CollatedBatch&)>;
    /// Throws std::invalid_argument for an empty name or no function.
    FunctionCollate(std::string name, Function function);
    [[nodiscard]] std::string name() const override { return name_; }
    void collate(const FinishedSamples& samples, CollatedBatch& batch) const override { function_(samples, batch); }

private:
    std::string name_;
    Function function_;
};

[[nodiscard]] inline std::shared_ptr<const Collate> collate_with(std::string name, FunctionCollate::Function function) {
    return std::make_shared<const FunctionCollate>(std::move(name), std::move(function));
}

}   // namespace drawpoint
