#include "pipeline/storage/array_header.hpp"

#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace drawpoint {
namespace {

namespace fs = std::filesystem;

/// Parses the Python dictionary of a .npy header from left to right. Refusals throw ArrayFileError.
class Dictionary {
public:
    /// `begin`: offset of `text` in the file `path`.
    Dictionary(std::string_view text, std::uint64_t begin, const fs::path& path)
        : text_{text}, begin_{begin}, path_{&path} {}

    [[noreturn]] void refuse(const std::string& why) const { refuse(why, place()); }
    [[noreturn]] void refuse(const std::string& why, std::uint64_t place) const {
        throw ArrayFileError{*path_, place, why};
    }
    [[nodiscard]] std::uint64_t place() const { return begin_ + at_; }

    /// Whether `letter` comes next, after white space; if so, skips it.
    bool pass(char letter) {
        while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t'))
            ++at_;
        const bool stands = at_ < text_.size() && text_[at_] == letter;
        at_ += stands;
        return stands;
    }
    void expect(char letter) {
        if (!pass(letter))
            refuse(std::string{"damaged .npy header: '"} + letter + "' should stand here");
    }
    bool word(std::string_view expected) {
        pass(' ');
        const bool stands = text_.substr(at_).starts_with(expected);
        at_ += stands ? expected.size() : 0;
        return stands;
    }
    std::string_view quoted() {
        const char quote = pass('"') ? '"' : '\'';
        if (quote == '\'')
            expect('\'');
        const std::size_t end = text_.find(quote, at_);
        if (end == std::string_view::npos)
            refuse("damaged .npy header: a name without end");
        const std::string_view found = text_.substr(at_, end - at_);
        at_ = end + 1;
        return found;
    }
    std::uint64_t number() {
        pass(' ');
        std::uint64_t value = 0;
        const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
        if (error != std::errc{})
            refuse("damaged .npy header: a size of the shape should stand here");
        at_ = static_cast<std::size_t>(end - text_.data());
        pass('L');   // as Python 2 wrote it
        return value;
    }
    [[nodiscard]] bool at_end() {
        pass(' ');
        return at_ == text_.size();
    }

private:
    std::string_view text_;
    std::size_t at_ = 0;
    std::uint64_t begin_;
    const fs::path* path_;
};

/// The name as ASCII for a message, whatever bytes the file has.
std::string printable(std::string_view name) {
    std::string text{name.substr(0, 32)};
    for (char& letter : text)
        if (letter < ' ' || letter > '~')
            letter = '?';
    return text;
}

/// Why numpy's type `name` is not supported.
std::string refusal(std::string_view name) {
    const std::string_view kind = name.substr(0, 1);
    const std::string text = "type '" + printable(name) + "' ";
    if (kind == "u")
        return text + "(unsigned, more than 8 bits) is none of LibTorch's; save the array as int32 or int64";
    if (kind == "c")
        return text + "(complex) is none a sample can have";
    if (kind == "O")
        return text + "(Python objects) is pickled code and never read";
    if (kind == "U" || kind == "S")
        return text + "(text) is none a sample can have";
    if (kind == "M" || kind == "m")
        return text + "(dates) is none a sample can have; save the array as int64";
    return text + "is none a sample can have";
}

void set_type(ArrayHeader& header, std::string_view description, const Dictionary& at) {
    const std::size_t order = description.find_first_of("<>|=") == 0 ? 1 : 0;
    const std::string_view name = description.substr(order);
    const std::optional<ArrayType> type = name == "b1" || name == "?" ? std::optional{ArrayType::boolean}
                                          : name == "u1"              ? std::optional{ArrayType::uint8}
                                          : name == "i1"              ? std::optional{ArrayType::int8}
                                          : name == "i2"              ? std::optional{ArrayType::int16}
                                          : name == "i4"              ? std::optional{ArrayType::int32}
                                          : name == "i8"              ? std::optional{ArrayType::int64}
                                          : name == "f2"              ? std::optional{ArrayType::float16}
                                          : name == "f4"              ? std::optional{ArrayType::float32}
                                          : name == "f8"              ? std::optional{ArrayType::float64}
                                                                      : std::nullopt;
    if (!type)
        at.refuse(refusal(name));
    header.type = *type;
    header.big_endian = size_of(*type) > 1 && description.starts_with('>');
}

/// Where the dictionary lies in the file, in bytes.
struct Extent {
    std::size_t start;
    std::uint64_t length;
};

/// Checks what stands before the dictionary: magic, version and length.
Extent extent_of_dictionary(std::string_view text, const fs::path& path) {
    const auto byte = [text](std::size_t at) { return std::uint64_t{static_cast<unsigned char>(text[at])}; };
    if (text.starts_with("PK\3\4") || text.starts_with("PK\5\6"))
        throw ArrayFileError{path, 0, "a .npz archive: unpack it, and take one of its .npy files"};
    constexpr std::string_view magic{"\x93NUMPY"};
    if (!text.starts_with(magic))
        throw ArrayFileError{path, 0, "not a .npy file: it does not begin with \\x93NUMPY"};
    if (text.size() < 12)
        throw ArrayFileError{path, text.size(), "the file ends within its header"};
    const std::uint64_t version = byte(6);
    if (version < 1 || version > 3 || byte(7) != 0)
        throw ArrayFileError{path, 6,
                             ".npy version " + std::to_string(version) + '.' + std::to_string(byte(7)) +
                                 " is not known, 1.0, 2.0 and 3.0 are"};
    const std::size_t start = version == 1 ? 10 : 12;
    const std::uint64_t length = byte(8) | byte(9) << 8 | (version == 1 ? 0 : byte(10) << 16 | byte(11) << 24);
    if (length > most_header_bytes - start)
        throw ArrayFileError{path, 8,
                             "a header of " + std::to_string(length) + " bytes is longer than the " +
                                 std::to_string(most_header_bytes - start) + " that are read"};
    if (length > text.size() - start)
        throw ArrayFileError{path, text.size(),
                             "the file ends within its header of " + std::to_string(length) + " bytes"};
    return {start, length};
}

bool read_order(Dictionary& header) {
    const bool fortran = header.word("True");
    if (!fortran && !header.word("False"))
        header.refuse("damaged .npy header: True or False should stand here");
    return fortran;
}

/// Reads the rest of a tuple of numbers, after its opening parenthesis.
void read_shape(Dictionary& header, std::vector<std::uint64_t>& shape) {
    while (!header.pass(')')) {
        shape.push_back(header.number());
        if (!header.pass(',')) {
            header.expect(')');
            return;
        }
    }
}

}   // namespace

ArrayHeader read_npy_header(std::span<const std::byte> begin, const fs::path& path) {
    const std::string_view text{reinterpret_cast<const char*>(begin.data()), begin.size()};
    const Extent extent = extent_of_dictionary(text, path);
    Dictionary header{text.substr(extent.start, extent.length), extent.start, path};
    ArrayHeader found;
    bool type = false, order = false, shape = false, fortran = false;
    std::uint64_t shape_place = extent.start, order_place = extent.start;
    header.expect('{');
    while (!header.pass('}')) {
        const std::uint64_t key_place = header.place();
        const std::string_view key = header.quoted();
        header.expect(':');
        if (key == "descr" && !type) {
            if (header.pass('['))
                header.refuse("a structured type: a sample's values are of one type; save its fields one by one");
            set_type(found, header.quoted(), header);
            type = true;
        } else if (key == "fortran_order" && !order) {
            order_place = header.place();
            fortran = read_order(header);
            order = true;
        } else if (key == "shape" && !shape) {
            header.expect('(');
            shape_place = header.place();
            read_shape(header, found.shape);
            shape = true;
        } else {
            header.refuse("damaged .npy header: '" + printable(key) + "' should not stand here", key_place);
        }
        if (!header.pass(',')) {
            header.expect('}');
            break;
        }
    }
    if (!header.at_end() || !type || !order || !shape)
        header.refuse(!header.at_end() ? "damaged .npy header: more follows it"
                                       : "damaged .npy header: it lacks descr, fortran_order or shape");
    if (fortran && found.shape.size() > 1)
        throw ArrayFileError{path, order_place,
                             "the array is in Fortran order, its rows are not whole in the file; save "
                             "numpy.ascontiguousarray of it"};
    finish_header(found, path, shape_place, extent.start + extent.length);
    return found;
}

}   // namespace drawpoint
