// Loaders of photographs, of which some decode slower by a planted share: what is known about the gate is known from
// these rounds (gate_exam.cpp).
#include <algorithm>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <deque>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>

#include <sys/prctl.h>
#include <unistd.h>

#include <fmt/format.h>

#include <drawpoint/bench/suite/suite.hpp>
#include <drawpoint/pipeline/sampling/sampler.hpp>
#include <drawpoint/pipeline/stages/image_stages.hpp>
#include <drawpoint/pipeline/stages/inject.hpp>
#include <drawpoint/pipeline/storage/image_folder.hpp>

#include "bench/photos.hpp"

namespace {

/// Starts a process that computes for `share` of the time, 4 ms of each 4 / share, until this one ends.
void start_neighbour(double share) {
    using namespace std::chrono_literals;
    const pid_t child = fork();
    if (child < 0)
        throw std::runtime_error{"no process for the neighbour"};
    if (child > 0)
        return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    constexpr auto busy = 4ms;
    const std::chrono::duration<double, std::milli> pause = busy / share - busy;
    for (;;) {
        for (const auto end = std::chrono::steady_clock::now() + busy; std::chrono::steady_clock::now() < end;) {
        }
        std::this_thread::sleep_for(pause);
    }
}

bool measures_one_row(int argc, char** argv) {
    return std::any_of(argv + 1, argv + argc, [](std::string_view word) {
        return word.starts_with("--once") || word == "--list" || word == "--help";
    });
}

}   // namespace

int main(int argc, char** argv) try {
    using namespace drawpoint;
    bench::Suite suite{"planted"};
    const std::string neighbour =
        suite.take_option(argc, argv, "--neighbour", "share of a core that another process takes [0]");
    const bench::SuitePhotos data{suite, argc, argv};
    double share = 0;
    const char* const end = neighbour.data() + neighbour.size();
    if (const auto read = std::from_chars(neighbour.data(), end, share);
        !neighbour.empty() && (read.ec != std::errc{} || read.ptr != end || !(share >= 0 && share <= 1)))
        throw std::invalid_argument{"--neighbour must be between 0 and 1, got " + neighbour};
    if (share > 0 && !measures_one_row(argc, argv))
        start_neighbour(share);
    const ImageFolder photos{data.folder()};
    const auto recipe =
        photos | decode_image | RandomResizedCrop{224, 224} | RandomHorizontalFlip{} | Normalize::imagenet();
    const auto source = std::make_shared<const decltype(recipe)>(recipe);
    const RandomSampler order{photos.size(), 7};

    std::deque<InjectedSource> sources;
    for (const double percent : {0, 0, 1, 2, 3, 5}) {
        const double factor = 1 + percent / 100;
        const InjectedSource& slowed =
            sources.emplace_back(source, std::vector{Injection{.kind = InjectionKind::decode, .factor = factor}});
        const std::string name = sources.size() == 1   ? "base"
                                 : sources.size() == 2 ? "same"
                                                       : fmt::format("+{} %", percent);
        suite.add_loader(name, slowed, order, {.batch_size = 64, .num_workers = 2, .seed = 7});
    }
    return bench::main(suite, argc, argv);
} catch (const std::exception& error) {
    fmt::print(stderr, "drawpoint: bench planted: {}\n", error.what());
    return 1;
}
