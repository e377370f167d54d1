// formats_replay [--mutations N] [--seed S] [--only TARGET] CORPUS
// Lets every reader of files read those of the corpus (tests/hostile) that are of its kind, and N mutants of them in
// all. The same arguments give the same mutants on every machine. Prints what each took.
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <drawpoint/instrumentation/recorder/recorder.hpp>

#include "fuzz/mutate.hpp"
#include "fuzz/targets.hpp"
#include "instrumentation/trace/trace_block.hpp"
#include "pipeline/loader/core/loader_state.hpp"
#include "support/sanitized.hpp"
#include "support/temporary_folder.hpp"

namespace {

using namespace drawpoint;
using namespace drawpoint::test;
namespace fs = std::filesystem;

File bytes_of(std::string_view text) {
    const auto bytes = std::as_bytes(std::span{text});
    return {bytes.begin(), bytes.end()};
}

File read_file(const fs::path& path) { return bytes_of(bytes_in(path)); }

/// The packets of each block of a recording but its first one.
void add_blocks(const File& recording, std::vector<File>& to) {
    const std::string_view bytes{reinterpret_cast<const char*>(recording.data()), recording.size()};
    for (std::size_t at = 0; at < bytes.size();) {
        const ParsedHeader parsed = parse_header(bytes.substr(at), at);
        if (parsed.state != ParsedHeader::State::whole)
            return;
        const std::string_view packets = bytes.substr(at + parsed.length, parsed.header.bytes);
        if (at != 0)
            to.push_back(bytes_of(packets));
        at += parsed.length + packets.size();
    }
}

std::vector<File> states() {
    LoaderState state{.data = 1, .order = 2, .seed = 3, .batch_size = 16, .batches = 100};
    std::vector<File> made{bytes_of(to_bytes(state))};
    state.epoch = 7;
    state.end = 55;
    made.push_back(bytes_of(to_bytes(state)));
    state.undrawn = {1, 2, 5, 54};
    made.push_back(bytes_of(to_bytes(state)));
    return made;
}

/// A recording that holds totals of rows that it no longer has.
File written_anew() {
    const fs::path path = fs::temp_directory_path() / ("drawpoint-replay." + std::to_string(::getpid()));
    {
        Recorder recorder{path, {.limit_bytes = 30'000, .ledger_bytes = 0, .host_period = {}}};
        recorder.add_pipeline({"train", {"read", "decode"}, 2, 1, 1});
        WorkerTrack worker = recorder.add_worker();
        for (std::uint32_t i = 0; i < 400; ++i) {
            const std::int64_t at_ns = 1000 * std::int64_t{i};
            SampleRecord sample;
            sample.row = {.batch = i, .bytes = 3, .begin_ns = at_ns, .stages = {}};
            sample.stage_count = 2;
            sample.stages = {StageRow{at_ns, 100}, StageRow{at_ns + 100, 200 + i}};
            worker.push(sample);
            recorder.push(BatchRow{.batch = i, .size = 1, .admitted_ns = at_ns, .taken_ns = at_ns + 500});
            recorder.push(StepRow{.step = i,
                                  .batch = i,
                                  .size = 1,
                                  .draw_begin_ns = at_ns,
                                  .draw_ns = 600,
                                  .batch_ns = 300,
                                  .loss = {},
                                  .spans = {}},
                          {});
        }
    }
    const File file = read_file(path);
    fs::remove(path);
    return file;
}

/// The corpus's files for a target.
std::vector<File> files_for(const FuzzTarget& target, const fs::path& corpus) {
    if (target.name == "state")
        return states();
    const auto is_its = [&](const std::string& name) {
        return std::ranges::any_of(target.endings,
                                   [&](std::string_view end) { return !end.empty() && name.ends_with(end); });
    };
    std::vector<fs::path> paths;
    for (const auto& entry : fs::directory_iterator{corpus})
        if (is_its(entry.path().filename().string()))
            paths.push_back(entry.path());
    std::ranges::sort(paths);
    std::vector<File> files;
    for (const fs::path& path : paths)
        if (target.name == "packets")
            add_blocks(read_file(path), files);
        else
            files.push_back(read_file(path));
    if (target.name == "packets")
        add_blocks(written_anew(), files);
    else if (target.name == "recording")
        files.push_back(written_anew());
    return files;
}

double cpu_s() {
    timespec now{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

long peak_mb() {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss / 1024;
}

}   // namespace

int main(int argc, char** argv) {
    std::uint64_t mutations = 0, seed = 1;
    std::string_view only;
    fs::path corpus;
    for (int i = 1; i < argc; ++i) {
        const std::string_view argument = argv[i];
        if (argument == "--mutations" && i + 1 < argc)
            mutations = std::strtoull(argv[++i], nullptr, 10);
        else if (argument == "--seed" && i + 1 < argc)
            seed = std::strtoull(argv[++i], nullptr, 10);
        else if (argument == "--only" && i + 1 < argc)
            only = argv[++i];
        else
            corpus = argument;
    }
    if (!fs::is_directory(corpus)) {
        std::fprintf(stderr, "formats_replay: no folder '%s'\n", corpus.c_str());
        return 2;
    }
    const std::size_t count = only.empty() ? fuzz_targets().size() : 1;
    bool failed = false;
    for (const FuzzTarget& target : fuzz_targets()) {
        if (!only.empty() && target.name != only)
            continue;
        const std::vector<File> files = files_for(target, corpus);
        if (files.empty()) {
            std::fprintf(stderr, "formats_replay: the corpus has no file for %s\n", target.name.data());
            return 2;
        }
        double longest_s = 0;
        const double begin_s = cpu_s();
        const auto run = [&](const File& file, const char* what, std::uint64_t number) {
            const double from_s = cpu_s();
            try {
                target.run(file);
            } catch (const std::exception& error) {
                std::ofstream{"broken", std::ios::binary}.write(reinterpret_cast<const char*>(file.data()),
                                                                static_cast<std::streamsize>(file.size()));
                std::fprintf(stderr, "%s %s %llu: an error of another kind than documented: %s; written to broken\n",
                             target.name.data(), what, static_cast<unsigned long long>(number), error.what());
                failed = true;
            }
            longest_s = std::max(longest_s, cpu_s() - from_s);
        };
        for (std::size_t f = 0; f < files.size(); ++f)
            run(files[f], "file", f);
        const std::uint64_t mine = mutations / count;
        File mutant;
        for (std::uint64_t i = 0; i < mine && !failed; ++i) {
            CounterRng random{seed, 0, i};
            mutant = files[i * files.size() / mine];
            mutate(mutant, 0, random);
            run(mutant, "mutant", i);
        }
        std::printf("%-10s %5zu files %8llu mutants, %6.1f us each, longest %.0f ms, %ld MB in all\n",
                    target.name.data(), files.size(), static_cast<unsigned long long>(mine),
                    (cpu_s() - begin_s) * 1e6 / static_cast<double>(files.size() + mine), longest_s * 1e3, peak_mb());
        if (longest_s > 10)   // of the processor's time
            failed = true;
    }
    return failed || (!test::sanitized && peak_mb() > 512) ? 1 : 0;   // sanitizers keep what was freed
}
