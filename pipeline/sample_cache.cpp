#include <drawpoint/pipeline/sample_cache.hpp>

#include <stdexcept>
#include <utility>

#include <drawpoint/instrumentation/recorder.hpp>
#include <drawpoint/instrumentation/report/facts.hpp>

#include "pipeline/batch_digest.hpp"
#include "pipeline/cache_mapping.hpp"

namespace drawpoint {

namespace {

constexpr std::uint64_t line = 64;   // samples begin at multiples of it, which leaves the index's words six bits

/// The state of a sample, in its index word beside its offset. A word of 0: there is none.
enum State : std::uint64_t {
    writing = 1,     // by somebody
    abandoned = 2,   // whoever wrote it gave up: its place is for the next
    whole = 3,
    unchecked = 4,   // whole, if the file says the truth
    state_bits = line - 1,
};

/// Stands before each sample.
struct alignas(line) EntryHeader {
    std::uint64_t capacity, bytes;   // of the data that follow
    std::int64_t target;
    std::array<std::uint32_t, 4> shape;
    std::uint64_t checksum;   // in a file: of all but the capacity

    [[nodiscard]] std::uint64_t sum(std::uint64_t index, const std::byte* data) const noexcept {
        const std::array<std::uint64_t, 5> fields{index, bytes, static_cast<std::uint64_t>(target),
                                                  std::uint64_t{shape[0]} << 32 | shape[1],
                                                  std::uint64_t{shape[2]} << 32 | shape[3]};
        BatchDigest digest;
        digest.add({data, bytes});
        digest.add(std::as_bytes(std::span{fields}));
        return digest.value();
    }
};
static_assert(sizeof(EntryHeader) == line);

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
    : cache_{std::exchange(other.cache_, nullptr)}, index_{other.index_}, offset_{other.offset_}, data_{other.data_} {}

SampleCache::Place& SampleCache::Place::operator=(Place&& other) noexcept {
    Place before{std::move(*this)};
    cache_ = std::exchange(other.cache_, nullptr);
    index_ = other.index_;
    offset_ = other.offset_;
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

/// The index of a file that another process left: nothing in it is believed before it is checked.
void SampleCache::adopt() noexcept {
    std::uint64_t held = 0;
    for (std::uint64_t index = 0; index < samples_; ++index) {
        const std::uint64_t found = word(index).load(std::memory_order_relaxed);
        const std::uint64_t offset = found & ~std::uint64_t{state_bits}, state = found & state_bits;
        std::uint64_t now = 0;
        if (offset >= arena_ && offset + sizeof(EntryHeader) <= used().load(std::memory_order_relaxed))
            now = offset | (state == whole || state == unchecked ? unchecked : abandoned);
        held += (now & state_bits) == unchecked;
        if (now != found)
            word(index).store(now, std::memory_order_relaxed);
    }
    held_.store(held, std::memory_order_relaxed);
}

bool SampleCache::is_whole(std::uint64_t index, std::uint64_t offset) const noexcept {
    const EntryHeader& entry = entry_at(*mapping_, offset);
    return entry.bytes > 0 && entry.bytes <= mapping_->bytes() - offset - sizeof(EntryHeader) &&
           entry.checksum == entry.sum(index, mapping_->data() + offset + sizeof(EntryHeader));
}

std::optional<SampleCache::Held> SampleCache::find(std::uint64_t index, std::size_t worker) noexcept {
    Counted& counted = counted_[worker % counted_.size()];
    std::uint64_t found = index < samples_ ? word(index).load(std::memory_order_acquire) : 0;
    std::uint64_t offset = found & ~std::uint64_t{state_bits};
    if ((found & state_bits) == unchecked) {
        const std::uint64_t checked = offset | (is_whole(index, offset) ? whole : abandoned);
        if (word(index).compare_exchange_strong(found, checked, std::memory_order_acq_rel)) {
            found = checked;
            held_.fetch_sub((checked & state_bits) == abandoned, std::memory_order_relaxed);
        }   // else somebody else checked it meanwhile, and `found` says what came out
        offset = found & ~std::uint64_t{state_bits};
    }
    if ((found & state_bits) != whole) {
        counted.misses.fetch_add(1, std::memory_order_relaxed);
        return std::nullopt;
    }
    counted.hits.fetch_add(1, std::memory_order_relaxed);
    const EntryHeader& entry = entry_at(*mapping_, offset);
    return Held{{mapping_->data() + offset + sizeof(EntryHeader), entry.bytes}, entry.target, entry.shape};
}

bool SampleCache::holds(std::uint64_t index) const noexcept {
    if (index >= samples_)
        return false;
    const std::uint64_t state = word(index).load(std::memory_order_relaxed) & state_bits;
    return state == whole || state == unchecked;
}

SampleCache::Place SampleCache::reserve(std::uint64_t index, std::size_t bytes) noexcept {
    const std::uint64_t end = mapping_->bytes();
    if (index >= samples_ || bytes == 0 || bytes > end)
        return {};
    const std::uint64_t needed = sizeof(EntryHeader) + round_up(bytes);
    std::uint64_t before = word(index).load(std::memory_order_acquire);
    const std::uint64_t state = before & state_bits;
    std::uint64_t offset = before & ~std::uint64_t{state_bits};
    if (before == 0) {
        std::uint64_t begin = used().load(std::memory_order_relaxed);
        if (needed > end - begin || !word(index).compare_exchange_strong(before, writing, std::memory_order_acq_rel))
            return {};
        while (needed <= end - begin &&
               !used().compare_exchange_weak(begin, begin + needed, std::memory_order_relaxed)) {
        }
        if (needed > end - begin) {
            word(index).store(0, std::memory_order_release);
            return {};
        }
        offset = begin;
        entry_at(*mapping_, offset).capacity = needed - sizeof(EntryHeader);
        word(index).store(offset | writing, std::memory_order_release);
    } else if (state == abandoned) {
        if (!word(index).compare_exchange_strong(before, offset | writing, std::memory_order_acq_rel))
            return {};
        const std::uint64_t capacity = entry_at(*mapping_, offset).capacity;
        if (bytes > capacity || capacity > end - offset - sizeof(EntryHeader)) {
            word(index).store(before, std::memory_order_release);
            return {};
        }
    } else {
        return {};
    }
    return Place{this, index, offset, {mapping_->data() + offset + sizeof(EntryHeader), bytes}};
}

void SampleCache::keep(const Place& place, std::int64_t target, std::array<std::uint32_t, 4> shape) noexcept {
    EntryHeader& entry = entry_at(*mapping_, place.offset_);
    entry.bytes = place.data_.size();
    entry.target = target;
    entry.shape = shape;
    entry.checksum = in_file_ ? entry.sum(place.index_, place.data_.data()) : 0;
    held_.fetch_add(1, std::memory_order_relaxed);
    word(place.index_).store(place.offset_ | whole, std::memory_order_release);
}

CacheCounters SampleCache::counters() const noexcept {
    CacheCounters sum{.samples = held_.load(std::memory_order_relaxed),
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
