// Times passes over a data set through loaders with more and more workers, and says which differ from the first.
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <drawpoint/drawpoint.hpp>

int main() {
    namespace bench = drawpoint::bench;
    drawpoint::Recorder recorder;
    drawpoint::Runtime runtime{{}, recorder};
    const drawpoint::SyntheticImages images{512, /*num_classes=*/10, /*side=*/32};
    const drawpoint::SequentialSampler order{images.size()};

    std::vector<std::unique_ptr<bench::Contender>> contenders;
    for (const std::size_t workers : {0u, 1u, 2u, 4u}) {
        const drawpoint::LoaderOptions options{.batch_size = 64, .num_workers = workers};
        const auto loader = std::make_shared<drawpoint::DataLoader>(runtime, images, order, options);
        contenders.push_back(bench::make_function(std::to_string(workers) + " workers", [loader] {
            for (auto& batch : drawpoint::blocking(*loader))
                (void)batch;   // the training step
        }));
    }
    bench::Experiment experiment{std::move(contenders), {.least_turn = std::chrono::milliseconds{20}}};
    experiment.prepare();
    experiment.calibrate();
    for (int round = 0; round < 20; ++round)
        experiment.run_round();
    const auto comparisons = bench::compare(experiment.measurements());
    std::fputs(bench::to_text(experiment.measurements(), comparisons, 0.01).c_str(), stdout);
}
