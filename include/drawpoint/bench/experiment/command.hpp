#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <drawpoint/bench/experiment/contender.hpp>

namespace drawpoint::bench {

/// What a command writes to stdout.
enum class Reports : std::uint8_t {
    nothing,            ///< of interest: the process is measured
    google_benchmark,   ///< Google Benchmark's JSON: real and CPU time of each of its benchmarks are compared
    numbers,            ///< as its last line a JSON object; each number, above 0, is compared; less is better
    suite,              ///< what bench::main() writes for each row of its suite, which is compared by its name
    row,                ///< the same of the only row, whatever its name; a line may choose it with `--row`
};

/// A contender that is a command line: each run is a process of its own, without input.
///
/// Of one that reports nothing, wall time and CPU time are compared, and page faults and context switches are shown.
/// CPU time, faults and switches include those of processes that it waited for. One that reports something is run once
/// by prepare(), to see what; it must always report the same. For a suite, `--list`, `--once` and more are put after
/// the line's words, so it must end with the program's own arguments.
///
/// A line without characters that are special to a shell is run directly, any other one by `/bin/sh -c`, which adds
/// about a millisecond; words that only a shell knows, such as `exit`, need such a character. Throws NotRun if the line
/// is empty. prepare() and take_turn() throw it, with the end of what the command wrote to stderr, unless it ends with
/// exit code 0. stderr is kept in memory while it runs.
[[nodiscard]] std::unique_ptr<Contender> make_command(std::string name, std::string line,
                                                      Reports reports = Reports::nothing);

}   // namespace drawpoint::bench
