#include "chrome_head.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <drawpoint/instrumentation/export/chrome.hpp>
#include <drawpoint/instrumentation/facts.hpp>
#include "instrumentation/export/json_text.hpp"
#include <drawpoint/instrumentation/detail/wrapping.hpp>

namespace drawpoint {
namespace {

constexpr std::array<std::string_view, 9> own_keys{"schemaVersion",       "deviceProperties", "displayTimeUnit",
                                                   "baseTimeNanoseconds", "stackFrames",      "traceEvents",
                                                   "traceName",           "drawpoint",        "drawpoint_left_out"};

std::string metadata(std::string_view name, std::string_view value) {
    if (!is_json(value))
        return json_string(value);
    // Readers search for the rank on a separate line, with a space before the number.
    return name == "distributedInfo" ? nlohmann::ordered_json::parse(value).dump(4) : std::string{value};
}

void distributed_info(const Ledger& ledger, TextStream& out) {
    const auto rank = ledger.fact(facts::rank);
    if (!rank || !is_json(*rank))
        return;
    out.put("  \"distributedInfo\": {\n");
    if (const auto backend = ledger.fact(facts::backend))
        out.print("    \"backend\": {},\n", json_string(*backend));
    if (const auto size = ledger.fact(facts::world_size); size && is_json(*size))
        out.print("    \"world_size\": {},\n", *size);
    out.print("    \"rank\": {}\n  }},\n", *rank);
}

std::int64_t base_ns(const Ledger& ledger) {
    const auto offset = ledger.fact(facts::unix_offset_ns);
    std::int64_t ns = 0;
    if (offset && std::from_chars(offset->data(), offset->data() + offset->size(), ns).ec != std::errc{})
        ns = 0;
    return wrapping_sum(ledger.start_ns, ns);
}

/// Writes each stack once, in Chrome's form: an event refers to its innermost frame, a frame to its parent.
void stack_frames(const Ledger& ledger, TextStream& out) {
    std::vector<bool> named(ledger.stacks.size());   // whether an operator uses it, directly or as a caller
    for (const OperatorRow& row : ledger.operators)
        for (std::uint32_t at = row.stack; at < named.size() && !named[at]; at = ledger.stacks[at].parent)
            named[at] = true;
    if (std::ranges::find(named, true) == named.end())
        return;
    const auto name = [&](std::uint32_t position) {
        return position < ledger.names.size() ? std::string_view{ledger.names[position]} : std::string_view{};
    };
    out.put("  \"stackFrames\": {");
    bool first = true;
    for (std::size_t i = 0; i < named.size(); ++i) {
        if (!named[i])
            continue;
        const StackRow& stack = ledger.stacks[i];
        std::string text;
        if (stack.frame < ledger.frames.size()) {
            const FrameRow& frame = ledger.frames[stack.frame];
            text = frame.file == nothing
                       ? std::string{name(frame.function)}
                       : fmt::format("{}({}): {}", name(frame.file), frame.line, name(frame.function));
        }
        out.print(R"({}"{}": {{"category": "", "name": {})", std::exchange(first, false) ? "\n    " : ",\n    ", i,
                  json_string(text));
        if (stack.parent != nothing)
            out.print(R"(, "parent": "{}")", stack.parent);
        out.put("}");
    }
    out.put("\n  },\n");
}

}   // namespace

void write_chrome_head(const Ledger& ledger, TextStream& out) {
    out.put("{\n  \"schemaVersion\": 1,\n  \"deviceProperties\": [],\n");
    bool distributed = false;
    std::string own;
    for (const auto& [key, value] : ledger.facts)
        if (key.starts_with(facts::metadata_prefix)) {
            std::string name = key.substr(facts::metadata_prefix.size());
            distributed = distributed || name == "distributedInfo";
            const std::string text = metadata(name, value);
            if (std::find(own_keys.begin(), own_keys.end(), name) != own_keys.end())
                name = "user." + name;
            out.print("  {}: {},\n", json_string(name), text);
        } else {
            own += fmt::format("{}\n    {}: {}", own.empty() ? "" : ",", json_string(key), json_string(value));
        }
    if (!distributed)
        distributed_info(ledger, out);
    out.print("  \"drawpoint\": {{{}\n  }},\n", own);
    out.print("  \"displayTimeUnit\": \"ms\",\n  \"baseTimeNanoseconds\": {},\n", base_ns(ledger));
    stack_frames(ledger, out);
    out.put("  \"traceEvents\": [");
}

}   // namespace drawpoint
