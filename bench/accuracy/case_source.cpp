#include "case_source.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include <drawpoint/pipeline/stages/detail/stage_timer.hpp>

#include "work.hpp"

namespace drawpoint::bench {
namespace {

struct Scratch final : WorkerScratch {
    std::unique_ptr<WorkerScratch> picture;
    std::vector<std::byte> contents;
};

}   // namespace

CaseSource::CaseSource(const Case& of, std::size_t samples, std::shared_ptr<const Pictures> pictures)
    : case_{of}, samples_{samples}, pictures_{std::move(pictures)} {
    if (case_.jpeg() && !pictures_)
        throw std::invalid_argument{"case " + case_.name + ": no pictures to decode"};
    // The data set is longer than the run. Factors repeat, so that a stage's mean is that of the samples drawn.
    const auto factors = [&](const Variation& variation, bool by_size, std::size_t place) {
        std::vector<double> drawn =
            factors_of(variation, by_size ? 0 : place, case_.steps * case_.setting.batch_size, case_.sample_set);
        const std::size_t known = drawn.size();
        drawn.resize(std::max(samples, known));
        for (std::size_t i = known; i < drawn.size(); ++i)
            drawn[i] = drawn[i % known];
        return drawn;
    };
    read_factors_ = factors(case_.read.variation, case_.read.by_size, 1);
    for (std::size_t stage = 0; stage < case_.stages.size(); ++stage)
        factors_.push_back(factors(case_.stages[stage].variation, case_.stages[stage].by_size, stage + 2));
}

SampleLayout CaseSource::layout() const noexcept {
    return case_.jpeg()
               ? pictures_->source->layout()
               : SampleLayout{.rank = 1, .shape = {static_cast<std::int64_t>(case_.sample_bytes / sizeof(float))}};
}

std::vector<std::string> CaseSource::stages() const {
    std::vector<std::string> names;
    if (case_.read.any())
        names.emplace_back("read");
    for (const CaseStage& stage : case_.stages)
        names.push_back(stage.name);
    return names;
}

std::unique_ptr<WorkerScratch> CaseSource::make_scratch() const {
    auto scratch = std::make_unique<Scratch>();
    if (case_.jpeg())
        scratch->picture = pictures_->source->make_scratch();
    return scratch;
}

double CaseSource::disturbed(std::uint64_t index) const noexcept {
    const double at = static_cast<double>(index) / static_cast<double>(case_.steps * case_.setting.batch_size);
    if (case_.disturbance == Disturbance::speed_up)
        return at >= case_.disturbance_from ? 1 / case_.disturbance_size : 1;
    if (case_.disturbance == Disturbance::drift)
        return 1 + (case_.disturbance_size - 1) * std::min(at, 1.0);
    return 1;
}

void CaseSource::Reads::read(std::uint64_t index, std::vector<std::byte>& contents) const {
    const CaseRead& read = of_->case_.read;
    const double factor = of_->read_factors_[index] * of_->disturbed(index);
    const double bytes = read.bytes * factor;
    if (of_->case_.jpeg() && of_->pictures_->source->reads() != nullptr)
        of_->pictures_->source->reads()->read(index % of_->pictures_->shares.size(), contents);
    else
        contents.resize(static_cast<std::size_t>(std::max(bytes, 8.0)));
    sleep_us(read.latency_us * factor);
    if (read.megabytes_per_s <= 0)
        return;
    const std::int64_t now = SteadyClock{}.now_ns();
    const auto needs = static_cast<std::int64_t>(bytes * 1e3 / read.megabytes_per_s);
    std::int64_t free = of_->line_free_ns_.load(std::memory_order_relaxed);
    while (!of_->line_free_ns_.compare_exchange_weak(free, std::max(free, now) + needs, std::memory_order_relaxed)) {
    }
    sleep_us(static_cast<double>(std::max(free, now) + needs - now) * 1e-3);
}

double CaseSource::left_after_decoding(const CaseStage& stage, double work_us, SampleTask& task,
                                       WorkerScratch* scratch) const {
    const double begin_us = thread_cpu_us();
    SampleTask picture;
    picture.index = task.index % pictures_->shares.size();
    picture.seed = task.seed;
    picture.data = task.data;
    picture.target = task.target;
    picture.contents = case_.read.any() && pictures_->source->reads() != nullptr ? task.contents : nullptr;
    for (std::size_t time = 0; time < stage.jpeg_decodes; ++time) {
        picture.stage_count = 0;
        pictures_->source->fill(picture, *scratch);
    }
    return work_us * pictures_->shares[picture.index] - (thread_cpu_us() - begin_us);
}

void CaseSource::fill(SampleTask& task, WorkerScratch& any) const {
    auto& scratch = static_cast<Scratch&>(any);
    StageTimer timer{task};
    const std::vector<std::byte>* const given = task.contents;
    if (case_.read.any()) {
        timer.begin();
        if (given == nullptr) {
            reads_.read(task.index, scratch.contents);
            task.contents = &scratch.contents;
        }
        task.bytes_read = task.contents->size();
    }
    if (!case_.jpeg()) {
        std::memset(task.data.data(), 0, task.data.size());
        *task.target = static_cast<std::int64_t>(task.index);
    }
    const double more = disturbed(task.index);
    for (std::size_t at = 0; at < case_.stages.size(); ++at) {
        const CaseStage& stage = case_.stages[at];
        timer.begin();
        const double factor = factors_[at][task.index] * more;
        double work_us = stage.work_us * factor;
        if (stage.jpeg_decodes > 0)
            work_us = left_after_decoding(stage, work_us, task, scratch.picture.get());
        sleep_us(stage.wait_us * factor);
        burn(work_us);
    }
    task.contents = given;   // as the loader passed it, possibly null
}

}   // namespace drawpoint::bench
