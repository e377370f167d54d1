#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <random>
#include <string>

#include <drawpoint/instrumentation/report/advanced.hpp>
#include <drawpoint/instrumentation/report/lightning.hpp>
#include <drawpoint/instrumentation/report/operators.hpp>
#include <drawpoint/instrumentation/report/summary.hpp>

#include "tests/instrumentation/report/hand_made.hpp"

namespace {

using namespace drawpoint;
using hand_made::Builder;

using Random = std::minstd_rand;

std::int64_t up_to(Random& random, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>{0, most}(random);
}

/// Many lengths are 0, so that many things begin and end at the same moment.
std::int64_t length(Random& random) { return up_to(random, 1) * up_to(random, 20); }

/// A run of randomly nested passes, and how much of their time no row accounts for.
struct RandomRun {
    explicit RandomRun(unsigned seed) : random{seed} {
        pass(PassKind::fit, [this] {
            for (auto epochs = up_to(random, 3); epochs-- > 0;)
                pass(PassKind::epoch, [this] {
                    pass(PassKind::train, [this] { steps(Phase::train); });
                    if (up_to(random, 3) != 0)
                        pass(PassKind::valid, [this] { steps(Phase::valid); });
                });
        });
        run.ledger.sort();
    }

    template <class Body>
    void pass(PassKind kind, Body body) {
        const std::size_t row = run.ledger.passes.size();
        run.ledger.passes.push_back({.kind = kind, .begin_ns = run.now});
        run.ledger.passes[row].spans = run.lay({{Span::between, 1 + length(random)}, {Span::other, length(random)}});
        rest(kind);
        body();
        rest(kind);
        run.close(row);
        total_ns[kind] += run.ledger.passes[row].end_ns - run.ledger.passes[row].begin_ns;
        ++calls[kind];
    }
    void steps(Phase phase) {
        const PassKind kind = phase == Phase::train ? PassKind::train : PassKind::valid;
        for (auto left = 1 + up_to(random, 3); left-- > 0;) {
            run.step(phase, 0, 1, {{Span::starved, 1 + length(random)}},
                     {{span_of(Event::before_batch), length(random)}, {Span::forward, 1 + length(random)}},
                     {{Span::between, length(random)}});
            rest(kind);
        }
        if (up_to(random, 1) != 0) {
            const std::int64_t ns = length(random);
            run.ledger.ends_of_data.push_back({.phase = phase, .begin_ns = run.now, .ns = ns});
            run.now += ns;
        }
    }
    void rest(PassKind kind) {
        const std::int64_t ns = length(random);
        run.now += ns;
        rest_ns[kind] += ns;
    }

    Random random;
    Builder run;
    std::map<PassKind, std::int64_t> total_ns, rest_ns;
    std::map<PassKind, std::uint64_t> calls;
};

std::int64_t own_times_of(const ActionNode& node) {
    BOOST_TEST_REQUIRE(node.self_ns >= 0, node.name << " has " << node.self_ns << " ns of its own");
    std::int64_t sum = node.self_ns;
    for (const ActionNode& child : node.children)
        sum += own_times_of(child);
    return sum;
}

const ActionNode* child_of(const ActionNode* node, std::string_view name) {
    if (node == nullptr)
        return nullptr;
    const auto found = std::ranges::find(node->children, name, &ActionNode::name);
    return found == node->children.end() ? nullptr : &*found;
}

/// Adds randomly nested calls between two times.
void add_calls(Ledger& ledger, Random& random, std::uint32_t thread, std::int64_t from_ns, std::int64_t to_ns) {
    while (from_ns < to_ns) {
        const std::int64_t begin_ns = from_ns + length(random), ns = up_to(random, 1000);
        if (begin_ns + ns > to_ns)
            return;
        ledger.operators.push_back({.kind = OperatorKind::user_annotation,
                                    .name = static_cast<std::uint32_t>(up_to(random, 2)),
                                    .thread = thread,
                                    .begin_ns = begin_ns,
                                    .ns = ns});
        if (up_to(random, 1) != 0)
            add_calls(ledger, random, thread, begin_ns, begin_ns + ns);
        from_ns = begin_ns + ns;
    }
}

Ledger random_calls(unsigned seed) {
    Random random{seed};
    Ledger ledger;
    ledger.names = {"load", "augment", "step"};
    for (std::uint32_t thread = 0; thread < 2; ++thread) {
        ledger.threads.push_back({.tid = 100 + thread, .name = "thread " + std::to_string(thread)});
        add_calls(ledger, random, thread, 0, 5000);
    }
    ledger.sort();
    return ledger;
}

/// The time during which something was open on one of the threads.
std::int64_t covered_ns(const Ledger& ledger) {
    std::int64_t sum = 0, end_ns = 0;
    std::uint32_t thread = nothing;
    for (const OperatorRow& row : ledger.operators) {   // sorted by thread and begin
        if (row.thread != thread)
            end_ns = 0;
        thread = row.thread;
        sum += std::max<std::int64_t>(row.begin_ns + row.ns - std::max(end_ns, row.begin_ns), 0);
        end_ns = std::max(end_ns, row.begin_ns + row.ns);
    }
    return sum;
}

}   // namespace

BOOST_AUTO_TEST_SUITE(own_times)

BOOST_AUTO_TEST_CASE(every_action_of_a_tree_keeps_what_none_below_it_has) {
    for (unsigned seed = 1; seed <= 500; ++seed) {
        BOOST_TEST_CONTEXT("seed " << seed) {
            const RandomRun random{seed};
            const auto trees = action_tree(random.run.ledger);
            BOOST_TEST_REQUIRE(trees.size() == 1u);
            BOOST_TEST_REQUIRE(trees[0].name == "fit");
            BOOST_TEST(own_times_of(trees[0]) == trees[0].total_ns);
            const ActionNode* const epoch = child_of(&trees[0], "epoch");
            for (const auto& [kind, node] : {std::pair{PassKind::fit, &trees[0]}, std::pair{PassKind::epoch, epoch},
                                             std::pair{PassKind::train, child_of(epoch, "train")},
                                             std::pair{PassKind::valid, child_of(epoch, "valid")}}) {
                const auto of = [key = kind](const auto& map) { return map.contains(key) ? map.at(key) : 0; };
                BOOST_TEST_REQUIRE((node != nullptr) == (of(random.total_ns) > 0));
                if (node == nullptr)
                    continue;
                BOOST_TEST(node->calls == of(random.calls));
                BOOST_TEST(node->total_ns == of(random.total_ns));
                BOOST_TEST(node->self_ns == of(random.rest_ns));
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(the_rows_of_the_report_and_what_none_accounts_for_are_the_fit) {
    for (unsigned seed = 1; seed <= 500; ++seed) {
        const RandomRun random{seed};
        const Summary summary = summarize(random.run.ledger, {.drop_first_batch = false});
        std::int64_t sum = 0, rest = 0;
        for (const SummaryRow& row : summary.rows) {
            const bool of_steps = row.phase != "fit" && (row.action == Action::draw || row.action == Action::batch);
            if (of_steps || row.action == Action::between || row.action == Action::end_of_data)
                sum += std::llround(row.total_s * 1e9);
        }
        for (const auto& [kind, ns] : random.rest_ns)
            rest += ns;
        BOOST_TEST(sum + rest == random.total_ns.at(PassKind::fit), "seed " << seed);
    }
}

BOOST_AUTO_TEST_CASE(the_own_times_of_nested_calls_are_the_time_that_calls_cover) {
    for (unsigned seed = 1; seed <= 200; ++seed) {
        BOOST_TEST_CONTEXT("seed " << seed) {
            const Ledger ledger = random_calls(seed);
            std::int64_t in_tables = 0, in_trees = 0;
            for (const OperatorAverage& average : key_averages(ledger)) {
                BOOST_TEST(average.self_cpu_ns >= 0);
                in_tables += average.self_cpu_ns;
            }
            for (const ActionNode& tree : action_tree(ledger))
                in_trees += own_times_of(tree);
            BOOST_TEST(in_tables == covered_ns(ledger));
            BOOST_TEST(in_trees == covered_ns(ledger));
        }
    }
}

BOOST_AUTO_TEST_CASE(the_own_times_of_sampled_functions_are_the_time_of_their_action) {
    for (unsigned seed = 1; seed <= 200; ++seed) {
        BOOST_TEST_CONTEXT("seed " << seed) {
            Random random{seed};
            Ledger ledger;
            ledger.names = {"main", "load", "decode"};
            ledger.threads = {{.tid = 1, .name = "worker"}};
            for (std::uint32_t i = 0; i < 3; ++i)
                ledger.frames.push_back({.function = i});
            for (std::uint32_t i = 0; i < 8; ++i)
                ledger.stacks.push_back({.parent = i == 0 ? nothing : static_cast<std::uint32_t>(up_to(random, i - 1)),
                                         .frame = static_cast<std::uint32_t>(up_to(random, 2))});
            for (std::int64_t at_ns = 0; at_ns < 30; ++at_ns)
                ledger.stack_samples.push_back({.at_ns = at_ns,
                                                .stack = static_cast<std::uint32_t>(up_to(random, 7)),
                                                .weight_ns = length(random)});
            for (const ActionProfile& profile : advanced_profiles(ledger)) {
                std::int64_t sum = 0;
                for (const FunctionProfile& function : profile.functions) {
                    BOOST_TEST(function.total_ns <= function.cumulative_ns);
                    sum += function.total_ns;
                }
                BOOST_TEST(sum == profile.ns);
            }
        }
    }
}

BOOST_AUTO_TEST_SUITE_END()
