#include <algorithm>
#include <cctype>
#include <utility>

#include <drawpoint/instrumentation/text/terminal.hpp>

namespace drawpoint {
namespace {

/// One character of a line, as wide as one or two columns of a terminal; the second column of a wide one is empty.
using Cells = std::vector<std::string>;

Cells cells_of(std::string_view line) {
    Cells cells;
    while (!line.empty()) {
        std::size_t bytes = 1;
        while (bytes < line.size() && (line[bytes] & 0xC0) == 0x80)
            ++bytes;
        const std::size_t columns = columns_of(line.substr(0, bytes));
        if (columns == 0 && !cells.empty())
            cells.back() += line.substr(0, bytes);
        else
            cells.emplace_back(line.substr(0, bytes));
        if (columns > 1)
            cells.emplace_back();
        line.remove_prefix(bytes);
    }
    return cells;
}

std::string text_of(const Cells& cells) {
    std::string text;
    for (const std::string& cell : cells)
        text += cell;
    return text;
}

bool is_ruler(std::string_view line) noexcept { return line.find_first_not_of("-=+| ") == line.npos; }

/// The rows of one table.
class ForeignTable {
public:
    ForeignTable(std::vector<std::string_view> lines) {
        for (const std::string_view line : lines) {
            rows_.push_back({cells_of(line), is_ruler(line)});
            columns_ = std::max(columns_, rows_.back().cells.size());
        }
        for (Row& row : rows_)
            row.cells.resize(columns_, " ");
    }

    [[nodiscard]] std::vector<std::string> lines(std::size_t width) {
        squeeze(width);
        constexpr std::size_t least = 12;
        if (const auto [from, to] = widest_names(); columns_ > width && to - from > least)
            shorten(from, to, std::max(least, to - from - std::min(to - from, columns_ - width)));
        std::vector<std::string> lines;
        for (const Row& row : rows_) {
            std::string text = text_of(row.cells);
            text.erase(text.find_last_not_of(' ') + 1);
            lines.push_back(row.is_ruler ? text.substr(0, width) : cut(text, width));
        }
        return lines;
    }

private:
    struct Row {
        Cells cells;
        bool is_ruler;
    };

    [[nodiscard]] bool is_blank(std::size_t column) const {
        return std::ranges::all_of(rows_, [&](const Row& row) { return row.is_ruler || row.cells[column] == " "; });
    }

    void remove(std::size_t from, std::size_t to) {
        for (Row& row : rows_)
            row.cells.erase(row.cells.begin() + static_cast<std::ptrdiff_t>(from),
                            row.cells.begin() + static_cast<std::ptrdiff_t>(to));
        columns_ -= to - from;
    }

    /// Leaves one of neighbouring blank columns, and no more are removed than have to be.
    void squeeze(std::size_t width) {
        for (std::size_t column = columns_; column-- > 1 && columns_ > width;)
            if (is_blank(column) && is_blank(column - 1))
                remove(column, column + 1);
    }

    /// Whether most of the rows have a letter at the beginning of this piece.
    [[nodiscard]] bool has_names(std::size_t from, std::size_t to) const {
        std::ptrdiff_t names = 0;
        for (const Row& row : rows_) {
            const auto end = row.cells.begin() + static_cast<std::ptrdiff_t>(to);
            const auto first = std::find_if(row.cells.begin() + static_cast<std::ptrdiff_t>(from), end,
                                            [](const std::string& cell) { return cell != " "; });
            const bool is_name =
                first != end && (std::isalpha(static_cast<unsigned char>(first->front())) != 0 || *first == "[");
            names += row.is_ruler ? 0 : is_name ? 1 : -1;
        }
        return names > 0;
    }

    /// The widest piece between blank columns that has names, as [from, to).
    [[nodiscard]] std::pair<std::size_t, std::size_t> widest_names() const {
        std::pair<std::size_t, std::size_t> found{0, 0};
        for (std::size_t from = 0; from < columns_;) {
            std::size_t to = from;
            while (to < columns_ && !is_blank(to))
                ++to;
            if (to - from > found.second - found.first && has_names(from, to))
                found = {from, to};
            from = to + 1;
        }
        return found;
    }

    void shorten(std::size_t from, std::size_t to, std::size_t width) {
        for (Row& row : rows_) {
            const Cells piece(row.cells.begin() + static_cast<std::ptrdiff_t>(from),
                              row.cells.begin() + static_cast<std::ptrdiff_t>(to));
            std::string words = text_of(piece);
            const bool right = piece.front() == " " && piece.back() != " ";
            words.erase(words.find_last_not_of(' ') + 1);
            words.erase(0, words.find_first_not_of(' '));
            const Cells shown =
                cells_of(padded(row.is_ruler ? words.substr(0, width) : cut(words, width), width, right));
            std::ranges::copy(shown, row.cells.begin() + static_cast<std::ptrdiff_t>(from));
        }
        remove(from + width, to);
    }

    std::vector<Row> rows_;
    std::size_t columns_ = 0;
};

}   // namespace

std::string fitted_tables(std::string_view text, std::size_t width) {
    std::string all;
    while (!text.empty()) {
        std::vector<std::string_view> lines;   // up to the next empty one
        while (!text.empty() && text.front() != '\n') {
            const std::size_t end = std::min(text.find('\n'), text.size());
            lines.push_back(text.substr(0, end));
            text.remove_prefix(std::min(end + 1, text.size()));
        }
        std::size_t widest = 0;
        for (const std::string_view line : lines)
            widest = std::max(widest, columns_of(line));
        std::vector<std::string_view> rows;   // what is much shorter is a title or a sentence
        std::vector<bool> is_row;
        for (const std::string_view line : lines) {
            is_row.push_back(widest > width && 10 * columns_of(line) >= 6 * widest);
            if (is_row.back())
                rows.push_back(line);
        }
        const std::vector<std::string> fitting = ForeignTable{std::move(rows)}.lines(width);
        for (std::size_t i = 0, row = 0; i < lines.size(); ++i)
            all += is_row[i] ? fitting[row++] + "\n" : fitted(lines[i], width);
        if (!text.empty()) {
            all += '\n';
            text.remove_prefix(1);
        }
    }
    return all;
}

}   // namespace drawpoint
