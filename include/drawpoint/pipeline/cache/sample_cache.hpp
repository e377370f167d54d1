#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace drawpoint {

class Recorder;
class CacheMapping;   // the memory or the file; pipeline/cache/cache_mapping.hpp

/// Activity and contents of a cache. Exact while no sample is being read or written.
struct CacheCounters {
    std::uint64_t hits = 0, misses = 0;   ///< look-ups since the cache was made
    std::uint64_t samples = 0;            ///< samples held
    std::uint64_t bytes = 0;          ///< in use: samples, 64 bytes with each, 8 bytes for each sample of the data set
    std::uint64_t budget_bytes = 0;   ///< `bytes` never exceeds it
    [[nodiscard]] double hit_share() const noexcept {   ///< hits / (hits + misses), 0 … 1; 0 before the first look-up
        return hits == 0 ? 0 : static_cast<double>(hits) / static_cast<double>(hits + misses);
    }
};

/// Keeps what samples are made from, by index, within a budget of bytes. It fills until nothing more fits and never
/// evicts: every pass needs each sample once, so no sample is worth more than another. (Of a data set larger than the
/// budget, a cache that evicts the oldest would lose each sample before it is needed again; this one serves its whole
/// budget in every pass.) Any thread. A cache in memory never locks or allocates, and a hit writes only its worker's
/// counter. A cache in a file reads and writes through the system, allocates a worker's buffer once and again for a
/// larger sample, and marks samples that it finds damaged.
class SampleCache {
public:
    /// The private state of one thread that uses the cache. One that was not made by make_worker() works too, but
    /// shares its counter.
    class Worker {
    public:
        Worker() = default;

    private:
        friend class SampleCache;
        explicit Worker(std::size_t number) noexcept : number_{number} {}
        [[nodiscard]] std::byte* room(std::uint64_t bytes) noexcept;   // null if there is no memory
        std::size_t number_ = 0;
        std::unique_ptr<std::byte[]> room_;   // for a sample read from or written to a file
        std::uint64_t room_bytes_ = 0;
    };

    /// A sample found in the cache; valid as long as the cache or, for a cache in a file, until its worker's next call.
    struct Held {
        std::span<const std::byte> data;
        std::int64_t target = 0;
        std::array<std::uint32_t, 4> shape{};   ///< as passed to keep(), e.g. height and width
    };

    /// Reserved room for one sample that is not held yet; false if there was none. Destroying it without keep() lets
    /// another thread reserve the sample. Must not outlive the cache.
    class Place {
    public:
        Place() = default;
        Place(Place&& other) noexcept;
        Place& operator=(Place&& other) noexcept;
        ~Place();
        explicit operator bool() const noexcept { return !data_.empty(); }
        [[nodiscard]] std::span<std::byte> data() const noexcept { return data_; }   ///< of the requested size
        /// Publishes what was written into data(): from now on every thread finds it. At most once.
        void keep(std::int64_t target, std::array<std::uint32_t, 4> shape = {}) noexcept;

    private:
        friend class SampleCache;
        Place(SampleCache* cache, std::uint64_t index, std::uint64_t offset, std::uint64_t capacity,
              std::span<std::byte> data) noexcept
            : cache_{cache}, index_{index}, offset_{offset}, capacity_{capacity}, data_{data} {}
        SampleCache* cache_ = nullptr;   // null if there is no room, or after keep()
        std::uint64_t index_ = 0, offset_ = 0, capacity_ = 0;
        std::span<std::byte> data_;
    };

    /// A cache in memory for the indices 0 … samples - 1, taken in huge pages as it fills. Throws std::invalid_argument
    /// when the budget does not hold the index (8 bytes per sample) or exceeds 64 TiB, std::system_error when the
    /// system refuses the address space.
    SampleCache(std::size_t samples, std::uint64_t budget_bytes);
    /// A cache in a file of `budget_bytes`, allocated at the start, that outlives the process. It is reused if it was
    /// made for the same `samples` and `fingerprint` (a hash of everything that the samples depend on), and emptied
    /// otherwise; `origin()` says which. A sample becomes visible once it is complete, and its checksum is verified at
    /// every use: a killed process or machine loses only the samples it was writing, and a damaged file only what was
    /// damaged. The file is read and written, not mapped; once somebody has truncated it, it is given up and nothing
    /// more is found. Throws std::invalid_argument naming a file that is not a cache or is in use already, and for a
    /// budget as above; std::filesystem::filesystem_error.
    SampleCache(std::size_t samples, std::uint64_t budget_bytes, const std::filesystem::path& file,
                std::uint64_t fingerprint);
    ~SampleCache();
    SampleCache(const SampleCache&) = delete;
    SampleCache& operator=(const SampleCache&) = delete;

    /// The sample, counted as a hit, or nullopt, counted as a miss. `worker` is the calling thread's.
    [[nodiscard]] std::optional<Held> find(std::uint64_t index, Worker& worker) noexcept;
    /// Whether find() will most likely succeed; a sample in a file is not verified here. Counts as neither hit nor
    /// miss.
    [[nodiscard]] bool holds(std::uint64_t index) const noexcept;
    /// Room for a sample of `bytes` ≥ 1; none when the budget does not allow it, or the sample is held or being
    /// written. `worker` is the calling thread's; for a cache in a file, its next call invalidates the room.
    [[nodiscard]] Place reserve(std::uint64_t index, std::size_t bytes, Worker& worker) noexcept;

    [[nodiscard]] Worker make_worker() noexcept { return Worker{workers_.fetch_add(1, std::memory_order_relaxed)}; }

    [[nodiscard]] CacheCounters counters() const noexcept;
    /// "memory", "new file …", "… samples found in …" or "… begun anew: why", and whether the file was given up
    /// since then.
    [[nodiscard]] std::string origin() const;
    [[nodiscard]] bool in_file() const noexcept { return in_file_; }

private:
    struct alignas(128) Counted {
        std::atomic<std::uint64_t> hits{0}, misses{0};
    };
    [[nodiscard]] std::atomic_ref<std::uint64_t> word(std::uint64_t index) const noexcept;
    [[nodiscard]] std::atomic_ref<std::uint64_t> used() const noexcept;
    [[nodiscard]] std::optional<Held> read(std::uint64_t index, std::uint64_t offset, Worker&, bool& damaged) noexcept;
    void put_word(std::uint64_t index, std::uint64_t value) noexcept;
    void put_used() noexcept;
    void adopt() noexcept;
    void keep(const Place&, std::int64_t target, std::array<std::uint32_t, 4> shape) noexcept;
    bool gives_up() noexcept;

    std::unique_ptr<CacheMapping> mapping_;
    std::size_t samples_;
    std::uint64_t arena_ = 0;   // offset of the samples in the mapping
    bool in_file_;
    std::string origin_;
    std::atomic<std::uint64_t> held_{0};
    std::atomic<bool> given_up_{false};   // somebody truncated the file
    std::atomic<std::size_t> workers_{0};
    std::array<Counted, 16> counted_;
};

/// Records the sum of these caches' counters for the reports; null pointers are skipped, and without any cache nothing
/// is recorded. Call it at the end of a run; may allocate.
void set_cache_facts(Recorder&, std::initializer_list<const SampleCache*>);

}   // namespace drawpoint
