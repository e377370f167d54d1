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
#include <drawpoint/pipeline/loader/sample_source.hpp>
#include <drawpoint/pipeline/stages/stage.hpp>

namespace drawpoint {

/// Keeps what the recipe before it makes from the second time on, within a budget of bytes (`SampleCache` says how):
/// decoded images in `photos | decode_image | cached(2_GiB) | RandomResizedCrop{224, 224}`, whose crops stay random;
/// finished samples behind any other source. What it keeps must not be random, else composing throws
/// std::invalid_argument naming what is. In a `file` the samples last from run to run, for as long as the data set's
/// files, the recipe and `tag` stay the same.
struct Cached {
    std::uint64_t bytes = 0;      ///< in all: samples, 64 bytes with each, 8 bytes for each sample of the data set
    std::filesystem::path file;   ///< empty: in memory
    std::string
        tag;   ///< a word to change when something changes that can be seen neither in the data set's files nor in
               ///< what becomes of its first, middle and last sample; needed where samples come from no files
};

[[nodiscard]] inline Cached cached(std::uint64_t bytes, std::filesystem::path file = {}, std::string tag = {}) {
    return {bytes, std::move(file), std::move(tag)};
}

/// A source's finished samples, kept. Its last timed stage is `cache`: copying a sample out of the cache, or into it;
/// the stages before take no time where it is a hit. A value; copies share the cache.
class CachedSamples final : public SampleSource {
public:
    /// Throws as SampleCache's constructors, and std::invalid_argument naming what is random, a stage too many, or a
    /// shape that varies.
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
