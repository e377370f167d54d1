#pragma once

#include <concepts>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <drawpoint/pipeline/byte_literals.hpp>
#include <drawpoint/pipeline/cache/sample_cache.hpp>
#include <drawpoint/pipeline/loader/core/sample_source.hpp>
#include <drawpoint/pipeline/stages/stage.hpp>

namespace drawpoint {

/// Caches, within a budget of bytes, the results of the recipe before it, so that they are computed only in the first
/// epoch (see `SampleCache`): decoded images in `photos | decode_image | cached(2_GiB) | RandomResizedCrop{224, 224}`,
/// whose crops stay random, or finished samples behind any other source. What is cached must not be random, otherwise
/// composing throws std::invalid_argument naming the random stage. In a `file` the samples persist from run to run, as
/// long as the data set's files, the recipe and `tag` stay the same.
struct Cached {
    std::uint64_t bytes = 0;      ///< budget: samples, 64 bytes with each, 8 bytes for each sample of the data set
    std::filesystem::path file;   ///< empty: in memory
    /// Change it when something changes that shows neither in the data set's files nor in the results for its first,
    /// middle and last sample. Required where samples do not come from files.
    std::string tag;
};

[[nodiscard]] inline Cached cached(std::uint64_t bytes, std::filesystem::path file = {}, std::string tag = {}) {
    return {bytes, std::move(file), std::move(tag)};
}

/// A cache of a source's finished samples. Its last timed stage is `cache`, which copies a sample out of the cache or
/// into it; on a hit the stages before it take no time. A value; copies share the cache.
class CachedSamples final : public SampleSource {
public:
    /// Throws as SampleCache's constructors, and std::invalid_argument if the source is random (naming the stage), has
    /// too many stages, or samples of varying shape.
    CachedSamples(std::shared_ptr<const SampleSource> source, const Cached&);

    [[nodiscard]] std::size_t size() const noexcept override;
    [[nodiscard]] SampleLayout layout() const noexcept override;
    [[nodiscard]] std::vector<std::string> stages() const override;
    [[nodiscard]] std::string path(std::uint64_t index) const override;
    [[nodiscard]] std::unique_ptr<WorkerScratch> make_scratch() const override;
    void fill(SampleTask&, WorkerScratch&) const override;
    [[nodiscard]] const SampleReads* reads() const noexcept override;
    [[nodiscard]] std::string random_part() const override { return {}; }
    [[nodiscard]] const SampleCache* cache() const noexcept override;

private:
    struct State;
    std::shared_ptr<const State> state_;
};

/// The source is copied, moved in from an rvalue, or shared if it is a shared_ptr.
template <class Source>
    requires std::derived_from<detail::shared_t<Source>, SampleSource>
[[nodiscard]] CachedSamples operator|(Source&& source, const Cached& stage) {
    return CachedSamples{detail::share(std::forward<Source>(source)), stage};
}

}   // namespace drawpoint
