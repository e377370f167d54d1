#include "instrumentation/trace/trace_blocks.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <protozero/exception.hpp>
#include <protozero/varint.hpp>

#include "instrumentation/trace/trace_block.hpp"
#include "instrumentation/trace/trace_fields.hpp"
#include "instrumentation/trace/trace_keys.hpp"

namespace drawpoint {
namespace {

constexpr std::size_t most_packet_bytes = 16u << 20, most_block_bytes = 64u << 20, header_start_bytes = 6;

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
std::uint64_t find_header(BlockFile& file, std::uint64_t at) {
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

}   // namespace

void TraceBlocks::read_all() {
    file_.look();

    while (cut_.empty() && at_ < file_.size())
        at_ = read_block(at_, End::of_file);
    if (file_.size() == 0)
        cut_ = "cut at byte 0";
}

void TraceBlocks::read_some(std::uint64_t most_bytes) {
    file_.look();
    const std::uint64_t from = at_;
    while (at_ < file_.size() && at_ - from < most_bytes) {
        const std::uint64_t next = read_block(at_, End::may_move);
        if (next == at_)
            break;
        at_ = next;
    }
}

std::string TraceBlocks::message() const {
    if (damage_.empty())
        return cut_;
    std::string message = damage_;
    if (places_ > 1)
        message += ", and " + std::to_string(places_ - 1) + (places_ == 2 ? " other place" : " other places") + " (" +
                   std::to_string(lost_bytes_) + " B left out)";
    return cut_.empty() ? message : message + "; " + cut_;
}

bool TraceBlocks::is_ours() {
    return parse_header(file_.read(0, max_header_bytes), 0).state == ParsedHeader::State::whole;
}

/// Parses the block at `at`. Returns where the next one begins. Returns `at` if this one is not whole; if the end is
/// that of the file, it then parses what is there of it, and sets `cut_`.
std::uint64_t TraceBlocks::read_block(std::uint64_t at, End what_end) {
    const bool may_grow = what_end == End::may_move;
    const auto damaged_to = [&](std::uint64_t end) {
        return "bytes " + std::to_string(at) + " to " + std::to_string(end) + " are damaged (checksum)";
    };
    const auto cut = [&] {
        if (!may_grow)
            cut_ = "cut at byte " + std::to_string(file_.size());
        return at;
    };
    // What lies behind damage tells that it is damage: the end may be half-written.
    const auto skip_to = [&](std::uint64_t end, std::string what) {
        if (may_grow && end >= file_.size())
            return at;
        skip(std::move(what), at, end);
        return end;
    };
    const ParsedHeader parsed = parse_header(file_.read(at, max_header_bytes), at);
    if (parsed.state == ParsedHeader::State::cut)
        return cut();
    if (parsed.state == ParsedHeader::State::wrong) {
        if (at == 0)
            throw TraceDamage{"byte 0: no block header here"};
        const std::uint64_t next = find_header(file_, at + 1);
        return skip_to(next, damaged_to(next));
    }
    const std::uint64_t begin = at + parsed.length, bytes = parsed.header.bytes;
    if (bytes > most_block_bytes)
        return skip_to(find_header(file_, begin),
                       "byte " + std::to_string(at) + ": a block of " + std::to_string(bytes) + " bytes");
    const std::string_view packets = file_.read(begin, static_cast<std::size_t>(bytes));
    // The checksum of a cut block can't be verified, but its header was, and the block was written with one call.
    if (packets.size() < bytes) {
        if (!may_grow) {
            try {
                (void)parse_packets(parser_, packets, begin);
            } catch (const TraceDamage& damage) {
                skip(damage.what, at, file_.size());
            }
        }
        return cut();
    }
    const std::uint64_t end = begin + bytes;
    if (parsed.header.checksum(packets) != parsed.header.crc32) {
        if (skip_to(end, damaged_to(end)) == at)
            return at;
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

void TraceBlocks::skip(std::string what, std::uint64_t from, std::uint64_t to) {
    if (!parser_.has_run() || !parser_.can_skip())
        throw TraceDamage{std::move(what)};
    if (places_++ == 0)
        damage_ = std::move(what);
    lost_bytes_ += to - from;
    parser_.skip(to - from);
}

}   // namespace drawpoint
