#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <drawpoint/pipeline/image/pixels/image.hpp>
#include <drawpoint/pipeline/rng.hpp>
#include <drawpoint/pipeline/loader/core/sample_source.hpp>

namespace drawpoint {

/// The values of one sample in the batch's memory, which a user's stage reads and changes in place.
struct SampleView {
    std::span<std::byte> data;    ///< layout->bytes()
    const SampleLayout* layout;   ///< of this sample; varying sizes are 0 until reshape()
    std::int64_t* target;         ///< may be changed too
    std::uint64_t index, epoch;   ///< sample in the data set, and pass (0 for a deterministic() stage)
    /// Keyed by (seed, epoch, index) and the stage's position: the only randomness a stage may use
    CounterRng random;
    SampleBuffer* buffer = nullptr;   ///< where samples are collated; for reshape()

    /// The values. Throws std::logic_error unless the layout's type is float32.
    [[nodiscard]] std::span<float> floats() const;
    /// The values as type T. Throws std::logic_error unless T has the size of the layout's type.
    template <class T>
    [[nodiscard]] std::span<T> values() const {
        check_size_of_value(sizeof(T));
        return {reinterpret_cast<T*>(data.data()), data.size() / sizeof(T)};
    }
    /// Sets all sizes of a sample that is to be collated, and returns its memory. The first bytes are kept if the
    /// sample becomes smaller, else the contents are undefined. Allocates only beyond the largest sample so far. A
    /// stage that changes the layout's own sizes cannot be followed by `cached`. Throws std::logic_error where the
    /// loader does not collate, std::invalid_argument for another number of dimensions than the layout's, or for sizes
    /// beyond memory.
    std::span<std::byte> reshape(std::span<const std::int64_t> sizes);
    std::span<std::byte> reshape(std::initializer_list<std::int64_t> sizes) { return reshape(std::span{sizes}); }

private:
    void check_size_of_value(std::size_t bytes) const;
};

/// The pixels of one sample between two image stages, interleaved RGB8, which a user's stage changes in place.
struct PixelView {
    std::uint8_t* pixels;
    ImageSize size;
    std::size_t stride;   ///< bytes from row to row
    std::uint64_t index, epoch;
    CounterRng random;   ///< as in SampleView

    [[nodiscard]] ImageView image() const noexcept { return {pixels, size, stride}; }
};

/// A named function over a `SampleView` or a `PixelView`. Shared by all workers: calling it must be thread-safe.
template <class View>
class NamedStage {
public:
    /// Throws std::invalid_argument for an empty name.
    NamedStage(std::string name, std::function<void(View&)> function)
        : name_{std::move(name)}, function_{std::move(function)} {
        if (name_.empty())
            throw std::invalid_argument{"stage: the name must not be empty"};
    }
    [[nodiscard]] const std::string& name() const noexcept { return name_; }
    void operator()(View& view) const { function_(view); }

    /// This stage declared deterministic, so that its results can be cached: whatever seed and epoch are, it sees the
    /// same random numbers and epoch 0.
    [[nodiscard]] NamedStage deterministic() const {
        NamedStage same = *this;
        same.deterministic_ = true;
        return same;
    }
    [[nodiscard]] bool is_deterministic() const noexcept { return deterministic_; }

private:
    std::string name_;
    std::function<void(View&)> function_;
    bool deterministic_ = false;
};
using SampleStage = NamedStage<SampleView>;
using PixelStage = NamedStage<PixelView>;

/// A stage to put behind `|`: it has a `name()` and a const `operator()` over a `SampleView&` or a `PixelView&`.
template <class S>
concept UserStage = !std::derived_from<S, SampleSource> && requires(const S& stage) {
    { stage.name() } -> std::convertible_to<std::string_view>;
};

/// The kind of stage that a callable F makes. One over pixels goes between image stages, one over the sample behind
/// them.
template <class F>
using StageOf = std::conditional_t<std::invocable<const F&, SampleView&>, SampleStage, PixelStage>;

/// A named, timed stage of `function`, which takes a `SampleView&` or a `PixelView&`: `stage("augment", [](SampleView&)
/// {…})`.
template <class F>
[[nodiscard]] auto stage(std::string name, F function) {
    static_assert(
        std::invocable<const F&, SampleView&> || std::invocable<const F&, PixelView&>,
        "drawpoint: a stage's function takes a SampleView& (the sample's values) or a PixelView& (RGB8 pixels), "
        "and can be called while const, because all workers share it");
    return StageOf<F>{std::move(name), std::move(function)};
}

/// A source followed by users' stages, each of which changes the sample in place and is timed under its own name. A
/// value; copies share the source.
class Recipe final : public SampleSource {
public:
    /// Throws std::invalid_argument naming the stage that exceeds max_stages.
    Recipe(std::shared_ptr<const SampleSource> source, SampleStage stage);
    /// This recipe with one more stage. Throws as the constructor.
    [[nodiscard]] Recipe with(SampleStage stage) const;

    [[nodiscard]] std::size_t size() const noexcept override { return source_->size(); }
    [[nodiscard]] SampleLayout layout() const noexcept override { return layout_; }
    [[nodiscard]] std::vector<std::string> stages() const override;
    [[nodiscard]] std::string path(std::uint64_t index) const override { return source_->path(index); }
    [[nodiscard]] std::unique_ptr<WorkerScratch> make_scratch() const override { return source_->make_scratch(); }
    void fill(SampleTask&, WorkerScratch&) const override;
    [[nodiscard]] const SampleReads* reads() const noexcept override { return source_->reads(); }
    [[nodiscard]] std::string random_part() const override;
    [[nodiscard]] const SampleCache* cache() const noexcept override { return source_->cache(); }

private:
    std::shared_ptr<const SampleSource> source_;
    std::vector<SampleStage> stages_;
    SampleLayout layout_;
};

namespace detail {

/// A view of the sample in `task` for a source of this layout, without index, epoch and random numbers.
[[nodiscard]] SampleView view_of(const SampleTask&, const SampleLayout&) noexcept;
/// The random stream of a stage: that of (seed, epoch, index), made distinct by the stage's position.
[[nodiscard]] CounterRng random_of_stage(const SampleTask&, std::uint32_t place, bool deterministic = false) noexcept;
/// Runs `stage`, at position `place`, on `view`, whose index, epoch and random numbers it fills in.
template <class View>
void run_stage(const NamedStage<View>& stage, View view, const SampleTask& task, std::uint32_t place) {
    view.index = task.index;
    view.epoch = stage.is_deterministic() ? 0 : task.epoch;
    view.random = random_of_stage(task, place, stage.is_deterministic());
    stage(view);
}
/// The `random_part()` text for a stage; empty if the stage is deterministic.
template <class View>
std::string random_part_of(const NamedStage<View>& stage) {
    return stage.is_deterministic()
               ? std::string{}
               : "stage " + stage.name() + " (if it is not random, say so: stage(…).deterministic())";
}
/// Throws std::invalid_argument naming `stage` if it makes `count` exceed max_stages.
void check_stage_count(std::size_t count, std::string_view stage);

/// Moves a value into a shared_ptr; a shared_ptr is passed on.
template <class T>
auto share(T&& value) {
    return std::make_shared<const std::remove_cvref_t<T>>(std::forward<T>(value));
}
template <class T>
std::shared_ptr<const T> share(std::shared_ptr<T> value) {
    return value;
}
template <class T>
struct Shared {
    using type = T;
};
template <class T>
struct Shared<std::shared_ptr<T>> {
    using type = std::remove_const_t<T>;
};
template <class T>
using shared_t = typename Shared<std::remove_cvref_t<T>>::type;

template <class T>
concept TakesPixelStages = requires(const T& source, PixelStage stage) { source.with(std::move(stage)); };
template <class T>
concept Composable = std::derived_from<shared_t<T>, SampleSource> || TakesPixelStages<std::remove_cvref_t<T>>;

}   // namespace detail

/// A source followed by a user's stage. The source is copied, moved in from an rvalue, or shared if it is a shared_ptr.
template <class Left, UserStage S>
    requires detail::Composable<Left>
[[nodiscard]] auto operator|(Left&& left, S user_stage) {
    using Source = std::remove_cvref_t<Left>;
    static_assert(std::invocable<const S&, SampleView&> || std::invocable<const S&, PixelView&>,
                  "drawpoint: a stage has a const operator() that takes a SampleView& or a PixelView&");
    constexpr bool sees_values = std::invocable<const S&, SampleView&>;
    bool deterministic = false;
    if constexpr (requires {
                      { user_stage.is_deterministic() } -> std::convertible_to<bool>;
                  })
        deterministic = user_stage.is_deterministic();
    StageOf<S> named{std::string{std::string_view{user_stage.name()}}, std::move(user_stage)};
    if (deterministic)
        named = named.deterministic();
    if constexpr (sees_values) {
        static_assert(
            std::derived_from<detail::shared_t<Left>, SampleSource>,
            "drawpoint: a stage over a SampleView& comes after RandomResizedCrop{height, width} or CenterCrop: "
            "before, images differ in size; a stage over a PixelView& can stand here");
        if constexpr (std::same_as<Source, Recipe>)
            return left.with(std::move(named));
        else
            return Recipe{detail::share(std::forward<Left>(left)), std::move(named)};
    } else {
        static_assert(detail::TakesPixelStages<Source> && !std::same_as<Source, Recipe>,
                      "drawpoint: a stage over a PixelView& stands between decode_jpeg and Normalize");
        return left.with(std::move(named));
    }
}

}   // namespace drawpoint
