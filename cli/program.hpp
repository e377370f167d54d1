#pragma once

#include <array>
#include <cstdio>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace drawpoint::cli {

/// Exit codes of the program.
enum ExitCode : int { exit_ok = 0, exit_failed = 1, exit_usage = 2, exit_slower = 3, exit_interrupted = 130 };

/// Bad usage: what() names the option, value or command. Ends the program with exit code 2.
struct UsageError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// Any other failure: what() is one line that names the path or value. Ends the program with exit code 1.
struct Failure : std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct CommandPage;

/// One command's arguments, without the program's and the command's own names.
struct Invocation {
    std::string command;   ///< "profile" or "dataset crops"
    std::string line;      ///< the whole command line, for the record
    std::vector<std::string> arguments;
    std::vector<std::string> commands = {};   ///< all of the program's: sections that a --config file may have
    CommandPage* page = nullptr;              ///< if set, the command does nothing but say what it takes
};

int profile(const Invocation&);
int report(const Invocation&);
int export_run(const Invocation&);   // `export` is a word of the language
int diagnose_run(const Invocation&);
int whatif_run(const Invocation&);
int doctor(const Invocation&);
int dataset(const Invocation&);
inline constexpr std::array<std::string_view, 4> dataset_actions{"crops", "generate", "info", "pack"};
int bench(const Invocation&);
int compare(const Invocation&);
int bench_commands(const Invocation&);   // bench --command
int gate_run(const Invocation&);
int tune_loader(const Invocation&);
int top(const Invocation&);
int serve(const Invocation&);
int view(const Invocation&);

/// Writes and flushes. Errors are ignored: a closed pipe or a full disk must not end a run.
void write_to(std::FILE*, std::string_view text) noexcept;

/// Columns of a line on stdout: the terminal's, or what COLUMNS says, at least 40. nullopt: neither is known.
[[nodiscard]] std::optional<std::size_t> width_of_stdout() noexcept;
inline constexpr std::size_t usual_width = 80;

/// Prints "drawpoint: TEXT" on stderr, with control characters escaped: one line, broken where a terminal ends.
void complain(std::string_view text);

/// " (did you mean X?)" if one of the candidates is close to `word`, else "".
[[nodiscard]] std::string did_you_mean(std::string_view word, std::span<const std::string> candidates);

}   // namespace drawpoint::cli
