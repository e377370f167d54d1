#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/command_line.hpp"
#include "cli/log_targets.hpp"

namespace drawpoint::cli {

inline constexpr const char* serve_description =
    "Shows a run, also while it trains, to browsers and Prometheus. On this machine alone, unless --listen says more.";
inline constexpr const char* view_description = "Opens a recording in Perfetto, in the browser.";

/// What `serve` was asked to do.
struct ServeOptions {
    std::string run;   ///< RUN|PID, as followed_run takes it
    std::string listen = "127.0.0.1";
    std::uint16_t port = 9464;              ///< 0: any that is free
    std::optional<std::uint16_t> capture;   ///< port of the capture service; 0: any that is free
    std::vector<RunLog> logs;
    bool no_http = false, until_end = false, until_eof = false;

    /// Adds every option to `app`, bound to this, which must stay where it is until `app` has parsed.
    void add_to(CLI::App& app);
    /// After parsing: throws UsageError if options do not go together.
    void check_together() const;
};

/// What `view` was asked to do.
struct ViewOptions {
    std::string run;
    std::uint16_t port = 0;   ///< 0: any that is free
    bool no_browser = false;

    void add_to(CLI::App& app);
    void check_together() const;
};

/// The options of a command line. nullopt: what CommandLine::parse prints instead was printed. Throws UsageError.
template <class Options>
std::optional<Options> read_options(const Invocation& invocation, const char* description) {
    Options options;
    CommandLine line{invocation, description};
    options.add_to(line.app());
    if (!line.parse())
        return std::nullopt;
    options.check_together();
    return options;
}

}   // namespace drawpoint::cli
