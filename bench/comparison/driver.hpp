#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <drawpoint/bench/experiment/experiment.hpp>

#include "check.hpp"
#include "child.hpp"
#include "roster.hpp"

namespace drawpoint::bench {

struct ComparisonOptions {
    std::size_t rounds = 15, passes = 1;
    bool checks_outputs = true;
    bool asks_first_batch = true;   ///< also measures the first batch of newly made loaders
};

/// The results of one loader.
struct Row {
    Entry entry;
    std::vector<Passes> rounds;   ///< one each; empty if it did not run
    Check check;
    std::string settings;
    std::optional<std::string> not_run;   ///< the reason, if it did not run
};

struct LoaderComparison {
    std::vector<Row> rows;   ///< drawpoint's first
    /// The same rounds, by time for an item and CPU time for an item.
    Measurements measured;
    double load_before = 0, load_after = 0;
    bool interrupted = false;   ///< by Ctrl-C or SIGTERM: there are fewer rounds than asked for, or none
};

/// Runs all entries of one workload, whose plan must be written, as contenders of an experiment, each in a process of
/// its own that is idle between its turns. An entry that fails becomes a row that gives the reason; the others go on,
/// unless it is the first one: then NotRun is thrown. Progress goes to stderr.
[[nodiscard]] LoaderComparison run_comparison(const std::vector<Entry>&, const ComparisonOptions&);

}   // namespace drawpoint::bench
