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

#include <drawpoint/pipeline/loader/core/batch_slots.hpp>
#include <drawpoint/pipeline/loader/core/sample_buffer.hpp>
#include <drawpoint/pipeline/loader/core/sample_source.hpp>

namespace drawpoint {

/// The input of a collate function: all samples of a batch, in the batch's order. Valid during the call.
struct FinishedSamples {
    std::span<const SampleBuffer> samples;   ///< at least one
    std::span<const std::int64_t> targets;   ///< one for each sample
    std::span<const std::uint64_t> indices;
    std::uint64_t epoch = 0, seed = 0;   ///< anything random must depend only on these and the indices
};

/// One named array of a collated batch. A view: valid until its batch is given back, unless memory() is retained.
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
    /// The array's memory; `retain()` it for a tensor that outlives the batch.
    [[nodiscard]] SlotMemory& memory() const noexcept { return *memory_; }

private:
    friend class CollatedBatch;
    std::string name_;
    ScalarType type_ = ScalarType::float32;
    std::array<std::int64_t, 5> shape_{};
    std::size_t rank_ = 0, bytes_ = 0;
    SlotMemory* memory_ = nullptr;
};

/// The output of a collate function: named arrays, in memory that is reused by later batches. One thread at a time.
class CollatedBatch {
public:
    /// Removes all arrays and keeps their memory for the next ones.
    void clear() noexcept { used_ = 0; }
    /// Adds an array with undefined contents and returns its memory. The first array is `Batch::data()`. `shape` has 1
    /// to 5 sizes ≥ 0. Allocates only if the array is larger than all earlier ones at its position. Throws
    /// std::invalid_argument for a name that is empty or was added before, and for a shape that is not as above or does
    /// not fit into memory; std::bad_alloc.
    std::span<std::byte> add(std::string_view name, ScalarType, std::span<const std::int64_t> shape);
    /// add() for values of type T; sizeof(T) must be size_of(type).
    template <class T>
    std::span<T> add_values(std::string_view name, ScalarType type, std::span<const std::int64_t> shape) {
        const std::span<std::byte> bytes = add(name, type, shape);
        return {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)};
    }

    [[nodiscard]] std::span<const BatchPart> parts() const noexcept { return std::span{parts_}.first(used_); }
    /// The array of this name, or null.
    [[nodiscard]] const BatchPart* find(std::string_view name) const noexcept;
    /// Memory held in bytes, also that of removed arrays.
    [[nodiscard]] std::uint64_t bytes() const noexcept;
    /// Removes all arrays and releases their memory; the next arrays get new memory.
    void release_memory() noexcept;
    /// Removes all arrays and releases only the memory that somebody else retains. Returns of how many arrays.
    std::size_t release_shared() noexcept;

private:
    std::vector<BatchPart> parts_;
    std::size_t used_ = 0;
};

/// A collate function (`LoaderOptions::collate`): makes a batch from its finished samples. The worker that finishes the
/// last sample calls it, timed as `collate`. const calls must be thread-safe: workers collate several batches at once.
/// An exception fails the batch with a SampleError, as does adding no array.
class Collate {
public:
    virtual ~Collate() = default;
    [[nodiscard]] virtual std::string name() const = 0;
    virtual void collate(const FinishedSamples&, CollatedBatch&) const = 0;
};

/// Options of PadCollate.
struct PadOptions {
    double value = 0;              ///< the padding
    std::size_t multiple_of = 1;   ///< padded sizes are rounded up to a multiple of this, 1 … 2^30
    bool mask = true;              ///< whether to add the array `mask`
};

/// Pads each size that varies to the largest in the batch. Its arrays: `data`, [n, sizes…]; `lengths`, int64, [n], or
/// [n, k] if k ≥ 2 sizes vary; `mask`, boolean, [n, the padded sizes that vary], 1 where a sample is.
class PadCollate final : public Collate {
public:
    /// `layout` is the samples' layout, in which at least one size varies (is 0). Throws std::invalid_argument naming
    /// field and value, also for a padding that the layout's type cannot represent.
    explicit PadCollate(const SampleLayout& layout, PadOptions options = {});
    [[nodiscard]] std::string name() const override { return "pad"; }
    /// Throws std::invalid_argument naming a sample that does not have the layout.
    void collate(const FinishedSamples&, CollatedBatch&) const override;

private:
    SampleLayout layout_;
    PadOptions options_;
    std::array<std::byte, 8> fill_{};   // one padded value
};

/// A collate function from a callable; see collate_with().
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

/// A collate function that calls `function(const FinishedSamples&, CollatedBatch&)`, e.g. `collate_with("graph",
/// merge_graphs)`. Throws std::invalid_argument for an empty name or function.
[[nodiscard]] inline std::shared_ptr<const Collate> collate_with(std::string name, FunctionCollate::Function function) {
    return std::make_shared<const FunctionCollate>(std::move(name), std::move(function));
}

}   // namespace drawpoint
