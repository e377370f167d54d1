#include <drawpoint/instrumentation/export/folded.hpp>

#include <algorithm>
#include <limits>
#include <map>
#include <ostream>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <drawpoint/instrumentation/ledger/attribution.hpp>
#include "instrumentation/export/text_stream.hpp"

namespace drawpoint {
namespace {

/// Replaces the characters of a name that would end a frame or a line.
std::string frame_text(std::string_view name) {
    std::string text{name};
    for (char& c : text) {
        if (c == ';')
            c = ',';
        else if (static_cast<unsigned char>(c) < ' ')
            c = ' ';
    }
    return text.find_first_not_of(' ') == std::string::npos ? "[unknown]" : text;
}

using Lines = std::map<std::string, std::uint64_t>;

Lines lines_of_samples(const Ledger& ledger) {
    const Attribution attribution{ledger};
    std::vector<std::string> stacks;   // frames from the outermost
    stacks.reserve(ledger.stacks.size());
    for (const StackRow& row : ledger.stacks) {
        std::string text = row.parent < stacks.size() ? stacks[row.parent] + ";" : "";
        const std::uint32_t name = row.frame < ledger.frames.size() ? ledger.frames[row.frame].function : nothing;
        stacks.push_back(text + frame_text(name < ledger.names.size() ? std::string_view{ledger.names[name]} : ""));
    }
    std::map<std::tuple<std::uint32_t, std::string, std::uint32_t>, std::uint64_t> counts;
    for (const StackSampleRow& sample : ledger.stack_samples)
        ++counts[{sample.thread, attribution.action_of(attribution.at(sample.thread, sample.at_ns)), sample.stack}];
    Lines lines;
    for (const auto& [key, count] : counts) {
        const auto& [thread, action, stack] = key;
        std::string line = frame_text(attribution.thread_name(thread));
        line += ";" + frame_text(action.empty() ? "(no action)" : action);
        if (stack < stacks.size())
            line += ";" + stacks[stack];
        lines[line] += count;
    }
    return lines;
}

/// The passes as a tree; finds the innermost pass at a given time and the path to it.
class PassPaths {
public:
    explicit PassPaths(const Ledger& ledger) : passes_{&ledger.passes} {
        std::uint32_t around = nothing;
        for (std::uint32_t i = 0; i < passes_->size(); ++i) {
            while (around != nothing && end_of(around) <= (*passes_)[i].begin_ns)
                around = parents_[around];
            parents_.push_back(around);
            paths_.push_back((around == nothing ? "" : paths_[around]) + std::string{name_of((*passes_)[i].kind)} +
                             ";");
            around = i;
        }
    }

    [[nodiscard]] const std::string& of_pass(std::size_t pass) const { return paths_[pass]; }
    /// "fit;epoch;train;", or an empty text outside every pass.
    [[nodiscard]] std::string_view at(std::int64_t at_ns) const {
        const auto after = std::upper_bound(passes_->begin(), passes_->end(), at_ns,
                                            [](std::int64_t at, const PassRow& pass) { return at < pass.begin_ns; });
        auto i = static_cast<std::uint32_t>(after - passes_->begin()) - 1;
        while (i != nothing && end_of(i) <= at_ns)
            i = parents_[i];
        return i == nothing ? std::string_view{} : std::string_view{paths_[i]};
    }

private:
    [[nodiscard]] std::int64_t end_of(std::uint32_t pass) const {
        const PassRow& row = (*passes_)[pass];
        return row.ended ? row.end_ns : std::numeric_limits<std::int64_t>::max();
    }
    const std::vector<PassRow>* passes_;
    std::vector<std::uint32_t> parents_;
    std::vector<std::string> paths_;
};

/// Lines of the loop's pieces, in microseconds; each piece counts once.
Lines lines_of_pieces(const Ledger& ledger) {
    const PassPaths paths{ledger};
    Lines nanoseconds;
    const auto add = [&](std::string path, const SpanRow& piece) {
        const std::string_view name = name_of(piece.span);
        if (!path.ends_with(";" + std::string{name} + ";"))
            path += name;
        else
            path.pop_back();
        if (piece.ns > 0)
            nanoseconds[path] += static_cast<std::uint64_t>(piece.ns);
    };
    for (std::size_t i = 0; i < ledger.passes.size(); ++i) {
        for (const SpanRow& piece : ledger.spans_of(ledger.passes[i]))
            add(paths.of_pass(i), piece);
    }
    for (const StepRow& step : ledger.steps) {
        const std::string around{paths.at(step.draw_begin_ns)};
        for (const SpanRow& piece : ledger.spans_of(step)) {
            const Action action = action_of_piece(ledger, step, piece);
            const std::string name{name_of(action)};
            if (action == Action::between)
                add(around + "between;", piece);
            else if (action == Action::draw)
                add(around + "step;draw;", piece);
            else
                add(around + "step;batch;" + name + ";", piece);
        }
    }
    Lines microseconds;
    for (const auto& [path, ns] : nanoseconds) {
        if (ns >= 500)
            microseconds[path] = (ns + 500) / 1000;
    }
    return microseconds;
}

}   // namespace

void write_folded(const Ledger& ledger, std::ostream& out) {
    TextStream text{out};
    for (const auto& [line, count] : ledger.stack_samples.empty() ? lines_of_pieces(ledger) : lines_of_samples(ledger))
        text.print("{} {}\n", line, count);
    text.flush();
}

}   // namespace drawpoint
