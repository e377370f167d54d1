// own_jpeg_replay [--mutations N] [--seed S] [--seeds-to FOLDER] PATH…
// Checks our JPEG decoder against its law (own_jpeg_law.hpp) on the given files, on those in the given folders, on
// files that it generates, and on N mutants of all these. The same arguments give the same mutants on every machine.
// --seeds-to writes the generated files, for a fuzzer to begin with.
#include "fuzz/mutate.hpp"
#include "pipeline/image/own_jpeg_files.hpp"
#include "pipeline/image/own_jpeg_law.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace drawpoint;
using namespace drawpoint::test;
std::vector<File> own_set() {
    std::vector<File> files;
    std::uint64_t seed = 0;
    const std::array<std::array<int, 3>, 4> samplings = {{{3, 2, 2}, {3, 2, 1}, {3, 1, 1}, {1, 1, 1}}};
    const std::array<int, 5> qualities = {3, 30, 75, 92, 100};
    for (const auto& [components, across, down] : samplings)
        for (const Codes codes : {Codes::standard, Codes::optimised, Codes::flat, Codes::longest, Codes::padded}) {
            OwnJpegKind kind{.components = components, .across = across, .down = down, .codes = codes};
            kind.quality = qualities[seed % 5];
            kind.restart_interval = seed % 3 == 1 ? 1 + seed % 4 : 0;
            kind.noise = static_cast<double>(seed % 4) * 0.3;
            const auto width = static_cast<std::uint32_t>(1 + seed * 7 % 40);
            const auto height = static_cast<std::uint32_t>(1 + seed * 11 % 36);
            files.push_back(own_jpeg_file({width, height}, kind, ++seed));
        }
    return files;
}

File read_file(const std::filesystem::path& path) {
    std::ifstream stream{path, std::ios::binary};
    const std::string text{std::istreambuf_iterator<char>{stream}, {}};
    File file(text.size());
    std::transform(text.begin(), text.end(), file.begin(), [](char c) { return static_cast<std::byte>(c); });
    return file;
}

std::size_t scan_begin(const File& file) {
    for (std::size_t i = 0; i + 14 < file.size(); ++i)
        if (file[i] == std::byte{0xFF} && file[i + 1] == std::byte{0xDA})
            return i + 2 + static_cast<std::size_t>(file[i + 3]);
    return 0;
}

}   // namespace

int main(int argc, char** argv) {
    std::uint64_t mutations = 0, seed = 1;
    std::vector<File> files = own_set();
    for (int i = 1; i < argc; ++i) {
        const std::string_view argument = argv[i];
        if (argument == "--mutations" && i + 1 < argc)
            mutations = std::strtoull(argv[++i], nullptr, 10);
        else if (argument == "--seed" && i + 1 < argc)
            seed = std::strtoull(argv[++i], nullptr, 10);
        else if (argument == "--seeds-to" && i + 1 < argc) {
            std::filesystem::create_directories(argv[++i]);
            for (std::size_t f = 0; f < files.size(); ++f)
                std::ofstream{std::filesystem::path{argv[i]} / ("seed" + std::to_string(f) + ".jpg"), std::ios::binary}
                    .write(reinterpret_cast<const char*>(files[f].data()),
                           static_cast<std::streamsize>(files[f].size()));
        } else if (std::filesystem::is_directory(argument)) {
            std::vector<std::filesystem::path> paths;
            for (const auto& entry : std::filesystem::recursive_directory_iterator{argument})
                if (entry.is_regular_file())
                    paths.push_back(entry.path());
            std::sort(paths.begin(), paths.end());
            for (const auto& path : paths)
                files.push_back(read_file(path));
        } else if (std::filesystem::is_regular_file(argument))
            files.push_back(read_file(argument));
        else {
            std::fprintf(stderr, "own_jpeg_replay: %s is neither an option nor a file nor a folder\n", argv[i]);
            return 2;
        }
    }

    OwnJpegLaw law;
    std::array<std::uint64_t, 4> verdicts{};
    const auto hold = [&](const File& file, const char* what, std::uint64_t number) {
        const OwnJpegLaw::Verdict verdict = law.check(file);
        ++verdicts[static_cast<std::size_t>(verdict)];
        if (verdict != OwnJpegLaw::Verdict::broken)
            return true;
        std::ofstream{"own_jpeg_broken.jpg", std::ios::binary}.write(reinterpret_cast<const char*>(file.data()),
                                                                     static_cast<std::streamsize>(file.size()));
        std::fprintf(stderr, "%s %llu: %s; written to own_jpeg_broken.jpg\n", what,
                     static_cast<unsigned long long>(number), law.fault().c_str());
        return false;
    };
    for (std::size_t f = 0; f < files.size(); ++f)
        if (!hold(files[f], "file", f))
            return 1;
    File mutant;
    for (std::uint64_t i = 0; i < mutations; ++i) {
        CounterRng random{seed, 0, i};
        // the mutants of a file follow one another, so its tables are kept
        mutant = files[i * files.size() / mutations];
        // seven times out of eight only in the compressed data
        mutate(mutant, below(random, 8) == 0 ? 0 : scan_begin(mutant), random);
        if (!hold(mutant, "mutant", i))
            return 1;
    }
    std::printf("%zu files and %llu mutants: %llu refused, %llu given up, %llu equal to the library's\n", files.size(),
                static_cast<unsigned long long>(mutations), static_cast<unsigned long long>(verdicts[0]),
                static_cast<unsigned long long>(verdicts[1]), static_cast<unsigned long long>(verdicts[2]));
    return 0;
}
