#pragma once

namespace drawpoint::bench {

/// If this process was started by a `Child` of this program: serves it to the end, and returns the exit code.
[[nodiscard]] bool is_child(int argc, char** argv) noexcept;
[[nodiscard]] int serve(int argc, char** argv);

}   // namespace drawpoint::bench
