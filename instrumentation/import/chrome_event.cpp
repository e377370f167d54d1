#include "chrome_event.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

#include <simdjson.h>

#include "json_pieces.hpp"

namespace drawpoint {
namespace {

namespace ondemand = simdjson::ondemand;
static_assert(JsonPieces::padding >= simdjson::SIMDJSON_PADDING);

bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

std::string_view trimmed(std::string_view text) noexcept {
    const auto from = text.find_first_not_of(" \n\r\t");
    return from == std::string_view::npos ? std::string_view{}
                                          : text.substr(from, text.find_last_not_of(" \n\r\t") - from + 1);
}

std::string_view unquoted(std::string_view token) noexcept {
    return token.size() >= 2 && token.front() == '"' ? token.substr(1, token.size() - 2) : token;
}

/// An integer written as a number or as a text; `otherwise` if it is neither.
template <class T>
T whole(std::string_view token, T otherwise) noexcept {
    const std::string_view digits = unquoted(token);
    T value{};
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return error == std::errc{} && end == digits.data() + digits.size() ? value : otherwise;
}

void read_args(ondemand::object args, ChromeEvent& event) {
    for (auto field : args) {
        const std::string_view key = field.unescaped_key();
        ondemand::value value = field.value();
        const auto token = [&] { return trimmed(value.raw_json_token()); };
        if (key == "Input Dims" && value.type() == ondemand::json_type::array) {
            ondemand::array dims = value.get_array();
            event.input_dims = dims.raw_json();
        } else if (key == "name" && value.type() == ondemand::json_type::string)
            event.label = value.get_string();
        else if (key == "Sequence number")
            event.sequence = whole<std::int64_t>(token(), -1);
        else if (key == "Fwd thread id")
            event.forward_thread = whole<std::uint64_t>(token(), 0);
        else if (key == "flops")
            event.flops = whole<std::uint64_t>(token(), 0);
        else if (key == "Ev Idx")
            event.has_index = true;
        else if (key == "ended")
            event.ended = token() != "false";
        else if (key == "correlation")
            event.correlation = whole<std::uint64_t>(token(), 0);
        else if (key == "device")
            event.device = whole<std::int64_t>(token(), 0);
        else if (key == "stream")
            event.stream = whole<std::int64_t>(token(), 0);
        else if (key == "Device Type")
            event.device_type = whole<std::int64_t>(token(), 0);
        else if (key == "Device Id")
            event.device_id = whole<std::int64_t>(token(), -1);
        else if (key == "Addr")
            event.address = whole<std::uint64_t>(token(), 0);
        else if (key == "Bytes")
            event.bytes = whole<std::int64_t>(token(), 0);
        else if (key == "Total Allocated")
            event.total_allocated = whole<std::int64_t>(token(), 0);
    }
}

}   // namespace

struct ChromeEventParser::Impl {
    ondemand::parser parser;
    simdjson::dom::parser checker;
};

ChromeEventParser::ChromeEventParser() : impl_{std::make_unique<Impl>()} {}
ChromeEventParser::~ChromeEventParser() = default;

std::optional<std::string> ChromeEventParser::parse(std::string_view text, ChromeEvent& event) {
    event = {};
    try {
        ondemand::document document =
            impl_->parser.iterate(text.data(), text.size(), text.size() + JsonPieces::padding);
        for (auto field : document.get_object()) {
            const std::string_view key = field.unescaped_key();
            ondemand::value value = field.value();
            if (key == "ph") {
                const std::string_view phase = value.get_string();
                event.phase = phase.empty() ? '\0' : phase.front();
            } else if (key == "name") {
                event.name = value.get_string();
            } else if (key == "cat") {
                event.category = value.get_string();
            } else if (key == "pid") {
                event.pid = trimmed(value.raw_json_token());
            } else if (key == "tid") {
                event.tid = trimmed(value.raw_json_token());
            } else if (key == "ts") {
                event.ts_ns = nanoseconds_of(unquoted(trimmed(value.raw_json_token())));
            } else if (key == "dur") {
                event.dur_ns = nanoseconds_of(unquoted(trimmed(value.raw_json_token())));
            } else if (key == "sf") {
                event.stack_frame = unquoted(trimmed(value.raw_json_token()));
            } else if (key == "args" && value.type() == ondemand::json_type::object) {
                read_args(value.get_object(), event);
            }
        }
    } catch (const simdjson::simdjson_error& error) {
        return error.what();
    }
    return std::nullopt;
}

std::optional<std::string> ChromeEventParser::member(std::string_view object, std::string_view key) {
    simdjson::dom::element value;
    if (impl_->checker.parse(object.data(), object.size()).at_key(key).get(value) != simdjson::SUCCESS)
        return std::nullopt;
    std::string_view text;
    return value.get(text) == simdjson::SUCCESS ? std::string{text} : std::string{simdjson::minify(value)};
}

void ChromeEventParser::frames(std::string_view object, const std::function<void(const ChromeFrame&)>& take) {
    simdjson::dom::object rows;
    if (impl_->checker.parse(object.data(), object.size()).get(rows) != simdjson::SUCCESS)
        return;
    for (const auto [id, row] : rows) {
        ChromeFrame frame{.id = id, .name = {}, .parent = {}};
        if (row.at_key("name").get(frame.name) != simdjson::SUCCESS)
            continue;
        std::string number;
        if (simdjson::dom::element parent;
            row.at_key("parent").get(parent) == simdjson::SUCCESS && parent.get(frame.parent) != simdjson::SUCCESS) {
            number = simdjson::minify(parent);
            frame.parent = number;
        }
        take(frame);
    }
}

bool ChromeEventParser::is_valid(std::string_view text) {
    return impl_->checker.parse(text.data(), text.size()).error() == simdjson::SUCCESS;
}

std::optional<std::int64_t> nanoseconds_of(std::string_view text) noexcept {
    if (text.find_first_of("eE") != std::string_view::npos) {
        double us = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), us);
        if (error != std::errc{} || end != text.data() + text.size() || !(std::abs(us) < 9.2e15))
            return std::nullopt;
        return std::llround(us * 1e3);
    }
    const bool negative = text.starts_with('-');
    text.remove_prefix(negative ? 1 : 0);
    const std::size_t point = std::min(text.find('.'), text.size());
    std::string_view decimals = text.substr(std::min(point + 1, text.size()));
    const std::string_view integer = text.substr(0, point);
    constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max() / 1000 - 1;
    std::int64_t ns = 0;
    if (integer.empty())
        return std::nullopt;
    for (const char c : integer) {
        if (!is_digit(c) || ns > most / 10 - 1)
            return std::nullopt;
        ns = ns * 10 + (c - '0');
    }
    int places = 0;
    std::int64_t round = 0;
    for (const char c : decimals) {
        if (!is_digit(c))
            return std::nullopt;
        if (places < 3)
            ns = ns * 10 + (c - '0');
        else if (places == 3)
            round = c >= '5' ? 1 : 0;
        ++places;
    }
    for (; places < 3; ++places)
        ns *= 10;
    return negative ? -(ns + round) : ns + round;
}

std::string python_list(std::string_view json) {
    std::string text;
    text.reserve(json.size() + json.size() / 4);
    for (const char c : json)
        if (c != ' ' && c != '\n' && c != '\r' && c != '\t') {
            text += c;
            if (c == ',')
                text += ' ';
        }
    return text;
}

std::optional<OperatorKind> kind_of(std::string_view category) noexcept {
    using enum OperatorKind;
    static constexpr std::array<std::pair<std::string_view, OperatorKind>, 10> kinds{
        {{"cpu_op", cpu_op},
         {"operator", cpu_op},
         {"Operator", cpu_op},
         {"user_annotation", user_annotation},
         {"gpu_user_annotation", user_annotation},
         {"python_function", python_function},
         {"kernel", kernel},
         {"concurrent_kernel", kernel},
         {"gpu_memcpy", memcpy},
         {"gpu_memset", memset}}};
    for (const auto& [name, kind] : kinds)
        if (name == category)
            return kind;
    if (category == "Trace")
        return std::nullopt;
    return category.ends_with("_runtime") || category.ends_with("_driver") ? runtime : other;
}

}   // namespace drawpoint
