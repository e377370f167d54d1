#include "cli/machine.hpp"

#if __has_include(<torch/headeronly/version.h>)
#include <torch/headeronly/version.h>
#else
#include <torch/version.h>
#endif

namespace drawpoint::cli {

std::string libtorch_version() { return TORCH_VERSION; }

}   // namespace drawpoint::cli
