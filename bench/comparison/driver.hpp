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
    bool asks_first_batch = true;   ///< of loaders made for it
};

/// One contender's part of a comparison.
struct Row {
    Entry entry;
    std::vector<Round> rounds;   ///< those that count; as many as drawpoint has, unless it did not run
    Check check;
    std::string settings;
    std::optional<std::string> not_run;   ///< why, if it did not
};

struct Comparison {
    std::vector<Row> rows;        ///< drawpoint's first
    std::size_t repeated = 0;     ///< rounds thrown away because others took the processors
    double max_steal_share = 0;   ///< of the rounds that count
    double load_before = 0, load_after = 0;
};

/// Runs all entries of one workload, whose plan is written, in rounds A B C A B C …, each in a process of its own that is idle
/// between its turns. One that fails is a row that says why, and holds nobody up. Progress goes to stderr.
[[nodiscard]] Comparison run_comparison(const std::vector<Entry>&, const ComparisonOptions&);

}   // namespace drawpoint::bench
