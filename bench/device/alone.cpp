// The measurements of stage_measures.hpp as a program of their own: one line of tab-separated values for each figure.
#include <cstdio>
#include <exception>

#include "bench/device/stage_measures.hpp"
#include "pipeline/torch/device_stage.hpp"

int main(int argc, char** argv) try {
    using namespace drawpoint;
    std::printf("figure\tunit\tmedian\t10%%\t90%%\tcount\n");
    const auto print = [](const bench::DeviceFigure& figure) {
        std::printf("%s\t%s\t%.4g\t%.4g\t%.4g\t%zu\n", figure.name.c_str(), figure.unit.c_str(), figure.median,
                    figure.low, figure.high, figure.count);
        std::fflush(stdout);
    };
    (void)bench::measure_device(device_named(argc > 1 ? argv[1] : ""), {.tell = print});
} catch (const std::exception& error) {
    std::fprintf(stderr, "device: %s\n", error.what());
    return 1;
}
