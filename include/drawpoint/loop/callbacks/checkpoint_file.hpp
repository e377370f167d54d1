#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace drawpoint {

/// A checkpoint that cannot be written, read or used. The message names the file.
class CheckpointError : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// Named arrays and texts, in memory and as one file in the safetensors format, so that other tools can read the
/// weights; one of the texts is a checksum over everything else. One thread at a time.
class Checkpoint {
public:
    /// Values of one type in row-major order.
    struct Array {
        std::string type = "U8";           ///< safetensors' names: "F64", "F32", "F16", "BF16", "I64" … "U8", "BOOL"
        std::vector<std::int64_t> shape;   ///< empty: a single value
        std::span<const std::byte> data;
        std::shared_ptr<const void> owner;   ///< keeps `data` alive
    };

    // Setting a name again replaces its value. Arrays and texts have names of their own.
    /// Throws std::invalid_argument if `data` is not as large as type and shape say.
    void set(const std::string& name, Array array);
    void set_integer(const std::string& name, std::int64_t value);
    void set_number(const std::string& name, double value);
    void set_numbers(const std::string& name, std::vector<double> values);
    void set_text(const std::string& name, std::string text);

    /// Null if there is none; valid until the name is set again.
    [[nodiscard]] const Array* find(const std::string& name) const noexcept;
    [[nodiscard]] const std::string* find_text(const std::string& name) const noexcept;
    // These throw CheckpointError if the value is missing or has another type.
    [[nodiscard]] std::int64_t integer(const std::string& name) const;
    [[nodiscard]] double number(const std::string& name) const;
    [[nodiscard]] std::vector<double> numbers(const std::string& name) const;
    [[nodiscard]] const std::string& text(const std::string& name) const;
    /// Names of the arrays that begin with the prefix, in order.
    [[nodiscard]] std::vector<std::string> names(std::string_view prefix) const;

    /// Throws CheckpointError: "FILE: what".
    [[noreturn]] void refuse(const std::string& what) const;

    /// Replaces `file`, or what it links to, atomically, even if the machine stops or another run writes it at the same
    /// time: writes an unnamed file (or `file`.PID.N.tmp), syncs it to disk, and moves it into place. Throws
    /// CheckpointError.
    void write(const std::filesystem::path& file) const;
    /// Throws CheckpointError for a file that is not a checkpoint, truncated or modified.
    [[nodiscard]] static Checkpoint read(const std::filesystem::path& file);

private:
    [[nodiscard]] const Array& array(const std::string& name, std::string_view type, std::size_t dimensions) const;
    struct Header;
    [[nodiscard]] std::uint64_t header_bytes(std::span<const std::byte> start, std::uint64_t size) const;
    [[nodiscard]] Header parse_header(std::span<const std::byte>) const;
    void parse_arrays(Header&, const std::shared_ptr<std::vector<std::byte>>& file);

    std::string file_ = "checkpoint";   // the file it was read from
    std::map<std::string, Array> arrays_;
    std::map<std::string, std::string> texts_;
};

/// An object, usually a callback, whose state is stored in checkpoints so that a resumed run continues exactly.
class Stateful {
public:
    virtual ~Stateful() = default;
    /// The name under which its state is stored; must never change.
    [[nodiscard]] virtual std::string_view state_name() const noexcept = 0;
    /// Every name it sets must begin with `prefix`.
    virtual void save(Checkpoint& to, const std::string& prefix) const = 0;
    /// Restores what `save` wrote. Throws CheckpointError.
    virtual void load(const Checkpoint& from, const std::string& prefix) = 0;
};

}   // namespace drawpoint
