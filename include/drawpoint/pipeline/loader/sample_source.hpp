#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <drawpoint/instrumentation/recorder/recorder.hpp>

namespace drawpoint {

enum class ScalarType : std::uint8_t {
    uint8,
    int64,
    float32,
    int8,
    int16,
    int32,
    float16,    // two bytes of IEEE 754 binary16
    bfloat16,   // the upper two bytes of a float32
    float64,
    boolean,   // one byte, 0 or 1
};

/// Bytes of one value.
[[nodiscard]] constexpr std::size_t size_of(ScalarType type) noexcept {
    switch (type) {
    case ScalarType::uint8:
    case ScalarType::int8:
    case ScalarType::boolean: return 1;
    case ScalarType::int16:
    case ScalarType::float16:
    case ScalarType::bfloat16: return 2;
    case ScalarType::int32:
    case ScalarType::float32: return 4;
    case ScalarType::int64:
    case ScalarType::float64: break;
    }
    return 8;
}

/// The shape of one sample in a batch: `rank` sizes, outermost first; a batch of n has shape n × these.
struct SampleLayout {
    ScalarType type = ScalarType::float32;
    std::uint8_t rank = 0;                                          ///< 0 … 4; 0 = one value
    std::array<std::int64_t, 4> shape{};                            ///< each ≥ 1; 0: varies from sample to sample
    [[nodiscard]] constexpr std::size_t values() const noexcept {   ///< product of the shape
        std::size_t product = 1;
        for (std::size_t dimension = 0; dimension < rank; ++dimension)
            product *= static_cast<std::size_t>(shape[dimension]);
        return product;
    }
    [[nodiscard]] std::size_t bytes() const noexcept { return values() * size_of(type); }
    /// Whether a size is known only once a sample is made: a batch of such samples needs a collate function.
    [[nodiscard]] constexpr bool varies() const noexcept {
        for (std::size_t dimension = 0; dimension < rank; ++dimension)
            if (shape[dimension] == 0)
                return true;
        return false;
    }
    bool operator==(const SampleLayout&) const = default;
};

/// What one worker keeps from sample to sample: decoder, buffers. Made once per worker, used by one thread at a time.
class WorkerScratch {
public:
    virtual ~WorkerScratch() = default;
};

/// A part of a file.
struct FileRange {
    static constexpr std::uint64_t whole = ~std::uint64_t{0};
    const char* path = nullptr;    ///< lives as long as the source
    int descriptor = -1;           ///< of the open file, or -1: to be opened by its path for this read
    std::uint64_t offset = 0;      ///< in bytes
    std::uint64_t bytes = whole;   ///< `whole`: as long as the file is
};

/// What a source reads from storage before it can make a sample, so that a loader can read ahead of its workers. const and
/// thread-safe: `read` is called by as many threads as `read_concurrency` says.
class SampleReads {
public:
    virtual ~SampleReads() = default;
    /// Puts the bytes of sample `index` into `contents`, whose memory is reused. Blocks. Throws what storage throws.
    virtual void read(std::uint64_t index, std::vector<std::byte>& contents) const = 0;
    /// Where these bytes lie, if reading them is nothing but reading that part of a file; then the kernel may be asked for many
    /// at once. nullopt: only read() knows how. Allocates nothing.
    [[nodiscard]] virtual std::optional<FileRange> location(std::uint64_t index) const noexcept = 0;
    /// Whether fill() needs these bytes now; false for what a cache holds: then nothing is read ahead, and fill() is called
    /// without contents. Asked right before the read; a sample that turns out to need them reads them itself.
    [[nodiscard]] virtual bool wants(std::uint64_t) const noexcept { return true; }
};

class SampleCache;    // sample_cache.hpp
class SampleBuffer;   // sample_buffer.hpp

/// One sample to be made: where it goes, who it is, and what the source says about it. Everything random in it must be keyed
/// by (seed, epoch, index) only, so that a batch does not depend on workers, depth or timing.
struct SampleTask {
    std::uint64_t index = 0;   ///< in the data set
    std::uint64_t seed = 0, epoch = 0;
    std::span<std::byte> data;   ///< the sample's own place in the batch: layout().bytes(); empty if the layout varies
    SampleBuffer* buffer = nullptr;   ///< where samples are collated: a varying layout is said by `buffer->reshape()`
    std::int64_t* target = nullptr;   ///< its place among the batch's targets
    /// What `SampleSource::reads()` read for it ahead of time; null: the source reads it itself.
    const std::vector<std::byte>* contents = nullptr;

    const AnyClock* clock = nullptr;   ///< null: nobody records
    /// The thread's CPU time when the sample was taken up, then at the end of the last stage (see `StageTimer`); `no_stamp`:
    /// this sample is not measured.
    std::int64_t cpu_ns = no_stamp;
    std::uint64_t bytes_read = 0;    ///< out: from storage
    std::uint32_t stage_count = 0;   ///< out: stages begun, including one that threw
    std::array<StageRow, max_stages>
        stages{};   ///< out: stamps of each stage; one reading ends a stage and begins the next
};

/// Consecutive samples of one batch, for sources whose samples are cheaper than a call for each.
struct SampleRun {
    std::span<const std::uint64_t> indices;   ///< ≥ 1, each < size()
    std::uint64_t seed = 0, epoch = 0;
    std::byte* data = nullptr;         ///< indices.size() × layout().bytes()
    std::int64_t* targets = nullptr;   ///< indices.size()

    std::uint64_t bytes_read = 0;   ///< out: from storage
    std::size_t at = 0;             ///< out: the place in `indices` of the sample in work when it throws
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

    /// Whether the loader calls fill_run() in place of fill(), unless it collates: for sources with one stage that is shorter
    /// than the call. A run is recorded as one row that counts its samples.
    [[nodiscard]] virtual bool fills_runs() const noexcept { return false; }
    /// Makes all of the run's samples. As fill(); what it throws is the failure of the run's sample `at`.
    virtual void fill_run(SampleRun&, WorkerScratch&) const { throw std::logic_error{"this source fills no runs"}; }

    /// What fill() reads from storage, when a loader could do that ahead of it (`SampleTask::contents`); null: nothing. Lives
    /// as long as the source.
    [[nodiscard]] virtual const SampleReads* reads() const noexcept { return nullptr; }

    /// What makes a sample depend on more than its index, e.g. "RandomResizedCrop": finished samples of such a source are not
    /// cached. Empty: nothing does, a sample is the same in every epoch and under every seed. For messages; may allocate.
    [[nodiscard]] virtual std::string random_part() const { return "a source that does not override random_part()"; }
    /// What keeps samples, or what they are made of, from pass to pass, for its counters; null: nothing does.
    [[nodiscard]] virtual const SampleCache* cache() const noexcept { return nullptr; }
};

}   // namespace drawpoint
