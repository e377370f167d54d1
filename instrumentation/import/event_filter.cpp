#include "event_filter.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "chrome_steps.hpp"

namespace drawpoint {
namespace {

constexpr std::string_view blanks = " \n\r\t";

std::size_t position_of(std::string_view text, std::string_view what, std::size_t from) noexcept {
    const auto* const at =
        static_cast<const char*>(memmem(text.data() + from, text.size() - from, what.data(), what.size()));
    return at == nullptr ? std::string_view::npos : static_cast<std::size_t>(at - text.data());
}

bool is_wanted(std::string_view name) noexcept {
    return name == "thread_name" || name == "process_name" || name.starts_with("PyTorch Profiler") ||
           says_of_steps(name);
}

}   // namespace

bool may_say_of_steps(std::string_view event) noexcept {
    // Escapes can hide a name from a search for its bytes.
    if (std::memchr(event.data(), '\\', event.size()) != nullptr)
        return true;
    constexpr std::string_view key = "\"name\"";
    for (std::size_t at = position_of(event, key, 0); at != std::string_view::npos; at = position_of(event, key, at)) {
        at += key.size();
        std::size_t value = std::min(event.find_first_not_of(blanks, at), event.size());
        if (!event.substr(value).starts_with(':'))
            continue;
        value = std::min(event.find_first_not_of(blanks, value + 1), event.size());
        if (!event.substr(value).starts_with('"'))
            continue;
        const std::string_view rest = event.substr(value + 1);
        if (is_wanted(rest.substr(0, rest.find('"'))))
            return true;
    }
    return position_of(event, "\"overhead\"", 0) != std::string_view::npos;
}

}   // namespace drawpoint
