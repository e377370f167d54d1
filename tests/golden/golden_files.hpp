#pragma once

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

/// Recorded outputs of the originals: those the project carries, and those of a folder of the same form named by the
/// environment variable DRAWPOINT_GOLDEN_DIR. What is missing or unreadable throws, so that its test fails.
namespace golden {

using Json = nlohmann::ordered_json;
using Path = std::filesystem::path;

/// The folder the project carries.
inline Path own_folder() { return Path{DRAWPOINT_TEST_DIR} / "golden"; }

/// The project's folder first, then DRAWPOINT_GOLDEN_DIR's where it is set.
inline std::vector<Path> folders() {
    std::vector<Path> all{own_folder()};
    if (const char* more = std::getenv("DRAWPOINT_GOLDEN_DIR"); more && *more)
        all.emplace_back(more);
    return all;
}

inline std::string read_text(const Path& path) {
    std::ifstream file{path, std::ios::binary};
    if (!file)
        throw std::runtime_error("cannot read " + path.string());
    return {std::istreambuf_iterator<char>{file}, {}};
}

inline Json read_json(const Path& path) {
    try {
        return Json::parse(read_text(path));
    } catch (const Json::exception& error) {
        throw std::runtime_error(path.string() + ": " + error.what());
    }
}

/// A number that JSON may hold as one of the texts "nan", "inf" and "-inf".
inline double number(const Json& value) {
    if (!value.is_string())
        return value.get<double>();
    const std::string text = value.get<std::string>();
    if (text == "nan")
        return std::numeric_limits<double>::quiet_NaN();
    if (text == "inf" || text == "-inf")
        return text.front() == '-' ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
    throw std::runtime_error("not a number: " + text);
}

/// The JSON files of `group` in one folder, sorted; there is at least one.
inline std::vector<Path> files_in(const Path& folder, std::string_view group) {
    std::vector<Path> found;
    if (std::filesystem::is_directory(folder / group))
        for (const auto& entry : std::filesystem::directory_iterator{folder / group})
            if (entry.path().extension() == ".json")
                found.push_back(entry.path());
    if (found.empty())
        throw std::runtime_error("no golden file in " + (folder / group).string());
    std::ranges::sort(found);
    return found;
}

/// The JSON files of `group` in all folders; each folder has at least one.
inline std::vector<Path> files(std::string_view group) {
    std::vector<Path> all;
    for (const Path& folder : folders())
        std::ranges::copy(files_in(folder, group), std::back_inserter(all));
    return all;
}

/// One recorded run of a profiler: what went in, and what was printed and saved.
struct Case {
    Path path;   ///< of its JSON file
    Json input, output;
    std::optional<std::string> plain, markdown, csv;   ///< absent where the original failed

    [[nodiscard]] std::string id() const { return path.stem().string(); }
    [[nodiscard]] bool failed() const { return output.contains("error"); }
};

inline Case read_case(const Path& path) {
    const Json json = read_json(path);
    Case one{
        .path = path, .input = json.at("input"), .output = json.at("output"), .plain = {}, .markdown = {}, .csv = {}};
    if (!one.failed()) {
        one.plain = read_text(Path{path}.replace_extension(".plain.txt"));
        one.markdown = read_text(Path{path}.replace_extension(".markdown.md"));
        one.csv = read_text(Path{path}.replace_extension(".csv"));
    }
    return one;
}

inline std::vector<Case> cases(const std::vector<Path>& paths) {
    std::vector<Case> all;
    std::ranges::transform(paths, std::back_inserter(all), read_case);
    return all;
}

/// Whether a `g2_fastxtend` input is a plain fit: no extra callbacks with a cost, no exception, no logger and the like.
inline bool is_plain_fit(const Json& input) {
    static constexpr std::array features{"gaps", "throw", "grad_accum", "nan_loss_at", "logger", "lr_finder"};
    return std::ranges::none_of(features, [&](const char* feature) {
        const auto found = input.find(feature);
        if (found == input.end() || found->is_null())
            return false;
        return found->is_boolean() ? found->get<bool>() : found->is_number() || !found->empty();
    });
}

/// The plain fits of `g2_fastxtend` in all folders; each folder has at least one.
inline std::vector<Case> plain_fits() {
    std::vector<Case> all;
    for (const Path& folder : folders()) {
        std::vector<Case> here;
        for (const Path& path : files_in(folder, "g2_fastxtend"))
            if (is_plain_fit(read_json(path).at("input")))
                here.push_back(read_case(path));
        if (here.empty())
            throw std::runtime_error("no plain fit in " + (folder / "g2_fastxtend").string());
        std::ranges::move(here, std::back_inserter(all));
    }
    return all;
}

}   // namespace golden
