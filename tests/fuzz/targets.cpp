#include "fuzz/targets.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <drawpoint/instrumentation/import/chrome_trace.hpp>
#include <drawpoint/instrumentation/report/summary.hpp>
#include <drawpoint/instrumentation/trace/trace.hpp>
#include <drawpoint/loop/callbacks/checkpoint_file.hpp>
#include <drawpoint/pipeline/image/image_decoder.hpp>
#include <drawpoint/pipeline/storage/array_file.hpp>
#include <drawpoint/pipeline/storage/tar_shards.hpp>

#include "instrumentation/trace/trace_block.hpp"
#include "instrumentation/trace/trace_writer.hpp"
#include "pipeline/loader/core/loader_state.hpp"

namespace drawpoint::test {
namespace {

namespace fs = std::filesystem;
using Bytes = std::span<const std::byte>;

void require(bool holds, const char* what) {
    if (holds)
        return;
    std::fprintf(stderr, "%s\n", what);
    std::abort();
}

/// A file in memory, always the same one, with these bytes.
const fs::path& file_with(Bytes bytes, const char* ending) {
    struct Folder {
        fs::path path = fs::path{fs::is_directory("/dev/shm") ? "/dev/shm" : fs::temp_directory_path()} /
                        ("drawpoint-fuzz." + std::to_string(::getpid()));
        Folder() { fs::create_directory(path); }
        ~Folder() {
            std::error_code ignored;
            fs::remove_all(path, ignored);
        }
    };
    static const Folder folder;
    static fs::path path;
    path = folder.path / ending;
    const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    require(file >= 0 && ::write(file, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()),
            "cannot write the file");
    ::close(file);
    return path;
}

void image(Bytes file) {
    static ImageDecoder decoder;
    static std::vector<std::uint8_t> rgb;
    static std::vector<float> planes(3 * 24 * 16);
    constexpr std::uint64_t most_pixels = 1u << 18;   // larger ones take longer than they tell
    try {
        decoder.open(file);
        const ImageSize size = decoder.size();
        require(size.width > 0 && size.height > 0, "an image without pixels");
        if (std::uint64_t{size.width} * size.height > most_pixels)
            return;
        rgb.resize(std::size_t{3} * size.width * size.height);
        const CropBox whole{0, 0, size.width, size.height};
        decoder.decode_rgb(whole, rgb.data());
        decoder.open(file);
        decoder.decode(whole, {24, 16}, false, ResizeFilter::bilinear, {{}, planes.data()});
    } catch (const ImageError&) {
    }
}

void tar_file(Bytes file, const char* name) {
    try {
        const TarShards shards{file_with(file, name).string()};
        std::vector<std::byte> contents;
        for (std::size_t i = 0; i < std::min<std::size_t>(shards.size(), 16); ++i) {
            require(shards.label(i) >= 0 && static_cast<std::size_t>(shards.label(i)) < shards.num_classes(), "label");
            require(!shards.path(i).empty(), "a sample without a name");
            shards.read(i, contents);
            require(contents.size() == shards.bytes(i), "another size than said");
        }
    } catch (const TarError&) {
    } catch (const fs::filesystem_error&) {
    }
}

void array(Bytes file, ArrayFormat format) {
    constexpr std::uint64_t most_bytes = 1u << 20;
    try {
        const ArrayFile array{file_with(file, "array"), format};
        std::uint64_t bytes = size_of(array.header().type);
        for (const std::uint64_t size : array.header().shape)
            bytes *= size;
        require(!array.header().shape.empty() && bytes == array.header().bytes, "bytes are not those of the shape");
        if (array.header().bytes > most_bytes)
            return;
        std::vector<std::byte> values(array.header().bytes);
        array.load(values.data());
    } catch (const ArrayFileError&) {
    }
}

void look_at(const Ledger& ledger) {
    Ledger again = ledger;
    again.sort();
    require(again == ledger, "the ledger was not sorted");
    (void)summarize(ledger);
}

void recording(Bytes file) {
    try {
        const fs::path& path = file_with(file, "run.pftrace");
        look_at(read_trace(path).ledger);
        look_at(read_trace(path, 1u << 12).ledger);   // folded as it is read
    } catch (const TraceError&) {
    }
}

/// The bytes as the packets of a block whose checksums are right, behind a right beginning.
void packets(Bytes file) {
    static const std::string beginning = [] {
        const fs::path& path = file_with({}, "begin.pftrace");
        TraceWriter{path, {.start_ns = 1000}}.close();
        std::ifstream in{path, std::ios::binary};
        return std::string{std::istreambuf_iterator<char>{in}, {}};
    }();
    const std::string_view content{reinterpret_cast<const char*>(file.data()), file.size()};
    BlockHeader header{.offset = beginning.size(), .records = 1000, .dropped = 0, .bytes = content.size()};
    header.crc32 = header.checksum(content);
    const std::string whole = beginning + header.encoded() + std::string{content};
    recording(std::as_bytes(std::span{whole}));
}

void checkpoint(Bytes file) {
    std::byte touched{};
    try {
        const Checkpoint read = Checkpoint::read(file_with(file, "checkpoint"));
        for (const std::string& name : read.names("")) {
            const Checkpoint::Array* const found = read.find(name);
            require(found != nullptr, "an array without a value");
            for (const std::byte value : found->data)   // touches all of it
                *const_cast<volatile std::byte*>(&touched) = value;
        }
    } catch (const CheckpointError&) {
    }
}

void state(Bytes file) {
    try {
        const std::string_view bytes{reinterpret_cast<const char*>(file.data()), file.size()};
        const LoaderState read = parse_state(bytes);
        require(parse_state(to_bytes(read)) == read, "a state is another one after writing and reading it");
    } catch (const std::invalid_argument&) {
    }
}

void chrome(Bytes file) {
    const std::string text{reinterpret_cast<const char*>(file.data()), file.size()};
    for (const bool operators : {true, false})
        try {
            std::istringstream in{text};
            look_at(import_chrome_trace(in, "trace", {.block_bytes = 256, .operators = operators}).ledger);
        } catch (const std::runtime_error&) {
        }
}

constexpr std::array<FuzzTarget, 13> targets{{
    {"jpeg", {".jpg"}, image},
    {"png", {".png"}, image},
    {"webp", {".webp"}, image},
    {"tar", {".tar"}, [](Bytes file) { tar_file(file, "shard.tar"); }},
    {"gzip", {".tar.gz"}, [](Bytes file) { tar_file(file, "shard.tar.gz"); }},
    {"zstd", {".tar.zst"}, [](Bytes file) { tar_file(file, "shard.tar.zst"); }},
    {"idx", {".idx", ".idx.gz"}, [](Bytes file) { array(file, ArrayFormat::idx); }},
    {"npy", {".npy", ".npy.gz"}, [](Bytes file) { array(file, ArrayFormat::npy); }},
    {"recording", {".pftrace"}, recording},
    {"packets", {".pftrace"}, packets},
    {"checkpoint", {".ckpt"}, checkpoint},
    {"state", {}, state},
    {"chrome", {".json"}, chrome},
}};

}   // namespace

std::span<const FuzzTarget> fuzz_targets() noexcept { return targets; }

const FuzzTarget* fuzz_target(std::string_view name) noexcept {
    const auto found = std::ranges::find(targets, name, &FuzzTarget::name);
    return found != targets.end() ? &*found : nullptr;
}

}   // namespace drawpoint::test
