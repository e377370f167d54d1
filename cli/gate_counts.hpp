#pragma once

#include <string>

#include "cli/options.hpp"
#include "cli/program.hpp"

namespace drawpoint::cli {

/// Judges what two recordings, or two files of results, count; of times it says why there is no verdict. Prints the
/// table, and returns the exit code. Throws UsageError if the files are not of one kind, and Failure naming a file that
/// cannot be read, or if nothing can be judged.
[[nodiscard]] int gate_counts(const std::string& base, const std::string& candidate, double error, bool for_github,
                              const OutputOptions&, const Invocation&);

}   // namespace drawpoint::cli
