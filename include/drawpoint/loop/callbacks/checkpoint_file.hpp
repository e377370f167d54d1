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

/// A checkpoint that cannot be written, read or used. The text names the file.
class CheckpointError : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// Named arrays and texts, in memory and as one file. The file is in the safetensors format, so other tools read the
/// weights off it; a checksum over all of it is among its texts. One thread at a time.
class Checkpoint {
public:
    /// Values of one type in row-major order.
    struct Array {
        std::string type = "U8";           ///< safetensors' names: "F64", "F32", "F16", "BF16", "I64" … "U8", "BOOL"
        std::vector<std::int64_t> shape;   ///< empty: a single value
        std::span<const std::byte> data;
        std::shared_ptr<const void> owner;   ///< keeps `data` alive
    };

    // Setting a name again replaces it.
    void set(const std::string& name, Array array);
    void set_integer(const std::string& name, std::int64_t value);
    void set_number(const std::string& name, double value);
    void set_numbers(const std::string& name, std::vector<double> values);
    void set_text(const std::string& name, std::string text);

    /// Null when there is none.
    [[nodiscard]] const Array* find(const std::string& name) const noexcept;
    [[nodiscard]] const std::string* find_text(const std::string& name) const noexcept;
    // These throw CheckpointError when it is not there, or of another type.
    [[nodiscard]] std::int64_t integer(const std::string& name) const;
    [[nodiscard]] double number(const std::string& name) const;
    [[nodiscard]] std::vector<double> numbers(const std::string& name) const;
    [[nodiscard]] const std::string& text(const std::string& name) const;
    /// Of the arrays whose name begins so, in order.
    [[nodiscard]] std::vector<std::string> names(std::string_view prefix) const;

    /// Throws CheckpointError: "FILE: what".
    [[noreturn]] void refuse(const std::string& what) const;

    /// Replaces `file`, or what it links to, whole or not at all, also when the machine stops or another run writes it,
    /// too: writes a file without a name (or `file`.PID.N.tmp), has the disk take it, and puts it there. Throws
    /// CheckpointError.
    void write(const std::filesystem::path& file) const;
    /// Throws CheckpointError for what is no checkpoint, cut short or changed.
    [[nodiscard]] static Checkpoint read(const std::filesystem::path& file);

private:
    [[nodiscard]] const Array& array(const std::string& name, std::string_view type, std::size_t dimensions) const;
    void parse(const std::shared_ptr<std::vector<std::byte>>& file);

    std::string file_ = "checkpoint";   // it was read from
    std::map<std::string, Array> arrays_;
    std::map<std::string, std::string> texts_;
};

/// Something, mostly a callback, whose state a checkpoint holds so that a resumed run goes on exactly.
class Stateful {
public:
    virtual ~Stateful() = default;
    /// What its state is filed under: never changes.
    [[nodiscard]] virtual std::string_view state_name() const noexcept = 0;
    /// Every name it sets begins with `prefix`.
    virtual void save(Checkpoint& to, const std::string& prefix) const = 0;
    /// Takes over what `save` wrote. Throws CheckpointError.
    virtual void load(const Checkpoint& from, const std::string& prefix) = 0;
};

}   // namespace drawpoint
