#include "cli/machine.hpp"

#include <string>

#include <asio/version.hpp>
#include <fmt/format.h>
#include <jconfig.h>
#include <zlib.h>

#include <drawpoint/instrumentation/report/machine.hpp>

namespace drawpoint::cli {

#define DRAWPOINT_TEXT(x) #x
#define DRAWPOINT_TEXT_OF(x) DRAWPOINT_TEXT(x)

Machine this_machine() {
    Machine machine = drawpoint::this_machine();
    machine.libraries = {
        {"asio", fmt::format("{}.{}.{}", ASIO_VERSION / 100000, ASIO_VERSION / 100 % 1000, ASIO_VERSION % 100)},
        {"fmt", fmt::format("{}.{}.{}", FMT_VERSION / 10000, FMT_VERSION / 100 % 100, FMT_VERSION % 100)},
        {"libjpeg-turbo", DRAWPOINT_TEXT_OF(LIBJPEG_TURBO_VERSION)},
        {"libtorch", libtorch_version()},
        {"oneTBB", DRAWPOINT_TBB_VERSION},
        {"zlib", zlibVersion()}};
    std::erase_if(machine.libraries, [](const auto& library) { return library.second.empty(); });
    return machine;
}

}   // namespace drawpoint::cli
