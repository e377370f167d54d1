// The files of the hostile corpus, each with its expected outcome.
#include <boost/test/unit_test.hpp>

#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <zlib.h>

#include <drawpoint/instrumentation/import/chrome_trace.hpp>
#include <drawpoint/instrumentation/trace/trace.hpp>
#include <drawpoint/loop/callbacks/checkpoint_file.hpp>
#include <drawpoint/pipeline/errors.hpp>
#include <drawpoint/pipeline/image/image_decoder.hpp>
#include <drawpoint/pipeline/loader/data_loader.hpp>
#include <drawpoint/pipeline/runtime/runtime.hpp>
#include <drawpoint/pipeline/sampling/sampler.hpp>
#include <drawpoint/pipeline/stages/array_rows.hpp>
#include <drawpoint/pipeline/stages/image_stages.hpp>
#include <drawpoint/pipeline/storage/array_file.hpp>
#include <drawpoint/pipeline/storage/image_folder.hpp>
#include <drawpoint/pipeline/storage/tar_shards.hpp>

#include "support/temporary_folder.hpp"

using namespace drawpoint;
namespace fs = std::filesystem;

namespace {

struct Case {
    std::string name, kind, expected;
};

const fs::path& corpus() {
    static const fs::path folder{DRAWPOINT_HOSTILE_CORPUS};
    return folder;
}

std::vector<Case> cases() {
    std::vector<Case> all;
    std::ifstream in{corpus() / "manifest.tsv"};
    for (std::string line; std::getline(in, line);) {
        const std::size_t first = line.find('\t'), second = line.find('\t', first + 1);
        all.push_back({line.substr(0, first), line.substr(first + 1, second - first - 1), line.substr(second + 1)});
    }
    return all;
}

std::vector<std::byte> bytes_in(const fs::path& path) {
    std::ifstream in{path, std::ios::binary};
    const std::string text{std::istreambuf_iterator<char>{in}, {}};
    const auto bytes = std::as_bytes(std::span{text});
    return {bytes.begin(), bytes.end()};
}

std::string pixels_of(const fs::path& path) {
    const std::vector<std::byte> file = bytes_in(path);
    ImageDecoder decoder;
    decoder.open(file);
    const ImageSize size = decoder.size();
    std::vector<std::uint8_t> rgb(std::size_t{3} * size.width * size.height);
    decoder.decode_rgb({0, 0, size.width, size.height}, rgb.data());
    std::ostringstream text;
    text << "pixels " << size.width << ' ' << size.height << ' ' << std::hex << crc32_z(0, rgb.data(), rgb.size());
    return text.str();
}

std::string rows(std::uint64_t count) { return "rows " + std::to_string(count); }

std::string cifar_rows(const fs::path& path) {
    const test::TemporaryFolder folder;
    fs::copy_file(path, folder / "test_batch.bin");
    return rows(cifar10(folder.path(), false).size());
}

std::string shard_rows(const fs::path& path) {
    const TarShards shards{path.string()};
    std::vector<std::byte> contents;
    for (std::size_t i = 0; i < shards.size(); ++i)
        shards.read(i, contents);
    return rows(shards.size());
}

std::string read_of(const fs::path& path) {
    const ReadTrace read = read_trace(path);
    return read.damaged ? "error " + read.warning : "reads";
}

/// What comes of the file, in the manifest's words. Documented errors only: others are passed on.
std::string outcome_of(const Case& file) {
    const fs::path path = corpus() / file.name;
    try {
        if (file.kind == "image")
            return pixels_of(path);
        if (file.kind == "tar")
            return shard_rows(path);
        if (file.kind == "idx")
            return rows(idx(path).size());
        if (file.kind == "npy")
            return rows(npy(path).size());
        if (file.kind == "cifar")
            return cifar_rows(path);
        if (file.kind == "recording")
            return read_of(path);
        if (file.kind == "checkpoint") {
            (void)Checkpoint::read(path);
            return "reads";
        }
        if (file.kind == "chrome") {
            (void)import_chrome_trace(path);
            return "reads";
        }
    } catch (const ImageError& error) {
        return std::string{"error "} + error.what();
    } catch (const TarError& error) {
        return std::string{"error "} + error.what();
    } catch (const ArrayFileError& error) {
        return std::string{"error "} + error.what();
    } catch (const TraceError& error) {
        return std::string{"error "} + error.what();
    } catch (const CheckpointError& error) {
        return std::string{"error "} + error.what();
    } catch (const std::system_error& error) {
        return std::string{"error "} + error.what();
    } catch (const std::runtime_error& error) {
        if (file.kind == "chrome")
            return std::string{"error "} + error.what();
        throw;
    }
    throw std::logic_error{"unknown kind " + file.kind};
}

bool is_as(const std::string& outcome, const std::string& expected) {
    constexpr std::string_view error = "error ";
    if (expected == "either")
        return outcome.starts_with("pixels ") || outcome.starts_with("rows ") || outcome == "reads" ||
               outcome.starts_with(error);
    if (expected.starts_with(error))
        return outcome.starts_with(error) && outcome.find(expected.substr(error.size())) != std::string::npos;
    return outcome == expected;
}

double cpu_s() {
    timespec now{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

/// Which images of a folder come under this policy, drawn one by one.
std::set<std::uint64_t> drawn_under(OnError policy, const ImageFolder& images) {
    Recorder recorder;
    Runtime runtime{{.max_threads = 2}, recorder};
    auto recipe = images | decode_image | CenterCrop{16, 16};
    SequentialSampler order{images.size()};
    DataLoader loader{
        runtime, recipe, order, {.batch_size = 1, .num_workers = 2, .on_error = policy, .max_errors = images.size()}};
    std::set<std::uint64_t> drawn;
    auto pass = loader.epoch(0);
    for (;;)
        try {
            const std::optional<Batch> batch = pass.next_blocking();
            if (!batch)
                return drawn;
            drawn.insert(batch->indices().begin(), batch->indices().end());
        } catch (const SampleError& error) {
            BOOST_TEST((policy != OnError::skip), error.what());   // a batch of one has no sample to substitute
            BOOST_TEST(!error.stage().empty());
            BOOST_TEST(error.path() == images.path(error.index()));
        }
}

}   // namespace

BOOST_AUTO_TEST_SUITE(hostile)

BOOST_AUTO_TEST_CASE(each_file_has_the_outcome_that_is_expected) {
    const std::vector<Case> all = cases();
    BOOST_TEST(all.size() >= 300u);
    std::map<std::string, std::size_t> outcomes;
    double longest_s = 0;
    for (const Case& file : all) {
        const double from_s = cpu_s();
        std::string outcome;
        try {
            outcome = outcome_of(file);
        } catch (const std::exception& error) {
            outcome = std::string{"undocumented: "} + error.what();
        }
        longest_s = std::max(longest_s, cpu_s() - from_s);
        ++outcomes[file.kind + " " + outcome.substr(0, outcome.find(' '))];
        BOOST_TEST(is_as(outcome, file.expected), file.name << ": expected " << file.expected << ", got " << outcome);
    }
    for (const auto& [what, count] : outcomes)
        BOOST_TEST_MESSAGE(what << ": " << count);
    BOOST_TEST_MESSAGE("the longest took " << longest_s << " s of a core");
    BOOST_TEST(longest_s < 10);   // of the processor's time: it hangs
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    BOOST_TEST(usage.ru_maxrss < 512 * 1024);
}

BOOST_AUTO_TEST_CASE(an_image_fails_or_comes_under_every_policy_alike) {
    const test::TemporaryFolder folder;
    fs::create_directories(folder / "images/all");
    std::map<std::string, bool> comes;   // by name, of those of which it is known
    for (const Case& file : cases())
        if (file.kind == "image") {
            fs::copy_file(corpus() / file.name, folder / "images/all" / file.name);
            if (file.expected != "either")
                comes[file.name] = file.expected.starts_with("pixels");
        }
    const ImageFolder images{folder / "images"};
    const std::set<std::uint64_t> raised = drawn_under(OnError::raise, images);
    for (std::size_t i = 0; i < images.size(); ++i)
        if (const auto known = comes.find(fs::path{images.path(i)}.filename()); known != comes.end())
            BOOST_TEST(raised.contains(i) == known->second, known->first);
    BOOST_TEST((drawn_under(OnError::skip, images) == raised));
    BOOST_TEST((drawn_under(OnError::substitute, images) == raised));
}

BOOST_AUTO_TEST_SUITE_END()
