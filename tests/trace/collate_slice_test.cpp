#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include <boost/test/unit_test.hpp>
#include <protozero/pbf_reader.hpp>

#include <drawpoint/instrumentation/trace.hpp>

#include <instrumentation/trace_fields.hpp>
#include <trace/recorded_run.hpp>

using namespace drawpoint;

namespace {

namespace f = trace_fields;

struct DrawnSlice {
    std::string track, name;
    std::int64_t begin_ns = 0, end_ns = 0;   // since the recording's start
    std::size_t depth = 0;
    bool operator==(const DrawnSlice&) const = default;
};

std::ostream& operator<<(std::ostream& out, const DrawnSlice& slice) {
    return out << slice.track << ": " << slice.name << ' ' << slice.begin_ns << " to " << slice.end_ns << ", depth "
               << slice.depth;
}

/// All slices of tracks whose name begins with `prefix`, as they begin. Its own walk: it shares nothing with the reader.
std::vector<DrawnSlice> slices_of(const std::string& content, std::string_view prefix) {
    struct Sequence {
        std::uint64_t track = 0;
        std::map<std::uint64_t, std::string> names;
    };
    std::map<std::uint64_t, std::string> tracks;
    std::map<std::uint64_t, Sequence> sequences;
    std::map<std::uint64_t, std::vector<std::size_t>> open;   // by track, positions in `slices`
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

SampleRecord sample_at(std::int64_t begin_ns, std::int64_t ns) {
    SampleRecord record;
    record.row.begin_ns = begin_ns;
    record.stage_count = 1;
    record.stages[0] = {begin_ns, ns};
    return record;
}

}   // namespace

BOOST_AUTO_TEST_SUITE(collate_slice)

BOOST_AUTO_TEST_CASE(a_worker_that_collates_shows_it_on_its_track_between_its_samples) {
    const TemporaryFile file;
    const ManualClock clock{1000};
    Recorder recorder{file.path(), {}, AnyClock{clock}};
    recorder.add_pipeline({"train", {"decode"}, 1, 2, 2});
    {
        WorkerTrack other = recorder.add_worker(), track = recorder.add_worker();
        SampleRecord first = sample_at(1100, 50), second = sample_at(1180, 20);
        track.push(first);
        track.push_collate(1150, 1180);   // from the moment the sample ends to the moment the next begins
        track.push(second);
    }
    recorder.finish();
    BOOST_TEST(recorder.state().dropped == 0u);
    const std::vector<DrawnSlice> expected{{"worker 1", "sample", 100, 150, 0},
                                           {"worker 1", "decode", 100, 150, 1},
                                           {"worker 1", "collate", 150, 180, 0},
                                           {"worker 1", "sample", 180, 200, 0},
                                           {"worker 1", "decode", 180, 200, 1}};
    BOOST_TEST(slices_of(test::bytes_in(file.path()), "worker ") == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(every_collated_batch_of_a_run_has_its_slice_and_what_is_read_back_is_what_was_recorded) {
    for (std::uint64_t seed = 0; seed < 5; ++seed) {
        const TemporaryFile file;
        const ManualClock clock{1000};
        Recorder recorder{file.path(), {}, AnyClock{clock}};
        play(random_run(seed, 1000, {.odd_stamps = false}), recorder);
        recorder.finish();
        const Ledger ledger = read_trace(file.path()).ledger;
        BOOST_TEST((ledger == recorder.ledger()));
        using Shown = std::tuple<std::string, std::int64_t, std::int64_t>;
        std::vector<Shown> rows, slices;
        for (const BatchRow& row : ledger.batches)
            if (row.collate_worker)
                rows.emplace_back("worker " + std::to_string(*row.collate_worker), row.collate_begin_ns - 1000,
                                  row.collate_end_ns - 1000);
        for (const DrawnSlice& slice : slices_of(test::bytes_in(file.path()), "worker "))
            if (slice.name == "collate") {
                BOOST_TEST(slice.depth == 0u);
                slices.emplace_back(slice.track, slice.begin_ns, slice.end_ns);
            }
        std::ranges::sort(rows);
        std::ranges::sort(slices);
        BOOST_TEST(rows.size() > 5u);
        BOOST_TEST((rows == slices));
    }
}

BOOST_AUTO_TEST_CASE(a_recording_without_room_leaves_the_slice_out_and_loses_no_record) {
    const TemporaryFile file;
    Recorder recorder{file.path(), {.limit_bytes = 1000}};
    WorkerTrack track = recorder.add_worker();
    for (int i = 0; i < 2000; ++i)
        track.push_collate(i, i + 1);
    recorder.finish();
    BOOST_TEST(recorder.state().dropped == 0u);
    BOOST_TEST(recorder.state().events == 0u);   // the batches' records count those stamps
    const std::size_t shown = slices_of(test::bytes_in(file.path()), "worker ").size();
    BOOST_TEST(shown > 0u);
    BOOST_TEST(shown < 100u);
}

BOOST_AUTO_TEST_SUITE_END()
