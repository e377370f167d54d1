#pragma once

#include <string>

#include <drawpoint/diagnosis/whatif/whatif.hpp>

#include "diagnosis/page/svg.hpp"

namespace drawpoint {

/// Batches per second by workers (down) and depth (across), for the order and batch size of the row.
[[nodiscard]] Svg whatif_map(const Whatif&, const WhatifRow& of);

/// What a page says of a what-if: the recommendation, maps, speed against memory, and all rows as a table.
[[nodiscard]] std::string whatif_body(const Whatif&);

}   // namespace drawpoint
