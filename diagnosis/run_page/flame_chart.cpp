#include <algorithm>
#include <charconv>
#include <sstream>

#include <fmt/format.h>

#include <drawpoint/instrumentation/export/folded.hpp>
#include <drawpoint/instrumentation/text/format.hpp>

#include "diagnosis/run_page/charts.hpp"

namespace drawpoint {
namespace {

constexpr double width = 940, left = 10, row_height = 18, letter = 6.6;
constexpr double least_width = 1.5;   // narrower frames are left out
constexpr std::size_t most_depth = 40;

/// A tree of frames with their weights, each at least the sum of its children's.
class FlameTree {
public:
    explicit FlameTree(std::string unit) : unit_{std::move(unit)} { nodes_.push_back({"all", 0, 0, {}}); }

    [[nodiscard]] std::size_t child_of(std::size_t parent, std::string_view name) {
        for (const std::size_t child : nodes_[parent].children)
            if (nodes_[child].name == name)
                return child;
        nodes_.push_back({std::string{name}, nodes_[parent].depth + 1, 0, {}});
        nodes_[parent].children.push_back(nodes_.size() - 1);
        return nodes_.size() - 1;
    }
    void add(std::size_t node, double weight) { nodes_[node].weight += weight; }
    [[nodiscard]] bool is_empty() const { return nodes_.size() == 1 || !(nodes_.front().weight > 0); }

    /// Every frame stands on its caller, the outermost ones at the top.
    [[nodiscard]] Svg picture(std::string_view about) const {
        std::size_t depth = 0;
        each(0, left, left + width, [&](const Node& node, double, double) { depth = std::max(depth, node.depth); });
        Svg svg{960, row_height * static_cast<double>(depth + 1) + 8, about};
        each(0, left, left + width, [&](const Node& node, double x, double wide) {
            const double y = 4 + row_height * static_cast<double>(node.depth);
            const std::string tip = fmt::format("{}: {}, {:.1f} %", node.name, weight_text(node.weight),
                                                100 * node.weight / nodes_.front().weight);
            svg.rect(x, y, wide - 0.5, row_height - 1, colour_of(node.name), tip);
            const auto letters = static_cast<std::size_t>(std::max(wide - 8, 0.0) / letter);
            if (letters >= 3)
                svg.text(x + 4, y + 13, cut(node.name, letters), "small");
        });
        return svg;
    }

private:
    struct Node {
        std::string name;
        std::size_t depth;
        double weight;
        std::vector<std::size_t> children;
    };

    /// Calls `use` with the frame and those on it that are wide enough to be seen; none goes beyond `end`.
    template <class Use>
    void each(std::size_t index, double x, double end, const Use& use) const {
        const Node& node = nodes_[index];
        const double wide = std::min(width * node.weight / nodes_.front().weight, end - x);
        if (!(wide >= least_width) || node.depth > most_depth)
            return;
        use(node, x, wide);
        end = x + wide;
        for (const std::size_t child : node.children) {
            each(child, x, end, use);
            x = std::min(x + width * nodes_[child].weight / nodes_.front().weight, end);
        }
    }

    [[nodiscard]] std::string weight_text(double weight) const {
        return unit_.empty() ? format_duration(weight) : format_count(static_cast<std::int64_t>(weight)) + " " + unit_;
    }

    /// Whole characters of UTF-8.
    static std::string cut(std::string_view text, std::size_t letters) {
        if (text.size() <= letters)
            return std::string{text};
        std::size_t end = letters - 1;
        while (end > 0 && (text[end] & 0xC0) == 0x80)
            --end;
        return std::string{text.substr(0, end)} + "…";
    }

    /// Light ones, on which text can be read; the same for the same name.
    static std::string colour_of(std::string_view name) {
        std::uint32_t hash = 2166136261;
        for (const char c : name)
            hash = (hash ^ static_cast<unsigned char>(c)) * 16777619;
        return fmt::format("f{}", hash % 5);
    }

    std::string unit_;
    std::vector<Node> nodes_;
};

}   // namespace

std::optional<Svg> stack_flame(const Ledger& ledger) {
    const bool sampled = !ledger.stack_samples.empty();
    std::ostringstream lines;
    write_folded(ledger, lines);
    FlameTree tree{sampled ? "samples" : ""};
    const std::string text = lines.str();
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = std::min(text.find('\n', at), text.size());
        std::string_view line = std::string_view{text}.substr(at, end - at);
        at = end + 1;
        const std::size_t blank = line.rfind(' ');
        double weight = 0;
        if (blank == line.npos ||
            std::from_chars(line.data() + blank + 1, line.data() + line.size(), weight).ec != std::errc{})
            continue;
        if (!sampled)
            weight /= 1e6;   // microseconds
        line = line.substr(0, blank);
        std::size_t node = 0;
        tree.add(node, weight);
        while (!line.empty()) {
            const std::size_t mark = std::min(line.find(';'), line.size());
            node = tree.child_of(node, line.substr(0, mark));
            tree.add(node, weight);
            line.remove_prefix(std::min(mark + 1, line.size()));
        }
    }
    if (tree.is_empty())
        return std::nullopt;
    return tree.picture(sampled ? "Call stacks of all threads: each frame is as wide as the samples it was in."
                                : "The loop's time: each piece is as wide as it took.");
}

std::optional<Svg> operator_flame(const Ledger& ledger) {
    FlameTree tree{""};
    struct Open {
        std::size_t node;
        std::int64_t end_ns;
    };
    std::vector<Open> open;
    std::uint32_t thread = nothing;
    for (const OperatorRow& row : ledger.operators) {
        if (row.thread >= ledger.threads.size() || ledger.threads[row.thread].device >= 0)
            continue;
        if (row.thread != thread) {
            thread = row.thread;
            open.clear();
        }
        while (!open.empty() && open.back().end_ns <= row.begin_ns)
            open.pop_back();
        const std::string_view name = row.name < ledger.names.size() ? std::string_view{ledger.names[row.name]} : "?";
        const bool is_step = row.kind == OperatorKind::user_annotation && name.starts_with("ProfilerStep#");
        const std::size_t parent = open.empty() ? 0 : open.back().node;
        const double seconds = static_cast<double>(row.ns) / 1e9;
        if (open.empty())
            tree.add(0, seconds);
        const std::size_t node = tree.child_of(parent, is_step ? "ProfilerStep" : name);
        tree.add(node, seconds);
        open.push_back({node, end_ns(row.begin_ns, row.ns)});
    }
    if (tree.is_empty())
        return std::nullopt;
    return tree.picture("Operators by their callers: each is as wide as its calls took together.");
}

}   // namespace drawpoint
