#include "instrumentation/trace/trace_block.hpp"

#include <algorithm>
#include <array>
#include <initializer_list>

#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>
#include <zlib.h>

#include "instrumentation/trace/trace_fields.hpp"

namespace drawpoint {
namespace {

namespace f = trace_fields;

std::uint32_t add_to_crc(std::uint32_t crc, std::initializer_list<std::uint64_t> numbers) noexcept {
    for (const std::uint64_t number : numbers) {
        std::array<unsigned char, 8> bytes{};
        for (unsigned i = 0; i < 8; ++i)
            bytes[i] = static_cast<unsigned char>(number >> (8 * i));
        crc = static_cast<std::uint32_t>(crc32_z(crc, bytes.data(), bytes.size()));
    }
    return crc;
}

}   // namespace

std::uint32_t BlockHeader::checksum(std::string_view packets) const noexcept {
    const auto crc = crc32_z(0, reinterpret_cast<const unsigned char*>(packets.data()), packets.size());
    return add_to_crc(static_cast<std::uint32_t>(crc), {offset, records, dropped, bytes});
}

std::string BlockHeader::encoded() const {
    std::string fields, packet, out;
    protozero::pbf_writer block{fields};
    block.add_uint64(f::block::offset, offset);
    block.add_fixed32(f::block::crc32, crc32);
    block.add_uint64(f::block::records, records);
    block.add_uint64(f::block::dropped, dropped);
    block.add_uint64(f::block::bytes, bytes);
    block.add_fixed32(f::block::header_crc32, add_to_crc(0, {offset, crc32, records, dropped, bytes}));
    protozero::pbf_writer writer{packet};
    writer.add_uint32(f::packet::sequence, 1);
    if (offset == 0)
        writer.add_uint32(f::packet::flags, f::packet::cleared);
    writer.add_message(f::packet::block, fields);
    protozero::pbf_writer{out}.add_message(f::trace_packet, packet);
    return out;
}

ParsedHeader parse_header(std::string_view bytes, std::uint64_t offset) {
    ParsedHeader parsed;
    // The start of every header, up to and including the extension's tag; its second byte is the length of the rest.
    const std::string start = BlockHeader{.offset = offset}.encoded().substr(0, offset == 0 ? 8 : 6);
    for (std::size_t i = 0; i < std::min(start.size(), bytes.size()); ++i)
        if (i != 1 && bytes[i] != start[i])
            return parsed;
    const std::size_t length = bytes.size() < 2 ? 0 : 2 + static_cast<unsigned char>(bytes[1]);
    if (length > max_header_bytes || (length != 0 && length < start.size()))
        return parsed;
    parsed.length = length;
    if (length == 0 || bytes.size() < length) {
        parsed.state = ParsedHeader::State::cut;
        return parsed;
    }
    try {
        protozero::pbf_reader packet{bytes.data() + 2, length - 2};
        while (packet.next()) {
            if (packet.tag_and_type() !=
                protozero::tag_and_type(f::packet::block, protozero::pbf_wire_type::length_delimited)) {
                packet.skip();
                continue;
            }
            protozero::pbf_reader block = packet.get_message();
            using protozero::pbf_wire_type;
            using protozero::tag_and_type;
            while (block.next())
                switch (block.tag_and_type()) {
                case tag_and_type(f::block::offset, pbf_wire_type::varint):
                    parsed.header.offset = block.get_uint64();
                    break;
                case tag_and_type(f::block::crc32, pbf_wire_type::fixed32):
                    parsed.header.crc32 = block.get_fixed32();
                    break;
                case tag_and_type(f::block::records, pbf_wire_type::varint):
                    parsed.header.records = block.get_uint64();
                    break;
                case tag_and_type(f::block::dropped, pbf_wire_type::varint):
                    parsed.header.dropped = block.get_uint64();
                    break;
                case tag_and_type(f::block::bytes, pbf_wire_type::varint):
                    parsed.header.bytes = block.get_uint64();
                    break;
                default: block.skip();
                }
        }
    } catch (const protozero::exception&) {
        return parsed;
    }
    if (parsed.header.offset == offset && parsed.header.encoded() == bytes.substr(0, length))
        parsed.state = ParsedHeader::State::whole;
    return parsed;
}

}   // namespace drawpoint
