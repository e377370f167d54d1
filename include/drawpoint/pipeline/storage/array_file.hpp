#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace drawpoint {

/// A data file that is damaged or of another format. The message names file and offset: `x.npy: byte 10: …`.
class ArrayFileError : public std::runtime_error {
public:
    ArrayFileError(const std::filesystem::path& path, std::uint64_t byte, const std::string& why);
};

/// A regular file open for reading. Copies share it; the last one closes it. Any thread.
class DataFile {
public:
    /// Throws std::filesystem::filesystem_error naming the path: missing, unreadable, not a regular file.
    explicit DataFile(const std::filesystem::path&);

    [[nodiscard]] const std::string& path() const noexcept { return opened_->path; }
    [[nodiscard]] std::uint64_t size() const noexcept { return opened_->size; }   ///< bytes, when it was opened
    [[nodiscard]] int descriptor() const noexcept { return opened_->descriptor; }
    /// Fills `to` with the bytes from `offset` on. Blocks; allocates nothing. Throws ArrayFileError if the file ends
    /// earlier, std::filesystem::filesystem_error if it cannot be read.
    void read(std::uint64_t offset, std::span<std::byte> to) const;

private:
    struct Opened {
        Opened(const std::filesystem::path&);
        Opened(const Opened&) = delete;
        Opened& operator=(const Opened&) = delete;
        ~Opened();
        std::string path;
        int descriptor = -1;
        std::uint64_t size = 0;
    };
    std::shared_ptr<const Opened> opened_;
};

/// The type of the values in an array file.
enum class ArrayType : std::uint8_t { uint8, int8, int16, int32, int64, float16, float32, float64, boolean };

[[nodiscard]] std::size_t size_of(ArrayType) noexcept;        ///< bytes of one value
[[nodiscard]] std::string_view name_of(ArrayType) noexcept;   ///< numpy's name of the type

/// Type, shape and place of the array in a file, in C order.
struct ArrayHeader {
    ArrayType type = ArrayType::uint8;
    bool big_endian = false;
    std::vector<std::uint64_t> shape;   ///< outermost first; at least one dimension, none of them 0
    std::uint64_t offset = 0;           ///< of the first value in the file, bytes
    std::uint64_t bytes = 0;            ///< size of all values
};

/// The file format of an array.
enum class ArrayFormat : std::uint8_t { idx, npy };

/// An array in a file, plain or compressed by gzip, whose header has been read and agrees with the file's size.
class ArrayFile {
public:
    /// Reads the header. Throws ArrayFileError, and std::filesystem::filesystem_error as DataFile does.
    ArrayFile(const std::filesystem::path&, ArrayFormat);

    [[nodiscard]] const DataFile& file() const noexcept { return file_; }
    [[nodiscard]] const ArrayHeader& header() const noexcept { return header_; }
    /// Whether the file is compressed: then only load() can read it, and header().offset counts decompressed bytes.
    [[nodiscard]] bool packed() const noexcept { return packed_; }
    /// Reads all values into `to`, header().bytes of them, in the file's byte order. Blocks. Throws as the constructor.
    void load(std::byte* to) const;

private:
    DataFile file_;
    bool packed_ = false;   // declared before header_, whose initialiser sets it
    ArrayHeader header_;
};

/// Bytes that the machine and its control group can still provide without swapping. Reads /proc and /sys.
[[nodiscard]] std::uint64_t available_memory();

}   // namespace drawpoint
