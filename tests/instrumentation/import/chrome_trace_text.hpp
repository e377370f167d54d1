#pragma once

// Builds the text of Chrome traces for tests.

#include <exception>
#include <sstream>
#include <string>
#include <string_view>

#include <boost/test/unit_test.hpp>

#include <drawpoint/instrumentation/import/chrome_trace.hpp>

namespace drawpoint::test {

inline ImportedTrace import(const std::string& text, const ImportOptions& options = {}) {
    std::istringstream from{text};
    return import_chrome_trace(from, "t.json", options);
}

inline std::string trace(const std::string& events, const std::string& members = {}) {
    return R"({"schemaVersion": 1, )" + members + R"("baseTimeNanoseconds": 1000000000000, "traceEvents": [)" + events +
           R"(], "traceName": "t.json"})";
}

/// A complete event; times in whole microseconds.
inline std::string complete(const std::string& category, const std::string& name, int ts, int dur,
                            const std::string& args = {}, int tid = 7) {
    return R"({"ph": "X", "cat": ")" + category + R"(", "name": ")" + name + R"(", "pid": 5, "tid": )" +
           std::to_string(tid) + R"(, "ts": )" + std::to_string(ts) + R"(, "dur": )" + std::to_string(dur) +
           R"(, "args": {)" + args + "}},";
}

inline std::string without_last_comma(std::string text) {
    text.pop_back();
    return text;
}

inline auto says(std::string_view words) {
    return [words](const std::exception& error) {
        BOOST_TEST_MESSAGE(error.what());
        return std::string_view{error.what()}.find(words) != std::string_view::npos;
    };
}

}   // namespace drawpoint::test
