#include <fstream>
#include <optional>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include <ATen/Parallel.h>
#include <torch/data.h>
#include <torch/version.h>

#include <drawpoint/pipeline/image/crop.hpp>
#include <drawpoint/pipeline/image/jpeg.hpp>
#include <drawpoint/pipeline/sampling/sampler.hpp>
#include <drawpoint/pipeline/storage/image_folder.hpp>

#include "loader.hpp"
#include "photo_settings.hpp"
#include "rows_file.hpp"
#include "straggler.hpp"
#include "whole_jpeg.hpp"

namespace drawpoint::bench {
namespace {

std::vector<unsigned char> read_bytes(const char* path) {
    std::ifstream file{path, std::ios::binary | std::ios::ate};
    std::vector<unsigned char> bytes(static_cast<std::size_t>(file.tellg()));
    file.seekg(0);
    if (!file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size())))
        throw std::runtime_error{std::string{"cannot read "} + path};
    return bytes;
}

/// The whole picture as uint8 [height, width, 3], like torchvision's decode_jpeg.
torch::Tensor decoded(const std::vector<unsigned char>& bytes) {
    torch::Tensor image;
    decode_whole(std::as_bytes(std::span{bytes}), [&image](std::int64_t height, std::int64_t width) {
        image = torch::empty({height, width, 3}, torch::kUInt8);
        return image.data_ptr<std::uint8_t>();
    });
    return image;
}

/// What all copies of the dataset share; LibTorch gives every worker its own copy of the dataset.
struct Shared {
    Workload workload;
    std::optional<ImageFolder> photos;
    std::optional<RowsFile> rows;
    std::size_t epoch = 0;   // written only between passes, when no worker runs
};

/// The random crop and flip of a sample, drawn as drawpoint's recipe draws them.
struct Chance {
    Chance(const Shared& shared, std::size_t index, ImageSize size) {
        CounterRng random{shared.workload.seed, static_cast<std::uint32_t>(shared.epoch), index};
        box = random_resized_crop(size, {}, random);
        flip = random.uniform() < 0.5;
    }
    CropBox box;
    bool flip;
};

torch::data::Example<> example(torch::Tensor data, std::size_t target) {
    return {std::move(data), torch::tensor(static_cast<std::int64_t>(target))};
}

/// Variant "torch-data" resizes bytes; "torch-data-float" converts after the crop, and resizes planes of floats.
class AtenPhotos : public torch::data::Dataset<AtenPhotos> {
public:
    explicit AtenPhotos(std::shared_ptr<const Shared> shared) : shared_{std::move(shared)} {
        const auto imagenet = ChannelNormalization::imagenet();
        mean_ = torch::tensor(at::ArrayRef<float>{imagenet.mean}).view({3, 1, 1});
        deviation_ = torch::tensor(at::ArrayRef<float>{imagenet.standard_deviation}).view({3, 1, 1});
    }

    torch::data::Example<> get(std::size_t index) override {
        const torch::NoGradGuard no_grad;
        const torch::Tensor image = decoded(read_bytes(shared_->photos->path(index)));
        const Chance chance{
            *shared_, index, {static_cast<std::uint32_t>(image.size(1)), static_cast<std::uint32_t>(image.size(0))}};
        const CropBox& box = chance.box;
        const std::int64_t side = shared_->workload.side;
        torch::Tensor crop = image.narrow(0, box.y, box.height).narrow(1, box.x, box.width).permute({2, 0, 1});
        // uint8 in channels-last order is the fastest way through ATen's antialiased resize: float32 takes 1.7x the
        // time.
        if (shared_->workload.contender == "torch-data-float")
            crop = crop.to(torch::kFloat32, false, false, torch::MemoryFormat::Contiguous);
        torch::Tensor resized = (resize_filter(shared_->workload) == ResizeFilter::antialias
                                     ? at::_upsample_bilinear2d_aa(crop.unsqueeze(0), {side, side}, false)
                                     : at::upsample_bilinear2d(crop.unsqueeze(0), {side, side}, false))
                                    .squeeze(0);
        if (chance.flip)
            resized = resized.flip({2});
        torch::Tensor values = resized.contiguous().to(torch::kFloat32);
        return example(values.div_(255).sub_(mean_).div_(deviation_), shared_->photos->label(index));
    }

    std::optional<std::size_t> size() const override { return shared_->workload.items; }

private:
    std::shared_ptr<const Shared> shared_;
    torch::Tensor mean_, deviation_;
};

/// The same with drawpoint's kernel in get(), so that only the loader differs from drawpoint.
class DrawpointPhotos : public torch::data::Dataset<DrawpointPhotos> {
public:
    explicit DrawpointPhotos(std::shared_ptr<const Shared> shared)
        : shared_{std::move(shared)}, decoder_{jpeg_backend(shared_->workload)} {}
    // each worker's copy makes its own decoder
    DrawpointPhotos(const DrawpointPhotos& other) : DrawpointPhotos{other.shared_} {}
    DrawpointPhotos(DrawpointPhotos&&) = default;

    torch::data::Example<> get(std::size_t index) override {
        const std::vector<unsigned char> bytes = read_bytes(shared_->photos->path(index));
        decoder_.open(std::as_bytes(std::span{bytes}));
        const Chance chance{*shared_, index, decoder_.size()};
        const std::uint32_t side = shared_->workload.side;
        torch::Tensor values = torch::empty({3, side, side});
        decoder_.decode(chance.box, {side, side}, chance.flip, resize_filter(shared_->workload),
                        {ChannelNormalization::imagenet(), values.data_ptr<float>()});
        return example(std::move(values), shared_->photos->label(index));
    }

    std::optional<std::size_t> size() const override { return shared_->workload.items; }

private:
    std::shared_ptr<const Shared> shared_;
    JpegDecoder decoder_;
};

/// Views of rows that exist already.
class ReadyRows : public torch::data::Dataset<ReadyRows> {
public:
    explicit ReadyRows(std::shared_ptr<const Shared> shared) : shared_{std::move(shared)} {
        const std::int64_t side = shared_->workload.side, count = static_cast<std::int64_t>(shared_->workload.items);
        const std::vector<std::int64_t> shape = shared_->workload.kind == "tiny"
                                                    ? std::vector<std::int64_t>{count, 4}
                                                    : std::vector<std::int64_t>{count, 3, side, side};
        rows_ = torch::from_blob(const_cast<float*>(shared_->rows->row(0)), shape);
    }
    torch::data::Example<> get(std::size_t index) override {
        return example(rows_.select(0, static_cast<std::int64_t>(index)), index);
    }
    std::optional<std::size_t> size() const override { return shared_->workload.items; }

private:
    std::shared_ptr<const Shared> shared_;
    torch::Tensor rows_;
};

class Stragglers : public torch::data::Dataset<Stragglers> {
public:
    explicit Stragglers(std::shared_ptr<const Shared> shared) : shared_{std::move(shared)} {}
    torch::data::Example<> get(std::size_t index) override {
        return example(torch::full({4}, make_straggler(index)), index);
    }
    std::optional<std::size_t> size() const override { return shared_->workload.items; }

private:
    std::shared_ptr<const Shared> shared_;
};

/// The order of drawpoint's sampler as a LibTorch sampler.
class SameOrder : public torch::data::samplers::Sampler<> {
public:
    explicit SameOrder(std::shared_ptr<const Shared> shared)
        : shared_{std::move(shared)}, order_(shared_->workload.items) {}

    void reset(std::optional<std::size_t> /*new_size*/ = std::nullopt) override {
        if (shared_->workload.kind == "tiny")
            SequentialSampler{order_.size()}.order(shared_->epoch, order_);
        else
            RandomSampler{order_.size(), shared_->workload.seed}.order(shared_->epoch, order_);
        next_ = 0;
    }
    std::optional<std::vector<std::size_t>> next(std::size_t batch_size) override {
        if (next_ == order_.size())
            return std::nullopt;
        const std::size_t end = std::min(order_.size(), next_ + batch_size);
        std::vector<std::size_t> batch;
        while (next_ < end)
            batch.push_back(order_[next_++]);
        return batch;
    }
    void save(torch::serialize::OutputArchive&) const override {}
    void load(torch::serialize::InputArchive&) override {}

private:
    std::shared_ptr<const Shared> shared_;
    std::vector<std::uint64_t> order_;
    std::size_t next_ = 0;
};

template <class Data>
class TorchData final : public Loader {
public:
    explicit TorchData(std::shared_ptr<Shared> shared) : shared_{std::move(shared)} {
        const auto options = torch::data::DataLoaderOptions{}
                                 .batch_size(shared_->workload.batch_size)
                                 .workers(shared_->workload.num_workers);
        auto data = Data{shared_}.map(torch::data::transforms::Stack<>{});
        loader_ = torch::data::make_data_loader(std::move(data), SameOrder{shared_}, options);
    }

    void pass(std::size_t epoch, bool /*more*/, const std::function<bool(const BatchView&)>& see) override {
        shared_->epoch = epoch;
        for (torch::data::Example<>& batch : *loader_) {
            const auto size = static_cast<std::size_t>(batch.target.numel());
            if (!see({batch.data.const_data_ptr<float>(), {batch.target.const_data_ptr<std::int64_t>(), size}}))
                break;
        }
    }

    std::string describe() const override {
        return "LibTorch " TORCH_VERSION ", ATen threads " + std::to_string(at::get_num_threads());
    }

private:
    using Stacked = torch::data::datasets::MapDataset<Data, torch::data::transforms::Stack<>>;
    std::shared_ptr<Shared> shared_;
    std::unique_ptr<torch::data::StatelessDataLoader<Stacked, SameOrder>> loader_;
};

}   // namespace

std::unique_ptr<Loader> make_torch_data(const Workload& workload) {
    at::set_num_threads(1);   // the workers already use all cores: more threads in each would compete for them
    auto shared = std::make_shared<Shared>();
    shared->workload = workload;
    if (workload.kind == "straggler")
        return std::make_unique<TorchData<Stragglers>>(std::move(shared));
    if (!workload.reads_photos()) {
        shared->rows.emplace(workload);
        return std::make_unique<TorchData<ReadyRows>>(std::move(shared));
    }
    shared->photos.emplace(workload.data);
    if (workload.variant.starts_with("same_kernel"))
        return std::make_unique<TorchData<DrawpointPhotos>>(std::move(shared));
    return std::make_unique<TorchData<AtenPhotos>>(std::move(shared));
}

}   // namespace drawpoint::bench
