#pragma once

#include <cmath>
#include <cstdint>
#include <string>

#include <drawpoint/instrumentation/host/host.hpp>
#include <drawpoint/instrumentation/report/summary.hpp>

namespace drawpoint::cli {

/// Cores this process may use (`usable_cores`), counting a part of one as one.
[[nodiscard]] inline std::int64_t whole_usable_cores() { return std::llround(std::ceil(usable_cores())); }

/// The version of LibTorch that the program was built with.
[[nodiscard]] std::string libtorch_version();

/// What LibTorch offers.
struct TorchBuild {
    std::string built, loaded;   ///< versions: that the program was built with, and that it runs with
    std::string accelerator;     ///< the type of device that it is built for, e.g. "CUDA"; empty: none
    std::size_t devices = 0;     ///< of that type
    bool pins_memory = false;    ///< whether a device can copy while the loop goes on
};
[[nodiscard]] TorchBuild torch_build();

/// This machine, this build, and the libraries it uses.
[[nodiscard]] Machine this_machine();

}   // namespace drawpoint::cli
