#include "instrumentation/export/json_text.hpp"

#include <nlohmann/json.hpp>

#include <drawpoint/instrumentation/export/chrome.hpp>

namespace drawpoint {

std::string json_string(std::string_view text) {
    return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

bool is_json(std::string_view text) { return nlohmann::json::accept(text); }

std::string_view JsonTexts::string(std::uint32_t position) {
    if (position >= strings_.size())
        return "\"\"";
    if (strings_[position].empty())
        strings_[position] = json_string((*texts_)[position]);
    return strings_[position];
}

std::string_view JsonTexts::array(std::uint32_t position) {
    if (position >= strings_.size())
        return "[]";
    arrays_.resize(strings_.size());
    std::string& array = arrays_[position];
    if (array.empty()) {
        const std::string& text = (*texts_)[position];
        array = text.starts_with('[') && is_json(text) ? text : json_string(text);
    }
    return array;
}

}   // namespace drawpoint
