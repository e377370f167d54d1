#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

#include <boost/test/unit_test.hpp>

#include <drawpoint/instrumentation/ledger/ledger.hpp>

namespace drawpoint::test {

/// Checks Little's law for batches that were drawn: the mean number of batches that are admitted and not drawn is their
/// rate times their mean stay. There are never more of them than slots: prefetch_depth, and the one that the loop
/// holds.
inline void check_littles_law(const Ledger& ledger, std::size_t prefetch_depth) {
    std::map<std::int64_t, int> changes;
    double stays_ns = 0;
    for (const BatchRow& row : ledger.batches) {
        if (row.admitted_ns == no_stamp || row.taken_ns == no_stamp)
            continue;
        ++changes[row.admitted_ns];
        --changes[row.taken_ns];
        stays_ns += static_cast<double>(row.taken_ns - row.admitted_ns);
    }
    double area = 0;
    std::int64_t at_ns = 0, inside = 0;
    for (const auto& [time_ns, change] : changes) {
        area += static_cast<double>(inside) * static_cast<double>(time_ns - at_ns);
        BOOST_TEST(inside >= 0);
        BOOST_TEST(inside <= static_cast<std::int64_t>(prefetch_depth) + 1);
        inside += change;
        at_ns = time_ns;
    }
    BOOST_TEST(inside == 0);
    BOOST_TEST(area == stays_ns, boost::test_tools::tolerance(1e-9));
}

}   // namespace drawpoint::test
