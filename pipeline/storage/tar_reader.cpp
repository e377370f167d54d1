#include "pipeline/storage/tar_reader.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>

#include <drawpoint/pipeline/storage/tar_shards.hpp>

namespace drawpoint {

namespace {

// A field of a header: its offset and length in bytes.
struct Field {
    std::size_t at, length;
};
constexpr Field name_field{0, 100}, size_field{124, 12}, checksum_field{148, 8}, type_field{156, 1},
    magic_field{257, 6}, prefix_field{345, 155};

constexpr std::size_t longest_name = std::size_t{1} << 16, longest_pax = std::size_t{1} << 20;
// The length of a compressed archive is unknown, so sizes are accepted up to this one.
constexpr std::uint64_t largest_compressed_member = std::uint64_t{1} << 36;
constexpr std::uint64_t longest_padding = std::uint64_t{64} << 20;

std::string_view text_of(const TarBlock& block, Field field) {
    const auto* const begin = reinterpret_cast<const char*>(block.data()) + field.at;
    return {begin, strnlen(begin, field.length)};
}

/// Reads octal digits or, where the first bit is set, a binary number, as GNU writes large ones.
std::optional<std::uint64_t> number_of(const TarBlock& block, Field field) {
    const std::byte* const begin = block.data() + field.at;
    std::uint64_t value = 0;
    if ((begin[0] & std::byte{0x80}) != std::byte{0}) {
        for (std::size_t i = 0; i < field.length; ++i) {
            const auto byte = std::to_integer<std::uint64_t>(i == 0 ? begin[i] & std::byte{0x7f} : begin[i]);
            if (value >> 55 != 0)
                return std::nullopt;   // too large, or negative
            value = value << 8 | byte;
        }
        return value;
    }
    std::string_view text = text_of(block, field);
    const auto is_blank = [](char c) { return c == ' '; };
    while (!text.empty() && is_blank(text.front()))
        text.remove_prefix(1);
    while (!text.empty() && is_blank(text.back()))
        text.remove_suffix(1);
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 8);
    if (text.empty())
        return 0;
    return error == std::errc{} && end == text.data() + text.size() ? std::optional{value} : std::nullopt;
}

/// Whether a header of this type extends the next one: pax headers, GNU's long names and long link names.
bool is_extension(char type) { return type == 'x' || type == 'g' || type == 'L' || type == 'K'; }

void read_name(const TarBlock& block, std::string& name) {
    name.clear();
    if (const std::string_view prefix = text_of(block, prefix_field);
        !prefix.empty() && std::memcmp(block.data() + magic_field.at, "ustar", 6) == 0)
        name.append(prefix).push_back('/');
    name.append(text_of(block, name_field));
}

bool is_zero(std::span<const std::byte> bytes) {
    return std::all_of(bytes.begin(), bytes.end(), [](std::byte byte) { return byte == std::byte{0}; });
}

}   // namespace

bool is_tar_header(const TarBlock& block) noexcept {
    const std::optional<std::uint64_t> stated = number_of(block, checksum_field);
    std::uint64_t sum = 0;
    std::int64_t signed_sum = 0;   // what some old programs wrote
    for (std::size_t i = 0; i < tar_block; ++i) {
        const bool is_sum = i >= checksum_field.at && i < checksum_field.at + checksum_field.length;
        const auto byte = is_sum ? std::uint8_t{' '} : std::to_integer<std::uint8_t>(block[i]);
        sum += byte;
        signed_sum += static_cast<std::int8_t>(byte);
    }
    return stated && (*stated == sum || (signed_sum >= 0 && *stated == static_cast<std::uint64_t>(signed_sum)));
}

/// What headers before a member's own say about it.
struct TarReader::Extended {
    std::optional<std::string> name;
    std::optional<std::uint64_t> bytes;

    /// Reads the `length` bytes after the extension header at offset `at`, with `text` as buffer.
    void read(TarReader& reader, char type, std::uint64_t at, std::uint64_t length, std::string& text);
};

void TarReader::refuse(std::uint64_t offset, const std::string& what) const {
    throw TarError{input_->path(), offset, what};
}

void TarReader::read_whole(std::span<std::byte> out, const char* what) {
    const std::uint64_t at = input_->position();
    if (input_->read(out) < out.size())
        refuse(at, std::string{"the archive ends too early, within "} + what);
}

void TarReader::check_fits(std::uint64_t header, std::uint64_t bytes) const {
    if (input_->compression() != TarCompression::none) {
        if (bytes > largest_compressed_member)
            refuse(header, "a member of " + std::to_string(bytes) + " bytes is too large");
        return;
    }
    const std::uint64_t size = input_->file().size(), rest = size - std::min(size, header + tar_block);
    if (bytes > rest || tar_padded(bytes) > rest)
        refuse(header, "a member of " + std::to_string(bytes) + " bytes where the file has " + std::to_string(rest) +
                           " left: cut short, or a broken header");
}

void TarReader::read_text(std::uint64_t bytes, std::uint64_t header, std::size_t limit, const char* what,
                          std::string& out) {
    if (bytes > limit)
        refuse(header, std::string{what} + " of " + std::to_string(bytes) + " bytes is too long");
    out.resize(static_cast<std::size_t>(bytes));
    read_whole(std::as_writable_bytes(std::span{out}), what);
}

// Records of the form "LENGTH KEY=VALUE\n", whose length counts all of it.
void TarReader::read_pax(std::string_view records, std::uint64_t header, Extended& to) const {
    while (!records.empty()) {
        std::size_t length = 0;
        const auto [end, error] = std::from_chars(records.data(), records.data() + records.size(), length);
        const auto digits = static_cast<std::size_t>(end - records.data());
        if (error != std::errc{} || digits == records.size() || *end != ' ' || length < digits + 3 ||
            length > records.size() || records[length - 1] != '\n')
            refuse(header, "a pax header with a broken record");
        const std::string_view record = records.substr(digits + 1, length - digits - 2);
        const std::size_t equals = record.find('=');
        if (equals == record.npos)
            refuse(header, "a pax header with a broken record");
        const std::string_view key = record.substr(0, equals), value = record.substr(equals + 1);
        if (key.starts_with("GNU.sparse."))
            refuse(header, "a sparse file, which is not supported");
        if (key == "path") {
            to.name = value;
        } else if (key == "size") {
            std::uint64_t bytes = 0;
            const auto number = std::from_chars(value.data(), value.data() + value.size(), bytes);
            if (number.ec != std::errc{} || number.ptr != value.data() + value.size())
                refuse(header, "a pax header with a broken size");
            to.bytes = bytes;
        }
        records.remove_prefix(length);
    }
}

void TarReader::check_end(std::uint64_t offset) {
    // An archive whose end is lost or overwritten by zeros must not look like a shorter one.
    std::array<std::byte, 8 * tar_block> rest;   // small, as a worker's stack may be
    std::size_t got = input_->read({rest.data(), tar_block});
    for (std::uint64_t total = 0; got > 0; got = input_->read(rest)) {
        if (!is_zero({rest.data(), got}))
            refuse(offset + tar_block, "something follows the archive's end");
        if ((total += got) > longest_padding)
            refuse(offset + tar_block, "no end of the padding behind the archive's end");
    }
}

void TarReader::Extended::read(TarReader& reader, char type, std::uint64_t at, std::uint64_t length,
                               std::string& text) {
    reader.check_fits(at, length);
    const bool is_gnu = type == 'L' || type == 'K';
    reader.read_text(length, at, is_gnu ? longest_name : longest_pax, "a header's text", text);
    if (type == 'x') {
        reader.read_pax(text, at, *this);
    } else if (type == 'g') {
        Extended of_all;
        reader.read_pax(text, at, of_all);
        if (of_all.name || of_all.bytes)
            reader.refuse(at, "a pax header that gives every member the same name or size");
    } else if (type == 'L') {
        name = text.substr(0, text.find('\0'));
    }
    reader.input_->skip(tar_padded(length) - length);
}

bool TarReader::next(TarMember& member) {
    input_->skip(next_ - input_->position());
    member.header = next_;
    Extended extended;
    std::string text;
    for (bool first = true;; first = false) {
        const std::uint64_t at = input_->position();
        TarBlock block;
        const std::size_t got = input_->read(block);
        if (got < tar_block)
            refuse(at, at == 0 ? "not a tar archive: shorter than a header"
                               : "the archive ends too early: no mark of its end");
        if (is_zero(block)) {
            if (!first)
                refuse(at, "a header that lengthens the next, and no next");
            check_end(at);
            return false;
        }
        if (!is_tar_header(block))
            refuse(at, at == 0 ? "not a tar archive: the first header's checksum is wrong"
                               : "a header whose checksum is wrong");
        const std::optional<std::uint64_t> stated = number_of(block, size_field);
        if (!stated)
            refuse(at, "a header whose size is no number");
        std::uint64_t bytes = *stated;
        const char type = static_cast<char>(block[type_field.at]);
        if (is_extension(type)) {
            extended.read(*this, type, at, bytes, text);
            continue;
        }
        if (extended.name)
            member.name = *extended.name;
        else
            read_name(block, member.name);
        const auto shown = [&] { return "member '" + member.name + "'"; };
        if (member.name.empty() || member.name.find('\0') != std::string::npos)
            refuse(at, "a member without a name, or with a zero in it");
        const bool is_file = type == '0' || type == '\0' || type == '7';
        member.is_folder = type == '5' || (is_file && member.name.back() == '/');
        if (type == 'S')
            refuse(at, shown() + " is a sparse file, which is not supported");
        if (!is_file && !member.is_folder)
            refuse(at,
                   shown() +
                       (type == '1' || type == '2' ? " is a link" : " is no file (type " + std::string{type} + ")") +
                       ": a shard holds files only");
        bytes = type == '5' ? 0 : extended.bytes.value_or(bytes);
        check_fits(at, bytes);
        member.offset = at + tar_block;
        member.bytes = bytes;
        next_ = member.offset + tar_padded(bytes);
        return true;
    }
}

void TarReader::contents(const TarMember& member, std::size_t limit, std::string& out) {
    read_text(member.bytes, member.header, limit, "a label", out);
}

}   // namespace drawpoint
