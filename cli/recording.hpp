#pragma once

#include <string>

#include <drawpoint/instrumentation/trace/trace.hpp>

namespace drawpoint::cli {

/// Reads RUN: a `.pftrace`, or a Chrome trace of PyTorch's (by its name: .json, .json.gz). Throws as the readers do.
[[nodiscard]] ReadTrace read_run(const std::string& file);

}   // namespace drawpoint::cli
