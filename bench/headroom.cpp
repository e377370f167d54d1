// What better loading could gain at most: the training loop with its loader, and each of its parts alone. The model is
// a loop that computes for a while per batch.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>

#include <fmt/format.h>

#include <drawpoint/bench/suite/suite.hpp>
#include <drawpoint/pipeline/sampling/sampler.hpp>
#include <drawpoint/pipeline/stages/cached.hpp>
#include <drawpoint/pipeline/stages/image_stages.hpp>
#include <drawpoint/pipeline/storage/image_folder.hpp>

#include "bench/photos.hpp"

int main(int argc, char** argv) try {
    using namespace drawpoint;
    using Clock = std::chrono::steady_clock;
    constexpr std::size_t batch_size = 64;
    bench::Suite suite{"headroom"};
    const std::string wish =
        suite.take_option(argc, argv, "--compute-ms", "what a step computes for, on one core [10]");
    const std::chrono::duration<double, std::milli> compute{wish.empty() ? 10 : std::stod(wish)};
    const bench::SuitePhotos data{suite, argc, argv};
    const ImageFolder photos{data.folder()};
    const auto random = photos | decode_image | RandomResizedCrop{224, 224} | RandomHorizontalFlip{};
    const auto in_memory = photos | decode_image | CenterCrop{224, 224} | Normalize::imagenet() |
                           cached(photos.size() * (std::uint64_t{1} << 20));
    const auto recipe = random | Normalize::imagenet();
    const RandomSampler order{photos.size(), 7};
    const LoaderOptions options{.batch_size = batch_size, .num_workers = 2, .prefetch_depth = 4, .seed = 7};
    const auto step = [compute] {
        for (const auto end = Clock::now() + compute; Clock::now() < end;) {
        }
    };
    suite.add_loader("loop and loader", recipe, order, options, {.step = [step](Batch&) { step(); }})
        .add_loader("loader alone", recipe, order, options)
        .add_loader("loader alone, samples in memory", in_memory, order, options, {.checks_output = false})
        .add_function(
            "loop alone",
            [&] {
                for (std::size_t i = 0; i < photos.size(); i += batch_size)
                    step();
            },
            photos.size());
    return bench::main(suite, argc, argv);
} catch (const std::exception& error) {
    fmt::print(stderr, "drawpoint: bench headroom: {}\n", error.what());
    return 1;
}
