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

/// A data file that is not what it should be. The message names the file and where in it: `x.npy: byte 10: …`.
class ArrayFileError : public std::runtime_error {
public:
    ArrayFileError(const std::filesystem::path& path, std::uint64_t byte, const std::string& why);
};

/// A regular file open for reading; shared by copies, closed with the last. Any thread.
class DataFile {
public:
    /// Throws std::filesystem::filesystem_error naming the path: missing, unreadable, not a regular file.
    explicit DataFile(const std::filesystem::path&);

    [[nodiscard]] const std::string& path() const noexcept { return opened_->path; }
    [[nodiscard]] std::uint64_t size() const noexcept { return opened_->size; }   ///< in bytes, when it was opened
    [[nodiscard]] int descriptor() const noexcept { return opened_->descriptor; }
    /// Fills `to` from byte `offset` on. Blocks; allocates nothing. Throws ArrayFileError if the file ends before,
    /// std::filesystem::filesystem_error if it cannot be read.
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

/// What the values of an array file are.
enum class ArrayType : std::uint8_t { uint8, int8, int16, int32, int64, float16, float32, float64, boolean };

[[nodiscard]] std::size_t size_of(ArrayType) noexcept;        ///< bytes of one value
[[nodiscard]] std::string_view name_of(ArrayType) noexcept;   ///< as numpy calls it

/// What an array file says about its array: rows of the first dimension, in C order.
struct ArrayHeader {
    ArrayType type = ArrayType::uint8;
    bool big_endian = false;
    std::vector<std::uint64_t> shape;   ///< outermost first; at least one dimension, none empty
    std::uint64_t offset = 0;           ///< of the first value in the file, in bytes
    std::uint64_t bytes = 0;            ///< of all values
};

/// The format of an array in a file.
enum class ArrayFormat : std::uint8_t { idx, npy };

/// An array in a file, as it is or packed by gzip, whose header has been read and fits the file.
class ArrayFile {
public:
    /// Reads the header. Throws ArrayFileError; std::filesystem::filesystem_error as DataFile does.
    ArrayFile(const std::filesystem::path&, ArrayFormat);

    [[nodiscard]] const DataFile& file() const noexcept { return file_; }
    [[nodiscard]] const ArrayHeader& header() const noexcept { return header_; }
    /// Whether the file is packed by gzip: then only load() can read it, and header().offset counts unpacked bytes.
    [[nodiscard]] bool packed() const noexcept { return packed_; }
    /// Reads all values as the file has them into `to`: header().bytes. Blocks. Throws as the constructor.
    void load(std::byte* to) const;

private:
    DataFile file_;
    bool packed_ = false;   // before the header, whose reader sets it
    ArrayHeader header_;
};

/// Bytes that the machine and its control group can still give without swapping. Reads /proc and /sys.
[[nodiscard]] std::uint64_t available_memory();

}   // namespace drawpoint
