#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <ranges>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include "cli/command_page.hpp"
#include "cli/program.hpp"

namespace drawpoint::cli {
namespace {

namespace fs = std::filesystem;

/// The programs of the suites by name: bench_SUITE in the folder of this program.
std::map<std::string, fs::path> find_suites() {
    std::error_code none;
    const fs::path here = fs::read_symlink("/proc/self/exe", none).parent_path();
    std::map<std::string, fs::path> suites;
    for (const auto& entry : fs::directory_iterator{here, none}) {
        std::string name = entry.path().filename();
        if (!name.starts_with("bench_") || access(entry.path().c_str(), X_OK) != 0)
            continue;
        name.erase(0, std::strlen("bench_"));
        std::ranges::replace(name, '_', '-');
        suites.emplace(name, entry.path());
    }
    return suites;
}

std::string names_of(const std::map<std::string, fs::path>& suites) {
    if (suites.empty())
        return "none beside this program (they are built with the project's tests, and not installed)";
    return fmt::format("{}", fmt::join(std::views::keys(suites), ", "));
}

}   // namespace

int bench(const Invocation& invocation) {
    const auto suites = find_suites();
    const auto& arguments = invocation.arguments;
    if (invocation.page) {
        (void)bench_commands(invocation);
        invocation.page->options.insert(
            invocation.page->options.begin(),
            {.names = {},
             .value = "SUITE",
             .by_default = {},
             .group = {},
             .what = "a suite, whose options `drawpoint bench SUITE --help` lists; without one: --command"});
        return exit_ok;
    }
    if (arguments.empty())
        throw UsageError{fmt::format("bench: which suite? There are: {}", names_of(suites))};
    const std::string& suite = arguments.front();
    if (suite.starts_with("--") && suite != "--help")
        return bench_commands(invocation);
    if (suite == "--help" || suite == "-h") {
        write_to(stdout,
                 fmt::format("usage: drawpoint bench SUITE [OPTIONS]\n"
                             "       drawpoint bench --command NAME='COMMAND LINE'... [OPTIONS]\n\n{}\n"
                             "drawpoint bench SUITE --help lists a suite's options,\n"
                             "drawpoint bench --rounds 0 --help those of commands.\n",
                             two_columns("suites:", names_of(suites), 9, width_of_stdout().value_or(usual_width))));
        return exit_ok;
    }
    const auto found = suites.find(suite);
    if (found == suites.end())
        throw UsageError{fmt::format("unknown bench suite '{}'; there are: {}", suite, names_of(suites))};
    std::vector<std::string> words{found->second.string()};
    words.insert(words.end(), arguments.begin() + 1, arguments.end());
    std::vector<char*> pointers;
    for (std::string& word : words)
        pointers.push_back(word.data());
    pointers.push_back(nullptr);
    std::fflush(nullptr);
    execv(pointers.front(), pointers.data());
    throw Failure{fmt::format("{}: {}", words.front(), std::strerror(errno))};
}

}   // namespace drawpoint::cli
