#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace CLI {
class App;
}

namespace drawpoint::bench {

/// `--data`, as every suite that decodes pictures has it.
void add_data_option(CLI::App&, std::string& folder);

/// Reads the command line and runs the suite with the command as it was given. An option's value that may be left out
/// is taken only from behind `=`. The program's exit status: what `run` returns, 1 where it throws, 2 for a wrong
/// command line.
int run_program(CLI::App&, std::string_view suite, int argc, char** argv,
                const std::function<int(const std::string& command)>& run);

}   // namespace drawpoint::bench
