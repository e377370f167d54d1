#include <drawpoint/pipeline/stages/cached.hpp>

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include <fmt/format.h>

#include <drawpoint/pipeline/loader/core/sample_buffer.hpp>
#include <drawpoint/pipeline/stages/detail/stage_timer.hpp>

#include "pipeline/stages/cache_of.hpp"
#include "pipeline/stages/fingerprint.hpp"

namespace drawpoint {

namespace {

/// The source's reads, less those of samples that are held.
class UncachedReads final : public SampleReads {
public:
    UncachedReads(const SampleReads* reads, const SampleCache& cache) noexcept : reads_{reads}, cache_{&cache} {}
    void read(std::uint64_t index, std::vector<std::byte>& contents) const override { reads_->read(index, contents); }
    std::optional<FileRange> location(std::uint64_t index) const noexcept override { return reads_->location(index); }
    bool wants(std::uint64_t index) const noexcept override { return !cache_->holds(index) && reads_->wants(index); }

private:
    const SampleReads* reads_;
    const SampleCache* cache_;
};

struct CachedScratch final : WorkerScratch {
    std::unique_ptr<WorkerScratch> of_source;
    SampleCache::Worker worker;
};

/// A collating loader lets a stage reshape any sample; what is kept has one shape.
void check_shape(const SampleTask& task, const SampleLayout& layout) {
    if (task.buffer != nullptr && task.buffer->layout() != layout)
        throw std::invalid_argument{fmt::format(
            "cached: finished samples are kept only where all have one shape; a stage before it reshaped sample {}",
            task.index)};
}

/// What the finished sample `index` is; a sample that cannot be made is one of no bytes.
void add_sample(detail::Fingerprint& fingerprint, const SampleSource& source, std::uint64_t index) {
    const SampleLayout layout = source.layout();
    SampleBuffer buffer;
    std::int64_t target = 0;
    SampleTask task;
    task.index = index;
    task.data = buffer.reshape(layout);
    std::ranges::fill(task.data, std::byte{});
    task.target = &target;
    task.buffer = &buffer;
    bool complete = true;
    try {
        source.fill(task, *source.make_scratch());
    } catch (const std::exception&) {
        complete = false;
    }
    if (complete)
        check_shape(task, layout);
    fingerprint.add(complete ? buffer.data() : std::span<std::byte>{});
    fingerprint.add(static_cast<std::uint64_t>(target));
}

std::unique_ptr<SampleCache> cache_for(const SampleSource& source, const Cached& stage) {
    if (source.layout().varies())
        throw std::invalid_argument{"cached: finished samples are kept only where all have one shape"};
    if (const std::string part = source.random_part(); !part.empty())
        throw std::invalid_argument{detail::refused_by_cache(part)};
    const std::size_t size = source.size();
    return detail::cache_of(stage, size, [&](detail::Fingerprint& fingerprint) {
        const SampleLayout layout = source.layout();
        fingerprint.add("samples");
        fingerprint.add(static_cast<std::uint64_t>(layout.type));
        for (std::size_t dimension = 0; dimension < layout.rank; ++dimension)
            fingerprint.add(static_cast<std::uint64_t>(layout.shape[dimension]));
        for (const std::string& name : source.stages())
            fingerprint.add(name);
        const SampleReads* const reads = source.reads();
        bool has_files = true;
        for (std::uint64_t index = 0; index < size; ++index)
            has_files &= fingerprint.add_file(reads ? reads->location(index) : std::nullopt, source.path(index));
        for (const std::uint64_t index : detail::probes(size))
            if (size > 0)
                add_sample(fingerprint, source, index);
        return has_files;
    });
}

}   // namespace

namespace detail {

std::string refused_by_cache(std::string_view random_part) {
    return fmt::format("cached: it keeps one outcome for all epochs, so nothing before it may be random; found {}",
                       random_part);
}

std::unique_ptr<SampleCache> cache_of(const Cached& stage, std::size_t size,
                                      const std::function<bool(Fingerprint&)>& add_samples) {
    if (stage.file.empty())
        return std::make_unique<SampleCache>(size, stage.bytes);
    Fingerprint fingerprint;
    fingerprint.add(stage.tag);
    if (!add_samples(fingerprint) && stage.tag.empty())
        throw std::invalid_argument{fmt::format(
            "cached: {}: not all samples come from files whose age could be checked, so say what they are with "
            "a tag, and change it when they change: cached(bytes, file, tag)",
            stage.file.string())};
    return std::make_unique<SampleCache>(size, stage.bytes, stage.file, fingerprint.value());
}

}   // namespace detail

struct CachedSamples::State {
    std::shared_ptr<const SampleSource> source;
    SampleLayout layout;
    std::size_t stages;   // of the source
    std::unique_ptr<SampleCache> cache;
    UncachedReads reads;

    State(std::shared_ptr<const SampleSource> of, const Cached& stage)
        : source{std::move(of)},
          layout{source->layout()},
          stages{checked_stages(*source)},
          cache{cache_for(*source, stage)},
          reads{source->reads(), *cache} {}

    static std::size_t checked_stages(const SampleSource& of) {
        const std::size_t count = of.stages().size();
        detail::check_stage_count(count + 1, "cache");
        return count;
    }
};

CachedSamples::CachedSamples(std::shared_ptr<const SampleSource> source, const Cached& stage)
    : state_{std::make_shared<const State>(std::move(source), stage)} {}

std::size_t CachedSamples::size() const noexcept { return state_->source->size(); }
SampleLayout CachedSamples::layout() const noexcept { return state_->layout; }
std::string CachedSamples::path(std::uint64_t index) const { return state_->source->path(index); }
const SampleCache* CachedSamples::cache() const noexcept { return state_->cache.get(); }
const SampleReads* CachedSamples::reads() const noexcept { return state_->source->reads() ? &state_->reads : nullptr; }

std::vector<std::string> CachedSamples::stages() const {
    std::vector<std::string> names = state_->source->stages();
    names.emplace_back("cache");
    return names;
}

std::unique_ptr<WorkerScratch> CachedSamples::make_scratch() const {
    auto scratch = std::make_unique<CachedScratch>();
    scratch->of_source = state_->source->make_scratch();
    scratch->worker = state_->cache->make_worker();
    return scratch;
}

void CachedSamples::fill(SampleTask& task, WorkerScratch& worker_scratch) const {
    const State& state = *state_;
    auto& scratch = static_cast<CachedScratch&>(worker_scratch);
    const auto held = state.cache->find(task.index, scratch.worker);
    if (!held) {
        state.source->fill(task, *scratch.of_source);
        check_shape(task, state.layout);
        if (task.buffer != nullptr)
            task.data = task.buffer->data();   // reshaped twice, it may have moved
    } else
        for (const std::int64_t now = task.clock ? task.clock->now_ns() : 0; task.stage_count < state.stages;)
            task.stages[task.stage_count++] = {
                .begin_ns = now, .ns = 0, .cpu_ns = task.cpu_ns != no_stamp ? 0 : no_stamp};
    StageTimer timer{task};
    timer.begin();
    if (!held) {
        if (SampleCache::Place place = state.cache->reserve(task.index, task.data.size(), scratch.worker)) {
            std::memcpy(place.data().data(), task.data.data(), task.data.size());
            place.keep(*task.target);
        }
        return;
    }
    if (held->data.size() != task.data.size())
        throw std::runtime_error{fmt::format("cached: a sample of {} bytes where {} are needed: the cache is damaged",
                                             held->data.size(), task.data.size())};
    std::memcpy(task.data.data(), held->data.data(), task.data.size());
    *task.target = held->target;
}

}   // namespace drawpoint
