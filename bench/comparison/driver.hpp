#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "check.hpp"
#include "child.hpp"
#include "roster.hpp"

namespace drawpoint::bench {

struct ComparisonOptions {
    std::size_t rounds = 7, passes = 2;
    bool checks_outputs = true;
    bool asks_first_batch = true;   ///< also measures the first batch of newly made loaders
};

/// The results of one contender.
struct Row {
    Entry entry;
    std::vector<Round> rounds;   ///< those that count; as many as drawpoint has, empty if it did not run
    Check check;
    std::string settings;
    std::optional<std::string> not_run;   ///< the reason, if it did not run
};

struct Comparison {
    std::vector<Row> rows;        ///< drawpoint's first
    std::size_t repeated = 0;     ///< rounds thrown away because others used the CPUs
    double max_steal_share = 0;   ///< over the rounds that count
    double load_before = 0, load_after = 0;
};

/// Runs all entries of one workload, whose plan must be written, in rounds in which each has one turn, in an order
/// drawn anew; each in a process of its own that is idle between its turns. An entry that fails becomes a row that
/// gives the reason; the others go on. Progress goes to stderr.
[[nodiscard]] Comparison run_comparison(const std::vector<Entry>&, const ComparisonOptions&);

}   // namespace drawpoint::bench
