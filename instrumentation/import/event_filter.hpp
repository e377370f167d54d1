#pragma once

#include <string_view>

namespace drawpoint {

/// Whether the JSON object of an event may be one that `import_chrome_trace` keeps without the operators: false only
/// where it surely is none. Looks at bytes, whatever the order of keys and the white space; several times faster than
/// parsing.
[[nodiscard]] bool may_say_of_steps(std::string_view event) noexcept;

}   // namespace drawpoint
