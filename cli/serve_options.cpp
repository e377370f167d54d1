#include "cli/serve_options.hpp"

#include "cli/option_values.hpp"
#include "cli/program.hpp"

namespace drawpoint::cli {
namespace {

constexpr std::uint16_t usual_capture_port = 9012, most_port = 65535;

std::uint16_t port_in(std::string_view option, std::string_view text) {
    const auto port = number_in<std::uint16_t>(text);
    if (!port)
        throw UsageError{fmt::format("{} must be a port between 0 (any) and {}, got '{}'", option, most_port, text)};
    return *port;
}

}   // namespace

void ServeOptions::add_to(CLI::App& app) {
    app.add_option("RUN|PID", run, "the recording, or the process that writes one [your newest live one]");
    add_number(app, "--port", port, 0, most_port, "of the pages and metrics; 0: any that is free");
    app.add_option("--listen", listen,
                   "the address to listen on; anything but this machine's own shows the run to others")
        ->type_name("ADDRESS");
    app.add_option_function<std::string>(
           "--capture",
           [this](const std::string& text) {
               capture = text.empty() ? usual_capture_port : port_in("--capture", text);
           },
           "also answers TensorBoard's \"Capture profile\", on this port [9012]")
        ->expected(0, 1)
        ->type_name("[PORT]");
    add_logs(app, logs, "also logs the run while it trains");
    app.add_flag("--no-http", no_http, "only captures and logs: no pages and no metrics");
    app.add_flag("--until-end", until_end, "ends when the run has ended");
    app.add_flag("--until-eof", until_eof, "ends when standard input ends, whatever signals come");
}

void ServeOptions::check_together() const {
    if (listen.empty())
        throw UsageError{"--listen must name an address"};
    if (no_http && !capture && logs.empty())
        throw UsageError{"--no-http needs --capture or --log: nothing else would be served"};
}

void ViewOptions::add_to(CLI::App& app) {
    app.add_option("RUN", run, "the recording: a .pftrace file");
    add_number(app, "--port", port, 0, most_port, "of the page that hands the recording over; 0: any that is free");
    app.add_flag("--no-browser", no_browser, "prints what to do, as where there is no display");
}

void ViewOptions::check_together() const {
    if (run.empty())
        throw UsageError{"RUN is missing: the recording to view"};
}

}   // namespace drawpoint::cli
