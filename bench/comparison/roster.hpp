#pragma once

#include <string>
#include <vector>

#include "bench/contenders/workload.hpp"

namespace drawpoint::bench {

/// Who is measured, doing what: one row of the table.
struct Entry {
    Workload workload;         ///< with contender and variant, and the settings that make the variant
    std::string environment;   ///< of .deps/peers; empty: this program serves the contender
    std::string script;        ///< of bench/contenders, without .py
    bool is_bound = false;     ///< delivers nothing
    bool same_filter = true;   ///< its pixels must be drawpoint's; else the same pictures, resized in another way
    double published =
        0;   ///< its rate over that of pytorch/persistent with 2 workers where it was set up with care; 0: none
};

/// The workloads there are.
[[nodiscard]] const std::vector<std::string>& workload_kinds();
/// The names of all contenders.
[[nodiscard]] std::vector<std::string> contender_names();

/// Everyone who takes part in `workload.kind`, drawpoint first; `contenders`: only these (and drawpoint); empty: all. A
/// `workload.jpeg_decoder` of "" means drawpoint's own choice, beside a row for each decoder.
[[nodiscard]] std::vector<Entry> roster(const Workload& workload, const std::vector<std::string>& contenders);

/// The program and the arguments that serve an entry, but for the last. Throws NotRun saying what has to be installed.
[[nodiscard]] std::vector<std::string> command_of(const Entry&);

}   // namespace drawpoint::bench
