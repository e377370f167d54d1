#include "case_pipeline.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <utility>

namespace drawpoint::bench {
namespace {

/// A loader that copies each batch to a device within the draw, so that the loop waits for the copy.
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

LoaderOptions loader_options(const LoaderSetting& setting, const Collate* collate) {
    LoaderOptions options = options_of(setting);
    options.collate = collate;
    return options;
}

/// Null if the case's samples are made in their place.
std::shared_ptr<const Collate> collate_of(const Case& of, const SampleLayout& layout) {
    if (of.collate_us <= 0)
        return nullptr;
    return collate_with("stack", [layout, us = of.collate_us](const FinishedSamples& finished, CollatedBatch& batch) {
        const std::array shape{static_cast<std::int64_t>(finished.samples.size()),
                               static_cast<std::int64_t>(layout.values())};
        const std::span<std::byte> all = batch.add("data", layout.type, shape);
        for (std::size_t i = 0; i < finished.samples.size(); ++i)
            std::ranges::copy(finished.samples[i].data(),
                              all.begin() + static_cast<std::ptrdiff_t>(i * layout.bytes()));
        burn(us);
    });
}

}   // namespace

CasePipeline::CasePipeline(const Case& of, Rig& rig, const Sampler& sampler, std::size_t samples, Recorder& recorder)
    : case_{&of},
      recorder_{&recorder},
      source_{of, samples, of.jpeg() ? rig.pictures() : nullptr},
      collate_{collate_of(of, source_.layout())},
      learner_{of},
      runtime_{{}, recorder},
      loader_{runtime_, source_, sampler, loader_options(of.setting, collate_.get())} {}

void CasePipeline::fit(const FitOptions& options, CallbackList& callbacks) {
    if (case_->transfer_us > 0) {
        TransferLoader transfers{loader_, case_->transfer_us, recorder_->clock()};
        run(runtime_, drawpoint::fit(learner_, transfers, options, callbacks, *recorder_));
    } else {
        run(runtime_, drawpoint::fit(learner_, loader_, options, callbacks, *recorder_));
    }
}

}   // namespace drawpoint::bench
