// Compares the memory a loader takes with what it planned, over budgets and kinds of data; each case runs in a process
// of its own.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <drawpoint/instrumentation/recorder/recorder.hpp>
#include <drawpoint/instrumentation/report/machine.hpp>
#include <drawpoint/pipeline/loader/core/collate.hpp>
#include <drawpoint/pipeline/loader/data_loader.hpp>
#include <drawpoint/pipeline/stages/image_stages.hpp>
#include <drawpoint/pipeline/stages/inject.hpp>
#include <drawpoint/pipeline/runtime/runtime.hpp>
#include <drawpoint/pipeline/sampling/sampler.hpp>
#include <drawpoint/pipeline/storage/image_folder.hpp>

#include "photos.hpp"
#include "program.hpp"

namespace {

using namespace drawpoint;

constexpr std::uint64_t MiB = std::uint64_t{1} << 20;

struct Kind {
    const char *name, *what;
};
constexpr std::array kinds{
    Kind{"jpeg", "JPEG files, RandomResizedCrop 224, read by the workers"},
    Kind{"jpeg_ahead", "the same, each read taking 5 ms, 64 at a time ahead of the workers"},
    Kind{"jpeg_cached", "decoded images in a cache of a quarter of the budget, then RandomResizedCrop 224"},
    Kind{"varying", "float rows of 1 to 512 x 256, most of them short, padded"},
    Kind{"varying_growing", "the same, each batch's longest longer than all before"},
};

struct Case {
    std::string kind, data;
    std::uint64_t budget = 0;
    std::size_t num_workers = 2, batch_size = 32, prefetch_depth = 55;
};

struct Measured {
    std::uint64_t planned = 0, expected = 0, real = 0, one_batch = 0;
    std::size_t depth = 0;
};

/// Samples [length, 256] whose length is a pure function of the index.
class VaryingRows final : public SampleSource {
public:
    VaryingRows(std::size_t size, bool growing) : size_{size}, growing_{growing} {}
    [[nodiscard]] std::size_t size() const noexcept override { return size_; }
    [[nodiscard]] SampleLayout layout() const noexcept override { return {.rank = 2, .shape = {0, width}}; }
    [[nodiscard]] std::vector<std::string> stages() const override { return {"fill"}; }
    [[nodiscard]] std::string path(std::uint64_t) const override { return {}; }
    [[nodiscard]] std::unique_ptr<WorkerScratch> make_scratch() const override {
        return std::make_unique<WorkerScratch>();
    }
    void fill(SampleTask& task, WorkerScratch&) const override {
        task.stage_count = 1;
        SampleLayout layout = this->layout();
        layout.shape[0] = length_of(task.index);
        const std::span<std::byte> data = task.buffer->reshape(layout);
        std::fill(data.begin(), data.end(), static_cast<std::byte>(task.index));
        *task.target = static_cast<std::int64_t>(task.index);
    }
    [[nodiscard]] std::string random_part() const override { return {}; }

    static constexpr std::int64_t width = 256, longest = 512;

private:
    [[nodiscard]] std::int64_t length_of(std::uint64_t index) const noexcept {
        if (growing_)
            return 1 + static_cast<std::int64_t>(index * longest / size_);
        const double u = static_cast<double>((index * 0x9E3779B97F4A7C15u) >> 40) / (1 << 24);
        return 1 + static_cast<std::int64_t>(u * u * (longest - 1));
    }
    std::size_t size_;
    bool growing_;
};

std::shared_ptr<const SampleSource> source_of(const Case& of, const std::optional<ImageFolder>& photos) {
    if (of.kind.starts_with("varying"))
        return std::make_shared<const VaryingRows>(8192, of.kind == "varying_growing");
    const RandomResizedCrop crop{.height = 224, .width = 224};
    if (of.kind == "jpeg_cached")
        return std::make_shared<const ImageRecipe>(*photos | decode_jpeg | cached(of.budget / 4) | crop |
                                                   Normalize::imagenet());
    ImageRecipe recipe = *photos | decode_jpeg | crop | Normalize::imagenet();
    if (of.kind == "jpeg_ahead")
        return inject(std::move(recipe), {parse_injection("read-latency=5ms")}, 0);
    return std::make_shared<const ImageRecipe>(std::move(recipe));
}

/// Resident memory of this process in bytes: now or at its peak, depending on `field`.
std::uint64_t resident(std::string_view field) {
    std::ifstream status{"/proc/self/status"};
    for (std::string line; std::getline(status, line);)
        if (line.starts_with(field))
            return std::stoull(line.substr(field.size() + 1)) * 1024;
    throw std::runtime_error{"/proc/self/status has no " + std::string{field}};
}

/// Draws all batches of a pass, holding each until it has the next. Every `pause_every` batches it waits until the
/// loader has prefetched all it can, as during a slow training step. Returns the memory that the loader expected after
/// a quarter of the pass.
std::uint64_t draw_all(DataLoader& loader, std::size_t epoch, bool more, std::size_t pause_every = 8) {
    auto pass = loader.epoch(epoch, {.next_epoch = more});
    std::optional<Batch> held;
    std::uint64_t expected = 0;
    for (std::size_t drawn = 1; auto batch = pass.next_blocking(); ++drawn) {
        held = std::move(batch);
        if (drawn == (pass.size().value() + 3) / 4)
            expected = loader.counters().expected_bytes;
        if (drawn % pause_every != 0)
            continue;
        for (std::uint64_t turns = 0, now = loader.counters().turns; now != turns; now = loader.counters().turns) {
            turns = now;
            std::this_thread::sleep_for(std::chrono::milliseconds{120});
        }
    }
    return expected;
}

/// Runs a case's loader from construction to destruction: what it planned, and by how much the process grew.
Measured measure(const Case& of) {
    Recorder recorder;
    Runtime runtime{{.max_threads = of.num_workers, .record = false}, recorder};
    const bool varying = of.kind.starts_with("varying");
    std::optional<ImageFolder> photos;
    if (!varying)
        photos.emplace(of.data);
    const PadCollate pad{VaryingRows{1, false}.layout()};
    Case small = of;   // a first run takes what a process takes only once: code, tables, the first thread's heap
    small.budget = 0;
    small.num_workers = 1;
    const auto run = [&](const Case& one, std::size_t passes, Measured* into) {
        const std::shared_ptr<const SampleSource> source =
            one.kind == "jpeg_cached" && into == nullptr ? source_of({.kind = "jpeg"}, photos) : source_of(one, photos);
        const SequentialSampler order{into == nullptr ? 4 : source->size()};
        DataLoader loader{runtime,
                          *source,
                          order,
                          {.batch_size = into == nullptr ? 1 : one.batch_size,
                           .num_workers = one.num_workers,
                           .prefetch_depth = into == nullptr ? 1 : one.prefetch_depth,
                           .read_concurrency = one.kind == "jpeg_ahead" ? 64u : 0u,
                           .memory_budget = one.budget,
                           .collate = varying ? &pad : nullptr}};
        std::uint64_t expected = 0;
        for (std::size_t epoch = 0; epoch < passes; ++epoch)
            if (const std::uint64_t now = draw_all(loader, epoch, epoch + 1 < passes); epoch == 0)
                expected = now;
        if (into == nullptr)
            return;
        const MemoryPlan& plan = loader.memory_plan();
        const LoaderCounters counters = loader.counters();
        into->planned = plan.planned_bytes;
        into->expected = expected;
        into->one_batch = varying ? counters.largest_batch_bytes : plan.slot_bytes;
        into->depth = loader.options().prefetch_depth;
    };
    run(small, 1, nullptr);
    malloc_trim(0);
    const int file = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
    if (file < 0 || write(file, "5", 1) != 1)
        throw std::runtime_error{"the kernel does not reset the peak (/proc/self/clear_refs)"};
    close(file);
    const std::uint64_t before = resident("VmRSS:");
    Measured measured;
    run(of, 3, &measured);
    measured.real = resident("VmHWM:") - before;
    return measured;
}

nlohmann::ordered_json in_a_process(const Case& of) {
    int pipe_ends[2];
    if (pipe2(pipe_ends, O_CLOEXEC) != 0)
        throw std::runtime_error{"no pipe to be had"};
    std::vector<std::string> words{"/proc/self/exe", "--case",
                                   nlohmann::json{{"kind", of.kind},
                                                  {"data", of.data},
                                                  {"budget", of.budget},
                                                  {"num_workers", of.num_workers},
                                                  {"batch_size", of.batch_size},
                                                  {"prefetch_depth", of.prefetch_depth}}
                                       .dump()};
    std::vector<char*> arguments;
    for (std::string& word : words)
        arguments.push_back(word.data());
    arguments.push_back(nullptr);
    const pid_t child = fork();
    if (child == 0) {
        dup2(pipe_ends[1], STDOUT_FILENO);
        execv(arguments[0], arguments.data());
        _exit(127);
    }
    close(pipe_ends[1]);
    std::string said;
    char piece[4096];
    for (ssize_t n = 0; (n = read(pipe_ends[0], piece, sizeof piece)) > 0;)
        said.append(piece, static_cast<std::size_t>(n));
    close(pipe_ends[0]);
    int status = 0;
    waitpid(child, &status, 0);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        throw std::runtime_error{fmt::format("the case {} at {} MiB failed: {}", of.kind, of.budget / MiB, said)};
    return nlohmann::ordered_json::parse(said);
}

int serve(const std::string& text) {
    const nlohmann::json work = nlohmann::json::parse(text);
    try {
        const Measured measured = measure({.kind = work["kind"],
                                           .data = work["data"],
                                           .budget = work["budget"],
                                           .num_workers = work["num_workers"],
                                           .batch_size = work["batch_size"],
                                           .prefetch_depth = work["prefetch_depth"]});
        fmt::print("{}", nlohmann::json{{"planned_bytes", measured.planned},
                                        {"expected_bytes", measured.expected},
                                        {"peak_bytes", measured.real},
                                        {"batch_bytes", measured.one_batch},
                                        {"prefetch_depth", measured.depth}}
                             .dump());
        return 0;
    } catch (const std::exception& error) {
        fmt::print("{}", error.what());
        return 1;
    }
}

}   // namespace

int main(int argc, char** argv) {
    if (argc == 3 && std::strcmp(argv[1], "--case") == 0)
        return serve(argv[2]);
    std::vector<std::uint64_t> budgets{64, 128, 256, 512, 1024};
    std::vector<std::string> chosen;
    for (const Kind& kind : kinds)
        chosen.emplace_back(kind.name);
    const std::vector<std::string> known = chosen;
    Case one;
    bool json = false;
    CLI::App app{"What memory a loader takes against what it planned and, after a quarter of the first pass, expected"};
    bench::add_data_option(app, one.data);
    app.add_option("--memory-budget", budgets, "in MiB, by commas [64,128,256,512,1024]")
        ->delimiter(',')
        ->check(CLI::Range(1, 1 << 20));
    app.add_option("--kind", chosen, "by commas: " + fmt::format("{}", fmt::join(known, ", ")) + " [all]")
        ->delimiter(',')
        ->check(CLI::IsMember(known));
    app.add_option("--batch-size", one.batch_size, "samples a batch [32]")->check(CLI::Range(1, 4096));
    app.add_option("--num-workers", one.num_workers, "workers [2]")->check(CLI::Range(1, 64));
    app.add_option("--prefetch-depth", one.prefetch_depth, "asked for, before the budget [55]")
        ->check(CLI::Range(1, 55));
    app.add_flag("--json", json, "JSON on stdout, not a table");
    return bench::run_program(app, "memory", argc, argv, [&](const std::string&) {
        std::optional<bench::TemporaryPhotos> generated;
        if (one.data.empty() && std::ranges::any_of(chosen, [](const auto& kind) { return kind.starts_with("jpeg"); }))
            one.data = generated.emplace(640).folder();
        nlohmann::ordered_json rows = nlohmann::ordered_json::array();
        bool within = true;
        if (!json)
            fmt::print("{:16} {:>7} {:>6} {:>11} {:>11} {:>11} {:>9} {:>9}  {}\n", "MiB:", "budget", "depth", "planned",
                       "expected", "peak", "peak/pl.", "peak/exp.", "within budget + one batch");
        for (const std::string& kind : chosen)
            for (const std::uint64_t budget : budgets) {
                one.kind = kind;
                one.budget = budget * MiB;
                nlohmann::ordered_json row = in_a_process(one);
                const auto bytes = [&](const char* key) { return row[key].get<double>(); };
                const bool fits = bytes("peak_bytes") <= static_cast<double>(one.budget) + bytes("batch_bytes");
                within &= fits;
                if (!json)
                    fmt::print("{:16} {:7} {:6} {:11.1f} {:11.1f} {:11.1f} {:9.3f} {:9.3f}  {}\n", kind, budget,
                               row["prefetch_depth"].get<int>(), bytes("planned_bytes") / MiB,
                               bytes("expected_bytes") / MiB, bytes("peak_bytes") / MiB,
                               bytes("peak_bytes") / bytes("planned_bytes"),
                               bytes("peak_bytes") / bytes("expected_bytes"), fits ? "yes" : "NO");
                std::fflush(stdout);
                row["kind"] = kind;
                row["budget_bytes"] = one.budget;
                row["within"] = fits;
                rows.push_back(std::move(row));
            }
        if (json)
            fmt::print(
                "{}\n",
                nlohmann::ordered_json{{"suite", "memory"}, {"cpu", this_machine().cpu}, {"rows", rows}}.dump(2));
        return within ? 0 : 1;
    });
}
