#include "plan.hpp"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <drawpoint/pipeline/image/crop.hpp>
#include <drawpoint/pipeline/image/jpeg.hpp>
#include <drawpoint/pipeline/rng.hpp>
#include <drawpoint/pipeline/sampling/sampler.hpp>
#include <drawpoint/pipeline/storage/file_reader.hpp>
#include <drawpoint/pipeline/storage/image_folder.hpp>

namespace drawpoint::bench {
namespace {

template <class T>
void write_values(const std::filesystem::path& path, const std::vector<T>& values) {
    std::ofstream file{path, std::ios::binary | std::ios::app};
    file.write(reinterpret_cast<const char*>(values.data()), static_cast<std::streamsize>(values.size() * sizeof(T)));
    if (!file.flush())
        throw std::runtime_error{fmt::format("cannot write {}", path.string())};
}

std::size_t whole_batches(std::size_t items, std::size_t batch_size) {
    return items < batch_size ? items : items - items % batch_size;
}

void write_crops(const Workload& workload, const ImageFolder& photos, std::size_t epochs) {
    std::vector<ImageSize> sizes(workload.items);
    JpegDecoder decoder;
    std::vector<std::byte> contents;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        read_file(photos.path(i), contents);
        try {
            decoder.open(contents);
        } catch (const std::exception& error) {
            throw std::runtime_error{std::string{photos.path(i)} + ": " + error.what()};
        }
        sizes[i] = decoder.size();
    }
    std::vector<std::int32_t> crops;
    for (std::uint32_t epoch = 0; epoch < epochs; ++epoch) {
        crops.clear();
        for (std::size_t i = 0; i < sizes.size(); ++i) {
            CounterRng random{workload.seed, epoch, i};
            const CropBox box = random_resized_crop(sizes[i], {}, random);
            for (const std::uint32_t value : {box.x, box.y, box.width, box.height, random.uniform() < 0.5 ? 1U : 0U})
                crops.push_back(static_cast<std::int32_t>(value));
        }
        write_values(workload.plan / "crops.i32", crops);
    }
}

void write_rows(const Workload& workload) {
    std::vector<float> row(workload.values());
    for (std::size_t i = 0; i < workload.items; ++i) {
        for (std::size_t k = 0; k < row.size(); ++k)
            row[k] = static_cast<float>(i) + static_cast<float>(k % 251) / 256.0F;
        write_values(workload.plan / "rows.f32", row);
    }
}

}   // namespace

void write_plan(Workload& workload, std::size_t epochs) {
    nlohmann::json plan;
    if (workload.reads_photos()) {
        const ImageFolder photos{workload.data};
        workload.items = whole_batches(photos.size(), workload.batch_size);
        for (std::size_t i = 0; i < workload.items; ++i) {
            plan["paths"].push_back(photos.path(i));
            plan["labels"].push_back(photos.label(i));
        }
        write_crops(workload, photos, epochs);
    } else {
        const std::size_t wanted = workload.kind == "tiny" ? 65'536 : workload.kind == "tensor" ? 512 : 4'096;
        workload.items = std::max(whole_batches(wanted, workload.batch_size), workload.batch_size);
        if (workload.kind == "tiny" || workload.kind == "tensor")
            write_rows(workload);
    }
    if (workload.kind != "tiny") {
        std::vector<std::uint64_t> order(workload.items);
        for (std::size_t epoch = 0; epoch < epochs; ++epoch) {
            RandomSampler{workload.items, workload.seed}.order(epoch, order);
            write_values(workload.plan / "order.i64", order);
        }
    }
    plan["epochs"] = epochs;
    plan["items"] = workload.items;
    std::ofstream{workload.plan / "plan.json"} << plan;
}

}   // namespace drawpoint::bench
