#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace drawpoint::bench {

/// The file of a case that is drawn at random: the same text for the same seed and number. README.md says from what.
/// Nobody has seen such cases when they are scored, so no rule is fitted to them.
[[nodiscard]] std::string draw_case(std::uint64_t seed, std::size_t number);

}   // namespace drawpoint::bench
