#include <drawpoint/instrumentation/report/lightning.hpp>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <optional>

#include <fmt/format.h>

#include <drawpoint/instrumentation/ledger/ledger.hpp>

#include "instrumentation/report/larger_first.hpp"
#include <drawpoint/instrumentation/detail/wrapping.hpp>

namespace drawpoint {
namespace {

std::size_t width_of(std::string_view text) {
    return static_cast<std::size_t>(std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string padded(std::string_view text, std::size_t width) {
    std::string all{text};
    if (const std::size_t has = width_of(text); has < width)
        all.append(width - has, ' ');
    return all;
}

/// Width of the text in columns, with tab stops every eight columns.
std::size_t expanded_width(std::string_view text) {
    std::size_t width = 0;
    for (const char c : text)
        width += c == '\t' ? 8 - width % 8 : static_cast<std::size_t>((c & 0xC0) != 0x80);
    return width;
}

using Cells = std::vector<std::string>;

std::string line_of(const Cells& cells, std::size_t first_width, bool hannah) {
    constexpr std::size_t width = 15;
    std::string text = (hannah ? "" : "|  ") + padded(cells[0], first_width) + "\t|";
    for (std::size_t column = 1; column < cells.size(); ++column)
        text += (hannah && column == 2 ? "" : "  ") + padded(cells[column], width) + "\t|";
    return text + '\n';
}

double mean_of(const LightningAction& action) { return action.total_s / static_cast<double>(action.calls); }

double share_of(const LightningAction& action, double total_s) { return 100 * action.total_s / total_s; }

/// Collects calls by name; `take` returns them in the order of their first ends.
class Actions {
public:
    void add(std::string_view name, std::int64_t begin_ns, std::int64_t ns) {
        if (name.empty())
            return;
        const std::int64_t end_ns = wrapping_sum(begin_ns, ns);
        auto found = totals_.find(name);
        if (found == totals_.end())
            found = totals_.emplace(name, Total{.first_end_ns = end_ns}).first;
        Total& total = found->second;
        ++total.calls;
        total.ns = wrapping_sum(total.ns, ns);
        total.first_end_ns = std::min(total.first_end_ns, end_ns);
    }
    [[nodiscard]] bool has(std::string_view name) const { return totals_.find(name) != totals_.end(); }

    [[nodiscard]] std::vector<LightningAction> take() const {
        std::vector<std::pair<std::int64_t, LightningAction>> all;
        for (const auto& [name, total] : totals_)
            all.emplace_back(total.first_end_ns,
                             LightningAction{name, total.calls, static_cast<double>(total.ns) / 1e9});
        std::ranges::stable_sort(all, {}, [](const auto& one) { return one.first; });
        std::vector<LightningAction> actions;
        for (auto& one : all)
            actions.push_back(std::move(one.second));
        return actions;
    }

private:
    struct Total {
        std::uint64_t calls = 0;
        std::int64_t ns = 0, first_end_ns = 0;
    };
    std::map<std::string, Total, std::less<>> totals_;
};

const SpanRow* find(std::span<const SpanRow> spans, Span span) {
    const auto found = std::ranges::find(spans, span, &SpanRow::span);
    return found == spans.end() ? nullptr : &*found;
}

std::optional<std::int64_t> stamp_at(Edge edge, std::span<const SpanRow> spans) {
    const SpanRow* const piece = find(spans, span_of(edge.event));
    return piece ? std::optional{wrapping_sum(piece->begin_ns, edge.end ? piece->ns : 0)} : std::nullopt;
}

void add_hooks(Actions& actions, std::span<const SpanRow> spans, bool valid) {
    for (const LightningHook& hook : lightning_hooks)
        if (const SpanRow* const piece = find(spans, span_of(hook.event)))
            actions.add(valid ? hook.valid : hook.train, piece->begin_ns, piece->ns);
}

void add_step(Actions& actions, const StepRow& step, std::span<const SpanRow> spans) {
    const bool valid = step.phase == Phase::valid;
    const auto name = [valid](const LightningSpan& one) { return valid ? one.valid : one.train; };
    actions.add(name(lightning_spans.front()), step.draw_begin_ns, step.draw_ns);
    for (const LightningSpan& one : std::span{lightning_spans}.subspan(1)) {
        const auto from = stamp_at(one.from, spans), to = stamp_at(one.to, spans);
        if (from && to && find(spans, one.work))
            actions.add(name(one), *from, static_cast<std::int64_t>(wrapping_difference(*to, *from)));
    }
    add_hooks(actions, spans, valid);
}

struct Node {
    std::uint64_t calls = 0;
    std::int64_t ns = 0;
    std::map<std::string, Node, std::less<>> children;

    Node& child(std::string_view name) {
        const auto found = children.find(name);
        return found != children.end() ? found->second : children.emplace(name, Node{}).first->second;
    }
    Node& add(std::string_view name, std::int64_t taken_ns) {
        Node& node = child(name);
        ++node.calls;
        node.ns = wrapping_sum(node.ns, taken_ns);
        return node;
    }
};

ActionNode finished(std::string_view name, const Node& from) {
    ActionNode node{.name = std::string{name}, .calls = from.calls, .total_ns = from.ns, .self_ns = from.ns};
    for (const auto& [child_name, child] : from.children) {
        node.self_ns = static_cast<std::int64_t>(wrapping_difference(node.self_ns, child.ns));
        if (child.ns != 0)   // omits events without listeners
            node.children.push_back(finished(child_name, child));
    }
    std::ranges::stable_sort(node.children, std::ranges::greater{}, &ActionNode::total_ns);
    return node;
}

void add_step(Node& pass, const StepRow& step, std::span<const SpanRow> spans) {
    Node& node = pass.add("step", wrapping_sum(step.draw_ns, step.batch_ns));
    Node& draw = node.add(name_of(Action::draw), step.draw_ns);
    Node& batch = node.add(name_of(Action::batch), step.batch_ns);
    const std::int64_t drawn_ns = wrapping_sum(step.draw_begin_ns, step.draw_ns);
    const std::int64_t end_ns = wrapping_sum(drawn_ns, step.batch_ns);
    for (const SpanRow& piece : spans) {
        // It does not matter where a piece of length 0 at a border goes: it adds nothing.
        Node& owner = wrapping_sum(piece.begin_ns, piece.ns) > end_ns ? pass : piece.begin_ns < drawn_ns ? draw : batch;
        owner.add(name_of(piece.span), piece.ns);
    }
}

/// Nesting level of a kind of pass within a fit; training and validation have the same level.
PassKind level_of(PassKind kind) noexcept { return std::min(kind, PassKind::train); }

/// The loop's passes in order of time, an outer pass before the passes inside it.
std::vector<PassRow> nested(const Ledger& ledger) {
    std::vector<PassRow> passes = ledger.passes;
    std::ranges::stable_sort(passes, [](const PassRow& a, const PassRow& b) {
        return a.begin_ns != b.begin_ns ? a.begin_ns < b.begin_ns : a.kind < b.kind;
    });
    return passes;
}

std::vector<ActionNode> loop_trees(const Ledger& ledger) {
    Node root;
    struct Open {
        const PassRow* row;
        Node* node;
    };
    std::vector<Open> open;
    const auto passes = nested(ledger);
    auto next = passes.begin();
    // Opens all passes that begin by `at_ns`, closes those that ended before it, and returns the innermost open one.
    const auto innermost = [&](std::int64_t at_ns) -> Node* {
        const auto close = [&](std::int64_t by_ns, PassKind kind) {
            while (!open.empty() &&
                   (open.back().row->end_ns < by_ns ||
                    (open.back().row->end_ns == by_ns && level_of(open.back().row->kind) >= level_of(kind))))
                open.pop_back();
        };
        for (; next != passes.end() && next->begin_ns <= at_ns; ++next) {
            close(next->begin_ns, next->kind);
            Node& parent = open.empty() ? root : *open.back().node;
            Node& node = parent.add(name_of(next->kind), next->end_ns - next->begin_ns);
            for (const SpanRow& piece : ledger.spans_of(*next))
                node.add(name_of(piece.span), piece.ns);
            node.add("steps folded", next->folded_ns);
            open.push_back({&*next, &node});
        }
        while (!open.empty() && open.back().row->end_ns < at_ns)
            open.pop_back();
        return open.empty() ? nullptr : open.back().node;
    };
    // Visits steps and ends of data in common order of time, since `innermost` only moves forward.
    auto end_of_data = ledger.ends_of_data.begin();
    const auto add_ends = [&](std::int64_t until_ns) {
        for (; end_of_data != ledger.ends_of_data.end() && end_of_data->begin_ns < until_ns; ++end_of_data)
            if (Node* const pass = innermost(end_of_data->begin_ns))
                pass->add(name_of(Action::end_of_data), end_of_data->ns);
    };
    for (const StepRow& step : ledger.steps) {
        add_ends(step.draw_begin_ns);
        if (Node* const pass = innermost(step.draw_begin_ns))
            add_step(*pass, step, ledger.spans_of(step));
    }
    add_ends(std::numeric_limits<std::int64_t>::max());
    innermost(std::numeric_limits<std::int64_t>::max());
    std::vector<ActionNode> trees;
    for (const auto& [name, node] : root.children)
        trees.push_back(finished(name, node));
    return trees;
}

bool is_step(std::string_view region) noexcept { return region.starts_with("ProfilerStep#"); }

/// Gives all steps one name, so that they become one line.
std::string_view region_name(std::string_view region) noexcept { return is_step(region) ? "ProfilerStep*" : region; }

void add_region_trees(const Ledger& ledger, std::vector<ActionNode>& trees) {
    struct Open {
        std::int64_t end_ns;
        Node* node;
    };
    std::map<std::uint32_t, Node> threads;
    std::vector<Open> open;
    const OperatorRow* before = nullptr;
    for (const OperatorRow& row : ledger.operators) {
        if (row.kind != OperatorKind::user_annotation || !row.ended || row.name >= ledger.names.size())
            continue;
        if (!before || before->thread != row.thread)
            open.clear();
        before = &row;
        while (!open.empty() && open.back().end_ns <= row.begin_ns)
            open.pop_back();
        Node& thread = threads[row.thread];
        if (open.empty()) {
            ++thread.calls;
            thread.ns = wrapping_sum(thread.ns, row.ns);
        }
        Node& parent = open.empty() ? thread : *open.back().node;
        open.push_back({wrapping_sum(row.begin_ns, row.ns), &parent.add(region_name(ledger.names[row.name]), row.ns)});
    }
    for (const auto& [number, node] : threads) {
        const bool known = number < ledger.threads.size();
        const std::string name = known && !ledger.threads[number].name.empty()
                                     ? ledger.threads[number].name
                                     : std::to_string(known ? ledger.threads[number].tid : number);
        trees.push_back(finished("regions of thread " + name, node));
    }
}

void add_line(std::string& text, const ActionNode& node, std::size_t depth, std::size_t width, double whole_ns) {
    const auto seconds = [](std::int64_t ns) { return static_cast<double>(ns) / 1e9; };
    fmt::format_to(std::back_inserter(text), "{} {:>9} {:>13.6f} {:>13.6f} {:>8.2f}\n",
                   padded(std::string(2 * depth, ' ') + node.name, width), node.calls, seconds(node.total_ns),
                   seconds(node.self_ns), whole_ns > 0 ? 100 * static_cast<double>(node.self_ns) / whole_ns : 0.0);
    for (const ActionNode& child : node.children)
        add_line(text, child, depth + 1, width, whole_ns);
}

std::size_t name_width(const ActionNode& node, std::size_t depth) {
    std::size_t width = 2 * depth + width_of(node.name);
    for (const ActionNode& child : node.children)
        width = std::max(width, name_width(child, depth + 1));
    return width;
}

}   // namespace

std::string lightning_number(double value) {
    if (!std::isfinite(value))
        return fmt::format("{}", value);
    constexpr int digits = 5;
    const std::string scientific = fmt::format("{:.{}e}", value, digits - 1);
    const std::size_t e = scientific.find('e');
    const int exponent = std::stoi(scientific.substr(e + 1));
    const bool fixed = exponent >= -4 && exponent < digits - 1;
    std::string text = fixed ? fmt::format("{:.{}f}", value, digits - 1 - exponent) : scientific.substr(0, e);
    text.erase(text.find_last_not_of('0') + 1);
    if (fixed)
        return text.back() == '.' ? text + '0' : text;
    if (text.back() == '.')
        text.pop_back();
    return text + scientific.substr(e);
}

std::string_view older_lightning_name(std::string_view name) noexcept {
    struct Renamed {
        std::string_view now, then;
    };
    static constexpr std::array renamed{
        Renamed{"[_TrainingEpochLoop].train_dataloader_next", "get_train_batch"},
        Renamed{"[_EvaluationLoop].val_next", "get_validate_batch"},
        Renamed{"backward", "model_backward"},
    };
    const auto found = std::ranges::find(renamed, name, &Renamed::now);
    return found == renamed.end() ? name : found->then;
}

std::string to_lightning(const LightningProfile& profile, LightningOptions options) {
    std::string text;
    if (!options.hannah) {
        for (const char c : profile.stage)
            text += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
        text += text.empty() ? "Profiler Report\n\n" : " Profiler Report\n\n";
    }
    const bool extended = options.extended || options.hannah;
    std::vector<LightningAction> actions;
    std::ranges::copy_if(profile.actions, std::back_inserter(actions),
                         [](const auto& action) { return action.calls > 0; });
    if (actions.empty())
        return text;
    if (options.hannah)
        for (LightningAction& action : actions)
            action.name = older_lightning_name(action.name);
    // Sorts by percentage rather than total, as the original does: unequal totals may round to equal percentages.
    const double total_s = profile.total_s;
    std::ranges::stable_sort(actions, larger_first, [&](const LightningAction& action) {
        return !extended ? mean_of(action) : total_s == 0 ? action.total_s : share_of(action, total_s);
    });

    std::size_t width = 0;
    std::uint64_t calls = 0;
    for (const LightningAction& action : actions) {
        width = std::max(width, width_of(action.name));
        calls += action.calls;
    }
    const auto line = [&](Cells cells) { return line_of(cells, width, options.hannah); };
    const std::string header =
        extended ? line({"Action", "Mean duration (s)", "Num calls", "Total time (s)", "Percentage %"})
                 : line({"Action", "Mean duration (s)", "Total time (s)"});
    // The original counts the newline in the separator's width; the older one also the title, and a tab as one column.
    constexpr std::size_t older_title = std::string_view{"\n\nProfiler Report\n"}.size();
    const std::string separator =
        std::string(options.hannah ? older_title + width_of(header) : expanded_width(header), '-') + '\n';
    text += (options.hannah ? "" : separator) + header + separator;
    if (extended)
        text += line({"Total", "-", options.hannah ? "_" : std::to_string(calls), lightning_number(total_s), "100 %"}) +
                separator;
    for (const LightningAction& action : actions)
        text += extended ? line({action.name, lightning_number(mean_of(action)), std::to_string(action.calls),
                                 lightning_number(action.total_s),
                                 total_s == 0 ? "-" : lightning_number(share_of(action, total_s))})
                         : line({action.name, lightning_number(mean_of(action)), lightning_number(action.total_s)});
    if (!options.hannah)
        text += separator;
    if (profile.steps_folded > 0)
        text += fmt::format("{} old steps folded: of the loop's actions only those of the steps kept.\n",
                            profile.steps_folded);
    return text;
}

LightningProfile lightning_actions(const Ledger& ledger) {
    Actions actions;
    std::int64_t end_ns = ledger.start_ns;
    bool fits = false;
    for (const PassRow& pass : ledger.passes) {
        if (pass.kind == PassKind::epoch)
            actions.add(lightning_epoch, pass.begin_ns, pass.end_ns - pass.begin_ns);
        add_hooks(actions, ledger.spans_of(pass), pass.kind == PassKind::valid);
        end_ns = std::max(end_ns, pass.end_ns);
        fits = fits || pass.kind == PassKind::fit;
    }
    for (const StepRow& step : ledger.steps)
        add_step(actions, step, ledger.spans_of(step));
    for (const EndOfDataRow& row : ledger.ends_of_data)
        actions.add(row.phase == Phase::train ? lightning_spans.front().train : lightning_spans.front().valid,
                    row.begin_ns, row.ns);
    Actions regions;
    for (const OperatorRow& row : ledger.operators)
        if (row.kind == OperatorKind::user_annotation && row.ended && row.name < ledger.names.size()) {
            const std::string& name = ledger.names[row.name];
            if (!actions.has(name) && !is_step(name))   // a step is already there as run_training_batch
                regions.add(name, row.begin_ns, row.ns);
            end_ns = std::max(end_ns, wrapping_sum(row.begin_ns, row.ns));
        }
    LightningProfile profile{
        .stage = fits                    ? "fit"
                 : ledger.passes.empty() ? ""
                                         : "validate",
        .total_s = static_cast<double>(static_cast<std::int64_t>(wrapping_difference(end_ns, ledger.start_ns))) / 1e9,
        .actions = actions.take(),
        .steps_folded = ledger.folded.steps};
    std::ranges::move(regions.take(), std::back_inserter(profile.actions));
    return profile;
}

std::vector<ActionNode> action_tree(const Ledger& ledger) {
    std::vector<ActionNode> trees = loop_trees(ledger);
    add_region_trees(ledger, trees);
    return trees;
}

std::string action_tree_text(std::span<const ActionNode> trees) {
    std::size_t width = 6;
    for (const ActionNode& tree : trees)
        width = std::max(width, name_width(tree, 0));
    std::string text;
    for (const ActionNode& tree : trees) {
        fmt::format_to(std::back_inserter(text), "{}{} {:>9} {:>13} {:>13} {:>8}\n", text.empty() ? "" : "\n",
                       padded("Action", width), "Calls", "Total s", "Self s", "Self %");
        add_line(text, tree, 0, width, static_cast<double>(tree.total_ns));
    }
    return text;
}

}   // namespace drawpoint
