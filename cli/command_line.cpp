#include "cli/command_line.hpp"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <fmt/format.h>

#include "cli/command_page.hpp"
#include "cli/option_values.hpp"
#include "cli/options.hpp"

namespace drawpoint::cli {
namespace {

/// As a string of TOML; '…' has no escapes there.
std::string quoted(const std::string& value) {
    const char quote = value.find('"') == value.npos ? '"' : '\'';
    return fmt::format("{0}{1}{0}", quote, value);
}

std::string variable_of(std::string_view option) {
    std::string name = "DRAWPOINT_";
    for (const char c : option)
        name += c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    return name;
}

/// "batch-size" of "--batch-size=3"; "" if `argument` is no long option.
std::string_view long_name(std::string_view argument) {
    if (!argument.starts_with("--"))
        return {};
    argument.remove_prefix(2);
    return argument.substr(0, argument.find('='));
}

bool is_given(const std::vector<std::string>& arguments, const CLI::Option& option) {
    return std::ranges::any_of(arguments, [&](const std::string& argument) {
        const std::string_view name = long_name(argument);
        return (!name.empty() && option.check_lname(std::string{name})) ||
               (argument.size() >= 2 && argument[0] == '-' && argument[1] != '-' &&
                option.check_sname(argument.substr(1, 1)));
    });
}

/// Cuts a text to a length fit for a message.
std::string abbreviated(std::string_view text) {
    constexpr std::size_t most = 80, most_continued = 3;
    if (text.size() <= most)
        return std::string{text};
    std::size_t end = most;   // not inside a character, if the text is UTF-8
    while (end > most - most_continued && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80)
        --end;
    return fmt::format("{}… ({} bytes)", text.substr(0, end), text.size());
}

/// The text of --config FILE. Throws UsageError for anything but a text file of bounded size.
std::string read_config(const std::string& file) {
    namespace fs = std::filesystem;
    constexpr std::uintmax_t most = 1 << 20;
    const auto fail = [&](std::string_view why) { throw UsageError{fmt::format("--config {}: {}", file, why)}; };
    std::error_code error;
    const fs::file_status status = fs::status(file, error);
    if (!fs::exists(status))
        fail(error.message());
    if (fs::is_directory(status))
        fail("a folder, not a TOML file");
    if (!fs::is_regular_file(status))
        fail("not a regular file");
    if (fs::file_size(file, error) > most)
        fail(error ? error.message() : "longer than 1 MiB, the limit for a configuration");
    std::ifstream stream{file, std::ios::binary};
    if (!stream)
        fail(std::generic_category().message(errno));
    std::string text(most, '\0');
    text.resize(static_cast<std::size_t>(stream.read(text.data(), most).gcount()));
    if (stream.bad())
        fail("cannot be read");
    if (const std::size_t zero = text.find('\0'); zero != text.npos)
        fail(fmt::format("line {}: a NUL byte, which TOML does not allow",
                         1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(zero), '\n')));
    constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
    return text.starts_with(byte_order_mark) ? text.substr(byte_order_mark.size()) : text;
}

}   // namespace

CommandLine::CommandLine(const Invocation& invocation, std::string description)
    : asked_page_{invocation.page},
      command_{invocation.command},
      arguments_{invocation.arguments},
      commands_{invocation.commands},
      app_{std::move(description), "drawpoint " + invocation.command} {
    app_.allow_extras();
    app_.option_defaults()->always_capture_default()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    app_.option_defaults()->group(group_of_all);
    app_.set_help_flag("-h,--help", "prints this list and ends");
    app_.add_option("--config", config_, "takes options from this TOML file")->type_name("FILE")->configurable(false);
    app_.add_flag("--print-config", print_config_, "prints the options in effect, as TOML, and ends")
        ->configurable(false);
    app_.option_defaults()->group(group_of_others);
}

CommandPage CommandLine::page() const {
    CommandPage page{.command = command_, .what = app_.get_description(), .options = {}};
    for (const CLI::Option* option : app_.get_options()) {
        if (option->get_group().empty())
            continue;
        OptionEntry entry{.names = {},
                          .value = option->get_items_expected_max() == 0 ? "" : option->get_type_name(),
                          .by_default = option->get_default_str(),
                          .group = option->get_group(),
                          .what = option->get_description()};
        for (const std::string& name : option->get_snames())
            entry.names.push_back("-" + name);
        for (const std::string& name : option->get_lnames())
            if (std::ranges::find(option->get_fnames(), name) == option->get_fnames().end())
                entry.names.push_back("--" + name);
        if (option->get_positional()) {   // also one that has names, too
            OptionEntry argument = entry;
            argument.names.clear();
            argument.value = option->get_name(true);
            page.options.push_back(argument);
        }
        if (entry.names.empty())
            continue;
        const std::string name = entry.names.back(), group = entry.group;
        page.options.push_back(std::move(entry));
        for (const std::string& negation : option->get_fnames())
            page.options.push_back({.names = {"--" + negation},
                                    .value = {},
                                    .by_default = {},
                                    .group = group,
                                    .what = "the opposite of " + name});
    }
    return page;
}

std::vector<std::string> CommandLine::option_names() const {
    std::vector<std::string> names;
    for (const CLI::Option* option : app_.get_options())
        for (const std::string& name : option->get_lnames())
            names.push_back("--" + name);
    return names;
}

void CommandLine::add_from_environment(std::vector<std::string>& arguments) const {
    for (const CLI::Option* option : app_.get_options())
        for (const std::string& name : option->get_lnames())
            if (const char* value = std::getenv(variable_of(name).c_str());
                value && *value && !is_given(arguments_, *option))
                for (std::string_view rest = value; !rest.empty();) {   // repeatable ones are separated by blanks
                    const bool is_list = option->get_multi_option_policy() == CLI::MultiOptionPolicy::TakeAll;
                    const std::size_t end = is_list ? rest.find(' ') : rest.npos;
                    if (end != 0)
                        arguments.push_back(fmt::format("--{}={}", name, rest.substr(0, end)));
                    rest.remove_prefix(end == rest.npos ? rest.size() : end + 1);
                }
}

void CommandLine::add_from_config(std::vector<std::string>& arguments) const {
    std::string file;
    for (std::size_t i = 0; i < arguments.size(); ++i)
        if (long_name(arguments[i]) == "config")
            file = arguments[i] != "--config" ? arguments[i].substr(std::string_view{"--config="}.size())
                   : i + 1 < arguments.size() ? arguments[i + 1]
                                              : "";
    if (file.empty())
        return;
    std::vector<CLI::ConfigItem> items;
    std::istringstream stream{read_config(file)};
    try {
        items = CLI::ConfigTOML{}.from_config(stream);
    } catch (const CLI::Error& error) {
        throw UsageError{fmt::format("--config {}: {}", file, abbreviated(error.what()))};
    }
    const std::vector<std::string> given = arguments;
    for (const CLI::ConfigItem& item : items) {
        if (item.name == "++" || item.name == "--")   // a section opens or closes
            continue;
        if (const std::string section = fmt::format("{}", fmt::join(item.parents, " "));
            !section.empty() && section != command_) {
            if (std::ranges::find(commands_, item.parents.front()) == commands_.end())
                throw UsageError{fmt::format("--config {}: unknown section [{}]{}", file,
                                             abbreviated(fmt::format("{}", fmt::join(item.parents, "."))),
                                             did_you_mean(abbreviated(item.parents.front()), commands_))};
            continue;   // another command's section
        }
        const CLI::Option* option = app_.get_option_no_throw("--" + item.name);
        if (!option || !option->get_configurable())
            throw UsageError{fmt::format("--config {}: unknown option {}{}", file, abbreviated(item.name),
                                         did_you_mean("--" + abbreviated(item.name), option_names()))};
        if (item.inputs.empty() && option->get_multi_option_policy() != CLI::MultiOptionPolicy::TakeAll)
            throw UsageError{fmt::format("--config {}: {} has no value", file, item.name)};
        if (!is_given(given, *option))
            for (const std::string& value : item.inputs)
                arguments.push_back(fmt::format("--{}={}", item.name, value));
    }
}

/// " (from …)" if the option that the complaint names was not given on the command line.
std::string CommandLine::source_of(std::string_view complaint) const {
    for (const CLI::Option* option : app_.get_options())
        for (const std::string& name : option->get_lnames()) {
            const std::size_t at = complaint.find("--" + name + " ");
            if (at == complaint.npos || is_given(arguments_, *option))
                continue;
            const std::string variable = variable_of(name);
            const char* value = std::getenv(variable.c_str());
            return fmt::format(" (from {})", value && *value ? variable : config_.empty() ? "--config" : config_);
        }
    return {};
}

bool CommandLine::parse() {
    if (asked_page_) {
        *asked_page_ = page();
        return false;
    }
    std::vector<std::string> arguments = arguments_;
    add_from_environment(arguments);
    if (is_given(arguments, *app_.get_help_ptr())) {   // whatever else is wrong
        write_to(stdout, help_text(page(), width_of_stdout().value_or(usual_width)));
        return false;
    }
    add_from_config(arguments);
    for (CLI::Option* option : app_.get_options())   // CLI11 takes the nearest integer for one that does not fit
        if (number_in<std::int64_t>(option->get_default_str()))
            option->check([option](const std::string& value) {
                errno = 0;
                (void)std::strtoll(value.c_str(), nullptr, 0);
                if (errno == ERANGE)
                    throw UsageError{fmt::format("{} {} does not fit in 64 bits", option->get_name(), value)};
                return std::string{};   // no complaint
            });
    try {
        std::ranges::reverse(arguments);   // as CLI11 takes them
        app_.parse(arguments);
    } catch (const CLI::ParseError& error) {
        throw UsageError{error.what() + source_of(error.what())};
    }
    for (const std::string& extra : app_.remaining())
        throw UsageError{extra.starts_with('-') && extra.size() > 1
                             ? fmt::format("unknown option {}{}", extra,
                                           did_you_mean(extra.substr(0, extra.find('=')), option_names()))
                             : fmt::format("unexpected argument '{}'", extra)};
    if (print_config_) {
        for (const auto& [name, value] : effective()) {
            const bool plain =
                number_in<double>(value) || value == "true" || value == "false" || value.starts_with('[');
            fmt::print("{} = {}\n", name, plain ? value : quoted(value));
        }
        return false;
    }
    return true;
}

std::vector<std::pair<std::string, std::string>> CommandLine::effective() const {
    std::vector<std::pair<std::string, std::string>> all;
    for (const CLI::Option* option : app_.get_options()) {
        if (!option->get_configurable() || option->get_lnames().empty() || option->get_lnames().front() == "help")
            continue;
        const std::string& name = option->get_lnames().front();
        const bool is_list = option->get_multi_option_policy() == CLI::MultiOptionPolicy::TakeAll;
        const auto values = option->reduced_results();
        std::string text = option->get_default_str();
        if (is_list) {
            text = "[";
            for (const std::string& value : values)
                text += fmt::format("{}{}", text.size() > 1 ? ", " : "", quoted(value));
            text += "]";
        } else if (option->count() > 0) {
            const bool is_flag = option->get_items_expected_max() == 0;
            text = !is_flag ? values.front() : option->as<bool>() ? "true" : "false";
        }
        if (!text.empty() && text != "[]")
            all.emplace_back(name, text);
    }
    return all;
}

std::vector<std::pair<std::string, std::string>> profile_defaults() {
    ProfileOptions options;
    CommandLine line{{.command = "profile", .line = {}, .arguments = {}}, ""};
    options.add_to(line.app());
    return line.effective();
}

}   // namespace drawpoint::cli
