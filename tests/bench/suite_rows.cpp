// The suite that suite_test.cpp runs. Its first argument is a factor of the work that `twice` does: with 2 or more the
// program stands for a later build, which has another output and cannot run a row.
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <drawpoint/bench/suite/suite.hpp>
#include <drawpoint/pipeline/sampling/sampler.hpp>

#include "pipeline/loader/numbered_source.hpp"

namespace {

using namespace drawpoint;

/// Counts its runs in a metric, and has values of four items, of which the last one is none.
class CountingTask final : public bench::Task {
public:
    void run(std::size_t number) override { sum_ += static_cast<double>(number); }
    std::vector<bench::Metric> metrics() const override {
        return {{"sum of numbers", bench::Metric::Unit::count}, {"part", bench::Metric::Unit::seconds, true, true}};
    }
    bench::Turn results() override { return {.values = {sum_, 2.5}, .by_item = {{}, {1, 2, 3, 0.0F / zero_}}}; }
    std::uint64_t items() const noexcept override { return 4; }

private:
    double sum_ = 0;
    float zero_ = 0;
};

}   // namespace

int main(int argc, char** argv) {
    using namespace std::chrono_literals;
    const double factor = argc > 1 ? std::atof(argv[1]) : 1;
    const test::NumberedSource source{24};
    const SequentialSampler order{source.size()};
    const RandomSampler shuffled{source.size(), 5};
    bench::Suite suite{"rows for a test"};
    std::uint64_t output = 0;   // what a run has written last
    const auto sleeps = [&](std::chrono::duration<double> time) {
        return [&output, time] {
            std::this_thread::sleep_for(time);
            output = 7;
        };
    };
    const auto writes = [](char letter) {   // down which row has run
        return [letter] {
            std::this_thread::sleep_for(1ms);
            if (const char* file = std::getenv("DRAWPOINT_SUITE_LOG"))
                std::ofstream{file, std::ios::app} << letter;
        };
    };
    suite.add_function("a", writes('a')).add_function("b", writes('b'));
    suite.add_function("once", sleeps(1ms), 10, [&] { return output; })
        .add_function("twice", sleeps(factor * 5ms), 10, [&] { return output; })
        .add_function(
            "another output", [&] { output = factor < 2 ? 8 : 9; }, 0, [&] { return output; })
        .add_task("broken", []() -> std::unique_ptr<bench::Task> { throw std::runtime_error{"no such disk"}; })
        .add_function("fails later",
                      [n = 0]() mutable {
                          if (++n == 4)   // the third run that counts
                              throw std::runtime_error{"the disk is full"};
                      })
        .add_task("of the old build",
                  [factor]() -> std::unique_ptr<bench::Task> {
                      if (factor >= 2)
                          throw std::runtime_error{"it was removed"};
                      return std::make_unique<CountingTask>();
                  })
        .add_task("counts", [] { return std::make_unique<CountingTask>(); })
        .add_command("command", "exit 0; true")
        .add_loader("loader", source, order, {.batch_size = 8, .num_workers = 2})
        .add_loader("seeded", source, order, {.batch_size = 8, .num_workers = 1, .seed = 9})
        .add_loader("shuffled", source, shuffled, {.batch_size = 5, .num_workers = 0});
    return bench::main(suite, argc - 1, argv + 1);
}
