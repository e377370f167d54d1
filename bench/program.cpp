#include "program.hpp"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace drawpoint::bench {

void add_data_option(CLI::App& app, std::string& folder) {
    app.add_option("--data", folder, "folder of class folders of JPEG files [generated pictures]")
        ->envname("DRAWPOINT_BENCH_DATA")
        ->check(CLI::ExistingDirectory);
}

int run_program(CLI::App& app, std::string_view suite, int argc, char** argv,
                const std::function<int(const std::string& command)>& run) {
    std::vector<std::string> words(argv + 1, argv + argc);
    const std::string command = fmt::format("bench {}{}{}", suite, words.empty() ? "" : " ", fmt::join(words, " "));
    for (std::string& word : words)
        if (const CLI::Option* option = app.get_option_no_throw(word);
            option && option->get_items_expected_min() == 0 && option->get_items_expected_max() == 1)
            word += '=';
    std::ranges::reverse(words);
    try {
        app.parse(words);
        const int status = run(command);
        if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
            throw std::runtime_error{"stdout cannot be written"};
        return status;
    } catch (const CLI::Success& success) {
        return app.exit(success);
    } catch (const CLI::ParseError& error) {
        fmt::print(stderr, "drawpoint: bench {}: {}\n", suite, error.what());
        return 2;
    } catch (const std::exception& error) {
        fmt::print(stderr, "drawpoint: bench {}: {}\n", suite, error.what());
        return 1;
    }
}

}   // namespace drawpoint::bench
