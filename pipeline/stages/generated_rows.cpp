#include <drawpoint/pipeline/stages/generated_rows.hpp>

#include <cmath>
#include <numbers>
#include <stdexcept>

#include <fmt/format.h>

#include <drawpoint/pipeline/stages/detail/stage_timer.hpp>

namespace drawpoint {
namespace {

struct WaveScratch final : WorkerScratch {
    std::vector<float> sine, cosine;   // of the wave's phase along a row
};

}   // namespace

FunctionRows::FunctionRows(std::size_t size, const SampleLayout& layout, SampleStage make)
    : size_{size}, layout_{layout}, make_{std::move(make)} {}

std::unique_ptr<WorkerScratch> FunctionRows::make_scratch() const { return std::make_unique<WorkerScratch>(); }

void FunctionRows::fill(SampleTask& task, WorkerScratch&) const {
    StageTimer timer{task};
    timer.begin();
    *task.target = 0;
    detail::run_stage(make_, detail::view_of(task, layout_), task, task.stage_count);
}

SyntheticImages::SyntheticImages(std::size_t size, std::size_t num_classes, std::size_t side, std::uint64_t seed)
    : size_{size}, num_classes_{num_classes}, side_{side}, seed_{seed} {
    const auto at_least_1 = [](const char* field, std::size_t value) {
        if (value < 1)
            throw std::invalid_argument{fmt::format("SyntheticImages: {} must be at least 1, got 0", field)};
    };
    at_least_1("size", size);
    at_least_1("num_classes", num_classes);
    at_least_1("side", side);
}

SampleLayout SyntheticImages::layout() const noexcept {
    const auto side = static_cast<std::int64_t>(side_);
    return {ScalarType::float32, 3, {3, side, side}};
}

std::unique_ptr<WorkerScratch> SyntheticImages::make_scratch() const {
    auto scratch = std::make_unique<WaveScratch>();
    scratch->sine.resize(side_);
    scratch->cosine.resize(side_);
    return scratch;
}

void SyntheticImages::fill(SampleTask& task, WorkerScratch& worker_scratch) const {
    StageTimer timer{task};
    timer.begin();
    auto& [sine, cosine] = static_cast<WaveScratch&>(worker_scratch);
    CounterRng random{seed_, 0, task.index};
    const auto label = task.index % num_classes_;
    *task.target = static_cast<std::int64_t>(label);

    const double turn = static_cast<double>(label) / static_cast<double>(num_classes_);
    const double angle = std::numbers::pi * turn;
    const double waves = 6 + 8 * std::abs(turn - 0.5);   // across the image
    const double per_pixel = 2 * std::numbers::pi * waves / static_cast<double>(side_);
    const double phase = 2 * std::numbers::pi * random.uniform();
    for (std::size_t x = 0; x < side_; ++x) {
        const double at = phase + per_pixel * std::cos(angle) * static_cast<double>(x);
        sine[x] = static_cast<float>(std::sin(at));
        cosine[x] = static_cast<float>(std::cos(at));
    }
    std::uint32_t noise = random.next_u32();
    auto* out = reinterpret_cast<float*>(task.data.data());
    for (std::size_t channel = 0; channel < 3; ++channel) {
        const auto colour =
            static_cast<float>(0.6 + 0.4 * std::cos(2 * std::numbers::pi * (turn + static_cast<double>(channel) / 3)));
        for (std::size_t y = 0; y < side_; ++y) {
            const double down = per_pixel * std::sin(angle) * static_cast<double>(y);
            const float a = colour * static_cast<float>(std::cos(down)),
                        b = colour * static_cast<float>(std::sin(down));
            for (std::size_t x = 0; x < side_; ++x) {
                noise = noise * 1664525u + 1013904223u;
                const float uniform = static_cast<float>(static_cast<std::int32_t>(noise)) * 0x1p-31F;
                *out++ = a * sine[x] + b * cosine[x] + 0.5F * uniform;
            }
        }
    }
}

}   // namespace drawpoint
