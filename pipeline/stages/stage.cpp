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
        const SampleView view{task.data, &layout_, task.target, 0, 0, {0, 0, 0}};
        detail::run_stage(stage, view, task, task.stage_count);
    }
}

std::string Recipe::random_part() const {
    std::string part = source_->random_part();
    for (auto stage = stages_.begin(); part.empty() && stage != stages_.end(); ++stage)
        part = detail::random_part_of(*stage);
    return part;
}

namespace detail {

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
