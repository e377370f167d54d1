#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "cli/top/top_view.hpp"

namespace drawpoint::cli {

enum class TopPage : std::uint8_t { run = 1, draws, workers, samples, verdict, help };

struct TopFrame {
    std::size_t width = 80, height = 24;   ///< of the screen
    bool colour = false;
    TopPage page = TopPage::run;
    bool paused = false;
    bool has_keys = true;   ///< ends with a line that names the keys, at the bottom of the screen
};

/// The screen's content: at most `height` lines, separated by line ends, none wider than `width`. Depends on nothing
/// but its arguments. UTF-8; with `colour` also ANSI colours. Any thread.
[[nodiscard]] std::string frame_text(const TopView&, const TopFrame&);

/// The view as one line, for terminals that can do no more, with a line end.
[[nodiscard]] std::string line_text(const TopView&);

}   // namespace drawpoint::cli
