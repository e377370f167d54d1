#include "cli/machine.hpp"

#include <ATen/DeviceAccelerator.h>
#include <ATen/Version.h>
#if __has_include(<torch/headeronly/version.h>)
#include <torch/headeronly/version.h>
#else
#include <torch/version.h>
#endif

#include <drawpoint/pipeline/torch/pinned_memory.hpp>

namespace drawpoint::cli {
namespace {

/// The version that the library says of itself; empty: it does not.
std::string loaded_version() {
    const std::string said = at::show_config(), name = "TORCH_VERSION=";
    const std::size_t at = said.find(name);
    if (at == said.npos)
        return {};
    const std::size_t begin = at + name.size();
    return said.substr(begin, said.find_first_of(", \n", begin) - begin);
}

}   // namespace

std::string libtorch_version() { return TORCH_VERSION; }

TorchBuild torch_build() {
    TorchBuild build{.built = libtorch_version(), .loaded = loaded_version()};
    const std::optional<c10::DeviceType> type = at::accelerator::getAccelerator();
    if (!type)
        return build;
    build.accelerator = c10::DeviceTypeName(*type);
    build.devices = static_cast<std::size_t>(at::accelerator::deviceCount());
    build.pins_memory = pinned_memory() != nullptr;
    return build;
}

}   // namespace drawpoint::cli
