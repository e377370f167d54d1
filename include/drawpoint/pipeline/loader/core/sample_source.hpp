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

/// The type of a sample's values.
enum class ScalarType : std::uint8_t {
    uint8,
    int64,
    float32,
    int8,
    int16,
    int32,
    float16,    ///< IEEE 754 binary16, two bytes
    bfloat16,   ///< the upper two bytes of a float32
    float64,
    boolean,   ///< one byte, 0 or 1
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

/// Type and shape of one sample: `rank` sizes, outermost first. A batch of n samples has shape [n, sizes…].
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
    /// Whether a size differs from sample to sample: batches of such samples need a collate function.
    [[nodiscard]] constexpr bool varies() const noexcept {
        for (std::size_t dimension = 0; dimension < rank; ++dimension)
            if (shape[dimension] == 0)
                return true;
        return false;
    }
    bool operator==(const SampleLayout&) const = default;
};

/// What a worker keeps from sample to sample, e.g. a decoder and buffers. One for each worker, used by one thread at a
/// time; freed while the worker rests (see LoaderOptions) and then made anew.
class WorkerScratch {
public:
    virtual ~WorkerScratch() = default;
};

/// A part of a file.
struct FileRange {
    static constexpr std::uint64_t whole = ~std::uint64_t{0};
    const char* path = nullptr;    ///< valid as long as the source
    int descriptor = -1;           ///< of the open file; -1: the file is opened by its path for this read
    std::uint64_t offset = 0;      ///< bytes
    std::uint64_t bytes = whole;   ///< `whole`: the size of the file
};

/// How a source's samples are read from storage, so that a loader can read ahead of its workers. const calls must be
/// thread-safe: workers and up to read_concurrency readers call them at once.
class SampleReads {
public:
    virtual ~SampleReads() = default;
    /// Reads the bytes of sample `index` into `contents`, which still holds an earlier sample's; resize it, so that its
    /// memory is reused. May block. What it throws fails the
    /// sample; a std::system_error with a transient code is retried first (`LoaderOptions::read_retries`).
    virtual void read(std::uint64_t index, std::vector<std::byte>& contents) const = 0;
    /// Where the bytes of sample `index` lie, if they are simply a part of a file: then many can be read at once by
    /// io_uring. nullopt: only read() can read them. Must not allocate.
    [[nodiscard]] virtual std::optional<FileRange> location(std::uint64_t index) const noexcept = 0;
    /// Whether fill() needs the bytes of this sample now; false e.g. for a cached sample, which is then not read ahead.
    /// Called right before the read. If fill() needs the bytes after all, it reads them itself.
    [[nodiscard]] virtual bool wants(std::uint64_t) const noexcept { return true; }
};

class SampleCache;    // sample_cache.hpp
class SampleBuffer;   // sample_buffer.hpp

/// One sample to be made: where it goes, which one it is, and what the source reports about it. Everything random in it
/// must depend on (seed, epoch, index) alone, so that batches do not depend on workers, depth or timing.
struct SampleTask {
    std::uint64_t index = 0;   ///< in the data set
    std::uint64_t seed = 0, epoch = 0;
    std::span<std::byte> data;        ///< the sample's place in the batch: layout().bytes(); empty if the layout varies
    SampleBuffer* buffer = nullptr;   ///< where samples are collated; varying sizes are set by `buffer->reshape()`
    std::int64_t* target = nullptr;   ///< the sample's place among the batch's targets
    /// What was read ahead by `SampleSource::reads()`; null: the source reads for itself.
    const std::vector<std::byte>* contents = nullptr;

    const AnyClock* clock = nullptr;   ///< null: nothing is recorded
    /// The thread's CPU time when the sample was begun, then at the end of the last stage (see `StageTimer`);
    /// `no_stamp`: it is not measured for this sample.
    std::int64_t cpu_ns = no_stamp;
    std::uint64_t bytes_read = 0;    ///< out: bytes read from storage
    std::uint32_t stage_count = 0;   ///< out: stages begun, including one that threw
    /// out: timestamps of each stage; each ends where the next begins
    std::array<StageRow, max_stages> stages{};
};

/// Consecutive samples of one batch, for sources that make a sample faster than a virtual call takes.
struct SampleRun {
    std::span<const std::uint64_t> indices;   ///< at least one, each < size()
    std::uint64_t seed = 0, epoch = 0;
    std::byte* data = nullptr;         ///< indices.size() × layout().bytes()
    std::int64_t* targets = nullptr;   ///< indices.size()

    std::uint64_t bytes_read = 0;   ///< out: bytes read from storage
};

/// The data of a DataLoader: how many samples there are, what they look like, and how to make one. const calls must be
/// thread-safe: all workers make them at once.
class SampleSource {
public:
    virtual ~SampleSource() = default;
    [[nodiscard]] virtual std::size_t size() const noexcept = 0;
    [[nodiscard]] virtual SampleLayout layout() const noexcept = 0;
    /// The names of the timed stages, in order; 1 to max_stages of them.
    [[nodiscard]] virtual std::vector<std::string> stages() const = 0;
    /// Where the sample comes from, e.g. its file, for messages; may be empty. May allocate.
    [[nodiscard]] virtual std::string path(std::uint64_t index) const = 0;
    /// Scratch for one worker, made on the worker's thread. What it throws fails a sample.
    [[nodiscard]] virtual std::unique_ptr<WorkerScratch> make_scratch() const = 0;
    /// Makes the sample. Should allocate nothing in steady state. Any exception fails the sample, in stage number
    /// `task.stage_count` (counted from 1).
    virtual void fill(SampleTask& task, WorkerScratch& scratch) const = 0;

    /// Whether a loader that does not collate calls fill_run() instead of fill(): for sources with one stage that is
    /// shorter than the call. A run is recorded as one row that counts its samples.
    [[nodiscard]] virtual bool fills_runs() const noexcept { return false; }
    /// Makes all samples of the run, as fill() does. After an exception each of them is asked for again, in a run of
    /// its own, which tells the failing ones from the others.
    virtual void fill_run(SampleRun&, WorkerScratch&) const { throw std::logic_error{"this source fills no runs"}; }

    /// How to read samples ahead of fill() (`SampleTask::contents`); null: nothing can be read ahead. Valid as long as
    /// the source.
    [[nodiscard]] virtual const SampleReads* reads() const noexcept { return nullptr; }

    /// What makes samples depend on more than their index, for messages, e.g. "RandomResizedCrop": such samples cannot
    /// be cached. Empty: a sample is the same in every epoch and under every seed. May allocate.
    [[nodiscard]] virtual std::string random_part() const { return "a source that does not override random_part()"; }
    /// The cache that keeps samples, or what they are made from, across passes, for its counters; null: there is none.
    [[nodiscard]] virtual const SampleCache* cache() const noexcept { return nullptr; }
};

}   // namespace drawpoint
