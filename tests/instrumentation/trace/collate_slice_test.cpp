#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <drawpoint/instrumentation/trace/trace.hpp>

#include "instrumentation/trace/drawn_slices.hpp"
#include "instrumentation/trace/recorded_run.hpp"

using namespace drawpoint;
using test::DrawnSlice;
using test::slices_of;

namespace {

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
        track.push_collate(1150, 1180);   // from the end of this sample to the begin of the next
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

BOOST_AUTO_TEST_CASE(a_slice_that_a_full_ring_does_not_take_is_no_sample_lost) {
    const TemporaryFile file;
    Recorder recorder{file.path(), {.ring_records = 64}};
    WorkerTrack track = recorder.add_worker();
    for (int i = 0; i < 100'000; ++i)   // much faster than the writer
        track.push_collate(i, i + 1);
    const Ledger ledger = recorder.ledger();
    BOOST_TEST(ledger.dropped.empty());
    BOOST_TEST(recorder.state().dropped == 0u);
}

BOOST_AUTO_TEST_SUITE_END()
