#include <drawpoint/pipeline/stages/stage.hpp>

#include <algorithm>

#include <fmt/format.h>

#include <drawpoint/pipeline/loader/core/sample_buffer.hpp>
#include <drawpoint/pipeline/stages/detail/stage_timer.hpp>

namespace drawpoint {

std::span<float> SampleView::floats() const {
    if (layout->type != ScalarType::float32)
        throw std::logic_error{"SampleView::floats: the sample's type is not float32"};
    return {reinterpret_cast<float*>(data.data()), layout->values()};
}

void SampleView::check_size_of_value(std::size_t bytes) const {
    if (bytes != size_of(layout->type))
        throw std::logic_error{
            fmt::format("SampleView::values: the sample's values have {} bytes, not {}", size_of(layout->type), bytes)};
}

std::span<std::byte> SampleView::reshape(std::span<const std::int64_t> sizes) {
    if (buffer == nullptr)
        throw std::logic_error{"SampleView::reshape: the loader does not collate (LoaderOptions::collate)"};
    if (sizes.size() != layout->rank)
        throw std::invalid_argument{
            fmt::format("SampleView::reshape: the layout has {} sizes, got {}", layout->rank, sizes.size())};
    SampleLayout said = *layout;
    std::ranges::copy(sizes, said.shape.begin());
    data = buffer->reshape(said);
    layout = &buffer->layout();
    return data;
}

Recipe::Recipe(std::shared_ptr<const SampleSource> source, SampleStage stage)
    : source_{std::move(source)}, layout_{source_->layout()} {
    detail::check_stage_count(source_->stages().size() + 1, stage.name());
    stages_.push_back(std::move(stage));
}

Recipe Recipe::with(SampleStage stage) const {
    Recipe longer = *this;
    detail::check_stage_count(stages().size() + 1, stage.name());
    longer.stages_.push_back(std::move(stage));
    return longer;
}

std::vector<std::string> Recipe::stages() const {
    std::vector<std::string> names = source_->stages();
    for (const SampleStage& stage : stages_)
        names.push_back(stage.name());
    return names;
}

void Recipe::fill(SampleTask& task, WorkerScratch& scratch) const {
    source_->fill(task, scratch);
    StageTimer timer{task};
    for (const SampleStage& stage : stages_) {
        timer.begin();
        detail::run_stage(stage, detail::view_of(task, layout_), task, task.stage_count);
    }
}

std::string Recipe::random_part() const {
    std::string part = source_->random_part();
    for (auto stage = stages_.begin(); part.empty() && stage != stages_.end(); ++stage)
        part = detail::random_part_of(*stage);
    return part;
}

namespace detail {

SampleView view_of(const SampleTask& task, const SampleLayout& layout) noexcept {
    SampleView view{task.data, &layout, task.target, 0, 0, {0, 0, 0}, task.buffer};
    if (task.buffer != nullptr && task.buffer->has_layout()) {
        view.data = task.buffer->data();
        view.layout = &task.buffer->layout();
    }
    return view;
}

CounterRng random_of_stage(const SampleTask& task, std::uint32_t place, bool deterministic) noexcept {
    const std::uint64_t seed = deterministic ? 0 : task.seed, epoch = deterministic ? 0 : task.epoch;
    return {seed + place * 0x9E3779B97F4A7C15u, static_cast<std::uint32_t>(epoch), task.index};
}

void check_stage_count(std::size_t count, std::string_view stage) {
    if (count > max_stages)
        throw std::invalid_argument{fmt::format("stage {}: a recipe has at most {} timed stages", stage, max_stages)};
}

}   // namespace detail
}   // namespace drawpoint
