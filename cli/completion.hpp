#pragma once

#include <span>
#include <string>
#include <string_view>

#include "cli/command_page.hpp"

namespace drawpoint::cli {

/// A script by which bash, zsh or fish completes commands, options and values. Pages of two words, such as "dataset
/// crops", come one after the other.
[[nodiscard]] std::string completion_script(std::string_view shell, std::span<const CommandPage> pages);

}   // namespace drawpoint::cli
