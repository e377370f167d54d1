#include <drawpoint/instrumentation/report/machine.hpp>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <string>

#include <fmt/format.h>
#include <sys/utsname.h>

#include <drawpoint/instrumentation/host/host.hpp>

namespace drawpoint {

namespace {

std::string cpu_name() {
    std::ifstream file{"/proc/cpuinfo"};
    for (std::string line; std::getline(file, line);)
        if (line.starts_with("model name"))
            return line.substr(std::min(line.size(), line.find(':') + 2));
    utsname names{};
    return uname(&names) == 0 ? names.machine : "";
}

std::string compiler() {
#if defined(__clang__)
    return "clang " __clang_version__;
#else
    return "g++ " __VERSION__;
#endif
}

}   // namespace

Machine this_machine() {
    utsname names{};
    const bool known = uname(&names) == 0;
    return {.cpu = cpu_name(),
            .kernel = known ? fmt::format("{} {}", names.sysname, names.release) : "",
            .compiler = compiler(),
            .cores_usable = std::llround(std::ceil(usable_cores()))};
}

}   // namespace drawpoint
