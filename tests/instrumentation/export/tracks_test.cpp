#include "instrumentation/export/tracks.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>

namespace {

using namespace drawpoint;

/// Begin and end of each slice with a given name, by track.
using Found = std::map<std::string, std::vector<std::pair<std::int64_t, std::int64_t>>>;

Found collated(const Ledger& ledger) {
    Found found;
    for_each_track(ledger, [&](const Track& track) {
        BOOST_TEST(!track.slices.empty(), track.name);
        for (const TrackSlice& slice : track.slices)
            if (slice.name == "collate")
                found[track.name].emplace_back(slice.begin_ns, slice.end_ns);
    });
    return found;
}

BOOST_AUTO_TEST_SUITE(tracks)

BOOST_AUTO_TEST_CASE(a_batch_is_collated_once_by_its_worker_or_in_its_slot_where_nobody_knows_the_worker) {
    Ledger ledger;
    ledger.batches = {{.collate_worker = std::uint16_t{4},
                       .admitted_ns = 10,
                       .collate_begin_ns = 20,
                       .collate_end_ns = 50,
                       .offered_ns = 60,
                       .taken_ns = 70}};
    BOOST_TEST((collated(ledger) == Found{{"worker 4", {{20, 50}}}}));
    ledger.batches[0].collate_worker.reset();
    BOOST_TEST((collated(ledger) == Found{{"batch slot 0", {{20, 50}}}}));
    ledger.batches[0].collate_worker = std::uint16_t{4};
    ledger.batches[0].collate_end_ns = no_stamp;   // abandoned while it was collated
    BOOST_TEST(collated(ledger).empty());
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
