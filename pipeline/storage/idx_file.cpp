#include <drawpoint/pipeline/storage/idx_file.hpp>

#include "pipeline/storage/array_header.hpp"

#include <stdexcept>
#include <string>
#include <system_error>

namespace drawpoint {
namespace {

namespace fs = std::filesystem;

fs::path as_it_is_or_packed(const fs::path& plain) {
    std::error_code error;
    for (const char* ending : {"", ".gz"}) {
        const fs::path path = plain.string() + ending;
        if (fs::exists(path, error))
            return path;
    }
    return {};
}

std::string hexadecimal(unsigned byte) {
    constexpr const char* digits = "0123456789abcdef";
    return {'0', 'x', digits[byte >> 4 & 15], digits[byte & 15]};
}

}   // namespace

ArrayHeader read_idx_header(std::span<const std::byte> begin, const fs::path& path) {
    const auto byte = [&begin](std::size_t at) { return std::to_integer<unsigned>(begin[at]); };
    if (begin.size() < 4)
        throw ArrayFileError{path, begin.size(),
                             "not an idx file: it ends before the type and the number of dimensions"};
    if (byte(0) != 0 || byte(1) != 0)
        throw ArrayFileError{path, 0,
                             "not an idx file: it begins with " + hexadecimal(byte(0)) + ' ' + hexadecimal(byte(1)) +
                                 " in place of two zeros"};
    ArrayHeader header{.big_endian = true};
    switch (byte(2)) {
    case 0x08: header.type = ArrayType::uint8; break;
    case 0x09: header.type = ArrayType::int8; break;
    case 0x0B: header.type = ArrayType::int16; break;
    case 0x0C: header.type = ArrayType::int32; break;
    case 0x0D: header.type = ArrayType::float32; break;
    case 0x0E: header.type = ArrayType::float64; break;
    default: throw ArrayFileError{path, 2, "not an idx file: type " + hexadecimal(byte(2)) + " does not exist"};
    }
    const std::size_t rank = byte(3), end = 4 + 4 * rank;
    if (begin.size() < end)
        throw ArrayFileError{path, begin.size(),
                             "the file ends within the sizes of its " + std::to_string(rank) + " dimensions"};
    for (std::size_t at = 4; at < end; at += 4)
        header.shape.push_back(std::uint64_t{byte(at)} << 24 | byte(at + 1) << 16 | byte(at + 2) << 8 | byte(at + 3));
    finish_header(header, path, rank == 0 ? 3 : 4, end);
    return header;
}

IdxPair find_mnist(const fs::path& folder, bool train) {
    const std::string part = train ? "train" : "t10k";
    for (const fs::path& below : {folder, folder / "raw", folder / "MNIST" / "raw"}) {
        const fs::path images = as_it_is_or_packed(below / (part + "-images-idx3-ubyte"));
        if (images.empty())
            continue;
        const fs::path labels = as_it_is_or_packed(below / (part + "-labels-idx1-ubyte"));
        if (labels.empty())
            throw std::invalid_argument{below.string() + ": no file " + part + "-labels-idx1-ubyte or " + part +
                                        "-labels-idx1-ubyte.gz"};
        return {images, labels};
    }
    throw std::invalid_argument{folder.string() + ": no file " + part + "-images-idx3-ubyte or " + part +
                                "-images-idx3-ubyte.gz in it, in raw or in MNIST/raw"};
}

}   // namespace drawpoint
