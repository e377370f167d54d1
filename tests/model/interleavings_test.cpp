#include <boost/test/unit_test.hpp>

#include <memory>
#include <set>
#include <utility>

#include "model/interleavings.hpp"

using drawpoint::model::Atomic;
using drawpoint::model::Atomics;
using drawpoint::model::explore;
using drawpoint::model::Found;
using drawpoint::model::Plain;
using drawpoint::model::Run;
using Order = std::memory_order;

// The checker itself, on programs whose outcomes the standard says.

namespace {

/// Which of the results (a, b) of two threads occur.
template <class First, class Second>
std::set<std::pair<int, int>> outcomes(First first, Second second, std::uint64_t* runs = nullptr) {
    std::set<std::pair<int, int>> seen;
    const Found found = explore([&](Run& run) {
        struct State {
            Atomic<int> x{0}, y{0};
            int a = -1, b = -1;
        };
        const auto state = std::make_shared<State>();
        run.thread([s = state.get(), first] { s->a = first(s->x, s->y); });
        run.thread([s = state.get(), second] { s->b = second(s->x, s->y); });
        run.at_end([state, &seen] { seen.emplace(state->a, state->b); });
    });
    BOOST_TEST(found.violation == "");
    BOOST_TEST(found.complete);
    if (runs != nullptr)
        *runs = found.runs;
    return seen;
}

using Outcomes = std::set<std::pair<int, int>>;

}   // namespace

BOOST_AUTO_TEST_SUITE(interleavings)

BOOST_AUTO_TEST_CASE(two_stores_and_two_loads_may_both_miss_unless_they_are_sequentially_consistent) {
    const auto with = [](Order store, Order load) {
        return outcomes(
            [=](Atomic<int>& x, Atomic<int>& y) {
                x.store(1, store);
                return y.load(load);
            },
            [=](Atomic<int>& x, Atomic<int>& y) {
                y.store(1, store);
                return x.load(load);
            });
    };
    BOOST_TEST((with(Order::release, Order::acquire) == Outcomes{{0, 0}, {0, 1}, {1, 0}, {1, 1}}));
    BOOST_TEST((with(Order::seq_cst, Order::seq_cst) == Outcomes{{0, 1}, {1, 0}, {1, 1}}));
}

BOOST_AUTO_TEST_CASE(a_message_is_seen_with_its_flag_if_that_is_released_and_acquired) {
    const auto with = [](Order store, Order load) {
        return outcomes(
            [=](Atomic<int>& x, Atomic<int>& y) {
                x.store(1, Order::relaxed);
                y.store(1, store);
                return 0;
            },
            [=](Atomic<int>& x, Atomic<int>& y) {
                const int flag = y.load(load);
                return 10 * flag + x.load(Order::relaxed);
            });
    };
    BOOST_TEST((with(Order::release, Order::acquire) == Outcomes{{0, 0}, {0, 1}, {0, 11}}));
    BOOST_TEST((with(Order::relaxed, Order::acquire) == Outcomes{{0, 0}, {0, 1}, {0, 10}, {0, 11}}));
    BOOST_TEST((with(Order::release, Order::relaxed) == Outcomes{{0, 0}, {0, 1}, {0, 10}, {0, 11}}));
}

BOOST_AUTO_TEST_CASE(loads_of_one_variable_never_go_back) {
    const Outcomes seen = outcomes(
        [](Atomic<int>& x, Atomic<int>&) {
            x.store(1, Order::relaxed);
            x.store(2, Order::relaxed);
            return 0;
        },
        [](Atomic<int>& x, Atomic<int>&) {
            const int first = x.load(Order::relaxed);
            return 10 * first + x.load(Order::relaxed);
        });
    BOOST_TEST((seen == Outcomes{{0, 0}, {0, 1}, {0, 2}, {0, 11}, {0, 12}, {0, 22}}));
}

BOOST_AUTO_TEST_CASE(read_modify_writes_lose_nothing_and_continue_a_release) {
    struct State {
        Plain<int> data{0};
        Atomic<int> count{0};
    };
    for (const bool released : {true, false}) {
        const Found found = explore([&](Run& run) {
            const auto state = std::make_shared<State>();
            run.thread([s = state.get(), released] {
                s->data = 1;
                s->count.fetch_add(1, released ? Order::release : Order::relaxed);
            });
            run.thread([s = state.get()] { s->count.fetch_add(2, Order::relaxed); });
            run.thread([s = state.get()] {
                if (s->count.load(Order::acquire) == 3)
                    Run::current().check(s->data == 1, "stale data");
            });
            run.at_end([state] { Run::current().check(state->count.load() == 3, "lost"); });
        });
        BOOST_TEST(found.violation == (released ? "" : "a data race: read, and written"));
    }
}

BOOST_AUTO_TEST_CASE(threads_that_all_sleep_are_found) {
    struct State {
        Atomic<std::uint32_t> word{0};
    };
    for (const bool wakes : {true, false}) {
        const Found found = explore([&](Run& run) {
            const auto state = std::make_shared<State>();
            run.thread([s = state.get()] { s->word.wait(0); });
            run.thread([s = state.get(), wakes] {
                s->word.store(1);
                if (wakes)
                    s->word.notify_one();
            });
            run.at_end([state] {});
        });
        BOOST_TEST(found.violation == (wakes ? "" : "all threads wait"));
    }
}

BOOST_AUTO_TEST_CASE(orders_of_operations_that_do_not_affect_each_other_are_run_once) {
    std::uint64_t runs = 0;
    const auto four = [](Atomic<int>& mine) {
        for (int i = 0; i < 4; ++i)
            mine.store(i, Order::relaxed);
        return 0;
    };
    (void)outcomes([&](Atomic<int>& x, Atomic<int>&) { return four(x); },
                   [&](Atomic<int>&, Atomic<int>& y) { return four(y); }, &runs);
    BOOST_TEST(runs <= 5u);   // of 70; those cut short count
}

BOOST_AUTO_TEST_SUITE_END()
