#include "cli/machine.hpp"

#include <algorithm>
#include <fstream>
#include <string>

#include <asio/version.hpp>
#include <fmt/format.h>
#include <jconfig.h>
#include <sys/utsname.h>
#include <zlib.h>

namespace drawpoint::cli {
namespace {

std::string cpu_name() {
    std::ifstream file{"/proc/cpuinfo"};
    for (std::string line; std::getline(file, line);)
        if (line.starts_with("model name"))
            return line.substr(std::min(line.size(), line.find(':') + 2));
    utsname names{};
    return uname(&names) == 0 ? names.machine : "";
}

#define DRAWPOINT_TEXT(x) #x
#define DRAWPOINT_TEXT_OF(x) DRAWPOINT_TEXT(x)

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
    Machine machine{
        .cpu = cpu_name(),
        .kernel = known ? fmt::format("{} {}", names.sysname, names.release) : "",
        .compiler = compiler(),
        .cores_usable = whole_usable_cores(),
        .libraries = {
            {"asio", fmt::format("{}.{}.{}", ASIO_VERSION / 100000, ASIO_VERSION / 100 % 1000, ASIO_VERSION % 100)},
            {"fmt", fmt::format("{}.{}.{}", FMT_VERSION / 10000, FMT_VERSION / 100 % 100, FMT_VERSION % 100)},
            {"libjpeg-turbo", DRAWPOINT_TEXT_OF(LIBJPEG_TURBO_VERSION)},
            {"libtorch", libtorch_version()},
            {"oneTBB", DRAWPOINT_TBB_VERSION},
            {"zlib", zlibVersion()}}};
    std::erase_if(machine.libraries, [](const auto& library) { return library.second.empty(); });
    return machine;
}

}   // namespace drawpoint::cli
