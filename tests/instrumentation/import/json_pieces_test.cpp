#include "instrumentation/import/json_pieces.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace drawpoint;

namespace {

struct Cut {
    std::vector<std::pair<std::string, std::string>> pieces;   // key, text
    bool truncated = false;
    std::size_t buffer_bytes = 0;
};

Cut cut(std::string_view text, std::size_t block = 64, std::size_t most = 1 << 20) {
    std::string_view left = text;
    JsonPieces pieces{[&](char* to, std::size_t size) {
                          const std::size_t count = std::min(size, left.size());
                          std::memcpy(to, left.data(), count);
                          left.remove_prefix(count);
                          return count;
                      },
                      "t.json", block, most};
    Cut found;
    while (const auto piece = pieces.next()) {
        BOOST_TEST(text.substr(piece->offset, piece->text.size()) == piece->text);
        found.pieces.emplace_back(piece->key, piece->text);
    }
    found.truncated = pieces.truncated();
    found.buffer_bytes = pieces.buffer_bytes();
    return found;
}

using Pieces = std::vector<std::pair<std::string, std::string>>;

}   // namespace

BOOST_AUTO_TEST_SUITE(json_pieces)

BOOST_AUTO_TEST_CASE(members_and_events_are_cut_at_their_ends) {
    const Cut found = cut(R"( {"a": 1, "b" : "x\"]}" ,"c":[{"d":[]}], "e": {"f":"}"},
        "traceEvents": [ {"n":"{"} , {"n":["]"]} ], "g": true })");
    BOOST_TEST((found.pieces == Pieces{{"a", "1"},
                                       {"b", R"("x\"]}")"},
                                       {"c", R"([{"d":[]}])"},
                                       {"e", R"({"f":"}"})"},
                                       {"", R"({"n":"{"})"},
                                       {"", R"({"n":["]"]})"},
                                       {"g", "true"}}));
    BOOST_TEST(!found.truncated);
}

BOOST_AUTO_TEST_CASE(where_a_block_ends_makes_no_difference) {
    std::string text = R"({"m": "a\\\"b", "traceEvents": [)";
    for (int i = 0; i < 40; ++i)
        text += std::string(i == 0 ? "" : ",") + R"({"name": ")" + std::string(static_cast<std::size_t>(i), '\\') +
                std::string(static_cast<std::size_t>(i), '\\') + R"(\"]}", "args": {"x": [[1, 2], "\\"]}})";
    text += "]}";
    const Pieces expected = cut(text, 1 << 20).pieces;
    BOOST_TEST_REQUIRE(expected.size() == 41u);
    for (std::size_t block = 64; block < 200; ++block)
        BOOST_TEST((cut(text, block).pieces == expected));
}

BOOST_AUTO_TEST_CASE(random_events_are_cut_where_a_walk_byte_by_byte_ends_them) {
    std::mt19937 random{3};
    constexpr std::array<std::string_view, 12> words{"{", "}", "[",    "]",    "\"",      "\\",
                                                     ",", ":", "\\\"", "\\\\", "abcdefg", "0123456789"};
    for (int round = 0; round < 200; ++round) {
        // Brackets in strings, and strings in brackets: the text is balanced by construction.
        Pieces expected;
        std::string text = "[";
        for (int n = 0; n < 8; ++n) {
            std::string event = "{";
            std::string open = "}";
            for (int i = static_cast<int>(random() % 60); i > 0; --i) {
                if (random() % 3 == 0) {
                    event += random() % 2 == 0 ? "[" : "{";
                    open += event.back() == '[' ? ']' : '}';
                } else if (random() % 3 == 0 && open.size() > 1) {
                    event += open.back();
                    open.pop_back();
                } else {
                    event += '"';
                    for (auto left = random() % 9; left > 0; --left) {
                        const std::string_view word = words[random() % words.size()];
                        event += word == "\"" || word == "\\" ? "\\" + std::string{word} : std::string{word};
                    }
                    event += '"';
                }
            }
            while (!open.empty()) {
                event += open.back();
                open.pop_back();
            }
            text += (n > 0 ? "," : "") + event;
            expected.emplace_back("", event);
        }
        text += "]";
        BOOST_TEST((cut(text, 64 + random() % 100).pieces == expected));
    }
}

BOOST_AUTO_TEST_CASE(a_text_cut_anywhere_gives_its_whole_pieces_and_says_so) {
    const std::string text = R"({"a": [1, 2], "traceEvents": [{"b": "c"}, {"d": [{}]}], "e": 1})";
    const Pieces all = cut(text).pieces;
    for (std::size_t length = 1; length < text.size(); ++length) {
        const Cut found = cut(std::string_view{text}.substr(0, length));
        BOOST_TEST(found.truncated);
        BOOST_TEST_REQUIRE(found.pieces.size() <= all.size());
        BOOST_TEST(std::equal(found.pieces.begin(), found.pieces.end(), all.begin()));
    }
}

BOOST_AUTO_TEST_CASE(a_list_alone_may_stay_open_but_not_inside_an_event) {
    BOOST_TEST(!cut(R"([{"a":1},{"b":2}])").truncated);
    BOOST_TEST(!cut(R"([{"a":1},{"b":2},)").truncated);
    const Cut inside = cut(R"([{"a":1},{"b":)");
    BOOST_TEST(inside.truncated);
    BOOST_TEST((inside.pieces == Pieces{{"", R"({"a":1})"}}));
}

BOOST_AUTO_TEST_CASE(what_is_no_trace_is_refused_naming_the_byte) {
    const auto refused = [](std::string_view text, std::string_view words) {
        BOOST_CHECK_EXCEPTION(cut(text), std::runtime_error, [&](const std::exception& error) {
            BOOST_TEST_MESSAGE(error.what());
            return std::string_view{error.what()}.find(words) != std::string_view::npos;
        });
    };
    refused("", "t.json: byte 0: not a Chrome trace");
    refused("hello", "t.json: byte 0: not a Chrome trace");
    refused("  7", "byte 2: not a Chrome trace");
    refused(R"({a: 1})", "byte 1: expected a key");
    refused(R"({"a" 1})", "byte 5: expected ':'");
    refused(R"({"a":})", "byte 5: expected a value");
    refused(R"({"a":,"b":1})", "byte 5: expected a value");
    refused(R"({"a":1 "b":1})", "byte 7: expected a key");
    refused(R"({"traceEvents":[1]})", "byte 16: expected an event");
    refused(R"({"traceEvents":[{}{}]})", "byte 18: expected ','");
    refused(R"({"traceEvents":[]}})", "byte 18: text after the end");
    refused(R"({"traceEvents":[],"traceEvents":[]})", "byte 32: a second traceEvents");
}

BOOST_AUTO_TEST_CASE(the_buffer_holds_two_blocks_and_twice_the_longest_piece) {
    const std::string event = R"({"a": ")" + std::string(100, 'x') + R"("})";
    std::string text = "[" + event;
    for (int i = 0; i < 5000; ++i)
        text += "," + event;
    BOOST_TEST(cut(text, 1024).buffer_bytes <= 2 * 1024 + 2 * JsonPieces::padding + event.size());
    const std::string longer = R"({"a": ")" + std::string(50'000, 'x') + R"("})";
    BOOST_TEST(cut("[" + event + "," + longer + "]", 1024).buffer_bytes <= 2 * 1024 + 2 * longer.size());
    BOOST_CHECK_EXCEPTION(
        cut("[" + event + "," + longer + "]", 1024, 10'000), std::runtime_error, [](const std::exception& error) {
            return std::string_view{error.what()}.find("longer than 10000 bytes") != std::string_view::npos;
        });
}

BOOST_AUTO_TEST_SUITE_END()
