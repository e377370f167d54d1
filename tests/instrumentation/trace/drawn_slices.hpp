#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include <boost/test/unit_test.hpp>
#include <protozero/pbf_reader.hpp>

#include "instrumentation/trace/trace_fields.hpp"

namespace drawpoint::test {

/// A slice as a trace viewer shows it.
struct DrawnSlice {
    std::string track, name;
    std::int64_t begin_ns = 0, end_ns = 0;   // since the recording's start
    std::size_t depth = 0;
    bool operator==(const DrawnSlice&) const = default;
};

inline std::ostream& operator<<(std::ostream& out, const DrawnSlice& slice) {
    return out << slice.track << ": " << slice.name << ' ' << slice.begin_ns << " to " << slice.end_ns << ", depth "
               << slice.depth;
}

/// All slices on the recording's tracks whose names begin with `prefix`, in order of their begins. Parses the file by
/// itself, without the reader's code.
inline std::vector<DrawnSlice> slices_of(const std::string& content, std::string_view prefix) {
    struct Sequence {
        std::uint64_t track = 0;
        std::map<std::uint64_t, std::string> names;
    };
    namespace f = trace_fields;
    std::map<std::uint64_t, std::string> tracks;
    std::map<std::uint64_t, Sequence> sequences;
    std::map<std::uint64_t, std::vector<std::size_t>> open;   // by track; positions in `slices`
    std::vector<DrawnSlice> slices;
    protozero::pbf_reader file{content};
    while (file.next(f::trace_packet)) {
        const protozero::data_view bytes = file.get_view();
        std::uint64_t time = 0, number = 0;
        for (protozero::pbf_reader packet{bytes}; packet.next();) {
            if (packet.tag() == f::packet::timestamp)
                time = packet.get_uint64();
            else if (packet.tag() == f::packet::sequence)
                number = packet.get_uint32();
            else
                packet.skip();
        }
        Sequence& sequence = sequences[number];
        for (protozero::pbf_reader packet{bytes}; packet.next();) {
            if (packet.tag() == f::packet::track) {
                std::uint64_t uuid = 0;
                std::string name;
                for (protozero::pbf_reader track = packet.get_message(); track.next();)
                    track.tag() == 1   ? void(uuid = track.get_uint64())
                    : track.tag() == 2 ? void(name = track.get_string())
                                       : track.skip();
                tracks[uuid] = name;
            } else if (packet.tag() == f::packet::defaults) {
                for (protozero::pbf_reader defaults = packet.get_message(); defaults.next();)
                    if (defaults.tag() == f::packet::event) {
                        protozero::pbf_reader event = defaults.get_message();
                        if (event.next(f::event::track))
                            sequence.track = event.get_uint64();
                    } else {
                        defaults.skip();
                    }
            } else if (packet.tag() == f::packet::interned) {
                for (protozero::pbf_reader interned = packet.get_message(); interned.next(2);) {
                    protozero::pbf_reader entry = interned.get_message();
                    std::uint64_t name = 0;
                    while (entry.next())
                        entry.tag() == 1 ? void(name = entry.get_uint64())
                                         : void(sequence.names[name] = entry.get_string());
                }
            } else if (packet.tag() == f::packet::event) {
                std::uint64_t type = 0, name = 0;
                for (protozero::pbf_reader event = packet.get_message(); event.next();)
                    event.tag() == f::event::type   ? void(type = event.get_uint32())
                    : event.tag() == f::event::name ? void(name = event.get_uint64())
                                                    : event.skip();
                if (!tracks[sequence.track].starts_with(prefix))
                    continue;
                std::vector<std::size_t>& around = open[sequence.track];
                if (type == f::event::slice_begin) {
                    slices.push_back({tracks[sequence.track], sequence.names[name], static_cast<std::int64_t>(time), -1,
                                      around.size()});
                    around.push_back(slices.size() - 1);
                } else if (type == f::event::slice_end) {
                    BOOST_TEST_REQUIRE(!around.empty());
                    slices[around.back()].end_ns = static_cast<std::int64_t>(time);
                    around.pop_back();
                }
            } else {
                packet.skip();
            }
        }
    }
    return slices;
}

}   // namespace drawpoint::test
