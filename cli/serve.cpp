#include <cerrno>
#include <filesystem>
#include <system_error>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include "cli/serve_options.hpp"

namespace drawpoint::cli {
namespace {

/// Becomes the program that serves, which lies beside this one: it has no LibTorch in it, and this one no gRPC.
int become_server(const Invocation& invocation) {
    const std::string program =
        (std::filesystem::read_symlink("/proc/self/exe").parent_path() / "drawpoint-serve").string();
    std::vector<std::string> words{program, invocation.command};
    words.insert(words.end(), invocation.arguments.begin(), invocation.arguments.end());
    std::vector<char*> pointers;
    for (std::string& word : words)
        pointers.push_back(word.data());
    pointers.push_back(nullptr);
    ::execv(program.c_str(), pointers.data());
    throw Failure{fmt::format("{}: {}", program, std::generic_category().message(errno))};
}

}   // namespace

int serve(const Invocation& invocation) {
    return read_options<ServeOptions>(invocation, serve_description) ? become_server(invocation) : exit_ok;
}

int view(const Invocation& invocation) {
    return read_options<ViewOptions>(invocation, view_description) ? become_server(invocation) : exit_ok;
}

}   // namespace drawpoint::cli
