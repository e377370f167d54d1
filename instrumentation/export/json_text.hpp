#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace drawpoint {

/// The texts of one column as JSON, each converted at its first use.
class JsonTexts {
public:
    explicit JsonTexts(const std::vector<std::string>& texts) : texts_{&texts}, strings_(texts.size()) {}

    /// The text as a JSON string; `""` if there is no such text.
    [[nodiscard]] std::string_view string(std::uint32_t position);
    /// The text itself if it is a JSON array, else as a JSON string.
    [[nodiscard]] std::string_view array(std::uint32_t position);

private:
    const std::vector<std::string>* texts_;
    std::vector<std::string> strings_, arrays_;
};

[[nodiscard]] bool is_json(std::string_view text);

}   // namespace drawpoint
