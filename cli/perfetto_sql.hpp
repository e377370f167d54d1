#pragma once

#include <string_view>

namespace drawpoint::cli {

/// Views of a recording for Perfetto's SQL: instrumentation/trace/drawpoint.sql. Static storage.
[[nodiscard]] std::string_view perfetto_sql() noexcept;

}   // namespace drawpoint::cli
