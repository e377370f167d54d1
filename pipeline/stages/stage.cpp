#include <drawpoint/pipeline/stage.hpp>

#include <fmt/format.h>

#include <drawpoint/pipeline/stage_timer.hpp>

namespace drawpoint {

std::span<float> SampleView::floats() const {
    if (layout->type != ScalarType::float32)
        throw std::logic_error{"SampleView::floats: the sample's type is not float32"};
    return {reinterpret_cast<float*>(data.data()), layout->values()};
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
        SampleView view{task.data,  &layout_,   task.target,
                        task.index, task.epoch, detail::random_of_stage(task, task.stage_count)};
        stage(view);
    }
}

namespace detail {

CounterRng random_of_stage(const SampleTask& task, std::uint32_t place) noexcept {
    return {task.seed + place * 0x9E3779B97F4A7C15u, static_cast<std::uint32_t>(task.epoch), task.index};
}

void check_stage_count(std::size_t count, std::string_view stage) {
    if (count > max_stages)
        throw std::invalid_argument{fmt::format("stage {}: a recipe has at most {} timed stages", stage, max_stages)};
}

}   // namespace detail
}   // namespace drawpoint
