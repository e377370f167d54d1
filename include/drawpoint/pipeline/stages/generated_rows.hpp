#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <drawpoint/pipeline/loader/core/sample_source.hpp>
#include <drawpoint/pipeline/stages/stage.hpp>

namespace drawpoint {

/// Samples made by a user's function. One timed stage with the given name. A value. `data` of the view is not
/// initialised when the function is called: write all of it. What the function throws fails the sample (SampleError).
class FunctionRows final : public SampleSource {
public:
    /// A layout that is invalid is refused by the loader. For samples that may be cached, pass
    /// `SampleStage{name, function}.deterministic()`.
    FunctionRows(std::size_t size, const SampleLayout& layout, SampleStage make);

    [[nodiscard]] std::size_t size() const noexcept override { return size_; }
    [[nodiscard]] SampleLayout layout() const noexcept override { return layout_; }
    [[nodiscard]] std::vector<std::string> stages() const override { return {make_.name()}; }
    [[nodiscard]] std::string path(std::uint64_t) const override { return {}; }
    [[nodiscard]] std::unique_ptr<WorkerScratch> make_scratch() const override;
    void fill(SampleTask&, WorkerScratch&) const override;
    [[nodiscard]] std::string random_part() const override { return detail::random_part_of(make_); }

private:
    std::size_t size_;
    SampleLayout layout_;
    SampleStage make_;
};

/// `size` samples of shape `layout`, each made by `make(SampleView&)`, which writes the data and may set the target
/// (default 0). All workers call it concurrently; it must be copyable. Its only randomness should be `view.random`.
/// `size` may be 0. Throws std::invalid_argument for an empty name.
template <class F>
[[nodiscard]] FunctionRows from_function(std::size_t size, const SampleLayout& layout, std::string name, F make) {
    static_assert(std::invocable<const F&, SampleView&>,
                  "drawpoint: the function takes a SampleView& and can be called while const");
    return FunctionRows{size, layout, SampleStage{std::move(name), std::move(make)}};
}

/// Generated images of a learnable task: a wave whose direction, length and colour depend on the class, with random
/// phase and noise; float32 [3, side, side], values within ±1.5. Sample i has class i mod `num_classes` and is a pure
/// function of (seed, i). One timed stage, `generate`. A value.
class SyntheticImages final : public SampleSource {
public:
    /// All counts ≥ 1. Throws std::invalid_argument naming the one that is not.
    SyntheticImages(std::size_t size, std::size_t num_classes = 10, std::size_t side = 224, std::uint64_t seed = 0);

    [[nodiscard]] std::size_t num_classes() const noexcept { return num_classes_; }
    [[nodiscard]] std::size_t size() const noexcept override { return size_; }
    [[nodiscard]] SampleLayout layout() const noexcept override;
    [[nodiscard]] std::vector<std::string> stages() const override { return {"generate"}; }
    [[nodiscard]] std::string path(std::uint64_t) const override { return {}; }
    [[nodiscard]] std::unique_ptr<WorkerScratch> make_scratch() const override;
    void fill(SampleTask&, WorkerScratch&) const override;
    [[nodiscard]] std::string random_part() const override { return {}; }

private:
    std::size_t size_, num_classes_, side_;
    std::uint64_t seed_;
};

}   // namespace drawpoint
