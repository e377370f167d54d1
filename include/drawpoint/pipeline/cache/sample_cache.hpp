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
class CacheMapping;   // the memory or the file; pipeline/cache_mapping.hpp

/// What a cache did and holds. Exact while no sample is in work.
struct CacheCounters {
    std::uint64_t hits = 0, misses = 0;   ///< samples asked for since the cache was made
    std::uint64_t samples = 0;            ///< held
    std::uint64_t bytes = 0;          ///< in use: samples, 64 bytes with each, 8 bytes for each sample of the data set
    std::uint64_t budget_bytes = 0;   ///< `bytes` never exceeds it
    [[nodiscard]] double hit_share() const noexcept {   ///< 0 … 1; 0 before the first sample
        return hits == 0 ? 0 : static_cast<double>(hits) / static_cast<double>(hits + misses);
    }
};

/// Keeps what samples are made of, by index, within a budget of bytes: it fills until nothing fits any more and never
/// evicts. A pass asks for each sample once, so whatever an eviction would keep is asked for no sooner than what it
/// throws out, and a cache that evicts the oldest has nothing left of a data set larger than itself when the next pass
/// begins; this one has its whole budget's worth. Any thread. Of a cache in memory nothing locks or allocates, and a
/// hit writes nothing but its worker's counter; one in a file reads and writes through the system, takes a worker room
/// for a sample once and again for a larger one, and marks what it finds damaged.
class SampleCache {
public:
    /// What one thread of those who use the cache has to itself. One that nobody numbered does as well, but its counter
    /// is shared.
    class Worker {
    public:
        Worker() = default;

    private:
        friend class SampleCache;
        explicit Worker(std::size_t number) noexcept : number_{number} {}
        [[nodiscard]] std::byte* room(std::uint64_t bytes) noexcept;   // null: no memory
        std::size_t number_ = 0;
        std::unique_ptr<std::byte[]> room_;   // for a sample of a file
        std::uint64_t room_bytes_ = 0;
    };

    /// What is held of one sample; lives as long as the cache, or, of a cache in a file, until its worker's next call.
    struct Held {
        std::span<const std::byte> data;
        std::int64_t target = 0;
        std::array<std::uint32_t, 4> shape{};   ///< for whoever kept it, e.g. height and width
    };

    /// Room for one sample that is not held yet. Giving it up without keep() leaves it to the next who asks for this
    /// sample.
    class Place {
    public:
        Place() = default;
        Place(Place&& other) noexcept;
        Place& operator=(Place&& other) noexcept;
        ~Place();
        explicit operator bool() const noexcept { return !data_.empty(); }
        [[nodiscard]] std::span<std::byte> data() const noexcept { return data_; }   ///< as long as was asked for
        /// What was written into data() is complete: from here on everybody finds it. At most once.
        void keep(std::int64_t target, std::array<std::uint32_t, 4> shape = {}) noexcept;

    private:
        friend class SampleCache;
        Place(SampleCache* cache, std::uint64_t index, std::uint64_t offset, std::uint64_t capacity,
              std::span<std::byte> data) noexcept
            : cache_{cache}, index_{index}, offset_{offset}, capacity_{capacity}, data_{data} {}
        SampleCache* cache_ = nullptr;   // null: none, or kept
        std::uint64_t index_ = 0, offset_ = 0, capacity_ = 0;
        std::span<std::byte> data_;
    };

    /// In memory, taken in huge pages as it fills. Throws std::invalid_argument when the budget does not even hold the
    /// index, std::system_error when the system refuses the address space.
    SampleCache(std::size_t samples, std::uint64_t budget_bytes);
    /// In a file that outlives the process, and is `budget_bytes` long from the start. It is used again when
    /// `fingerprint`, of everything the samples depend on, and `samples` are those it was made for, and begun anew
    /// otherwise (`origin()` says). A sample is visible once it is complete, and checked against its checksum whenever
    /// it is used, so a killed process or machine costs the samples it was writing, and whoever damages the file
    /// meanwhile costs what was there. It is read and written, not mapped: once somebody has cut it, it is given up,
    /// and nothing more is found. Throws std::invalid_argument naming a file that is not a cache, is in use already or
    /// cannot hold the index; std::filesystem::filesystem_error.
    SampleCache(std::size_t samples, std::uint64_t budget_bytes, const std::filesystem::path& file,
                std::uint64_t fingerprint);
    ~SampleCache();
    SampleCache(const SampleCache&) = delete;
    SampleCache& operator=(const SampleCache&) = delete;

    /// The sample, counted as a hit, or nullopt, counted as a miss. `worker`: of this thread.
    [[nodiscard]] std::optional<Held> find(std::uint64_t index, Worker& worker) noexcept;
    /// Whether find() will most likely give it: a sample of a file is not checked here. Counts nothing.
    [[nodiscard]] bool holds(std::uint64_t index) const noexcept;
    /// Room for `bytes` ≥ 1 of a sample; none when the budget does not allow it, or it is held or being written.
    /// `worker`: of this thread; whose next call takes the room of a file's sample away.
    [[nodiscard]] Place reserve(std::uint64_t index, std::size_t bytes, Worker& worker) noexcept;

    [[nodiscard]] Worker make_worker() noexcept { return Worker{workers_.fetch_add(1, std::memory_order_relaxed)}; }

    [[nodiscard]] CacheCounters counters() const noexcept;
    /// "memory", "new file …", "… samples found in …" or "… begun anew: why"; and whether the file was given up since.
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
    std::uint64_t arena_ = 0;   // where in the mapping samples begin
    bool in_file_;
    std::string origin_;
    std::atomic<std::uint64_t> held_{0};
    std::atomic<bool> given_up_{false};   // the file was cut
    std::atomic<std::size_t> workers_{0};
    std::array<Counted, 16> counted_;
};

/// Tells the reports what these caches did until now, added up; nulls are left out, and without a cache nothing is
/// said. At the end of a run; may allocate.
void set_cache_facts(Recorder&, std::initializer_list<const SampleCache*>);

}   // namespace drawpoint
