#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include "cli/program.hpp"

namespace drawpoint::cli {

/// A command's options: taken from the command line, then from DRAWPOINT_* variables, then from `--config FILE.toml`, then
/// their defaults. Options are added to `app()` and bound to variables that outlive `parse`.
class CommandLine {
public:
    CommandLine(const Invocation&, std::string description);

    [[nodiscard]] CLI::App& app() noexcept { return app_; }

    /// False: the help, or what --print-config asks for, was printed instead. Throws UsageError, in one line naming the
    /// option or value.
    [[nodiscard]] bool parse();

    /// Every option that makes a run what it is, and its value, in effect after parse().
    [[nodiscard]] std::vector<std::pair<std::string, std::string>> effective() const;

private:
    [[nodiscard]] std::vector<std::string> option_names() const;
    void add_from_environment(std::vector<std::string>& arguments) const;
    void add_from_config(std::vector<std::string>& arguments) const;
    [[nodiscard]] CLI::Option* find(std::string_view name) const;
    [[nodiscard]] std::string source_of(std::string_view complaint) const;

    std::string command_;
    std::vector<std::string> arguments_, commands_;
    CLI::App app_;
    std::string config_;
    bool print_config_ = false;
};

}   // namespace drawpoint::cli
