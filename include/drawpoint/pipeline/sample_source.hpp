#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <drawpoint/instrumentation/recorder.hpp>

namespace drawpoint {

enum class ScalarType : std::uint8_t { uint8, int64, float32 };

/// Bytes of one value.
[[nodiscard]] constexpr std::size_t size_of(ScalarType type) noexcept {
    return type == ScalarType::uint8 ? 1 : type == ScalarType::int64 ? 8 : 4;
}

/// The shape of one sample in a batch: `rank` sizes, outermost first; a batch of n has shape n × these.
struct SampleLayout {
    ScalarType type = ScalarType::float32;
    std::uint8_t rank = 0;                                          ///< 0 … 4; 0 = one value
    std::array<std::int64_t, 4> shape{};                            ///< each ≥ 1
    [[nodiscard]] constexpr std::size_t values() const noexcept {   ///< product of the shape
        std::size_t product = 1;
        for (std::size_t dimension = 0; dimension < rank; ++dimension)
            product *= static_cast<std::size_t>(shape[dimension]);
        return product;
    }
    [[nodiscard]] std::size_t bytes() const noexcept { return values() * size_of(type); }
    bool operator==(const SampleLayout&) const = default;
};

/// What one worker keeps from sample to sample: decoder, buffers. Made once per worker, used by one thread at a time.
class WorkerScratch {
public:
    virtual ~WorkerScratch() = default;
};

/// One sample to be made: where it goes, who it is, and what the source says about it. Everything random in it must be keyed
/// by (seed, epoch, index) only, so that a batch does not depend on workers, depth or timing.
struct SampleTask {
    std::uint64_t index = 0;   ///< in the data set
    std::uint64_t seed = 0, epoch = 0;
    std::span<std::byte> data;        ///< the sample's own place in the batch: layout().bytes()
    std::int64_t* target = nullptr;   ///< its place among the batch's targets

    const AnyClock* clock = nullptr;   ///< null: nobody records
    std::uint64_t bytes_read = 0;      ///< out: from storage
    std::uint32_t stage_count = 0;     ///< out: stages begun, including one that threw
    std::array<StageRow, max_stages>
        stages{};   ///< out: stamps of each stage; one reading ends a stage and begins the next
};

/// What a DataLoader needs of its data: how many samples, what they look like, and how to make one. const and thread-safe.
class SampleSource {
public:
    virtual ~SampleSource() = default;
    [[nodiscard]] virtual std::size_t size() const noexcept = 0;
    [[nodiscard]] virtual SampleLayout layout() const noexcept = 0;
    /// The names of the timed stages, in order, 1 … max_stages.
    [[nodiscard]] virtual std::vector<std::string> stages() const = 0;
    /// Where the sample comes from, for messages; empty when there is no such thing. May allocate.
    [[nodiscard]] virtual std::string path(std::uint64_t index) const = 0;
    [[nodiscard]] virtual std::unique_ptr<WorkerScratch> make_scratch() const = 0;
    /// Makes the sample. Allocates nothing in steady state. Any exception is a failed sample: the stage that threw is the last
    /// of `task.stage_count`.
    virtual void fill(SampleTask& task, WorkerScratch& scratch) const = 0;
};

}   // namespace drawpoint
