#include "pipeline/storage/tar_index.hpp"

#include <bit>
#include <cstring>
#include <filesystem>

#include <zlib.h>

#include <drawpoint/pipeline/storage/file_reader.hpp>
#include <drawpoint/pipeline/storage/tar_shards.hpp>
#include "pipeline/storage/file_writer.hpp"
#include "pipeline/storage/tar_reader.hpp"

namespace drawpoint {

namespace {

// An index file: this, four columns of 8 bytes a sample (offsets, bytes, labels, name_ends), the names, a CRC-32 of it
// all.
struct Head {
    char magic[8];
    std::uint64_t file_bytes;
    std::int64_t modified_ns;
    std::uint64_t compression, samples, name_bytes;
};
static_assert(sizeof(Head) == 48 && std::endian::native == std::endian::little);
constexpr char magic[8] = {'D', 'P', 'T', 'A', 'R', 'I', 'X', '1'};
constexpr std::size_t columns = 4, sum_bytes = 8;
constexpr std::uint64_t longest_index = std::uint64_t{1} << 30;   // bytes: of some ten million samples

std::uint64_t checksum(std::span<const std::byte> bytes, std::uint64_t before = 0) {
    return ::crc32_z(before, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
}

/// Reads the next column or text of a file whose length was checked.
template <class Container>
void take(const std::byte*& from, std::size_t count, Container& to) {
    to.resize(count);
    const std::size_t bytes = count * sizeof(typename Container::value_type);
    if (bytes > 0)
        std::memcpy(to.data(), from, bytes);
    from += bytes;
}

/// Whether the index can be that of this shard: everything lies in it, in order, in whole blocks.
bool is_plausible(const TarIndex& index) {
    std::uint64_t end = 0, name_end = 0;
    // What a compressed archive is long is not known before it is read.
    const std::uint64_t limit = index.compression == TarCompression::none ? index.file_bytes : std::uint64_t{1} << 62;
    for (std::size_t i = 0; i < index.size(); ++i) {
        const std::uint64_t offset = index.offsets[i], bytes = index.bytes[i];
        if (offset % tar_block != 0 || offset < end + tar_block || bytes > max_tar_image_bytes || offset > limit ||
            bytes > limit - offset || index.labels[i] < 0 || index.labels[i] > largest_label ||
            index.name_ends[i] <= name_end || index.name_ends[i] > index.names.size())
            return false;
        end = offset + tar_padded(bytes);
        name_end = index.name_ends[i];
    }
    return name_end == index.names.size();
}

std::optional<TarIndex> read_index(const TarInput& input) {
    const std::string path = tar_index_path(input.path());
    Head head{};
    std::vector<std::byte> rest;
    try {
        const RegularFile file{path.c_str()};
        if (file.size() < sizeof head + sum_bytes || file.size() > longest_index)
            return std::nullopt;
        read_file_part(file.descriptor(), path.c_str(), 0, sizeof head, rest);
        std::memcpy(&head, rest.data(), sizeof head);
        const std::uint64_t body = file.size() - sizeof head - sum_bytes;
        // The head has to be this shard's, and say how long the file is, before more of it is read.
        if (std::memcmp(head.magic, magic, sizeof magic) != 0 || head.file_bytes != input.file().size() ||
            head.modified_ns != input.file().modified_ns() ||
            head.compression != static_cast<std::uint64_t>(input.compression()) || head.samples == 0 ||
            head.samples > body / (columns * 8) || head.name_bytes != body - head.samples * columns * 8)
            return std::nullopt;
        read_file_part(file.descriptor(), path.c_str(), sizeof head, body + sum_bytes, rest);
    } catch (const std::filesystem::filesystem_error&) {
        return std::nullopt;   // there need not be one
    }
    std::uint64_t sum = 0;
    const std::size_t body = rest.size() - sum_bytes;
    std::memcpy(&sum, rest.data() + body, sum_bytes);
    if (sum != checksum({rest.data(), body}, checksum(std::as_bytes(std::span{&head, 1}))))
        return std::nullopt;

    TarIndex index;
    const std::byte* from = rest.data();
    const auto samples = static_cast<std::size_t>(head.samples);
    take(from, samples, index.offsets);
    take(from, samples, index.bytes);
    take(from, samples, index.labels);
    take(from, samples, index.name_ends);
    take(from, static_cast<std::size_t>(head.name_bytes), index.names);
    index.file_bytes = head.file_bytes;
    index.modified_ns = head.modified_ns;
    index.compression = input.compression();
    index.from_file = true;
    return is_plausible(index) ? std::optional{std::move(index)} : std::nullopt;
}

}   // namespace

TarIndex index_of_tar(TarInput& input) {
    if (std::optional<TarIndex> index = read_index(input))
        return std::move(*index);
    return scan_tar(input);
}

void write_tar_index(const TarIndex& index, const std::string& path) {
    Head head{{},           index.file_bytes,  index.modified_ns, static_cast<std::uint64_t>(index.compression),
              index.size(), index.names.size()};
    std::memcpy(head.magic, magic, sizeof magic);
    std::vector<std::byte> file;
    const auto put = [&](const auto* values, std::size_t count) {
        const auto* const begin = reinterpret_cast<const std::byte*>(values);
        file.insert(file.end(), begin, begin + count * sizeof *values);
    };
    put(&head, 1);
    put(index.offsets.data(), index.size());
    put(index.bytes.data(), index.size());
    put(index.labels.data(), index.size());
    put(index.name_ends.data(), index.size());
    put(index.names.data(), index.names.size());
    const std::uint64_t sum = checksum(file);
    put(&sum, 1);
    FileWriter out{path};
    out.write(file);
    out.close();
}

}   // namespace drawpoint
