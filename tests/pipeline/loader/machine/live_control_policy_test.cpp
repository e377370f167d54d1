#include <drawpoint/pipeline/loader/machine/loader_policy.hpp>

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <bit>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "pipeline/loader/machine/bytes_in_virtual_time.hpp"
#include "pipeline/loader/orders.hpp"

namespace drawpoint {
namespace {

constexpr std::uint32_t batch_size = 6;
constexpr std::size_t most_workers = 6;

void require(bool holds, const std::string& law) {
    if (!holds)
        BOOST_FAIL(law);
}

/// A loader in virtual time, driven as the threads drive it: workers that claim, sleep and sit on the bench, a loop that
/// draws, holds and gives back, passes that end early. All its numbers change at random while it runs.
struct Live : test::Driven {
    struct Made {   // by slot
        std::uint64_t batch = 0, bytes = 0;
        std::uint32_t unclaimed = 0, undone = 0;
        bool given_up = false;
    };
    enum class Doing : std::uint8_t { looks, makes, sleeps, benched };
    struct Worker {
        Doing doing = Doing::looks;
        std::uint32_t slot = 0, samples = 0;
    };
    struct Pending {   // admitted, not given up, not handed over
        std::size_t pass;
        std::size_t overtaken = 0;
    };

    std::map<std::uint32_t, Made> making{};
    std::map<std::uint64_t, Pending> pending{};
    std::vector<Worker> workers{};
    std::vector<std::uint32_t> back{};   // given back and not taken up
    std::vector<OrderRule> rules{};      // by pass, as asked for last before its first batch was admitted
    OrderRule asked;
    std::size_t num_workers;
    std::uint64_t retiring = 0, pass_first = 0, budget, changes = 0, handed_over = 0, came_back = 0;

    Live(const PolicyOptions& with, test::Sizes sizes, std::uint64_t seed)
        : Driven{with, std::move(sizes), seed},
          asked{with.order},
          num_workers{with.num_workers},
          budget{with.batches_budget_bytes} {
        for (std::size_t i = 0; i < with.num_workers; ++i)
            add_worker();
    }

    std::uint64_t any(std::uint64_t below) { return random() % below; }
    std::size_t count(Doing doing) const {
        return static_cast<std::size_t>(std::ranges::count(workers, doing, &Worker::doing));
    }
    void add_worker() {
        policy.begin();
        workers.push_back({});
    }
    void wake(std::size_t number, Doing from) {
        for (; number != 0; --number) {
            std::size_t at = any(workers.size());
            while (workers[at].doing != from)
                at = (at + 1) % workers.size();
            workers[at].doing = Doing::looks;
        }
    }

    [[nodiscard]] std::uint64_t charged() const {
        std::uint64_t sum = total();
        for (const auto& [slot, made] : making)
            sum += std::max(policy.largest_batch_bytes(), held[slot]) - held[slot];
        return sum;
    }
    void retire() {
        for (std::uint64_t left = retiring & ~(policy.in_flight() | policy.handed()); left != 0; left &= left - 1) {
            const auto slot = static_cast<std::uint32_t>(std::countr_zero(left));
            held[slot] = 0;
            policy.holds(slot, 0);
            retiring &= ~(std::uint64_t{1} << slot);
        }
    }
    void admit(bool loop_waits) {
        for (std::uint64_t samples = 0;;) {
            const bool alone = policy.in_flight() == 0 && drawn_count == policy.next_position();
            const auto unclaimed =
                std::ranges::count_if(making, [](const auto& of) { return of.second.unclaimed != 0; });
            const auto admission =
                policy.admit(loop_waits ? drawn_count : 0, static_cast<std::uint64_t>(budget != 0 ? unclaimed : 0));
            if (!admission) {
                const std::size_t woken = policy.wake(samples);
                return wake(woken, Doing::sleeps);
            }
            trim();
            const auto [batch, slot] = *admission;
            require(slot < policy.slots(), "a batch is admitted beyond the depth");
            const std::uint64_t used = policy.in_flight() | policy.handed();
            require(static_cast<std::size_t>(std::popcount(used)) <= policy.slots(),
                    "more slots in use than there are");
            require(making.emplace(slot, Made{batch, size_of(batch), batch_size, batch_size}).second,
                    "a slot in use is given away");
            if (batch == pass_first)
                rules.push_back(asked);
            require(pending.emplace(batch, Pending{rules.size() - 1}).second, "a batch is admitted twice");
            if (budget != 0)
                require(charged() <= budget || alone, "what is admitted does not fit, and others are under way");
            samples += batch_size;
        }
    }
    void hand_over_all() {
        while (const auto next = policy.hand_over()) {
            const auto at = pending.find(next->batch);
            require(at != pending.end(), "a batch that nobody waits for is handed over");
            require(next->position == drawn_count + ready.size(), "positions do not follow each other");
            require(pending.begin()->second.pass == at->second.pass, "a batch overtakes one of the pass before");
            const OrderRule rule = rules[at->second.pass];
            require(rule != OrderRule::in_order() || at == pending.begin(), "a batch is out of order");
            for (auto older = pending.begin(); older != at; ++older)
                require(++older->second.overtaken <= rule.max_overtakes, "a batch is overtaken too often");
            pending.erase(at);
            ready.push_back(*next);
            ++handed_over;
        }
    }
    void turn(bool loop_waits, bool leaves = false, std::size_t wakes = 0) {
        for (const std::uint32_t slot : back)
            policy.release(slot);
        back.clear();
        retire();
        for (std::uint32_t slot = 0; budget != 0 && slot < held.size(); ++slot)
            if (held[slot] != policy.bytes_of(slot))
                policy.holds(slot, held[slot]);
        admit(loop_waits);
        if (budget != 0) {
            trim();
            require(policy.batches_bytes() == total(), "bytes are counted wrong");
        }
        hand_over_all();
        const bool has_work = std::ranges::any_of(making, [](const auto& of) { return of.second.unclaimed != 0; });
        const std::size_t active = policy.begun() - policy.parked();
        if (wakes == 0 && (leaves || (loop_waits && active == 0)) && has_work)
            wakes = 1;
        wakes = std::min(wakes, policy.parked());
        policy.woken(wakes);
        wake(wakes, Doing::sleeps);
        require(policy.parked() == count(Doing::sleeps), "sleepers are counted wrong");
        require(policy.begun() == workers.size() - count(Doing::benched), "workers are counted wrong");
    }

    void finish(std::uint32_t slot, std::uint32_t samples) {
        Made& made = making.at(slot);
        if (budget != 0)
            grow({.bytes = 0, .slot = slot}, made.bytes * (batch_size - made.undone + samples) / batch_size);
        made.undone -= samples;
        if (made.undone != 0)
            return;
        const bool given_up = made.given_up;
        making.erase(slot);
        if (budget != 0)
            policy.holds(slot, held[slot]);
        require(policy.complete(slot, false) != given_up, "a batch that was given up is wanted");
    }
    void come_back() {
        while (policy.begun() < policy.wanted_workers() && count(Doing::benched) != 0) {
            policy.begin();
            wake(1, Doing::benched);
            ++came_back;
        }
    }
    void work(Worker& worker) {
        if (worker.doing == Doing::makes) {
            worker.doing = Doing::looks;
            policy.observe(worker.samples, worker.samples * any(100'000));
            policy.observe_use({.claims = 1000,
                                .computed_ns = 1'000'000,
                                .queued_ns = any(1'000'000),
                                .waited_ns = any(2) * any(500'000)});
            come_back();
            finish(worker.slot, worker.samples);
            return turn(false);
        }
        if (policy.begun() > policy.wanted_workers()) {
            policy.end();
            worker.doing = Doing::benched;
            return turn(false, true);
        }
        auto oldest = making.end();
        for (auto at = making.begin(); at != making.end(); ++at)
            if (at->second.unclaimed != 0 && (oldest == making.end() || at->second.batch < oldest->second.batch))
                oldest = at;
        if (oldest != making.end()) {
            worker = {Doing::makes, oldest->first, std::min(policy.claim_size(), oldest->second.unclaimed)};
            oldest->second.unclaimed -= worker.samples;
            return;
        }
        turn(false);
        if (std::ranges::none_of(making, [](const auto& of) { return of.second.unclaimed != 0; })) {
            policy.park();
            worker.doing = Doing::sleeps;
        }
    }
    void work_somebody() {
        std::size_t at = any(workers.size());
        for (std::size_t tried = 0; tried < workers.size(); ++tried, at = (at + 1) % workers.size())
            if (workers[at].doing == Doing::looks || workers[at].doing == Doing::makes)
                return work(workers[at]);
        require(policy.wanted() == 0 || !ready.empty(), "nobody makes what the loop waits for");
    }

    void give_back() {
        const auto at = drawn.begin() + static_cast<std::ptrdiff_t>(any(drawn.size()));
        back.push_back(at->slot);
        drawn.erase(at);
        if (policy.parked() != 0 && back.size() >= policy.wake_threshold()) {
            policy.woken(1);
            wake(1, Doing::sleeps);
        }
    }
    /// The loop, with nothing to draw: it must get on unless it holds too much itself. Draws then never fail for ever.
    void wait() {
        turn(true);
        if (!ready.empty() || policy.admitted() == policy.limit())
            return;
        const bool holds_all =
            policy.wanted() == 0 && static_cast<std::size_t>(std::popcount(policy.handed())) >= policy.slots();
        if (holds_all)
            return give_back();
        require(policy.in_flight() != 0, "nothing is admitted though a slot is free and the loop waits");
        require(policy.begun() > policy.parked(), "everybody sleeps though the loop waits");
    }
    void begin_pass() {
        pass_first = policy.limit();
        policy.extend(1 + any(9));
        turn(false);
    }
    void end_early() {
        for (const LoaderPolicy::HandOver& batch : ready)
            policy.release(batch.slot);
        handed_over -= ready.size();
        ready.clear();
        drawn_count = policy.next_position();
        pending.clear();
        const LoaderPolicy::Abandoned given_up = policy.abandon();
        for (std::uint64_t left = given_up.open; left != 0; left &= left - 1) {
            const auto slot = static_cast<std::uint32_t>(std::countr_zero(left));
            Made& made = making.at(slot);
            made.given_up = true;
            if (const std::uint32_t rest = std::exchange(made.unclaimed, 0); rest != 0 || made.undone == 0)
                finish(slot, rest);
        }
        retire();
    }

    void change() {
        ++changes;
        const std::uint64_t what = any(5);
        std::size_t depth = policy.slots() - 1;
        if (what == 0)
            num_workers = 1 + any(most_workers);
        else if (what == 1)
            depth = 1 + any(any(8) == 0 ? 55 : 6);
        else if (what == 2 && budget != 0)
            policy.rebudget(budget = 1 + any(60'000));
        else if (what == 3)
            asked = test::nth_order(any(3), static_cast<std::uint32_t>(1 + changes % 3));
        policy.reorder(asked);
        policy.retarget(num_workers, depth);
        require(policy.slots() == depth + 1, "the depth is another");
        retiring = ((std::uint64_t{1} << LoaderPolicy::max_slots) - 1) & ~((std::uint64_t{1} << policy.slots()) - 1);
        come_back();
        while (policy.begun() < policy.wanted_workers())
            add_worker();
        const std::size_t leaving = policy.begun() - std::min(policy.begun(), policy.wanted_workers());
        turn(true, false, std::min(leaving, policy.parked()));
        require(policy.begun() <= policy.wanted_workers() || policy.begun() - policy.parked() >= leaving,
                "who is too many sleeps on");
        require((retiring & ~(policy.in_flight() | policy.handed())) == 0, "a free slot beyond the depth keeps memory");
    }
};

BOOST_AUTO_TEST_SUITE(live_control_policy)

BOOST_AUTO_TEST_CASE(whatever_changes_every_batch_is_handed_over_once_in_its_order_within_depth_and_budget) {
    constexpr std::uint64_t runs = 500, changes_each = 200;
    std::uint64_t changes = 0, handed = 0, early = 0, benched = 0, came_back = 0, trimmed = 0;
    for (std::uint64_t seed = 0; seed < runs; ++seed) {
        const PolicyOptions options{.batch_size = batch_size,
                                    .num_workers = 1 + seed % 3,
                                    .prefetch_depth = 1 + seed % 5,
                                    .order = test::nth_order(seed, static_cast<std::uint32_t>(1 + seed % 2)),
                                    .batches_budget_bytes = seed % 2 * 20'000,
                                    .cores = seed % 4};
        Live live{options, [seed](std::uint64_t batch) { return 1 + (batch * 7919 + seed) * 104'729 % 9'000; }, seed};
        std::uint64_t steps_at_rest = 0, last = 0;
        while (live.changes < changes_each) {
            if (live.policy.admitted() == live.policy.limit() && (live.any(3) == 0 || live.policy.wanted() == 0) &&
                live.policy.limit() < ~std::uint64_t{0})
                live.begin_pass();
            const std::uint64_t choice = live.any(1000);
            if (choice < 30) {
                live.change();
            } else if (choice < 32) {
                live.end_early();
                ++early;
            } else if (choice < 600) {
                live.work_somebody();
            } else if (choice < 750 && !live.drawn.empty()) {
                live.give_back();
            } else if (!live.ready.empty()) {
                live.draw_one();
            } else {
                live.wait();
            }
            benched += live.count(Live::Doing::benched);
            steps_at_rest = std::exchange(last, live.handed_over) == live.handed_over ? steps_at_rest + 1 : 0;
            require(steps_at_rest < 5'000, "nothing is handed over any more");
        }
        // No further change: all that was admitted comes, and what came back is all there is.
        for (std::uint64_t steps = 0;
             live.policy.wanted() != 0 || live.policy.admitted() != live.policy.limit() || !live.ready.empty();
             ++steps) {
            require(steps < 100'000, "what was admitted does not come");
            if (!live.ready.empty())
                live.draw_one();
            else if (live.any(2) == 0)
                live.wait();
            else
                live.work_somebody();
        }
        require(live.pending.empty(), "a batch is lost");
        changes += live.changes;
        handed += live.handed_over;
        trimmed += live.trimmed;
        came_back += live.came_back;
    }
    BOOST_TEST(changes == runs * changes_each);
    BOOST_TEST(handed > changes);
    BOOST_TEST(early > 1'000u);
    BOOST_TEST(benched > 1'000u);
    BOOST_TEST(came_back > 1'000u);
    BOOST_TEST(trimmed > 1'000u);
    BOOST_TEST_MESSAGE(changes << " changes, " << handed << " batches");
}

BOOST_AUTO_TEST_CASE(an_order_is_that_of_the_pass_whose_admission_has_not_begun) {
    LoaderPolicy policy{{.num_workers = 2, .prefetch_depth = 5}};
    policy.reorder(OrderRule::out_of_order());   // nothing is admitted: at once
    policy.extend(2);
    BOOST_TEST(policy.admit().has_value());
    policy.reorder(OrderRule::in_order());
    BOOST_TEST((policy.order() == OrderRule::out_of_order()));
    BOOST_TEST(policy.admit().has_value());
    policy.extend(2);   // a pass of its own
    BOOST_TEST((policy.order() == OrderRule::in_order()));
    policy.reorder(OrderRule::bounded(3));   // none of its batches is admitted yet
    BOOST_TEST((policy.order() == OrderRule::bounded(3)));
    policy.reorder(OrderRule::in_order());
    while (policy.admit())
        ;
    // Batch n lies in slot n. The older pass goes by its own rule, though another is in force.
    BOOST_TEST(policy.complete(3, false));
    BOOST_TEST(policy.complete(1, false));
    std::vector<std::uint64_t> order;
    const auto hand_over_all = [&] {
        while (const auto next = policy.hand_over())
            order.push_back(next->batch);
    };
    hand_over_all();
    BOOST_TEST(order == (std::vector<std::uint64_t>{1}), boost::test_tools::per_element());
    BOOST_TEST(policy.complete(0, false));
    hand_over_all();
    BOOST_TEST(policy.complete(2, false));
    hand_over_all();
    BOOST_TEST(order == (std::vector<std::uint64_t>{1, 0, 2, 3}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_smaller_budget_holds_from_the_next_batch_on) {
    LoaderPolicy policy{{.num_workers = 1, .prefetch_depth = 3, .batches_budget_bytes = 1000, .batch_bytes_hint = 100}};
    policy.extend(10);
    for (std::uint32_t slot = 0; slot < 3; ++slot) {
        BOOST_TEST(policy.admit(0).has_value());
        policy.holds(slot, 100);
        policy.complete(slot, false);
    }
    policy.rebudget(250);
    BOOST_TEST(!policy.admit(0).has_value());
    while (policy.hand_over())
        ;
    policy.release(0);
    BOOST_TEST(!policy.admit(1).has_value());   // 200 are out, and it takes 100
    policy.release(1);
    const auto next = policy.admit(2);
    BOOST_REQUIRE(next.has_value());
    BOOST_TEST(policy.trims() == (next->slot == 0 ? 2u : 1u));
    policy.rebudget(0);   // bytes are counted or not for good
    BOOST_TEST(policy.counts_bytes());
    LoaderPolicy uncounted{{.prefetch_depth = 3}};
    uncounted.rebudget(1);
    uncounted.extend(4);
    for (int i = 0; i < 4; ++i)
        BOOST_TEST(uncounted.admit().has_value());
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
}   // namespace drawpoint
