#include <algorithm>
#include <numeric>
#include <vector>

#include <drawpoint/instrumentation/recorder/recorder.hpp>
#include <drawpoint/pipeline/loader/data_loader.hpp>
#include <drawpoint/pipeline/stages/generated_rows.hpp>
#include <drawpoint/pipeline/stages/image_stages.hpp>
#include <drawpoint/pipeline/stages/inject.hpp>
#include <drawpoint/pipeline/runtime/runtime.hpp>
#include <drawpoint/pipeline/sampling/sampler.hpp>
#include <drawpoint/pipeline/storage/image_folder.hpp>
#include <drawpoint/pipeline/stages/tensor_rows.hpp>

#include "loader.hpp"
#include "photo_settings.hpp"
#include "rows_file.hpp"
#include "straggler.hpp"

namespace drawpoint::bench {
namespace {

Awaitable<void> draw_all(DataLoader& loader, std::size_t epoch, EpochOptions options,
                         const std::function<bool(const BatchView&)>& see) {
    auto pass = loader.epoch(epoch, options);
    const std::size_t batches = pass.size().value();
    for (std::size_t i = 0; i < batches; ++i) {
        auto batch = co_await pass.next();
        if (!see({reinterpret_cast<const float*>(batch->data().data()), batch->targets()}))
            break;
    }
}

std::shared_ptr<const SampleSource> photos(const Workload& w) {
    ImageRecipe recipe = ImageFolder{w.data} | DecodeJpeg{jpeg_backend(w)} |
                         RandomResizedCrop{.height = w.side, .width = w.side, .filter = resize_filter(w)} |
                         RandomHorizontalFlip{} | Normalize::imagenet();
    if (w.variant == "latency_5ms")
        return inject(std::move(recipe), {parse_injection("read-latency=5ms")}, w.seed);
    return std::make_shared<const ImageRecipe>(std::move(recipe));
}

std::shared_ptr<const SampleSource> rows(const Workload& w) {
    struct Owned {
        explicit Owned(const Workload& workload) : rows{workload}, targets(workload.items) {
            std::iota(targets.begin(), targets.end(), 0);
        }
        RowsFile rows;
        std::vector<std::int64_t> targets;
    };
    const auto owned = std::make_shared<Owned>(w);
    const SampleLayout layout = w.kind == "tiny" ? SampleLayout{.rank = 1, .shape = {4}}
                                                 : SampleLayout{.rank = 3, .shape = {3, w.side, w.side}};
    return std::make_shared<const TensorRows>(std::as_bytes(owned->rows.all()), layout, owned->targets, owned);
}

std::shared_ptr<const SampleSource> stragglers(const Workload& w) {
    const auto make = [](SampleView& sample) {
        std::ranges::fill(sample.floats(), make_straggler(sample.index));
        *sample.target = static_cast<std::int64_t>(sample.index);
    };
    return std::make_shared<const FunctionRows>(
        from_function(w.items, SampleLayout{.rank = 1, .shape = {4}}, "sleep", make));
}

std::unique_ptr<Sampler> order_of(const Workload& w) {
    if (w.kind == "tiny")
        return std::make_unique<SequentialSampler>(w.items);
    return std::make_unique<RandomSampler>(w.items, w.seed);
}

/// As many batches ahead as torch::data has by default; items of very different cost need more.
std::size_t prefetch_depth(const Workload& w) {
    if (w.prefetch_depth != 0)
        return w.prefetch_depth;
    return std::min((w.kind == "straggler" ? 4 : 2) * w.num_workers, loader_limits::most_prefetch_depth);
}

class DrawpointLoader final : public Loader {
public:
    explicit DrawpointLoader(const Workload& w)
        : runtime_{{.max_threads = w.num_workers, .record = w.variant != "unrecorded"}, recorder_},
          source_{w.reads_photos()        ? photos(w)
                  : w.kind == "straggler" ? stragglers(w)
                                          : rows(w)},
          order_{order_of(w)},
          loader_{runtime_,
                  *source_,
                  *order_,
                  {.batch_size = w.batch_size,
                   .num_workers = w.num_workers,
                   .prefetch_depth = prefetch_depth(w),
                   .seed = w.seed,
                   .order = w.order == "in" ? OrderRule::in_order() : OrderRule::out_of_order()}} {}

    void pass(std::size_t epoch, bool more, const std::function<bool(const BatchView&)>& see) override {
        run(runtime_, draw_all(loader_, epoch, {.next_epoch = more}, see));
    }

    std::string describe() const override {
        return (runtime_.options().record ? "recording into memory, clock " + std::string{recorder_.clock().name()}
                                          : std::string{"not recording"}) +
               ", depth " + std::to_string(loader_.options().prefetch_depth);
    }

private:
    Recorder recorder_;
    Runtime runtime_;
    std::shared_ptr<const SampleSource> source_;
    std::unique_ptr<Sampler> order_;
    DataLoader loader_;
};

}   // namespace

std::unique_ptr<Loader> make_drawpoint(const Workload& workload) { return std::make_unique<DrawpointLoader>(workload); }

}   // namespace drawpoint::bench
