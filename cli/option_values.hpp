#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/program.hpp"

namespace drawpoint::cli {

/// The group, in lists of options, of those that are in no other, and of those that all commands have.
inline constexpr const char *group_of_others = "Options", *group_of_all = "General";

/// The number that all of `text` is; nullopt if it is none.
template <class Number>
std::optional<Number> number_in(std::string_view text) {
    Number value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc{} && end == text.data() + text.size() ? std::optional{value} : std::nullopt;
}

/// The parts of `text` between the separators; at least one, which may be empty.
[[nodiscard]] std::vector<std::string_view> split(std::string_view text, char separator);

/// An option's value, and the text it was read from, which messages repeat.
template <class T>
struct Given {
    std::string text;
    T value{};
};

/// Where `text` is in `names`. Throws UsageError listing them if it is none of them.
[[nodiscard]] std::size_t position_in(std::span<const std::string_view> names, std::string_view option,
                                      std::string_view text);

/// Reads one of `names`, which are in the order of the enumerators. For add_read, which offers the names.
template <class Enum>
struct OneOf {
    std::vector<std::string_view> names;
    [[nodiscard]] Enum operator()(std::string_view option, std::string_view text) const {
        return static_cast<Enum>(position_in(names, option, text));
    }
};

template <class Enum>
[[nodiscard]] OneOf<Enum> one_of(std::vector<std::string_view> names) {
    return {std::move(names)};
}

/// What stands for the value of an option that `read` reads: names, or a word of CLI11's.
template <class Read>
void name_value(CLI::Option& option, const Read& read) {
    if constexpr (requires { read.names; })
        option.type_name(fmt::format("{}", fmt::join(read.names, "|")));
    else
        option.type_name("TEXT");
}

/// Adds an option: whenever it is given, and for its default, `read(option, text)` turns its text into `value`, which
/// must outlive `app`. Option names include the dashes. `read` throws UsageError.
template <class T, class Read>
CLI::Option* add_read(CLI::App& app, const std::string& option, T& value, const std::string& by_default, Read read,
                      const std::string& description) {
    const auto take = [option, read, &value](const std::string& text) { value = read(option, text); };
    CLI::Option* const added = app.add_option_function<std::string>(option, take, description)
                                   ->run_callback_for_default()
                                   ->default_val(by_default);
    name_value(*added, read);
    return added;
}

/// The same for an option whose text is kept; its default is the text that `to` has.
template <class T, class Read>
CLI::Option* add_read(CLI::App& app, const std::string& option, Given<T>& to, Read read,
                      const std::string& description) {
    const auto read_both = [read](const std::string& name, const std::string& text) {
        return Given<T>{text, read(name, text)};
    };
    CLI::Option* const added = add_read(app, option, to, to.text, read_both, description);
    name_value(*added, read);
    return added;
}

/// Adds an option that takes a number from `low` to `high`. Its default is what `value` is.
template <class Number, class Raw = std::conditional_t<std::is_floating_point_v<Number>, double, std::int64_t>>
CLI::Option* add_number(CLI::App& app, const std::string& option, Number& value, std::type_identity_t<Raw> low,
                        std::type_identity_t<Raw> high, const std::string& description) {
    const auto take = [=, &value](const Raw& number) {
        if (!(number >= low && number <= high))   // true of NaN
            throw UsageError{number < low && high > 1'000'000
                                 ? fmt::format("{} must be at least {}, got {}", option, low, number)
                                 : fmt::format("{} must be between {} and {}, got {}", option, low, high, number)};
        value = static_cast<Number>(number);
    };
    return app.add_option_function<Raw>(option, take, description)
        ->default_str(fmt::format("{}", value))
        ->type_name(std::is_floating_point_v<Raw> ? "X" : "N");
}

/// Reads a size like 64MiB, in bytes.
[[nodiscard]] std::uint64_t bytes_in(std::string_view option, std::string_view text);

}   // namespace drawpoint::cli
