#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include "cli/command_page.hpp"
#include "cli/program.hpp"

namespace drawpoint::cli {

/// A command's options. Each comes from the first of these that has it: the command line, a DRAWPOINT_* variable, the
/// file of --config, its default. Options are added to `app()` and bound to variables that outlive `parse`.
class CommandLine {
public:
    CommandLine(const Invocation&, std::string description);

    [[nodiscard]] CLI::App& app() noexcept { return app_; }
    /// The file of --config; empty: none.
    [[nodiscard]] const std::string& config() const noexcept { return config_; }

    /// Reads all values. False: the help, or what --print-config asks for, was printed instead, or `Invocation::page`
    /// was filled. Throws UsageError: one line that names the option or value.
    [[nodiscard]] bool parse();

    /// Name and value of every option that can stand in a configuration file, as parse() left them; empty values are
    /// left out.
    [[nodiscard]] std::vector<std::pair<std::string, std::string>> effective() const;

private:
    [[nodiscard]] CommandPage page() const;
    [[nodiscard]] std::vector<std::string> option_names() const;
    void add_from_environment(std::vector<std::string>& arguments) const;
    void add_from_config(std::vector<std::string>& arguments) const;
    [[nodiscard]] std::string source_of(std::string_view complaint) const;

    CommandPage* const asked_page_;
    std::string command_;
    std::vector<std::string> arguments_, commands_;
    CLI::App app_;
    std::string config_;
    bool print_config_ = false;
};

/// The defaults of the options of `drawpoint profile` on this machine, as `effective()` gives them.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> profile_defaults();

}   // namespace drawpoint::cli
