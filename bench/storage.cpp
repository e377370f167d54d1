// The same photographs, crops and batches from different storage: files, tar shards, caches, and files of a storage
// that waits.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <memory>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <drawpoint/bench/suite/suite.hpp>
#include <drawpoint/pipeline/sampling/sampler.hpp>
#include <drawpoint/pipeline/stages/cached.hpp>
#include <drawpoint/pipeline/stages/image_stages.hpp>
#include <drawpoint/pipeline/stages/inject.hpp>
#include <drawpoint/pipeline/storage/image_folder.hpp>
#include <drawpoint/pipeline/storage/tar_pack.hpp>
#include <drawpoint/pipeline/storage/tar_shards.hpp>

#include "bench/photos.hpp"
#include "bench/suite/loader_task.hpp"
#include "bench/temporary_folder.hpp"

namespace {

using namespace drawpoint;

/// The photographs packed into shards, once for the processes of all rows; the first process removes them.
class PackedPhotos {
public:
    explicit PackedPhotos(const ImageFolder& photos) {
        constexpr const char* variable = "DRAWPOINT_BENCH_PACKED";
        if (const char* given = std::getenv(variable)) {
            folder_ = given;
            return;
        }
        folder_ = own_.emplace().path();
        std::vector<std::uint64_t> order(photos.size());
        std::iota(order.begin(), order.end(), 0);
        for (const auto& [kind, compression] :
             {std::pair{"tar", TarCompression::none}, {"tar.zst", TarCompression::zstd}})
            (void)pack_image_folder(
                photos, order,
                {.out = folder_ / kind, .shard_bytes = std::uint64_t{4} << 20, .compression = compression});
        setenv(variable, folder_.c_str(), 1);
    }

    [[nodiscard]] std::string shards(const char* kind) const { return (folder_ / kind).string(); }
    [[nodiscard]] std::filesystem::path file(const std::string& name) const { return folder_ / name; }

private:
    std::optional<bench::TemporaryFolder> own_;
    std::filesystem::path folder_;
};

template <class Images>
auto recipe_of(const Images& images) {
    return images | RandomResizedCrop{224, 224} | RandomHorizontalFlip{} | Normalize::imagenet();
}

}   // namespace

int main(int argc, char** argv) try {
    bench::Suite suite{"storage"};
    const bench::SuitePhotos data{suite, argc, argv};
    const ImageFolder photos{data.folder()};
    const PackedPhotos packed{photos};
    const TarShards tar{packed.shards("tar")};
    const TarShards forward{packed.shards("tar"), {.sequential = true}};
    const TarShards compressed{packed.shards("tar.zst"), {.sequential = true}};
    const std::uint64_t bytes = photos.size() * (std::uint64_t{1} << 20);
    const auto from_files = recipe_of(photos | decode_image), from_tar = recipe_of(tar | decode_image),
               from_forward = recipe_of(forward | decode_image), from_zst = recipe_of(compressed | decode_image),
               from_memory = recipe_of(photos | decode_image | cached(bytes));
    const InjectedSource slow{std::make_shared<const decltype(from_files)>(from_files),
                              {parse_injection("read-latency=2ms")}};
    const RandomSampler order{photos.size(), 7};
    const ShardSampler by_shard{forward.shard_sizes(), 7, 64}, by_zst_shard{compressed.shard_sizes(), 7, 64};
    const LoaderOptions options{.batch_size = 64, .num_workers = 2, .prefetch_depth = 4, .seed = 7};
    LoaderOptions by_workers = options;
    by_workers.read_concurrency = 0;
    suite.add_loader("files", from_files, order, options)
        .add_loader("files, read by workers", from_files, order, by_workers)
        .add_loader("files, 2 ms each", slow, order, options)
        .add_loader("files, 2 ms each, read by workers", slow, order, by_workers)
        .add_loader("tar at random", from_tar, order, options)
        .add_loader("tar in order", from_forward, by_shard, options)
        .add_loader("tar.zst in order", from_zst, by_zst_shard, options)
        .add_loader("images in memory", from_memory, order, options)
        .add_task("images in a cache file", [&] {
            // Made by the row's process alone, because it locks the file.
            static const auto from_cache = recipe_of(photos | decode_image | cached(bytes, packed.file("cache")));
            return bench::make_loader_task(from_cache, order, options, {});
        });
    return bench::main(suite, argc, argv);
} catch (const std::exception& error) {
    fmt::print(stderr, "drawpoint: bench storage: {}\n", error.what());
    return 1;
}
