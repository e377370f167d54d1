#include <drawpoint/pipeline/storage/array_file.hpp>

#include "pipeline/storage/array_header.hpp"
#include "pipeline/storage/regular_file.hpp"

#include <drawpoint/pipeline/storage/file_reader.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include <zlib.h>

namespace drawpoint {
namespace {

std::string count(std::uint64_t bytes) { return std::to_string(bytes) + (bytes == 1 ? " byte" : " bytes"); }

/// A file packed by gzip, read from its beginning.
class Unpacked {
public:
    explicit Unpacked(const DataFile& file) : file_{&file} {
        // Of its own: zlib moves the descriptor's position, and closes it. Not by the path, where another file may lie
        // by now.
        const std::string same = "/proc/self/fd/" + std::to_string(file.descriptor());
        const int descriptor = ::open(same.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
        if (descriptor < 0)
            detail::fail_io("cannot open", file.path().c_str(), errno);
        stream_ = ::gzdopen(descriptor, "rb");
        if (stream_ == nullptr) {
            ::close(descriptor);
            throw std::bad_alloc{};
        }
        ::gzbuffer(stream_, 1u << 17);
    }
    Unpacked(const Unpacked&) = delete;
    Unpacked& operator=(const Unpacked&) = delete;
    ~Unpacked() { ::gzclose_r(stream_); }

    /// As many bytes as there are, up to to.size().
    std::size_t read(std::span<std::byte> to) {
        std::size_t done = 0;
        while (done < to.size()) {
            const auto part = static_cast<unsigned>(std::min<std::size_t>(to.size() - done, 1u << 30));
            const int got = ::gzread(stream_, to.data() + done, part);
            if (got <= 0) {
                check();
                break;
            }
            done += static_cast<std::size_t>(got);
        }
        return done;
    }

private:
    void check() {
        int error = Z_OK;
        const char* why = ::gzerror(stream_, &error);
        const auto at = static_cast<std::uint64_t>(std::max<z_off_t>(0, ::gzoffset(stream_)));
        if (error == Z_ERRNO)
            detail::fail_io("cannot read", file_->path().c_str(), errno);
        if (error == Z_MEM_ERROR)
            throw std::bad_alloc{};
        if (error == Z_BUF_ERROR)
            throw ArrayFileError{file_->path(), at, "the gzip data ends too early"};
        if (error != Z_OK && error != Z_STREAM_END)
            throw ArrayFileError{file_->path(), at, "damaged gzip data: " + std::string{why}};
    }

    const DataFile* file_;
    gzFile stream_ = nullptr;
};

ArrayHeader read_header(const DataFile& file, ArrayFormat format, bool& packed) {
    std::vector<std::byte> begin(std::min<std::uint64_t>(file.size(), most_header_bytes));
    file.read(0, begin);
    packed = begin.size() >= 2 && begin[0] == std::byte{0x1F} && begin[1] == std::byte{0x8B};
    if (packed) {
        begin.resize(most_header_bytes);
        begin.resize(Unpacked{file}.read(begin));
    }
    return format == ArrayFormat::idx ? read_idx_header(begin, file.path()) : read_npy_header(begin, file.path());
}

/// What stands behind `name` in a file of lines "name number"; with an empty name, the file's first number.
std::optional<std::uint64_t> number_in(const char* path, std::string_view name) {
    std::ifstream file{path};
    for (std::string line; std::getline(file, line);) {
        std::istringstream words{line};
        std::string word;
        std::uint64_t number = 0;
        if ((name.empty() || (words >> word && word == name)) && words >> number)
            return number;
    }
    return std::nullopt;
}

}   // namespace

ArrayFileError::ArrayFileError(const std::filesystem::path& path, std::uint64_t byte, const std::string& why)
    : std::runtime_error{path.string() + ": byte " + std::to_string(byte) + ": " + why} {}

DataFile::Opened::Opened(const std::filesystem::path& name) : path{name.string()} {
    RegularFile file{path.c_str()};
    size = file.size();
    descriptor = file.release();
}

DataFile::Opened::~Opened() {
    if (descriptor >= 0)
        ::close(descriptor);
}

DataFile::DataFile(const std::filesystem::path& path) : opened_{std::make_shared<const Opened>(path)} {}

void DataFile::read(std::uint64_t offset, std::span<std::byte> to) const {
    while (!to.empty()) {
        const std::size_t part = std::min<std::size_t>(to.size(), std::size_t{1} << 30);
        const ssize_t got = ::pread(descriptor(), to.data(), part, static_cast<off_t>(offset));
        if (got == 0)
            throw ArrayFileError{path(), offset, "the file ends here; it has become shorter"};
        if (got < 0 && errno != EINTR)
            detail::fail_io(("cannot read from byte " + std::to_string(offset) + " on").c_str(), path().c_str(), errno);
        if (got > 0) {
            offset += static_cast<std::uint64_t>(got);
            to = to.subspan(static_cast<std::size_t>(got));
        }
    }
}

std::size_t size_of(ArrayType type) noexcept {
    constexpr std::array<std::uint8_t, 9> sizes{1, 1, 2, 4, 8, 2, 4, 8, 1};
    return sizes[static_cast<std::size_t>(type)];
}

std::string_view name_of(ArrayType type) noexcept {
    constexpr std::array<std::string_view, 9> names{"uint8",   "int8",    "int16",   "int32", "int64",
                                                    "float16", "float32", "float64", "bool"};
    return names[static_cast<std::size_t>(type)];
}

void finish_header(ArrayHeader& header, const std::filesystem::path& path, std::uint64_t byte, std::uint64_t offset) {
    if (header.shape.empty())
        throw ArrayFileError{path, byte, "a single value, not rows"};
    header.bytes = size_of(header.type);
    for (const std::uint64_t side : header.shape) {
        if (side == 0)
            throw ArrayFileError{path, byte, "the array is empty"};
        if (side > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()) / header.bytes)
            throw ArrayFileError{path, byte, "the shape says more than 2^63 bytes"};
        header.bytes *= side;
    }
    header.offset = offset;
}

ArrayFile::ArrayFile(const std::filesystem::path& path, ArrayFormat format)
    : file_{path}, header_{read_header(file_, format, packed_)} {
    if (packed_)
        return;   // load() sees
    const std::uint64_t there = file_.size() - header_.offset;
    if (header_.bytes > there)
        throw ArrayFileError{path, file_.size(),
                             "the file ends here; its header says " + count(header_.bytes) + " from byte " +
                                 std::to_string(header_.offset) + " on, " + count(there) + " are there"};
    // numpy reads a .npy file as far as its header says; nobody reads an idx file that goes on.
    if (header_.bytes < there && format == ArrayFormat::idx)
        throw ArrayFileError{path, header_.offset + header_.bytes,
                             "the array ends here by its header, " + count(there - header_.bytes) + " follow"};
}

void ArrayFile::load(std::byte* to) const {
    if (!packed_)
        return file_.read(header_.offset, {to, header_.bytes});
    Unpacked stream{file_};
    std::vector<std::byte> header(header_.offset);
    (void)stream.read(header);
    const std::size_t got = stream.read({to, header_.bytes});
    std::byte more{};
    if (got < header_.bytes || stream.read({&more, 1}) > 0)   // reading on also checks the checksum
        throw ArrayFileError{file_.path(), header_.offset + got,
                             got < header_.bytes
                                 ? "the unpacked data ends here; its header says " + count(header_.bytes) +
                                       " from byte " + std::to_string(header_.offset) + " on"
                                 : "the array ends here by its header, but the unpacked data goes on"};
}

std::uint64_t available_memory() {
    std::uint64_t available = number_in("/proc/meminfo", "MemAvailable:").value_or(0) * 1024;
    const auto limit = number_in("/sys/fs/cgroup/memory.max", ""),
               used = number_in("/sys/fs/cgroup/memory.current", "");
    if (limit && used) {   // files that were read count as used, and can be dropped
        const std::uint64_t held =
            *used - std::min(*used, number_in("/sys/fs/cgroup/memory.stat", "inactive_file").value_or(0));
        available = std::min(available, *limit - std::min(*limit, held));
    }
    return available;
}

}   // namespace drawpoint
