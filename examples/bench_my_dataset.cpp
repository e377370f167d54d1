// Times loaders of a folder of photographs (one folder a class) against a loop written by hand, which makes the same
// crops. Run it as: bench_my_dataset --data FOLDER [--help, or other options of bench::main()]
#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include <drawpoint/drawpoint.hpp>

using namespace drawpoint;

int main(int argc, char** argv) try {
    bench::Suite suite{"my photographs"};
    const ImageFolder photos{suite.take_option(argc, argv, "--data", "folder of photographs")};
    const auto recipe = photos | decode_image | RandomResizedCrop{224, 224} | RandomHorizontalFlip{};
    const RandomSampler order{photos.size(), /*seed=*/7};

    const auto by_hand = [&] {
        std::vector<std::byte> pixels(recipe.layout().bytes());
        std::int64_t label = 0;
        const auto scratch = recipe.make_scratch();
        for (std::uint64_t i = 0; i < photos.size(); ++i) {
            SampleTask task{.index = i, .epoch = 1, .data = pixels, .target = &label};
            recipe.fill(task, *scratch);
        }
    };
    suite.add_function("by hand", by_hand, photos.size());
    for (const std::size_t workers : {1u, 2u, 4u})
        for (const std::size_t depth : {2u, 8u})
            suite.add_loader(std::to_string(workers) + " workers, depth " + std::to_string(depth), recipe, order,
                             {.batch_size = 16, .num_workers = workers, .prefetch_depth = depth});
    return bench::main(suite, argc, argv);
} catch (const std::exception& error) {   // e.g. no such folder
    std::cerr << error.what() << '\n';
    return 2;
}
