#pragma once

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

/// Recorded outputs of the originals: those of the project, and those in a folder of the same layout named by the
/// environment variable DRAWPOINT_GOLDEN_DIR, which may be incomplete. A file that is unreadable or unknown fails its
/// test by name.
namespace golden {

using Json = nlohmann::ordered_json;
using Path = std::filesystem::path;

/// The project's own folder.
inline Path own_folder() { return Path{DRAWPOINT_TEST_DIR} / "golden"; }

/// The project's folder, then DRAWPOINT_GOLDEN_DIR's if it is set.
inline std::vector<Path> folders() {
    std::vector<Path> all{own_folder()};
    if (const char* more = std::getenv("DRAWPOINT_GOLDEN_DIR"); more && *more) {
        if (!std::filesystem::is_directory(more))
            throw std::runtime_error(std::string{"DRAWPOINT_GOLDEN_DIR="} + more + " is no folder");
        all.emplace_back(more);
    }
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

/// Reads a number, which JSON may hold as one of the texts "nan", "inf" and "-inf".
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

/// The groups; each has a folder of that name.
inline constexpr std::array<std::string_view, 9> groups{"g1_scale_time",
                                                        "g2_fastxtend",
                                                        "g2_fastxtend_direct",
                                                        "g2_fastxtend_seed000_v0.1",
                                                        "g2_fastxtend_seed001_v0.0.19",
                                                        "g3_events",
                                                        "g4_lightning",
                                                        "g5_torch_schedule",
                                                        "g6_kineto"};

/// The files of `group` in one folder, sorted; none if the folder lacks the group.
inline std::vector<Path> files_in(const Path& folder, std::string_view group) {
    std::vector<Path> found;
    if (std::filesystem::is_directory(folder / group))
        for (const auto& entry : std::filesystem::directory_iterator{folder / group})
            found.push_back(entry.path());
    std::ranges::sort(found);
    return found;
}

/// The files of `group` in all folders whose names satisfy `is_wanted`; at least one.
template <class Predicate>
std::vector<Path> files(std::string_view group, Predicate is_wanted) {
    std::vector<Path> all;
    for (const Path& folder : folders())
        for (const Path& path : files_in(folder, group))
            if (is_wanted(path.filename().string()))
                all.push_back(path);
    if (all.empty())
        throw std::runtime_error("no golden file of " + std::string{group});
    return all;
}

struct Document {
    Path path;
    Json json;
};

/// The kind of a JSON file of `group`, from its content, since it may have any name. Empty: no test reads it.
inline std::string_view kind_of(std::string_view group, const Json& json) {
    const auto has = [&](const char* key) { return json.contains(key); };
    const auto first = [&](const char* list) {
        return has(list) && json.at(list).is_array() && !json.at(list).empty() ? json.at(list).front() : Json{};
    };
    const Json one = first("cases"), row = first("rows");
    if (!json.is_object())
        return "";
    if (group == "g1_scale_time")
        return one.contains("in") ? "durations" : "";
    if (group.starts_with("g2_"))
        return has("input") && has("output") ? "fit" : "";
    if (group == "g3_events") {
        if (has("fit_cases") || has("by_hand_cases") || has("unknown_event_call"))
            return "gating";
        if (has("callbacks_in_add_order"))
            return "callbacks";
        if (has("run"))
            return "run";
        if (one.is_object())
            return one.contains("exception") ? "exceptions" : one.contains("case") ? "loaders" : "";
        return std::ranges::all_of(json, [](const Json& order) { return order.is_number(); }) ? "orders" : "";
    }
    if (group == "g4_lightning")
        return one.contains("input")                                                      ? "scripts"
               : one.contains("describe_calls")                                           ? "reports"
               : one.contains("first_occurrence_stamps")                                  ? "counts"
               : one.contains("extension")                                                ? "names"
               : one.contains("line_count_restriction") || one.contains("masked_summary") ? "advanced"
                                                                                          : "";
    if (group == "g5_torch_schedule")
        return row.is_array() && row.size() == 7   ? "schedules"
               : row.is_array() && row.size() == 3 ? "transitions"
               : one.contains("calls")             ? "calls"
               : one.contains("id")                ? "texts"
                                                   : "";
    return "";
}

/// The JSON files of `group` in all folders that hold `kind`; may be empty. A file that cannot be read, or that no test
/// reads, is reported once as an error of the running test.
inline std::vector<Document> documents_if_any(std::string_view group, std::string_view kind) {
    static std::set<Path> named;
    std::vector<Document> all;
    for (const Path& path : files(group, [](const std::string& name) { return name.ends_with(".json"); })) {
        try {
            Json json = read_json(path);
            const std::string_view found = kind_of(group, json);
            if (found == kind)
                all.push_back({path, std::move(json)});
            else if (found.empty())
                throw std::runtime_error(path.string() + ": no test reads this, its content is of no kind known in " +
                                         std::string{group});
        } catch (const std::exception& error) {
            if (named.insert(path).second)
                BOOST_ERROR(error.what());
        }
    }
    return all;
}

/// The same, but at least one.
inline std::vector<Document> documents(std::string_view group, std::string_view kind) {
    std::vector<Document> all = documents_if_any(group, kind);
    if (all.empty())
        throw std::runtime_error("no golden file of " + std::string{group} + " holds " + std::string{kind});
    return all;
}

/// Throws if an input has a key that its test does not read.
inline void check_keys(const Json& input, std::initializer_list<std::string_view> known) {
    for (const auto& [key, value] : input.items())
        if (std::ranges::find(known, key) == known.end())
            throw std::runtime_error("unknown key " + key);
}

inline Path beside(const Path& path, const std::string& extension) { return Path{path}.replace_extension(extension); }

/// The text stored with a case, if there is one.
inline std::optional<std::string> companion(const Path& path) {
    return std::filesystem::exists(path) ? std::optional{read_text(path)} : std::nullopt;
}

/// The recorded traces in all folders; at least one.
inline std::vector<Path> traces() {
    return files("g6_kineto", [](const std::string& name) {
        return (name.ends_with(".json") || name.ends_with(".json.gz")) && !name.ends_with(".key_averages.json") &&
               !name.ends_with(".loop_truth.json");
    });
}

/// The path of a trace without ".json" or ".json.gz"; names of its companions begin with it.
inline Path trace_stem(const Path& path) {
    const std::string name = path.string();
    return name.substr(0, name.size() - (name.ends_with(".gz") ? 8 : 5));
}

/// One recorded run of a profiler: its input, and what it printed and saved.
struct Case {
    Path path;   ///< the JSON file
    Json input, output;
    std::optional<std::string> plain, markdown, csv;   ///< those that exist

    [[nodiscard]] bool failed() const { return output.contains("error"); }
    /// The names of the printed texts that are missing although the original showed and saved them.
    [[nodiscard]] std::vector<std::string> missing() const {
        std::vector<std::string> all;
        if (!failed() && !input.value("lr_finder", false))
            for (const auto& [text, extension] :
                 {std::pair{&plain, ".plain.txt"}, {&markdown, ".markdown.md"}, {&csv, ".csv"}})
                if (!*text)
                    all.push_back(beside(path, extension).filename().string());
        return all;
    }
};

/// The recorded runs of `group` in all folders; at least one.
inline std::vector<Case> cases(std::string_view group) {
    std::vector<Case> all;
    for (const auto& [path, json] : documents(group, "fit"))
        all.push_back({.path = path,
                       .input = json.at("input"),
                       .output = json.at("output"),
                       .plain = companion(beside(path, ".plain.txt")),
                       .markdown = companion(beside(path, ".markdown.md")),
                       .csv = companion(beside(path, ".csv"))});
    return all;
}

/// A case of the project's own folder, for a test about this very case.
inline Case own_case(const char* group, const char* name) {
    const Path path = own_folder() / group / (std::string{name} + ".json");
    const Json json = read_json(path);
    return {
        .path = path, .input = json.at("input"), .output = json.at("output"), .plain = {}, .markdown = {}, .csv = {}};
}

/// Whether a `g2_fastxtend` input is a plain fit, without callbacks that take time, exceptions, a logger and the like.
inline bool is_plain_fit(const Json& input) {
    static constexpr std::array features{"gaps", "throw", "grad_accum", "nan_loss_at", "logger", "lr_finder"};
    return std::ranges::none_of(features, [&](const char* feature) {
        const auto found = input.find(feature);
        if (found == input.end() || found->is_null())
            return false;
        return found->is_boolean() ? found->get<bool>() : found->is_number() || !found->empty();
    });
}

}   // namespace golden
