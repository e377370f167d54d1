#include "cli/completion.hpp"

#include <algorithm>
#include <iterator>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace drawpoint::cli {
namespace {

std::string joined(const std::vector<std::string>& words, std::string_view between = " ") {
    return fmt::format("{}", fmt::join(words, between));
}

/// In single quotes, as bash and zsh read them.
std::string quoted(std::string_view text) {
    std::string out = "'";
    for (const char c : text)
        out += c == '\'' ? "'\\''" : std::string{c};
    return out + "'";
}

template <class... Values>
void put(std::string& to, fmt::format_string<Values...> format, Values&&... values) {
    fmt::format_to(std::back_inserter(to), format, std::forward<Values>(values)...);
}

/// A command, or one of two words without its second.
struct Command {
    std::string name, what;
    std::vector<std::string> actions;   ///< the second words
};

std::vector<Command> commands_of(std::span<const CommandPage> pages) {
    std::vector<Command> all;
    for (const CommandPage& page : pages) {
        const std::size_t blank = page.command.find(' ');
        const std::string name = page.command.substr(0, blank);
        if (all.empty() || all.back().name != name)
            all.push_back({name, page.what, {}});
        if (blank != page.command.npos)
            all.back().actions.push_back(page.command.substr(blank + 1));
    }
    for (Command& command : all)
        if (!command.actions.empty())
            command.what = fmt::format("One of {}.", joined(command.actions, ", "));
    return all;
}

std::vector<std::string> names_of(const std::vector<Command>& commands) {
    std::vector<std::string> names;
    for (const Command& command : commands)
        names.push_back(command.name);
    return names;
}

/// Of arguments without a name: the words that may be one, and whether a file may be.
struct Arguments {
    std::vector<std::string> words;
    bool may_be_file = false;
};

Arguments arguments_of(const CommandPage& page) {
    Arguments found;
    for (const OptionEntry& option : page.options)
        if (option.names.empty()) {
            std::ranges::copy(option.values(), std::back_inserter(found.words));
            found.may_be_file |= option.takes_file();
        }
    return found;
}

/// The values of an option; those that something must follow end with "=".
std::vector<std::string> words_of(const OptionEntry& option) {
    std::vector<std::string> words = option.values();
    for (std::string& word : words)
        if (option.value.find(word + "=") != option.value.npos)
            word += "=";
    return words;
}

bool is_optional(const OptionEntry& option) { return option.value.starts_with('['); }

std::string bash_script(std::span<const CommandPage> pages) {
    const std::vector<Command> commands = commands_of(pages);
    const std::string names = joined(names_of(commands));
    std::string two_words, cases;
    for (const Command& command : commands)
        if (!command.actions.empty()) {
            put(two_words, "{}{}", two_words.empty() ? "" : "|", command.name);
            put(cases, "    {}) words='{}' ;;\n", command.name, joined(command.actions));
        }
    for (const CommandPage& page : pages) {
        auto [words, may_be_file] = arguments_of(page);
        std::string values;
        for (const OptionEntry& option : page.options) {
            std::ranges::copy(option.names, std::back_inserter(words));
            if (!option.names.empty() && !option.value.empty() && !is_optional(option))
                put(values, "        {}) words='{}' files={} ;;\n", joined(option.names, "|"), joined(words_of(option)),
                    option.takes_file() ? "yes" : "");
        }
        put(cases,
            "    '{}')\n      words='{}' files={}\n      case $option in\n{}        *) [[ -z $equals ]] || words= "
            "files=yes ;;\n      esac ;;\n",
            page.command, joined(words), may_be_file ? "yes" : "", values);
    }
    std::string script = R"(# bash completion for drawpoint
_drawpoint() {
  local word=${COMP_WORDS[COMP_CWORD]} at=$((COMP_CWORD - 1)) command=${COMP_WORDS[1]} words= files= equals= inner=
  if [[ $word == = ]]; then   # bash takes "--option=value" for three words
    word= at=$COMP_CWORD
  fi
  if [[ ${COMP_WORDS[at]} == = ]]; then
    equals=yes
    ((at -= 1))
    if [[ ${COMP_WORDS[at]} != -* ]]; then   # "--option FORMAT=PATH", "--option=FORMAT=PATH"
      inner=yes
      ((at -= 1))
      [[ ${COMP_WORDS[at]} != = ]] || ((at -= 1))
    fi
  fi
  local option=${COMP_WORDS[at]}
  ((COMP_CWORD > 1)) || command=
)";
    put(script,
        "  case $command in\n    {}) ((COMP_CWORD < 3)) || command+=\" ${{COMP_WORDS[2]}}\" ;;\n  esac\n"
        "  case $command in\n    '') words='{} help --help --version' ;;\n    help) words='{}' ;;\n{}  esac\n",
        two_words, names, names, cases);
    return script + R"(  if [[ -n $inner ]]; then
    words= files=yes
  elif [[ $words == *= ]]; then
    compopt -o nospace 2>/dev/null
  fi
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
  if [[ -n $files ]]; then
    compopt -o filenames 2>/dev/null
    mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -- "$word")
  fi
}
complete -F _drawpoint drawpoint
)";
}

/// What zsh's _arguments completes a value with.
std::string zsh_action(const std::vector<std::string>& words, bool may_be_file) {
    if (!may_be_file)
        return words.empty() ? " " : fmt::format("({})", joined(words));
    return words.empty() ? "_files" : fmt::format("{{compadd {}; _files}}", joined(words));
}

std::string zsh_text(std::string_view text) {
    std::string out;
    for (const char c : text)
        out += c == '[' || c == ']' || c == ':' || c == '\\' ? std::string{'\\', c} : std::string{c};
    return out;
}

std::string zsh_script(std::span<const CommandPage> pages) {
    std::string list, cases;
    for (const Command& command : commands_of(pages)) {
        put(list, "    {}\n", quoted(fmt::format("{}:{}", command.name, zsh_text(command.what))));
        if (!command.actions.empty())
            put(cases,
                "    {})\n      if ((CURRENT == 2)); then\n        compadd {}\n        return\n      fi\n"
                "      command+=\" $words[2]\"\n      shift words\n      ((CURRENT--)) ;;\n",
                command.name, joined(command.actions));
    }
    std::string arguments;
    for (const CommandPage& page : pages) {
        put(arguments, "    '{}')\n      _arguments", page.command);
        for (const OptionEntry& option : page.options)
            for (const std::string& name : option.names) {
                const std::string value = option.value.empty()
                                              ? ""
                                              : fmt::format(":{}:{}", zsh_text(option.short_value()),
                                                            zsh_action(option.values(), option.takes_file()));
                put(arguments, " \\\n        {}",
                    quoted(fmt::format("*{}{}[{}]{}", name, !value.empty() && name.starts_with("--") ? "=" : "",
                                       zsh_text(option.what), value)));
            }
        if (const Arguments found = arguments_of(page); found.may_be_file || !found.words.empty())
            put(arguments, " \\\n        {}", quoted("*:argument:" + zsh_action(found.words, found.may_be_file)));
        arguments += " ;;\n";
    }
    return fmt::format(R"(#compdef drawpoint
_drawpoint() {{
  local -a commands=(
{}  )
  if ((CURRENT == 2)) || [[ $words[2] == help ]]; then
    _describe command commands
    return
  fi
  shift words
  ((CURRENT--))
  local command=$words[1]
  case $command in
{}  esac
  case $command in
{}  esac
}}
if [[ $funcstack[1] == _drawpoint ]]; then   # found on the path of functions, at its first use
  _drawpoint "$@"
else
  compdef _drawpoint drawpoint
fi
)",
                       list, cases, arguments);
}

std::string fish_text(std::string_view text) {
    std::string out = "'";
    for (const char c : text)
        out += c == '\'' || c == '\\' ? std::string{'\\', c} : std::string{c};
    return out + "'";
}

std::string fish_value(const std::vector<std::string>& words, bool may_be_file) {
    return (may_be_file ? " -F" : "") + (words.empty() ? std::string{} : " -a " + fish_text(joined(words)));
}

std::string fish_script(std::span<const CommandPage> pages) {
    std::string script = "# fish completion for drawpoint\ncomplete -c drawpoint -f\n";
    for (const Command& command : commands_of(pages)) {
        put(script, "complete -c drawpoint -n __fish_use_subcommand -a {} -d {}\n", command.name,
            fish_text(command.what));
        if (!command.actions.empty())
            put(script,
                "complete -c drawpoint -n '__fish_seen_subcommand_from {}; and not __fish_seen_subcommand_from {}' -a "
                "'{}'\n",
                command.name, joined(command.actions), joined(command.actions));
    }
    for (const CommandPage& page : pages) {
        std::string condition = "__fish_seen_subcommand_from " + page.command;
        if (const std::size_t blank = page.command.find(' '); blank != page.command.npos)
            condition = fmt::format("__fish_seen_subcommand_from {}; and __fish_seen_subcommand_from {}",
                                    page.command.substr(0, blank), page.command.substr(blank + 1));
        for (const OptionEntry& option : page.options) {
            if (option.names.empty())
                continue;
            put(script, "complete -c drawpoint -n '{}'", condition);
            for (const std::string& name : option.names)
                put(script, " -{} {}", name.starts_with("--") ? "l" : "s", name.substr(name.find_first_not_of('-')));
            if (!option.value.empty())
                script += (is_optional(option)   ? ""
                           : option.takes_file() ? " -r"
                                                 : " -x") +
                          fish_value(words_of(option), option.takes_file());
            put(script, " -d {}\n", fish_text(option.what));
        }
        if (const Arguments found = arguments_of(page); found.may_be_file || !found.words.empty())
            put(script, "complete -c drawpoint -n '{}'{}\n", condition, fish_value(found.words, found.may_be_file));
    }
    return script;
}

}   // namespace

std::string completion_script(std::string_view shell, std::span<const CommandPage> pages) {
    return shell == "bash" ? bash_script(pages) : shell == "zsh" ? zsh_script(pages) : fish_script(pages);
}

}   // namespace drawpoint::cli
