#include <drawpoint/instrumentation/trace/trace.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <protozero/exception.hpp>
#include <protozero/varint.hpp>

#include "instrumentation/trace/trace_block.hpp"
#include "instrumentation/trace/trace_fields.hpp"
#include "instrumentation/trace/trace_keys.hpp"
#include "instrumentation/trace/trace_parser.hpp"

namespace drawpoint {
namespace {

constexpr std::size_t most_packet_bytes = 16u << 20, most_block_bytes = 64u << 20, header_start_bytes = 6;

/// A file that is read piece by piece.
class File {
public:
    explicit File(const std::filesystem::path& path) : path_{path.string()} {
        number_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        if (number_ < 0)
            fail(errno);
        struct stat status{};
        const int error = ::fstat(number_, &status) != 0 ? errno : S_ISDIR(status.st_mode) ? EISDIR : 0;
        if (error == 0 && S_ISREG(status.st_mode)) {
            size_ = static_cast<std::uint64_t>(status.st_size);
            return;
        }
        ::close(number_);
        if (error != 0)
            fail(error);
        throw TraceError(path_ + ": not a recording (not a regular file)");
    }
    ~File() { ::close(number_); }
    File(const File&) = delete;
    File& operator=(const File&) = delete;

    [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
    /// The bytes from `at` on, `most` or as many as there are; valid until the next call.
    [[nodiscard]] std::string_view read(std::uint64_t at, std::size_t most) {
        content_.resize(static_cast<std::size_t>(std::min<std::uint64_t>(most, at < size_ ? size_ - at : 0)));
        std::size_t got = 0;
        while (got < content_.size()) {
            const ssize_t n =
                ::pread(number_, content_.data() + got, content_.size() - got, static_cast<off_t>(at + got));
            if (n < 0 && errno != EINTR)
                fail(errno);
            if (n == 0) {   // it has become shorter
                size_ = at + got;
                break;
            }
            got += n > 0 ? static_cast<std::size_t>(n) : 0;
        }
        return std::string_view{content_}.substr(0, got);
    }

    /// The first place from `at` on that is not in a hole of the file; its size if there is none.
    [[nodiscard]] std::uint64_t next_data(std::uint64_t at) const noexcept {
        const off_t found = ::lseek(number_, static_cast<off_t>(at), SEEK_DATA);
        return found >= 0 ? static_cast<std::uint64_t>(found) : errno == ENXIO ? size_ : at;
    }

private:
    [[noreturn]] void fail(int error) const { throw std::system_error(error, std::generic_category(), path_); }

    std::string path_;
    int number_ = -1;
    std::uint64_t size_ = 0;
    std::string content_;
};

/// Whether a packet can have a record: most are slices for viewers. The number of every record's field has one of three
/// bytes that are rare otherwise.
bool may_have_record(const char* begin, const char* end) noexcept {
    constexpr auto second_byte = [](trace_fields::Tag tag) { return static_cast<char>(bytes_key(tag) >> 7); };
    constexpr char first = second_byte(trace_fields::record::sample),
                   last = second_byte(trace_fields::record::device_step);
    static_assert(last == first + 2);
    bool found = false;
    for (const char* at = begin; at != end; ++at)   // without a way out, so that it takes many bytes at once
        found |= static_cast<unsigned char>(*at - first) <= last - first;
    return found;
}

/// Parses the complete packets of a block. Returns the position of the first incomplete one, or the content's size.
std::size_t parse_packets(TraceParser& parser, std::string_view content, std::uint64_t block_at) {
    std::size_t at = 0;
    while (at < content.size()) {
        const auto place = [&] { return "byte " + std::to_string(block_at + at) + ": "; };
        try {
            if (content[at] != static_cast<char>(bytes_key(trace_fields::trace_packet)))
                throw TraceDamage{"no packet here"};
            const char* next = content.data() + at + 1;
            const char* const end = content.data() + content.size();
            std::uint64_t length = 0;
            try {
                length = protozero::decode_varint(&next, end);
            } catch (const protozero::end_of_buffer_exception&) {
                return at;
            }
            if (length > most_packet_bytes)
                throw TraceDamage{"a packet of " + std::to_string(length) + " bytes"};
            if (length > static_cast<std::uint64_t>(end - next))
                return at;
            if (may_have_record(next, next + length))
                parser.packet({next, static_cast<std::size_t>(length)});
            at = static_cast<std::size_t>(next - content.data()) + static_cast<std::size_t>(length);
        } catch (const TraceDamage& damage) {
            throw TraceDamage{place() + damage.what};
        } catch (const protozero::exception& error) {
            throw TraceDamage{place() + error.what()};
        }
    }
    return at;
}

/// The first place from `at` on with a whole header; the file's size if there is none.
std::uint64_t find_header(File& file, std::uint64_t at) {
    constexpr std::size_t first_step = 4u << 10, longest_step = 1u << 20;
    const std::string start = BlockHeader{.offset = 1}.encoded().substr(0, header_start_bytes);
    std::size_t step = first_step;   // the next one is usually near
    for (at = file.next_data(at); at < file.size();
         at = file.next_data(at + step), step = std::min(2 * step, longest_step)) {
        const std::string_view bytes = file.read(at, step + max_header_bytes);
        for (std::size_t i = bytes.find(start[0]); i < std::min(step, bytes.size()); i = bytes.find(start[0], i + 1)) {
            const std::string_view candidate = bytes.substr(i, max_header_bytes);
            if (candidate.size() >= start.size() && candidate.substr(2, start.size() - 2) == start.substr(2) &&
                parse_header(candidate, at + i).state == ParsedHeader::State::whole)
                return at + i;
        }
    }
    return file.size();
}

/// Parses the blocks of a file, but for those that are damaged.
class BlocksReader {
public:
    BlocksReader(const std::filesystem::path& path, std::uint64_t most_bytes) : file_{path}, parser_{most_bytes} {}

    /// Returns what is damaged or cut, as a message. Throws TraceDamage if nothing can be read.
    std::string read() {
        std::string cut;
        std::uint64_t at = 0;
        while (cut.empty() && at < file_.size())
            at = read_block(at, cut);
        if (file_.size() == 0)
            return "cut at byte 0";
        if (damage_.empty())
            return cut;
        std::string message = damage_;
        if (places_ > 1)
            message += ", and " + std::to_string(places_ - 1) + (places_ == 2 ? " other place" : " other places") +
                       " (" + std::to_string(lost_bytes_) + " B left out)";
        return cut.empty() ? message : message + "; " + cut;
    }
    [[nodiscard]] bool is_damaged() const noexcept { return !damage_.empty(); }
    [[nodiscard]] Ledger take() { return parser_.take(); }
    [[nodiscard]] bool has_run() const noexcept { return parser_.has_run(); }
    /// Whether the file begins as a recording does.
    [[nodiscard]] bool is_ours() {
        return parse_header(file_.read(0, max_header_bytes), 0).state == ParsedHeader::State::whole;
    }

private:
    /// Parses the block at `at`. Returns where the next one begins; or sets `cut` if the file ends within this one.
    std::uint64_t read_block(std::uint64_t at, std::string& cut) {
        const auto damaged_to = [&](std::uint64_t end) {
            return "bytes " + std::to_string(at) + " to " + std::to_string(end) + " are damaged (checksum)";
        };
        const ParsedHeader parsed = parse_header(file_.read(at, max_header_bytes), at);
        if (parsed.state == ParsedHeader::State::cut) {
            cut = "cut at byte " + std::to_string(file_.size());
            return at;
        }
        if (parsed.state == ParsedHeader::State::wrong) {
            if (at == 0)
                throw TraceDamage{"byte 0: no block header here"};
            const std::uint64_t next = find_header(file_, at + 1);
            skip(damaged_to(next), at, next);
            return next;
        }
        const std::uint64_t begin = at + parsed.length, bytes = parsed.header.bytes;
        if (bytes > most_block_bytes) {
            const std::uint64_t next = find_header(file_, begin);
            skip("byte " + std::to_string(at) + ": a block of " + std::to_string(bytes) + " bytes", at, next);
            return next;
        }
        const std::string_view packets = file_.read(begin, static_cast<std::size_t>(bytes));
        // The checksum of a cut block can't be verified, but its header was, and the block was written with one call.
        if (packets.size() < bytes) {
            try {
                (void)parse_packets(parser_, packets, begin);
            } catch (const TraceDamage& damage) {
                skip(damage.what, at, file_.size());
            }
            cut = "cut at byte " + std::to_string(file_.size());
            return at;
        }
        const std::uint64_t end = begin + bytes;
        if (parsed.header.checksum(packets) != parsed.header.crc32) {
            skip(damaged_to(end), at, end);
        } else {
            try {
                if (parse_packets(parser_, packets, begin) != packets.size())
                    throw TraceDamage{"bytes " + std::to_string(begin) + " to " + std::to_string(end) +
                                      ": the last packet does not end with the block"};
            } catch (const TraceDamage& damage) {
                skip(damage.what, at, end);
            }
        }
        parser_.account_for(parsed.header.records);
        return end;
    }

    void skip(std::string what, std::uint64_t from, std::uint64_t to) {
        if (!parser_.has_run() || !parser_.can_skip())
            throw TraceDamage{std::move(what)};
        if (places_++ == 0)
            damage_ = std::move(what);
        lost_bytes_ += to - from;
        parser_.skip(to - from);
    }

    File file_;
    TraceParser parser_;
    std::string damage_;   // the first
    std::uint64_t places_ = 0, lost_bytes_ = 0;
};

}   // namespace

ReadTrace read_trace(const std::filesystem::path& path, std::uint64_t most_bytes) {
    BlocksReader reader{path, most_bytes};
    ReadTrace read;
    std::string place;
    try {
        place = reader.read();
        read.damaged = reader.is_damaged();
    } catch (const TraceDamage& damage) {
        if (!reader.has_run())
            throw TraceError(path.string() + ": " + (reader.is_ours() ? "" : "not a recording, or damaged: ") +
                             damage.what);
        place = damage.what;
        read.damaged = true;
    }
    if (!place.empty())
        read.warning = path.string() + ": " + place;
    read.ledger = reader.take();
    return read;
}

}   // namespace drawpoint
