#include <drawpoint/pipeline/cache/sample_cache.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <new>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include <drawpoint/instrumentation/recorder/recorder.hpp>
#include <drawpoint/instrumentation/facts.hpp>

#include <drawpoint/pipeline/loader/core/detail/batch_digest.hpp>
#include "pipeline/cache/cache_mapping.hpp"

namespace drawpoint {

namespace {

constexpr std::uint64_t line = 64;   // samples begin at multiples of it, which leaves the index's words six bits

/// The state of a sample, in its index word beside its offset. A word of 0: there is none.
enum State : std::uint64_t {
    writing = 1,     // by somebody
    abandoned = 2,   // whoever wrote it gave up: its place is for the next
    whole = 3,       // of a file: if that says the truth
    state_bits = line - 1,
};

/// Stands before each sample.
struct alignas(line) EntryHeader {
    std::uint64_t capacity, bytes;   // of the data that follow
    std::int64_t target;
    std::array<std::uint32_t, 4> shape;
    std::uint64_t head_sum, data_sum;   // in a file: of all but the capacity; of the data
    std::uint64_t reserved = 0;         // no padding: a file gets no bytes that nobody wrote

    [[nodiscard]] std::uint64_t sum_of_head(std::uint64_t index) const noexcept {
        const std::array<std::uint64_t, 6> fields{index,
                                                  bytes,
                                                  static_cast<std::uint64_t>(target),
                                                  std::uint64_t{shape[0]} << 32 | shape[1],
                                                  std::uint64_t{shape[2]} << 32 | shape[3],
                                                  data_sum};
        return sum(std::as_bytes(std::span{fields}));
    }
    [[nodiscard]] static std::uint64_t sum(std::span<const std::byte> bytes) noexcept {
        BatchDigest digest;
        digest.add(bytes);
        return digest.value();
    }
};
static_assert(sizeof(EntryHeader) == line && std::has_unique_object_representations_v<EntryHeader>);

constexpr std::uint64_t round_up(std::uint64_t bytes) noexcept { return (bytes + line - 1) / line * line; }

EntryHeader& entry_at(const CacheMapping& mapping, std::uint64_t offset) noexcept {
    return *reinterpret_cast<EntryHeader*>(mapping.data() + offset);
}

/// The bytes that the header and the index take. Throws when the budget does not hold them.
std::uint64_t checked_arena(std::size_t samples, std::uint64_t budget) {
    constexpr std::uint64_t most = std::uint64_t{1} << 46;   // 64 TiB
    if (budget > most)
        throw std::invalid_argument{"cached: at most " + std::to_string(most) + " bytes, got " +
                                    std::to_string(budget)};
    if (samples > most / 8 || round_up(sizeof(CacheHeader) + 8 * samples) > budget)
        throw std::invalid_argument{"cached: " + std::to_string(budget) + " bytes do not hold the index of " +
                                    std::to_string(samples) + " samples, 8 bytes each"};
    return round_up(sizeof(CacheHeader) + 8 * samples);
}

}   // namespace

SampleCache::Place::Place(Place&& other) noexcept
    : cache_{std::exchange(other.cache_, nullptr)},
      index_{other.index_},
      offset_{other.offset_},
      capacity_{other.capacity_},
      data_{other.data_} {}

SampleCache::Place& SampleCache::Place::operator=(Place&& other) noexcept {
    Place before{std::move(*this)};
    cache_ = std::exchange(other.cache_, nullptr);
    index_ = other.index_;
    offset_ = other.offset_;
    capacity_ = other.capacity_;
    data_ = other.data_;
    return *this;
}

SampleCache::Place::~Place() {
    if (cache_)
        cache_->word(index_).store(offset_ | abandoned, std::memory_order_release);
}

void SampleCache::Place::keep(std::int64_t target, std::array<std::uint32_t, 4> shape) noexcept {
    std::exchange(cache_, nullptr)->keep(*this, target, shape);
}

SampleCache::SampleCache(std::size_t samples, std::uint64_t budget_bytes)
    : samples_{samples}, arena_{checked_arena(samples, budget_bytes)}, in_file_{false}, origin_{"memory"} {
    mapping_ = std::make_unique<CacheMapping>(budget_bytes);
    used().store(arena_, std::memory_order_relaxed);
}

SampleCache::SampleCache(std::size_t samples, std::uint64_t budget_bytes, const std::filesystem::path& file,
                         std::uint64_t fingerprint)
    : samples_{samples}, arena_{checked_arena(samples, budget_bytes)}, in_file_{true} {
    mapping_ = std::make_unique<CacheMapping>(
        file, CacheHeader{.fingerprint = fingerprint, .samples = samples, .bytes = budget_bytes, .used = arena_});
    if (mapping_->reused()) {
        adopt();
        origin_ = std::to_string(held_.load()) + " samples found in " + file.string();
    } else {
        origin_ = mapping_->why_anew().empty() ? "new file " + file.string()
                                               : file.string() + " begun anew: " + mapping_->why_anew();
    }
}

SampleCache::~SampleCache() = default;

std::atomic_ref<std::uint64_t> SampleCache::word(std::uint64_t index) const noexcept {
    return std::atomic_ref{reinterpret_cast<std::uint64_t*>(mapping_->data() + sizeof(CacheHeader))[index]};
}

std::atomic_ref<std::uint64_t> SampleCache::used() const noexcept { return std::atomic_ref{mapping_->header().used}; }

/// The index is in memory, and in the file beside.
void SampleCache::put_word(std::uint64_t index, std::uint64_t value) noexcept {
    word(index).store(value, std::memory_order_release);
    if (in_file_)
        mapping_->write(sizeof(CacheHeader) + 8 * index, std::as_bytes(std::span{&value, 1}));
}

void SampleCache::put_used() noexcept {
    std::uint64_t value = 0;
    do {   // until nobody wrote an older one over a newer one
        value = used().load(std::memory_order_seq_cst);
        mapping_->write(offsetof(CacheHeader, used), std::as_bytes(std::span{&value, 1}));
    } while (value != used().load(std::memory_order_seq_cst));
}

/// The index of a file that another process left: nothing in it is believed before it is checked.
void SampleCache::adopt() noexcept {
    const std::uint64_t end = used().load(std::memory_order_relaxed);
    std::uint64_t held = 0;
    for (std::uint64_t index = 0; index < samples_; ++index) {
        const std::uint64_t found = word(index).load(std::memory_order_relaxed);
        const std::uint64_t offset = found & ~std::uint64_t{state_bits}, state = found & state_bits;
        std::uint64_t now = 0;
        if (offset >= arena_ && end >= sizeof(EntryHeader) && offset <= end - sizeof(EntryHeader))
            now = offset | (state == whole ? whole : abandoned);
        held += (now & state_bits) == whole;
        if (now != found)
            word(index).store(now, std::memory_order_relaxed);
    }
    held_.store(held, std::memory_order_relaxed);
}

std::byte* SampleCache::Worker::room(std::uint64_t bytes) noexcept {
    constexpr std::uint64_t least = std::uint64_t{1} << 18;
    try {
        if (!room_ || room_bytes_ < bytes) {
            room_.reset();   // nothing of it is worth copying
            room_bytes_ = std::bit_ceil(std::max(bytes, least));
            // Not zeroed: what rounding adds is not resident until a sample needs it.
            room_ = std::make_unique_for_overwrite<std::byte[]>(room_bytes_);
        }
    } catch (const std::bad_alloc&) {
        return nullptr;
    }
    return room_.get();
}

/// Whether the file is of no use any more.
bool SampleCache::gives_up() noexcept {
    if (mapping_->is_cut())
        given_up_.store(true, std::memory_order_relaxed);
    return given_up_.load(std::memory_order_relaxed);
}

/// A sample of the file. Memory is taken once its header has been checked.
std::optional<SampleCache::Held> SampleCache::read(std::uint64_t index, std::uint64_t offset, Worker& worker,
                                                   bool& damaged) noexcept {
    EntryHeader entry;
    damaged = !mapping_->read(offset, std::as_writable_bytes(std::span{&entry, 1})) || entry.bytes == 0 ||
              entry.bytes > mapping_->bytes() - offset - sizeof entry || entry.head_sum != entry.sum_of_head(index);
    std::byte* const data = damaged ? nullptr : worker.room(entry.bytes);
    if (data == nullptr)
        return std::nullopt;
    damaged = !mapping_->read(offset + sizeof entry, {data, entry.bytes}) ||
              entry.data_sum != EntryHeader::sum({data, entry.bytes});
    if (damaged)
        return std::nullopt;
    return Held{{data, entry.bytes}, entry.target, entry.shape};
}

std::optional<SampleCache::Held> SampleCache::find(std::uint64_t index, Worker& worker) noexcept {
    std::uint64_t found = holds(index) ? word(index).load(std::memory_order_acquire) : 0;
    const std::uint64_t offset = found & ~std::uint64_t{state_bits};
    std::optional<Held> held;
    if ((found & state_bits) == whole && !in_file_) {
        const EntryHeader& entry = entry_at(*mapping_, offset);
        held = Held{{mapping_->data() + offset + sizeof(EntryHeader), entry.bytes}, entry.target, entry.shape};
    } else if ((found & state_bits) == whole) {
        bool damaged = false;
        held = read(index, offset, worker, damaged);
        // Where others have abandoned it and kept it anew in its place meanwhile, the word is the same again: that
        // costs a good sample.
        if (damaged && !gives_up() &&
            word(index).compare_exchange_strong(found, offset | abandoned, std::memory_order_acq_rel))
            held_.fetch_sub(1, std::memory_order_relaxed);
    }
    Counted& counted = counted_[worker.number_ % counted_.size()];
    (held ? counted.hits : counted.misses).fetch_add(1, std::memory_order_relaxed);
    return held;
}

bool SampleCache::holds(std::uint64_t index) const noexcept {
    return index < samples_ && !given_up_.load(std::memory_order_relaxed) &&
           (word(index).load(std::memory_order_relaxed) & state_bits) == whole;
}

SampleCache::Place SampleCache::reserve(std::uint64_t index, std::size_t bytes, Worker& worker) noexcept {
    const std::uint64_t end = mapping_->bytes();
    if (index >= samples_ || bytes == 0 || bytes > end || given_up_.load(std::memory_order_relaxed))
        return {};
    const std::uint64_t needed = sizeof(EntryHeader) + round_up(bytes);
    std::uint64_t before = word(index).load(std::memory_order_acquire);
    const std::uint64_t state = before & state_bits;
    std::uint64_t offset = before & ~std::uint64_t{state_bits};
    if (before == 0 ? needed > end - used().load(std::memory_order_relaxed) : state != abandoned)
        return {};
    std::byte* const room = in_file_ ? worker.room(bytes) : nullptr;
    if (in_file_ && (room == nullptr || gives_up()))
        return {};
    std::uint64_t capacity = needed - sizeof(EntryHeader);
    if (before == 0) {
        if (!word(index).compare_exchange_strong(before, writing, std::memory_order_acq_rel))
            return {};
        std::uint64_t begin = used().load(std::memory_order_relaxed);
        while (needed <= end - begin &&
               !used().compare_exchange_weak(begin, begin + needed, std::memory_order_seq_cst)) {
        }
        if (needed > end - begin) {
            word(index).store(0, std::memory_order_release);
            return {};
        }
        offset = begin;
        if (!in_file_) {
            entry_at(*mapping_, offset).capacity = capacity;
        } else {
            mapping_->write(offset, std::as_bytes(std::span{&capacity, 1}));
            put_used();
        }
        put_word(index, offset | writing);
    } else {
        if (!word(index).compare_exchange_strong(before, offset | writing, std::memory_order_acq_rel))
            return {};
        bool has_room = true;
        if (in_file_)
            has_room = mapping_->read(offset, std::as_writable_bytes(std::span{&capacity, 1}));
        else
            capacity = entry_at(*mapping_, offset).capacity;
        if (!has_room || bytes > capacity || capacity > end - offset - sizeof(EntryHeader)) {
            word(index).store(before, std::memory_order_release);
            return {};
        }
    }
    std::byte* const data = in_file_ ? room : mapping_->data() + offset + sizeof(EntryHeader);
    return Place{this, index, offset, capacity, {data, bytes}};
}

void SampleCache::keep(const Place& place, std::int64_t target, std::array<std::uint32_t, 4> shape) noexcept {
    EntryHeader entry{.capacity = place.capacity_,
                      .bytes = place.data_.size(),
                      .target = target,
                      .shape = shape,
                      .head_sum = 0,
                      .data_sum = 0};
    if (in_file_) {
        entry.data_sum = EntryHeader::sum(place.data_);
        entry.head_sum = entry.sum_of_head(place.index_);
        const bool written = !gives_up() && mapping_->write(place.offset_ + sizeof entry, place.data_) &&
                             mapping_->write(place.offset_, std::as_bytes(std::span{&entry, 1}));
        if (!written)
            return word(place.index_).store(place.offset_ | abandoned, std::memory_order_release);
    } else {
        entry_at(*mapping_, place.offset_) = entry;
    }
    held_.fetch_add(1, std::memory_order_relaxed);
    put_word(place.index_, place.offset_ | whole);
}

std::string SampleCache::origin() const {
    return given_up_.load(std::memory_order_relaxed) ? origin_ + ", given up: somebody cut the file" : origin_;
}

CacheCounters SampleCache::counters() const noexcept {
    const bool given_up = given_up_.load(std::memory_order_relaxed);
    CacheCounters sum{.samples = given_up ? 0 : held_.load(std::memory_order_relaxed),
                      .bytes = used().load(std::memory_order_relaxed),
                      .budget_bytes = mapping_->bytes()};
    for (const Counted& counted : counted_) {
        sum.hits += counted.hits.load(std::memory_order_relaxed);
        sum.misses += counted.misses.load(std::memory_order_relaxed);
    }
    return sum;
}

void set_cache_facts(Recorder& recorder, std::initializer_list<const SampleCache*> caches) {
    CacheCounters sum;
    std::string origin;
    for (const SampleCache* const cache : caches) {
        if (cache == nullptr)
            continue;
        const CacheCounters counters = cache->counters();
        sum.hits += counters.hits;
        sum.misses += counters.misses;
        sum.samples += counters.samples;
        sum.bytes += counters.bytes;
        sum.budget_bytes += counters.budget_bytes;
        if (origin.empty() || cache->in_file())
            origin = cache->origin();
    }
    if (origin.empty())
        return;
    recorder.set_fact(facts::cache_hits, std::to_string(sum.hits));
    recorder.set_fact(facts::cache_misses, std::to_string(sum.misses));
    recorder.set_fact(facts::cache_samples, std::to_string(sum.samples));
    recorder.set_fact(facts::cache_bytes, std::to_string(sum.bytes));
    recorder.set_fact(facts::cache_budget_bytes, std::to_string(sum.budget_bytes));
    recorder.set_fact(facts::cache_origin, origin);
}

}   // namespace drawpoint
