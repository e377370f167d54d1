#pragma once

#include <string>
#include <string_view>

namespace drawpoint::cli {

/// A page that fetches `run.pftrace` and hands it to ui.perfetto.dev in a window of its own, as Perfetto's
/// documentation of deep links says: the recording goes from window to window and to no server. It
/// tries so as it opens; if the browser refuses a window that nobody has asked for, its button does it.
[[nodiscard]] std::string perfetto_page(std::string_view recording);

}   // namespace drawpoint::cli
