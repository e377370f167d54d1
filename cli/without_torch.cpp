// What the program says where it is built without LibTorch and without what listens, as in the Python package.
#include "cli/command_line.hpp"
#include "cli/machine.hpp"
#include "cli/program.hpp"

#include <algorithm>
#include <string>

#include <fmt/format.h>

namespace drawpoint::cli {
namespace {

int needs(const Invocation& invocation, const char* what, const char* instead) {
    const auto is_help = [](const std::string& word) { return word == "--help" || word == "-h"; };
    if (invocation.page != nullptr || std::ranges::any_of(invocation.arguments, is_help)) {
        (void)CommandLine{invocation, "Needs what this build of drawpoint is without."}.parse();
        return exit_ok;
    }
    throw Failure{
        fmt::format("{} needs {}, which this build of drawpoint is without: {}", invocation.command, what, instead)};
}

}   // namespace

int profile(const Invocation& invocation) {
    return needs(invocation, "LibTorch", "in Python, drawpoint.watch(loader, \"run.pftrace\") records");
}
int tune_loader(const Invocation& invocation) {
    return needs(invocation, "LibTorch", "drawpoint whatif predicts settings from a recording");
}
int serve(const Invocation& invocation) {
    return needs(invocation, "drawpoint-serve", "drawpoint top shows a run in the terminal");
}
int view(const Invocation& invocation) {
    return needs(invocation, "drawpoint-serve", "open the recording at ui.perfetto.dev");
}

std::string libtorch_version() { return {}; }
TorchBuild torch_build() { return {}; }

}   // namespace drawpoint::cli
