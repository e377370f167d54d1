#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <utility>

#include <sys/ioctl.h>
#include <unistd.h>

#include <fmt/format.h>

#include "cli/program.hpp"
#include <drawpoint/instrumentation/report/text.hpp>

namespace drawpoint::cli {

void write_to(std::FILE* to, std::string_view text) noexcept {
    (void)std::fwrite(text.data(), 1, text.size(), to);
    (void)std::fflush(to);
}

namespace {

std::optional<std::size_t> columns_of_terminal(int file) noexcept {
    constexpr std::size_t least = 40, most = 1000;
    winsize size{};
    if (::ioctl(file, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return std::max<std::size_t>(size.ws_col, least);
    const char* const columns = std::getenv("COLUMNS");
    const long said = columns ? std::strtol(columns, nullptr, 10) : 0;
    return said > 0 ? std::optional{std::clamp(static_cast<std::size_t>(said), least, most)} : std::nullopt;
}

}   // namespace

std::optional<std::size_t> width_of_stdout() noexcept { return columns_of_terminal(STDOUT_FILENO); }

void complain(std::string_view text) {
    const std::string line = fmt::format("drawpoint: {}\n", printable(text));
    const auto columns = ::isatty(STDERR_FILENO) != 0 ? columns_of_terminal(STDERR_FILENO) : std::nullopt;
    write_to(stderr, columns ? fitted(line, *columns) : line);
}

std::string did_you_mean(std::string_view word, std::span<const std::string> candidates) {
    const auto distance = [&](std::string_view other) {   // insertions, removals and replacements
        std::vector<std::size_t> row(other.size() + 1);
        for (std::size_t j = 0; j < row.size(); ++j)
            row[j] = j;
        for (std::size_t i = 0; i < word.size(); ++i) {
            std::size_t diagonal = std::exchange(row[0], i + 1);
            for (std::size_t j = 0; j < other.size(); ++j) {
                const std::size_t replaced = diagonal + (word[i] == other[j] ? 0 : 1);
                diagonal = row[j + 1];
                row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
            }
        }
        return row.back();
    };
    const std::string* best = nullptr;
    std::size_t least = std::max<std::size_t>(2, word.size() / 3) + 1;
    for (const std::string& candidate : candidates)
        if (const std::size_t away = distance(candidate); away < least) {
            best = &candidate;
            least = away;
        }
    return best ? fmt::format(" (did you mean {}?)", *best) : std::string{};
}

}   // namespace drawpoint::cli
