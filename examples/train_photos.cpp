// Trains a small network on a folder of photographs (one folder a class) and says where the time went.
#include <iostream>

#include <drawpoint/drawpoint.hpp>
#include <drawpoint/loop/torch/learner.hpp>

int main(int argc, char** argv) {
    drawpoint::ImageFolder photos{argc > 1 ? argv[1] : "photos"};
    drawpoint::Recorder recorder{"run.pftrace"};                // owns the writer thread of the file; outlives the rest
    drawpoint::Runtime runtime{{.max_threads = 2}, recorder};   // owns every loader thread

    auto recipe = photos | drawpoint::decode_image | drawpoint::RandomResizedCrop{224, 224} |
                  drawpoint::RandomHorizontalFlip{} | drawpoint::Normalize::imagenet();
    drawpoint::RandomSampler order{photos.size(), 7};
    drawpoint::DataLoader loader{runtime, recipe, order, {.batch_size = 64, .num_workers = 2, .prefetch_depth = 4}};

    drawpoint::TorchLearner learner{drawpoint::small_cnn(photos.num_classes()), {.learning_rate = 1e-3}};

    drawpoint::run(runtime, drawpoint::fit(learner, loader, {.epochs = 3}, recorder));
    std::cout << drawpoint::to_text(drawpoint::summarize(recorder.ledger()));
    std::cout << "accuracy on the training photographs: " << learner.metrics().accuracy() << '\n';
}
