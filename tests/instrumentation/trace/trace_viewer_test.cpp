// What a trace viewer, or a query to one, needs in a recording beyond what our own reader needs.

#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>
#include <protozero/pbf_reader.hpp>

#include "instrumentation/trace/recorded_run.hpp"
#include "instrumentation/trace/trace_fields.hpp"

using namespace drawpoint;

namespace {

namespace f = trace_fields;

using Path = std::vector<f::Tag>;

/// All messages or texts at a path of tags.
std::vector<std::string> all(const std::string& message, std::span<const f::Tag> path) {
    if (path.empty())
        return {message};
    std::vector<std::string> found;
    protozero::pbf_reader reader{message};
    while (reader.next(path[0], protozero::pbf_wire_type::length_delimited))
        for (std::string& inner : all(reader.get_string(), path.subspan(1)))
            found.push_back(std::move(inner));
    return found;
}

std::optional<std::uint64_t> number(const std::string& message, f::Tag tag) {
    protozero::pbf_reader reader{message};
    return reader.next(tag, protozero::pbf_wire_type::varint) ? std::optional{reader.get_uint64()} : std::nullopt;
}

std::string text(const std::string& message, f::Tag tag) {
    const auto texts = all(message, Path{tag});
    return texts.empty() ? "" : texts[0];
}

/// A file with a row of each kind, in which every number that may be 0 is 0.
std::string first_rows() {
    const TemporaryFile file;
    TraceWriter writer{file.path(), {}};
    writer.pipeline({.name = "train", .stages = {"read"}, .batch_size = 1}, 0);
    writer.definitions({.names = {"op"}, .threads = {{4711, ""}, {4711, "loop"}}, .frames = {{}}, .stacks = {{}}});
    writer.host({.own_cpu_ns = 0});
    const PassRow pass{.kind = PassKind::fit, .end_ns = 10, .spans = {}};
    writer.pass_begin(pass);
    writer.sample({.stages = {}}, {});
    writer.batch({.size = 1, .admitted_ns = 0, .offered_ns = 5, .taken_ns = 5});
    writer.step({.size = 1, .batch_ns = 3, .loss = {}, .spans = {}}, {});
    writer.end_of_data({});
    writer.dropped({.records = 1});
    writer.failure({}, 0);
    writer.setting({});
    writer.transfer({});
    writer.device_step({});
    writer.operator_begin({});
    writer.operator_end(0, 1, false);
    writer.allocation({});
    writer.stack_sample({});
    writer.pass(pass, {});
    writer.close();
    return test::bytes_in(file.path());
}

/// Descriptions of tracks, by track number.
std::map<std::uint64_t, std::string> tracks_of(const std::string& content) {
    std::map<std::uint64_t, std::string> tracks;
    for (const std::string& track : all(content, Path{f::trace_packet, f::packet::track}))
        tracks[number(track, 1).value()] = track;
    return tracks;
}

/// An event's message, its name and its track number.
struct TrackEvent {
    std::string message, name;
    std::uint64_t track = 0;
};

std::vector<TrackEvent> events_of(const std::string& content) {
    std::map<std::uint64_t, std::uint64_t> tracks;   // by sequence
    std::map<std::pair<std::uint64_t, std::uint64_t>, std::string> names;
    std::vector<TrackEvent> events;
    for (const std::string& packet : all(content, Path{f::trace_packet})) {
        const std::uint64_t sequence = number(packet, f::packet::sequence).value_or(0);
        for (const std::string& event : all(packet, Path{f::packet::defaults, f::packet::event}))
            tracks[sequence] = number(event, f::event::track).value();
        for (const std::string& entry : all(packet, Path{f::packet::interned, 2}))
            names[{sequence, number(entry, 1).value()}] = text(entry, 2);
        for (const std::string& event : all(packet, Path{f::packet::event}))
            events.push_back({event, names[{sequence, number(event, f::event::name).value_or(0)}], tracks[sequence]});
    }
    return events;
}

}   // namespace

BOOST_AUTO_TEST_SUITE(trace_viewer)

BOOST_AUTO_TEST_CASE(every_value_of_a_counter_stands_on_a_track_that_says_its_unit) {
    const std::string content = first_rows();
    const auto tracks = tracks_of(content);
    std::set<std::string> seen;
    for (const TrackEvent& event : events_of(content)) {
        if (number(event.message, f::event::type) != f::event::counter)
            continue;
        const std::string& track = tracks.at(event.track);
        const auto counter = all(track, Path{8});
        BOOST_TEST_REQUIRE(counter.size() == 1u, text(track, 2));
        const auto unit = number(counter[0], 3);
        seen.insert(text(track, 2) + " " + (unit ? std::to_string(*unit) : text(counter[0], 6)));
    }
    const std::set<std::string> expected{"allocated_bytes 3", "other_cpu %", "own_cpu %", "ready_batches 2",
                                         "ready_bytes 3"};
    BOOST_TEST(seen == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(the_thread_of_the_loop_is_called_so_where_threads_are_listed) {
    std::map<std::uint64_t, std::string> names;
    for (const std::string& thread : all(first_rows(), Path{f::trace_packet, f::packet::track, 4}))
        names[number(thread, 2).value()] = text(thread, 5);
    BOOST_TEST(names.size() == 1u);
    BOOST_TEST(names[4711] == "loop");
}

BOOST_AUTO_TEST_CASE(slices_of_different_tracks_share_no_name) {
    const std::string content = first_rows();
    auto tracks = tracks_of(content);
    std::map<std::string, std::string> track_of_name;
    for (const TrackEvent& event : events_of(content)) {
        if (event.name.empty() || event.name == "op")   // an operator, and the frame in which it was sampled
            continue;
        const std::string track = text(tracks.at(event.track), 2);
        const auto [at, added] = track_of_name.try_emplace(event.name, track);
        BOOST_TEST(at->second == track, event.name << " on " << track << " and on " << at->second);
    }
    BOOST_TEST(track_of_name["batch"] == "loop");
    BOOST_TEST(track_of_name["offered"] == "batches");
}

BOOST_AUTO_TEST_CASE(what_says_which_row_a_record_is_is_written_when_it_is_zero) {
    const std::string content = first_rows();
    const auto check = [&](f::Tag kind, std::initializer_list<f::Tag> keys) {
        const auto records = all(content, Path{f::trace_packet, f::packet::event, kind});
        BOOST_TEST_REQUIRE(records.size() == 1u);
        for (const f::Tag key : keys)
            BOOST_TEST((number(records[0], key) == 0u), "record " << kind << " without field " << key);
    };
    check(f::record::sample, {1, 2, 3, 4, 9, 12});
    check(f::record::batch, {1, 2, 6, 7});
    check(f::record::step, {1, 2, 3, 4});
    check(f::record::pass_begin, {1, 2});
    check(f::record::pass, {1, 2});
    check(f::record::end_of_data, {1, 2});
    check(f::record::dropped, {4});
    check(f::record::failure, {1, 2, 3, 7});
    check(f::record::setting, {1});
    check(f::record::transfer, {1, 2, 3});
    check(f::record::device_step, {1, 2, 3});
    check(f::record::operator_begin, {1, 2, 3});
    check(f::record::operator_end, {1});
    check(f::record::allocation, {1});
    check(f::record::stack_sample, {1, 2});
}

BOOST_AUTO_TEST_SUITE_END()
