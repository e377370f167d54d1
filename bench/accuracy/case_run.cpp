#include "case_run.hpp"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include <drawpoint/loop/fit.hpp>
#include <drawpoint/pipeline/collate.hpp>
#include <drawpoint/pipeline/data_loader.hpp>
#include <drawpoint/pipeline/image_stages.hpp>
#include <drawpoint/pipeline/storage/image_folder.hpp>

#include "case_source.hpp"
#include "work.hpp"

namespace drawpoint::bench {
namespace {

/// A loop that waits and burns, and knows when each step began.
class CaseLearner {
public:
    CaseLearner(const Case& of, double turns_per_us)
        : case_{&of}, turns_per_us_{turns_per_us}, team_{of.consumer.threads} {
        begins_.reserve(of.steps);
    }
    void begin_phase(bool) noexcept {}
    void forward(auto&) {
        const std::size_t step = begins_.size();
        begins_.push_back(SteadyClock{}.now_ns());
        disturb(static_cast<double>(step) / static_cast<double>(case_->steps));
        const double factor = step_factor(case_->consumer, step);
        sleep_us(case_->consumer.wait_us * factor);
        team_.burn_together(static_cast<std::uint64_t>(case_->consumer.work_us * factor * turns_per_us_));
    }
    void loss(auto&) noexcept {}
    void backward() noexcept {}
    void opt_step() noexcept {}
    void zero_grad() noexcept {}
    [[nodiscard]] double loss_value() const noexcept { return 0; }

    [[nodiscard]] const std::vector<std::int64_t>& begins_ns() const noexcept { return begins_; }

private:
    void disturb(double at) {
        if (case_->disturbance != Disturbance::external_load)
            return;
        if (at >= case_->disturbance_to)
            load_.reset();
        else if (at >= case_->disturbance_from && !load_)
            load_.emplace(static_cast<std::size_t>(case_->disturbance_size));
    }

    const Case* case_;
    double turns_per_us_;
    WorkTeam team_;
    std::vector<std::int64_t> begins_;
    std::optional<ForeignLoad> load_;
};

/// A loader whose batches are moved to a device that the loop waits for, in the draw.
class TransferLoader {
public:
    class Batch {
    public:
        Batch(drawpoint::Batch&& batch, const DrawStamps& stamps) noexcept
            : batch_{std::move(batch)}, stamps_{stamps} {}
        [[nodiscard]] std::size_t size() const noexcept { return batch_.size(); }
        [[nodiscard]] std::size_t number() const noexcept { return batch_.number(); }
        [[nodiscard]] DrawStamps draw_stamps() const noexcept { return stamps_; }

    private:
        drawpoint::Batch batch_;
        DrawStamps stamps_;
    };

    class Pass {
    public:
        using Batch = TransferLoader::Batch;
        Pass(DataLoader::Pass&& pass, double us, const AnyClock& clock) noexcept
            : pass_{std::move(pass)}, us_{us}, clock_{clock} {}
        [[nodiscard]] std::optional<std::size_t> size() const noexcept { return pass_.size(); }
        [[nodiscard]] Awaitable<std::optional<Batch>> next() {
            auto drawn = co_await pass_.next();
            if (!drawn)
                co_return std::nullopt;
            DrawStamps stamps = drawn->draw_stamps();
            sleep_us(us_);
            stamps.taken_ns = clock_.now_ns();
            co_return Batch{std::move(*drawn), stamps};
        }

    private:
        DataLoader::Pass pass_;
        double us_;
        AnyClock clock_;
    };

    TransferLoader(DataLoader& loader, double us, const AnyClock& clock) noexcept
        : loader_{&loader}, us_{us}, clock_{clock} {}
    [[nodiscard]] Pass epoch(std::size_t epoch, EpochOptions options = {}) {
        return {loader_->epoch(epoch, options), us_, clock_};
    }

private:
    DataLoader* loader_;
    double us_;
    AnyClock clock_;
};

LoaderOptions loader_options(const LoaderSetting& setting) {
    LoaderOptions options{.batch_size = setting.batch_size,
                          .num_workers = setting.num_workers,
                          .prefetch_depth = setting.prefetch_depth,
                          .read_concurrency = setting.read_concurrency,
                          .memory_budget = setting.memory_budget};
    if (setting.max_overtakes == any_order) {
        options.order = BatchOrder::out_of_order;
    } else if (setting.max_overtakes > 0) {
        options.order = BatchOrder::bounded;
        options.max_overtakes = setting.max_overtakes;
    }
    return options;
}

std::shared_ptr<const Collate> collate_of(const Case& of, const SampleLayout& layout, double turns_per_us) {
    const auto turns = static_cast<std::uint64_t>(of.collate_us * turns_per_us);
    return collate_with("stack", [layout, turns](const FinishedSamples& finished, CollatedBatch& batch) {
        const std::array shape{static_cast<std::int64_t>(finished.samples.size()),
                               static_cast<std::int64_t>(layout.values())};
        const std::span<std::byte> all = batch.add("data", layout.type, shape);
        for (std::size_t i = 0; i < finished.samples.size(); ++i)
            std::ranges::copy(finished.samples[i].data(),
                              all.begin() + static_cast<std::ptrdiff_t>(i * layout.bytes()));
        burn(turns);
    });
}

double rate_of(const std::vector<std::int64_t>& begins_ns, std::size_t warm_up) {
    if (begins_ns.size() < warm_up + 2)
        return 0;
    return static_cast<double>(begins_ns.size() - 1 - warm_up) * 1e9 /
           static_cast<double>(begins_ns.back() - begins_ns[warm_up]);
}

}   // namespace

Rig::Rig(std::string data) : data_{std::move(data)}, turns_per_us_{measure_turns_per_us()} {}

std::shared_ptr<const SampleSource> Rig::pictures() {
    if (!pictures_) {
        const std::filesystem::path folder =
            data_.empty() ? generated_.emplace(64).folder() : std::filesystem::path{data_};
        const auto images = std::make_shared<const ImageFolder>(folder);
        pictures_ = std::make_shared<const ImageRecipe>(images | decode_image | RandomResizedCrop{64, 64} |
                                                        Normalize::imagenet());
    }
    return pictures_;
}

std::size_t warm_up_steps(const Case& of) noexcept { return std::min<std::size_t>(20, of.steps / 5); }

CaseRun run_case(const Case& of, Rig& rig) {
    // So many batches more than are drawn that the last step is like the others: the loader still prefetches.
    const std::size_t samples =
        (of.steps + of.setting.prefetch_depth + of.setting.num_workers + 2) * of.setting.batch_size;
    const CaseSource source{of, samples, rig.turns_per_us(), of.jpeg() ? rig.pictures() : nullptr};
    const SequentialSampler sampler{samples};
    const std::shared_ptr<const Collate> collate =
        of.collate_us > 0 ? collate_of(of, source.layout(), rig.turns_per_us()) : nullptr;
    LoaderOptions options = loader_options(of.setting);
    options.collate = collate.get();
    RecorderOptions recording;
    if (of.disturbance == Disturbance::lost_records)
        recording.drop_share = of.disturbance_size;
    CaseRun run;
    Recorder recorder{recording};
    CaseLearner learner{of, rig.turns_per_us()};
    {
        Runtime runtime{{}, recorder};
        DataLoader loader{runtime, source, sampler, options};
        const FitOptions fit_options{.max_steps = of.steps, .record_loss = false};
        if (of.transfer_us > 0) {
            TransferLoader transfers{loader, of.transfer_us, recorder.clock()};
            drawpoint::run(runtime, fit(learner, transfers, fit_options, recorder));
        } else {
            drawpoint::run(runtime, fit(learner, loader, fit_options, recorder));
        }
        run.peak_bytes = loader.counters().peak_bytes;
    }
    run.batches_per_s = rate_of(learner.begins_ns(), warm_up_steps(of));
    recorder.finish();
    run.ledger = recorder.ledger();
    if (of.disturbance == Disturbance::clock_step) {
        const auto at = static_cast<std::size_t>(of.disturbance_from * static_cast<double>(of.steps));
        step_clock(run.ledger, learner.begins_ns().at(at), static_cast<std::int64_t>(of.disturbance_size * 1e6));
    }
    return run;
}

void step_clock(Ledger& ledger, std::int64_t at_ns, std::int64_t by_ns) {
    const auto shift = [&](std::int64_t& stamp) {
        if (stamp != no_stamp && stamp >= at_ns)
            stamp += by_ns;
    };
    const auto stretch = [&](std::int64_t& begin_ns, std::int64_t& ns) {
        std::int64_t end_ns = begin_ns + ns;
        shift(begin_ns);
        shift(end_ns);
        ns = end_ns - begin_ns;
    };
    for (StepRow& row : ledger.steps) {
        std::int64_t batch_begin_ns = row.draw_begin_ns + row.draw_ns;
        stretch(batch_begin_ns, row.batch_ns);
        stretch(row.draw_begin_ns, row.draw_ns);
    }
    for (SpanRow& row : ledger.spans)
        stretch(row.begin_ns, row.ns);
    for (PassRow& row : ledger.passes) {
        shift(row.begin_ns);
        shift(row.end_ns);
    }
    for (BatchRow& row : ledger.batches)
        for (std::int64_t BatchRow::* const stamp :
             {&BatchRow::admitted_ns, &BatchRow::first_claim_ns, &BatchRow::last_done_ns, &BatchRow::collate_begin_ns,
              &BatchRow::collate_end_ns, &BatchRow::transfer_issue_ns, &BatchRow::transfer_done_ns,
              &BatchRow::offered_ns, &BatchRow::taken_ns})
            shift(row.*stamp);
    for (SampleRow& row : ledger.samples)
        for (std::int64_t SampleRow::* const stamp :
             {&SampleRow::begin_ns, &SampleRow::read_begin_ns, &SampleRow::read_end_ns})
            shift(row.*stamp);
    for (StageRow& row : ledger.stages)
        stretch(row.begin_ns, row.ns);
    for (HostRow& row : ledger.host)
        shift(row.at_ns);
}

}   // namespace drawpoint::bench
