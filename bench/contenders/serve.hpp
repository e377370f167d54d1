#pragma once

namespace drawpoint::bench {

/// Whether a `Child` started this process. If so, serve() runs the contender to its end and returns the exit code.
[[nodiscard]] bool is_child(int argc, char** argv) noexcept;
[[nodiscard]] int serve(int argc, char** argv);

}   // namespace drawpoint::bench
