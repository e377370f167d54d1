#include "cli/command_page.hpp"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/option_values.hpp"

namespace drawpoint::cli {
namespace {

constexpr std::size_t text_column = 30, longest_value = 16;

/// Characters of a text of UTF-8.
std::size_t width_of(std::string_view text) {
    return static_cast<std::size_t>(
        std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

bool is_place(std::string_view word) {
    return std::ranges::any_of(word, [](unsigned char c) { return std::isupper(c) != 0; });
}

/// "auto" of "auto", "synthetic" of "synthetic[:COUNT]".
std::string_view without_rest(std::string_view word) { return word.substr(0, word.find_first_of("[=:")); }

std::string head_of(const OptionEntry& option) {
    std::string head = fmt::format("{}", fmt::join(option.names, ","));
    if (!option.value.empty())
        head += (head.empty() ? "" : " ") + option.short_value();
    return head;
}

std::string text_of(const OptionEntry& option) {
    const bool says_default = option.by_default.empty() || option.by_default == "[]" || option.what.ends_with(']');
    return option.what + (says_default ? "" : fmt::format(" [{}]", option.by_default));
}

/// The groups' names, in the order of their first options.
std::vector<std::string> groups_of(const CommandPage& page) {
    std::vector<std::string> groups;
    for (const OptionEntry& option : page.options)
        if (!option.names.empty() && std::ranges::find(groups, option.group) == groups.end())
            groups.push_back(option.group);
    std::ranges::stable_partition(groups, [](const std::string& group) { return group != group_of_all; });
    return groups;
}

std::string arguments_of(const CommandPage& page) {
    std::string text;
    for (const OptionEntry& option : page.options)
        if (option.names.empty())
            text += fmt::format("{}[{}]", text.empty() ? "" : " ", option.value);
    return text;
}

std::string upper_case(std::string text) {
    std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    return text;
}

/// A text as man(7) prints it.
std::string roff(std::string_view text) {
    std::string escaped = text.starts_with('.') || text.starts_with('\'') ? "\\&" : "";
    for (const char c : text)
        escaped += c == '\\' ? "\\e" : c == '-' ? "\\-" : c == '\'' ? "\\(aq" : c == '`' ? "\\(ga" : std::string{c};
    return escaped;
}

/// The same as a paragraph, in lines of a usual length, of which none is taken for a request.
std::string roff_lines(std::string_view text) {
    constexpr std::size_t usual = 66;   // what is escaped takes more
    const std::string lines = two_columns("", text, 0, usual);
    std::string out;
    for (const std::string_view line : split(std::string_view{lines}.substr(0, lines.size() - 1), '\n'))
        out += roff(line) + "\n";
    return out;
}

constexpr std::string_view man_end =
    ".SH EXIT STATUS\n0: done, 1: failed, 2: bad usage, 3: slower (gate), 130: stopped by a signal.\n.SH SEE ALSO\n";

std::string man_head(const std::string& name, std::string_view what) {
    return fmt::format(".TH {} 1 2026-11-29 \"drawpoint {}\"\n.SH NAME\n{} \\-\n{}.SH SYNOPSIS\n", upper_case(name),
                       DRAWPOINT_VERSION, roff(name), roff_lines(what.substr(0, what.find_last_not_of('.') + 1)));
}

}   // namespace

std::vector<std::string> OptionEntry::values() const {
    std::vector<std::string> all;
    for (const std::string_view word : split(value, '|'))
        if (const std::string_view known = without_rest(word);
            !known.empty() && !is_place(known) && std::ranges::find(all, known) == all.end())
            all.emplace_back(known);
    return all;
}

bool OptionEntry::takes_file() const {
    return std::ranges::any_of(split(value, '|'), [](std::string_view word) {
        for (const std::string_view place : {"FILE", "FOLDER", "DIR", "RUN", "CHECKPOINT", "PATH"})
            if (word.starts_with(place))
                return true;
        return false;
    });
}

std::string OptionEntry::short_value() const {
    if (value.size() <= longest_value || names.empty())
        return value;
    return upper_case(names.back().substr(names.back().rfind('-') + 1));
}

std::string two_columns(std::string_view name, std::string_view text, std::size_t indent, std::size_t width) {
    std::string out{name};
    std::size_t column = width_of(name);
    const auto to_indent = [&] {
        out.append(indent - column, ' ');
        column = indent;
    };
    if (!name.empty() && column + 1 >= indent) {
        out += '\n';
        column = 0;
    }
    to_indent();
    for (const std::string_view word : split(text, ' ')) {
        const std::size_t wide = width_of(word);
        if (column > indent && column + 1 + wide > width) {
            out += '\n';
            column = 0;
            to_indent();
        }
        if (column > indent) {
            out += ' ';
            ++column;
        }
        out += word;
        column += wide;
    }
    return out + '\n';
}

std::string help_text(const CommandPage& page, std::size_t width) {
    const std::string arguments = arguments_of(page);
    std::string text = fmt::format("{}usage: drawpoint {}{}{} [OPTIONS]\n", two_columns("", page.what, 0, width),
                                   page.command, arguments.empty() ? "" : " ", arguments);
    for (const OptionEntry& option : page.options)
        if (option.names.empty())
            text += "\n" + two_columns("  " + option.value, text_of(option), text_column, width);
    for (const std::string& group : groups_of(page)) {
        text += fmt::format("\n{}:\n", group);
        for (const OptionEntry& option : page.options)
            if (!option.names.empty() && option.group == group)
                text += two_columns("  " + head_of(option), text_of(option), text_column, width);
    }
    return text;
}

std::string man_name(const CommandPage& page) {
    std::string name = "drawpoint-" + page.command;
    std::ranges::replace(name, ' ', '-');
    return name;
}

std::string man_page(const CommandPage& page) {
    std::string text =
        man_head(man_name(page), page.what) + fmt::format(".B drawpoint {}\n", roff(page.command)) +
        fmt::format(".RI \"{} [\" OPTIONS ]\n.SH DESCRIPTION\n{}", roff(arguments_of(page)), roff_lines(page.what));
    for (const OptionEntry& option : page.options)
        if (option.names.empty())
            text += fmt::format(".TP\n.I {}\n{}", roff(option.value), roff_lines(text_of(option)));
    for (const std::string& group : groups_of(page)) {
        text += fmt::format(".SH {}\n", upper_case(group));
        for (const OptionEntry& option : page.options)
            if (!option.names.empty() && option.group == group)
                text += fmt::format(".TP\n\\fB{}\\fR{}\n{}", roff(fmt::format("{}", fmt::join(option.names, ", "))),
                                    option.value.empty() ? "" : " \\fI" + roff(option.short_value()) + "\\fR",
                                    roff_lines(text_of(option)));
    }
    return text.append(man_end) + ".BR drawpoint (1)\n";
}

std::string main_man_page(std::span<const CommandPage> pages) {
    std::string text = man_head("drawpoint", "says why a training loop waits for data, and what ends it.") +
                       ".B drawpoint\n.I COMMAND\n.RI [ OPTIONS ]\n.SH COMMANDS\n";
    for (const CommandPage& page : pages)
        text += fmt::format(".TP\n.B {}\n{}", roff(page.command), roff_lines(page.what));
    text += man_end;
    for (const CommandPage& page : pages)
        text += fmt::format(".BR {} (1){}\n", roff(man_name(page)), &page == &pages.back() ? "" : ",");
    return text;
}

}   // namespace drawpoint::cli
