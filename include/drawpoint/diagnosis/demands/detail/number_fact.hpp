#pragma once

#include <charconv>
#include <optional>
#include <string_view>

#include <drawpoint/instrumentation/ledger/ledger.hpp>

namespace drawpoint {

/// The number that the fact `key` holds, if it is above 0 and at most `most`.
[[nodiscard]] inline std::optional<double> number_fact(const Ledger& ledger, std::string_view key, double most) {
    const auto text = ledger.fact(key);
    double number = 0;
    if (!text || std::from_chars(text->data(), text->data() + text->size(), number).ec != std::errc{} ||
        !(number > 0 && number <= most))
        return std::nullopt;
    return number;
}

}   // namespace drawpoint
