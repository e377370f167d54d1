// Writes your own logger and uses the three built-in ones: CSV, JSON lines, TensorBoard. While the loop trains they get
// what fastxtend's profiler logs: samples per second of each action, over the last ten batches.
#include <cstdio>
#include <filesystem>

#include <drawpoint/loop/loggers/file_loggers.hpp>
#include <drawpoint/loop/profilers/fastxtend.hpp>

#include "line.hpp"

namespace {

class Terminal final : public drawpoint::Logger {
public:
    void log_scalars(std::span<const drawpoint::Scalar> scalars, std::uint64_t step) override {
        for (const auto& [name, value] : scalars)
            std::printf("batch %2llu  %.*s  %.0f\n", static_cast<unsigned long long>(step),
                        static_cast<int>(name.size()), name.data(), value);
        ++points_;
    }
    void log_summary(std::string_view, std::span<const double>) override {}
    void log_table(std::string_view, const drawpoint::LogTable&) override {}

    [[nodiscard]] int points() const { return points_; }

private:
    int points_ = 0;
};

}   // namespace

int main(int argc, char** argv) {
    const std::filesystem::path folder = argc > 1 ? argv[1] : "logs";
    drawpoint::Recorder recorder;
    drawpoint::Runtime runtime{{.max_threads = 2}, recorder};
    const auto points = noisy_points(64 * 32);
    const drawpoint::RandomSampler order{points.size(), 7};
    drawpoint::DataLoader loader{runtime, points, order, {.batch_size = 64, .num_workers = 2}};

    Terminal terminal;
    drawpoint::CsvLogger csv{folder / "throughput.csv"};
    drawpoint::JsonLinesLogger json{folder / "throughput.jsonl"};
    drawpoint::TensorBoardLogger tensorboard{folder / "tensorboard"};

    for (drawpoint::Logger* logger :
         {static_cast<drawpoint::Logger*>(&terminal), static_cast<drawpoint::Logger*>(&csv),
          static_cast<drawpoint::Logger*>(&json), static_cast<drawpoint::Logger*>(&tensorboard)}) {
        drawpoint::ThroughputCallback throughput{recorder, {.show_report = logger == &terminal, .logger = logger}};
        drawpoint::CallbackList callbacks;
        callbacks.add(throughput);
        Line line;
        drawpoint::run(runtime, drawpoint::fit(line, loader, {.epochs = 1}, callbacks, recorder));
        logger->finish();
        if (!logger->error().empty())
            std::fprintf(stderr, "%s\n", logger->error().c_str());
    }
    std::printf("logged %d times in 32 batches\n", terminal.points());
}
