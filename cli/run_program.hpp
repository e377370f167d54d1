#pragma once

#include <string>
#include <vector>

namespace drawpoint::cli {

/// What main() of each program does: calls `run` with the words after the program's name and returns its exit code.
/// What it throws becomes one line on stderr and exit code 1, or 2 for a UsageError.
int run_program(int count, char** words, int (*run)(const std::vector<std::string>&));

}   // namespace drawpoint::cli
