#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace CLI {
class App;
}

namespace drawpoint::bench {

/// Adds `--data`, the option of every suite that decodes pictures.
void add_data_option(CLI::App&, std::string& folder);

/// Parses the command line and calls `run` with the command as text. The value of an option with an optional value is
/// only taken after `=`. Returns the program's exit status: that of `run`, 1 if it throws, 2 for a wrong command line.
int run_program(CLI::App&, std::string_view suite, int argc, char** argv,
                const std::function<int(const std::string& command)>& run);

}   // namespace drawpoint::bench
