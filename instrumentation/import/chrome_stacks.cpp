#include "chrome_stacks.hpp"

#include <charconv>
#include <system_error>

namespace drawpoint {
namespace {

/// The parts of "torch/nn/modules/linear.py(130): forward"; a text of another form is a function without a file.
struct FrameText {
    std::string_view function, file;
    std::uint32_t line = 0;

    explicit FrameText(std::string_view text) : function{text} {
        const std::size_t close = text.find("): "), open = text.substr(0, close).rfind('(');
        if (close == std::string_view::npos || open == std::string_view::npos || open == 0)
            return;
        std::uint32_t number = 0;
        const auto [end, error] = std::from_chars(text.data() + open + 1, text.data() + close, number);
        if (error == std::errc{} && end == text.data() + close) {
            function = text.substr(close + 3);
            file = text.substr(0, open);
            line = number;
        }
    }
};

}   // namespace

std::uint32_t ChromeStacks::number_of(std::string_view sf) {
    const auto [at, is_new] = numbers_.try_emplace(std::string{sf}, static_cast<std::uint32_t>(traced_.size()));
    if (is_new)
        traced_.emplace_back();
    has_numbers_ = true;
    return at->second;
}

void ChromeStacks::add_frame(const ChromeFrame& row) {
    const bool had_numbers = has_numbers_;
    const std::uint32_t number = number_of(row.id), parent = row.parent.empty() ? nothing : number_of(row.parent);
    has_numbers_ = had_numbers;   // only events count as references to stacks
    traced_[number].text = row.name;
    traced_[number].parent = parent;
    traced_[number].known = true;
}

std::uint32_t ChromeStacks::frame(std::string_view text) {
    const auto [at, is_new] = frames_.try_emplace(std::string{text}, static_cast<std::uint32_t>(ledger_.frames.size()));
    if (is_new) {
        const FrameText parts{text};
        const std::uint32_t function = name_(parts.function);
        ledger_.frames.push_back({function, parts.file.empty() ? nothing : name_(parts.file), parts.line});
    }
    return at->second;
}

std::uint32_t ChromeStacks::stack(std::uint32_t parent, std::uint32_t frame) {
    const auto [at, is_new] = stacks_.try_emplace({parent, frame}, static_cast<std::uint32_t>(ledger_.stacks.size()));
    if (is_new)
        ledger_.stacks.push_back({parent, frame});
    return at->second;
}

/// Returns the ledger's stack of a traced frame. A frame missing in the trace, or its own ancestor, ends the stack.
std::uint32_t ChromeStacks::stack_of(std::uint32_t number) {
    std::vector<std::uint32_t> path;   // frames without a known stack, innermost first
    std::uint32_t parent = nothing;
    for (std::uint32_t at = number; at != nothing && traced_[at].known; at = traced_[at].parent) {
        TracedFrame& row = traced_[at];
        if (row.stack != nothing) {
            parent = row.stack;
            break;
        }
        if (std::exchange(row.entered, true))
            break;
        path.push_back(at);
    }
    for (auto at = path.rbegin(); at != path.rend(); ++at)
        parent = traced_[*at].stack = stack(parent, frame(traced_[*at].text));
    return parent;
}

void ChromeStacks::finish() {
    if (has_numbers_) {
        for (OperatorRow& row : ledger_.operators)
            if (row.stack != nothing)
                row.stack = stack_of(row.stack);
    } else if (has_python_) {
        add_python_functions();
    }
}

void ChromeStacks::add_python_functions() {
    struct Open {
        std::int64_t end_ns;
        std::uint32_t stack;
    };
    std::vector<Open> open;
    std::uint32_t thread = nothing;
    std::unordered_map<std::uint32_t, std::uint32_t> frames;   // name -> frame
    for (OperatorRow& row : ledger_.operators) {
        if (std::exchange(thread, row.thread) != row.thread)
            open.clear();
        while (!open.empty() && (row.begin_ns >= open.back().end_ns || row.begin_ns + row.ns > open.back().end_ns))
            open.pop_back();
        row.stack = open.empty() ? nothing : open.back().stack;
        if (row.kind != OperatorKind::python_function)
            continue;
        const auto [known, is_new] = frames.try_emplace(row.name);
        if (is_new)
            known->second = frame(std::string{ledger_.names[row.name]});
        open.push_back({row.begin_ns + row.ns, stack(row.stack, known->second)});
    }
}

}   // namespace drawpoint
