#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace drawpoint::cli {

/// An option of a command, or an argument without a name.
struct OptionEntry {
    std::vector<std::string> names;   ///< "-o", "--output"; none: an argument
    /// What stands for its value: words of lower case are values, those of capitals are places ("auto|FILE"). Empty: it
    /// takes none.
    std::string value;
    std::string by_default, group, what;

    /// The values that `value` lists.
    [[nodiscard]] std::vector<std::string> values() const;
    /// Whether a file's name may be its value.
    [[nodiscard]] bool takes_file() const;
    /// `value`, or a word for it where that is long.
    [[nodiscard]] std::string short_value() const;
};

/// What a command is and takes: the one source of its help, its man page and its completions.
struct CommandPage {
    std::string command;   ///< "profile", "dataset crops"
    std::string what;      ///< a sentence
    std::vector<OptionEntry> options;
};

/// What --help prints, in lines of at most `width` columns where words allow that.
[[nodiscard]] std::string help_text(const CommandPage&, std::size_t width);
/// In the language man(7), for `man drawpoint-profile`.
[[nodiscard]] std::string man_page(const CommandPage&);
[[nodiscard]] std::string man_name(const CommandPage&);   ///< "drawpoint-dataset-crops"
/// That of the program, which names those of its commands.
[[nodiscard]] std::string main_man_page(std::span<const CommandPage>);

/// Rows of a name and a text, which is wrapped beside it.
[[nodiscard]] std::string two_columns(std::string_view name, std::string_view text, std::size_t indent,
                                      std::size_t width);

}   // namespace drawpoint::cli
