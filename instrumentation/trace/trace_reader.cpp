#include <drawpoint/instrumentation/trace/trace.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <system_error>

#include <protozero/exception.hpp>
#include <protozero/varint.hpp>

#include "instrumentation/trace/trace_block.hpp"
#include "instrumentation/trace/trace_fields.hpp"
#include "instrumentation/trace/trace_keys.hpp"
#include "instrumentation/trace/trace_parser.hpp"

namespace drawpoint {
namespace {

constexpr std::size_t most_packet_bytes = 16u << 20, most_block_bytes = 64u << 20;

std::string read_file(const std::filesystem::path& path) {
    const auto fail = [&](int code) { throw std::system_error(code, std::generic_category(), path.string()); };
    struct File {
        int fd;
        ~File() { ::close(fd); }
    };
    const File file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
    if (file.fd < 0)
        fail(errno);
    struct stat status{};
    if (::fstat(file.fd, &status) != 0)
        fail(errno);
    if (S_ISDIR(status.st_mode))
        fail(EISDIR);
    if (!S_ISREG(status.st_mode))
        throw TraceError(path.string() + ": not a recording (not a regular file)");
    std::string content(static_cast<std::size_t>(status.st_size), '\0');
    std::size_t got = 0;
    while (got < content.size()) {
        const ssize_t n = ::read(file.fd, content.data() + got, content.size() - got);
        if (n < 0 && errno != EINTR)
            fail(errno);
        if (n == 0)
            break;
        got += n > 0 ? static_cast<std::size_t>(n) : 0;
    }
    content.resize(got);
    return content;
}

/// Parses the complete packets of a block. Returns the position of the first incomplete one, or the content's size.
std::size_t parse_packets(TraceParser& parser, std::string_view content, std::size_t block_at) {
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

/// Parses blocks up to the end, to a cut (returned as a message) or to damage (thrown).
std::string parse_blocks(TraceParser& parser, std::string_view content) {
    for (std::size_t at = 0; at < content.size();) {
        const auto damaged_to = [&](std::size_t end) {
            return TraceDamage{"bytes " + std::to_string(at) + " to " + std::to_string(end) +
                               " are damaged (checksum)"};
        };
        const ParsedHeader parsed = parse_header(content.substr(at, max_header_bytes), at);
        if (parsed.state == ParsedHeader::State::wrong)
            throw at == 0 ? TraceDamage{"byte 0: no block header here"}
                          : damaged_to(std::min(at + max_header_bytes, content.size()));
        const std::size_t begin = at + parsed.length;
        if (parsed.state == ParsedHeader::State::cut)
            return "cut at byte " + std::to_string(content.size());
        if (parsed.header.bytes > most_block_bytes)
            throw TraceDamage{"byte " + std::to_string(at) + ": a block of " + std::to_string(parsed.header.bytes) +
                              " bytes"};
        const std::string_view packets = content.substr(begin, parsed.header.bytes);
        // The checksum of a cut block can't be verified, but its header was, and the block was written with one call.
        if (packets.size() < parsed.header.bytes) {
            (void)parse_packets(parser, packets, begin);
            return "cut at byte " + std::to_string(content.size());
        }
        if (parsed.header.checksum(packets) != parsed.header.crc32)
            throw damaged_to(begin + packets.size());
        if (parse_packets(parser, packets, begin) != packets.size())
            throw TraceDamage{"bytes " + std::to_string(begin) + " to " + std::to_string(begin + packets.size()) +
                              ": the last packet does not end with the block"};
        at = begin + packets.size();
    }
    return content.empty() ? "cut at byte 0" : "";
}

}   // namespace

ReadTrace read_trace(const std::filesystem::path& path) {
    const std::string content = read_file(path);
    TraceParser parser;
    ReadTrace read;
    std::string place;
    try {
        place = parse_blocks(parser, content);
    } catch (const TraceDamage& damage) {
        if (!parser.has_run()) {
            const bool ours = parse_header(std::string_view{content}.substr(0, max_header_bytes), 0).state ==
                              ParsedHeader::State::whole;
            throw TraceError(path.string() + ": " + (ours ? "" : "not a recording, or damaged: ") + damage.what);
        }
        place = damage.what;
        read.damaged = true;
    }
    if (!place.empty())
        read.warning = path.string() + ": " + place;
    read.ledger = parser.ledger();
    return read;
}

}   // namespace drawpoint
