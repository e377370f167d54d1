#include "contender.hpp"

#include <drawpoint/instrumentation/recorder.hpp>
#include <drawpoint/pipeline/data_loader.hpp>
#include <drawpoint/pipeline/image_stages.hpp>
#include <drawpoint/pipeline/runtime.hpp>
#include <drawpoint/pipeline/sampler.hpp>
#include <drawpoint/pipeline/storage/image_folder.hpp>

namespace drawpoint::bench {
namespace {

Awaitable<void> draw_all(DataLoader& loader, std::size_t epoch, EpochOptions options,
                         const std::function<void(const BatchView&)>& see) {
    auto pass = loader.epoch(epoch, options);
    const std::size_t batches = pass.size().value();
    for (std::size_t i = 0; i < batches; ++i) {
        auto batch = co_await pass.next();
        see({reinterpret_cast<const float*>(batch->data().data()), batch->targets()});
    }
}

class DrawpointLoader final : public Contender {
public:
    explicit DrawpointLoader(const Workload& w)
        : runtime_{{.max_threads = w.num_workers}, recorder_},
          photos_{std::make_shared<const ImageFolder>(w.data)},
          recipe_{photos_ | decode_jpeg | RandomResizedCrop{w.side, w.side} | RandomHorizontalFlip{} |
                  Normalize::imagenet()},
          order_{photos_->size(), w.seed},
          // As many batches ahead as torch::data takes by default.
          loader_{runtime_,
                  recipe_,
                  order_,
                  {.batch_size = w.batch_size,
                   .num_workers = w.num_workers,
                   .prefetch_depth = 2 * w.num_workers,
                   .seed = w.seed}} {}

    void pass(std::size_t epoch, bool more, const std::function<void(const BatchView&)>& see) override {
        run(runtime_, draw_all(loader_, epoch, {.next_epoch = more}, see));
    }

    std::string describe() const override {
        return "recording into memory, clock " + std::string{recorder_.clock().name()};
    }

private:
    Recorder recorder_;
    Runtime runtime_;
    std::shared_ptr<const ImageFolder> photos_;
    ImageRecipe recipe_;
    RandomSampler order_;
    DataLoader loader_;
};

}   // namespace

std::unique_ptr<Contender> make_drawpoint(const Workload& workload) {
    return std::make_unique<DrawpointLoader>(workload);
}

}   // namespace drawpoint::bench
