#pragma once

#include <string>
#include <vector>

#include "bench/contenders/workload.hpp"

namespace drawpoint::bench {

/// One row of the table: a contender and its work.
struct Entry {
    Workload workload;         ///< includes contender, variant, and the variant's settings
    std::string environment;   ///< a Python environment in .deps/peers; empty: this program serves the contender
    std::string script;        ///< a file of bench/contenders, without .py
    bool is_bound = false;     ///< only does the work, without delivering batches
    bool same_filter = true;   ///< pixels must equal drawpoint's; else it resizes the same pictures in another way
    double published = 0;   ///< its rate relative to pytorch/persistent with 2 workers and a careful setup; 0: unknown
};

/// All workloads.
[[nodiscard]] const std::vector<std::string>& workload_kinds();
/// The names of all contenders.
[[nodiscard]] std::vector<std::string> contender_names();

/// All entries of `workload.kind`, drawpoint first; `contenders`: only these and drawpoint; empty: all. If
/// `workload.jpeg_decoder` is "", drawpoint has a row with its own choice and one for each decoder.
[[nodiscard]] std::vector<Entry> roster(const Workload& workload, const std::vector<std::string>& contenders);

/// The program and arguments that serve an entry, without the last one. Throws NotRun saying what has to be installed.
[[nodiscard]] std::vector<std::string> command_of(const Entry&);

}   // namespace drawpoint::bench
