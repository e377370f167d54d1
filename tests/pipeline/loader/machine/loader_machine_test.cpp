#include <drawpoint/pipeline/loader/machine/detail/loader_machine.hpp>

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <bit>
#include <deque>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/loader/core/give_back_gate.hpp"
#include "pipeline/loader/orders.hpp"

namespace drawpoint {
namespace {

constexpr std::uint32_t batch_size = 6;
constexpr std::size_t most_workers = 6;

void require(bool holds, const std::string& law) {
    if (!holds)
        BOOST_FAIL(law);
}

/// Sends random events to a LoaderMachine: workers that claim, sleep, rest and come back; a loop that draws, holds and
/// gives back; passes that end early; limits and orders that change during the run. Checks the invariants of every
/// effect.
struct Events {
    struct Made {   // a batch being made, by slot
        std::uint64_t batch = 0, bytes = 0;
        std::uint32_t unclaimed = 0, undone = 0;
        bool given_up = false;
    };
    enum class Doing : std::uint8_t { looks, makes, sleeps, rests };
    struct Worker {
        Doing doing = Doing::looks;
        std::uint32_t slot = 0, samples = 0;
    };
    struct Pending {   // admitted, neither given up nor handed over
        std::size_t pass;
        std::size_t overtaken = 0;
    };

    std::mt19937_64 random;
    PolicyOptions options;
    LiveLimits asked;
    OrderRule rule;
    LoaderMachine machine;
    GiveBackGate gate{};
    LoaderMachine::HeldBytes held{};
    std::map<std::uint32_t, Made> making{};
    std::map<std::uint64_t, Pending> pending{};
    std::vector<Worker> workers{};
    std::deque<LoaderPolicy::HandOver> ready{};
    std::vector<std::uint32_t> drawn{};   // slots that the user holds
    std::vector<OrderRule> rules{};       // by pass: the last rule requested before its first batch was admitted
    std::uint64_t position = 0, pass_first = 0, epoch = 0;
    std::uint64_t changes = 0, handed_over = 0, came_back = 0, trimmed = 0, raised_late = 0;

    static PolicyOptions options_of(std::uint64_t seed) {
        return {.batch_size = batch_size,
                .num_workers = 1 + seed % 3,
                .prefetch_depth = 1 + seed % 5,
                .order = test::nth_order(seed, static_cast<std::uint32_t>(1 + seed % 2)),
                .batches_budget_bytes = seed % 2 * 20'000,
                .cores = seed % 4};
    }
    static LiveLimits limits_of(const PolicyOptions& options) {
        return {.num_workers = options.num_workers,
                .prefetch_depth = options.prefetch_depth,
                .batches_budget_bytes = options.batches_budget_bytes};
    }
    explicit Events(std::uint64_t seed)
        : random{seed},
          options{options_of(seed)},
          asked{limits_of(options)},
          rule{options.order},
          machine{options, asked} {
        for (std::size_t i = 0; i < options.num_workers; ++i)
            add_worker();
    }

    std::uint64_t any(std::uint64_t below) { return random() % below; }
    [[nodiscard]] const LoaderPolicy& policy() const { return machine.policy(); }
    [[nodiscard]] bool counts() const { return policy().counts_bytes(); }
    [[nodiscard]] std::size_t count(Doing doing) const {
        return static_cast<std::size_t>(std::ranges::count(workers, doing, &Worker::doing));
    }
    [[nodiscard]] std::uint64_t unclaimed() const {
        return static_cast<std::uint64_t>(
            std::ranges::count_if(making, [](const auto& of) { return of.second.unclaimed != 0; }));
    }
    [[nodiscard]] std::uint64_t total() const {
        std::uint64_t sum = 0;
        for (const LoaderMachine::SlotBytes& bytes : held)
            sum += bytes.all;
        return sum;
    }
    [[nodiscard]] std::uint64_t charged() const {
        std::uint64_t sum = total();
        for (const auto& [slot, made] : making)
            sum += std::max(policy().largest_batch_bytes(), held[slot].all) - held[slot].all;
        return sum;
    }
    void add_worker() { workers.push_back({machine.arrives() ? Doing::looks : Doing::rests}); }
    void wake(std::size_t number, Doing from) {
        for (; number != 0; --number) {
            std::size_t at = any(workers.size());
            while (workers[at].doing != from)
                at = (at + 1) % workers.size();
            workers[at].doing = Doing::looks;
        }
    }
    void recall() {
        const std::size_t back = machine.recall();
        came_back += back;
        wake(back, Doing::rests);
    }

    // ------------------------------------------------------------------------------------------ turns
    void turn(bool loop_waits, bool leaves = false, std::size_t wakes_at_least = 0) {
        std::size_t wakes = 0;
        const LoaderMachine::Effects* effects;
        do {
            LoaderMachine::Seen seen{.drawn = loop_waits ? position : 0,
                                     .unclaimed = unclaimed(),
                                     .held = &held,
                                     .loop_waits = loop_waits,
                                     .leaves = leaves,
                                     .wakes_at_least = wakes_at_least};
            if (machine.takes_up(loop_waits, gate.is_armed(), seen.unclaimed != 0)) {
                const GiveBackGate::TakenUp taken = gate.take_up(policy().wake_threshold());
                seen.given_back = taken.slots;
                seen.gate = taken.state;
                seen.left = taken.left;
            }
            const bool alone = making.empty() && position == policy().next_position() && ready.empty();
            effects = &machine.turn(seen);
            trim(effects->trim);
            for (const LoaderMachine::Open& batch : effects->open)
                open(batch);
            if (counts() && effects->open.size() != 0)
                require(charged() <= policy_budget() || (alone && effects->open.size() == 1),
                        "what is admitted does not fit, and others are under way");
            for (const LoaderPolicy::HandOver& batch : effects->hand_over)
                hand_over(batch);
            wakes += effects->wake;
            if (effects->disarm && gate.disarm())
                --wakes;
        } while (effects->arm && !gate.arm(*effects->arm));
        const bool begins_next = effects->begin_next;
        wake(wakes, Doing::sleeps);
        if (begins_next) {
            require(policy().admitted() == policy().limit(), "a pass follows before all of the one before is admitted");
            machine.begin_next();
            extend();
            turn(loop_waits);
        }
        if (counts())
            require(policy().batches_bytes() == total(), "bytes are counted wrong");
        require(policy().parked() == count(Doing::sleeps), "sleepers are counted wrong");
        require(policy().begun() == workers.size() - count(Doing::rests), "workers are counted wrong");
        require(policy().parked() == 0 || gate.is_armed(), "workers sleep and nobody will wake them");
    }
    [[nodiscard]] std::uint64_t policy_budget() const { return machine.limits().batches_budget_bytes; }
    void trim(std::uint64_t slots) {
        for (; slots != 0; slots &= slots - 1) {
            const auto slot = static_cast<std::uint32_t>(std::countr_zero(slots));
            require(!making.contains(slot) && std::ranges::find(drawn, slot) == drawn.end(),
                    "memory is given up that somebody uses");
            held[slot] = {};
            ++trimmed;
        }
    }
    void open(const LoaderMachine::Open& batch) {
        require(batch.slot < policy().slots(), "a batch is admitted beyond the depth");
        require(batch.size >= 1 && batch.size <= batch_size, "a batch has no samples, or too many");
        require(static_cast<std::size_t>(std::popcount(policy().in_flight() | policy().handed())) <= policy().slots(),
                "more slots in use than there are");
        const std::uint64_t bytes = 1 + batch.batch * 7919 * 104'729 % 9'000;
        require(making.emplace(batch.slot, Made{batch.batch, bytes, batch.size, batch.size}).second,
                "a slot in use is given away");
        if (batch.batch == pass_first)
            rules.push_back(rule);
        require(pending.emplace(batch.batch, Pending{rules.size() - 1}).second, "a batch is admitted twice");
    }
    void hand_over(const LoaderPolicy::HandOver& batch) {
        const auto at = pending.find(batch.batch);
        require(at != pending.end(), "a batch that nobody waits for is handed over");
        require(batch.position == position + ready.size(), "positions do not follow each other");
        require(pending.begin()->second.pass == at->second.pass, "a batch overtakes one of the pass before");
        const OrderRule of_pass = rules[at->second.pass];
        require(of_pass != OrderRule::in_order() || at == pending.begin(), "a batch is out of order");
        for (auto older = pending.begin(); older != at; ++older)
            require(++older->second.overtaken <= of_pass.max_overtakes, "a batch is overtaken too often");
        pending.erase(at);
        ready.push_back(batch);
        ++handed_over;
    }

    // ------------------------------------------------------------------------------------------ workers
    void finish(std::uint32_t slot, std::uint32_t samples) {
        Made& made = making.at(slot);
        made.undone -= samples;
        if (counts() && !made.given_up)
            held[slot].all = std::max(held[slot].all, made.bytes * (batch_size - made.undone) / batch_size);
        if (made.undone != 0)
            return;
        making.erase(slot);
        machine.complete(slot, false);
    }
    void work(Worker& worker) {
        if (worker.doing == Doing::makes) {
            worker.doing = Doing::looks;
            const WorkerUse use{.claims = 1000,
                                .computed_ns = 1'000'000,
                                .queued_ns = any(1'000'000),
                                .waited_ns = any(2) * any(500'000)};
            if (machine.observe(worker.samples, worker.samples * any(100'000), use))
                recall();
            finish(worker.slot, worker.samples);
            return turn(false);
        }
        if (machine.leaves()) {
            recall();
            worker.doing = Doing::rests;
            turn(false, true);
            machine.rests();
            return recall();
        }
        auto oldest = making.end();
        for (auto at = making.begin(); at != making.end(); ++at)
            if (at->second.unclaimed != 0 && (oldest == making.end() || at->second.batch < oldest->second.batch))
                oldest = at;
        if (oldest != making.end()) {
            worker = {Doing::makes, oldest->first, std::min(policy().claim_size(), oldest->second.unclaimed)};
            oldest->second.unclaimed -= worker.samples;
            return;
        }
        turn(false);
        if (!machine.sleeps(unclaimed() != 0))
            return;
        if (gate.arm(policy().wake_threshold()))
            worker.doing = Doing::sleeps;
        else
            machine.woken();
    }
    void work_somebody() {
        std::size_t at = any(workers.size());
        for (std::size_t tried = 0; tried < workers.size(); ++tried, at = (at + 1) % workers.size())
            if (workers[at].doing == Doing::looks || workers[at].doing == Doing::makes)
                return work(workers[at]);
        require(policy().wanted() == 0 || !ready.empty(), "nobody makes what the loop waits for");
    }

    // ------------------------------------------------------------------------------------------ the loop
    void draw() {
        drawn.push_back(ready.front().slot);
        ready.pop_front();
        ++position;
        if (machine.waits_for_room()) {
            turn(true);
            raise();
        }
    }
    void give_back() {
        const auto at = drawn.begin() + static_cast<std::ptrdiff_t>(any(drawn.size()));
        const std::uint32_t slot = *at;
        drawn.erase(at);
        if (!gate.give_quietly(slot) && gate.give(slot) == GiveBackGate::Then::wake_worker)
            wake(1, Doing::sleeps);
    }
    /// The loop waits with nothing to draw: it must get on unless it holds too much itself. So draws cannot fail for
    /// ever.
    void wait() {
        turn(true);
        if (!ready.empty() || policy().admitted() == policy().limit())
            return;
        if (machine.holds_all(position))
            return give_back();
        require(policy().in_flight() != 0, "nothing is admitted though a slot is free and the loop waits");
        require(policy().begun() > policy().parked(), "everybody sleeps though the loop waits");
    }
    void extend() {
        pass_first = policy().limit();
        const std::uint64_t batches = 1 + any(9);
        machine.extend({.batches = batches, .samples = (batches - 1) * batch_size + 1 + any(batch_size)});
    }
    void begin_pass() {
        if (!machine.begin_pass(++epoch)) {
            machine.orders(epoch);
            extend();
        }
        machine.want_next(any(2) != 0, any(4) == 0);
        turn(false);
        raise();
    }
    void prepare() {
        const auto next = machine.begin_preparing();
        if (!next)
            return;
        require(*next == epoch + 1, "another pass than the next is prepared");
        if (machine.prepared(any(8) != 0))
            turn(false);
    }
    void end_early() {
        std::uint64_t undrawn = 0;
        for (const LoaderPolicy::HandOver& batch : ready)
            undrawn |= std::uint64_t{1} << batch.slot;
        handed_over -= ready.size();
        position += ready.size();
        ready.clear();
        pending.clear();
        const LoaderPolicy::Abandoned given_up = machine.abandon(undrawn);
        for (std::uint64_t left = given_up.open; left != 0; left &= left - 1) {
            const auto slot = static_cast<std::uint32_t>(std::countr_zero(left));
            Made& made = making.at(slot);
            made.given_up = true;
            if (const std::uint32_t rest = std::exchange(made.unclaimed, 0); rest != 0 || made.undone == 0)
                finish(slot, rest);
        }
        trim(machine.retire());
    }
    void raise() {
        if (!machine.waits_for_room() || !machine.has_room(position, 0))
            return;
        machine.raise_limits(0);
        ++raised_late;
        recall();
        turn(false);
        require(machine.limits() == asked, "limits are raised to less than is asked for");
    }
    void change() {
        ++changes;
        const std::uint64_t what = any(5);
        if (what == 0)
            asked.num_workers = 1 + any(most_workers);
        else if (what == 1)
            asked.prefetch_depth = 1 + any(any(8) == 0 ? 55 : 6);
        else if (what == 2 && counts())
            asked.batches_budget_bytes = 1 + any(60'000);
        else if (what == 3)
            rule = test::nth_order(any(3), static_cast<std::uint32_t>(1 + changes % 3));
        const bool holds_back = counts() && any(2) != 0;
        const std::size_t surplus = machine.reconfigure(asked, rule, holds_back, 0);
        require(policy().slots() <= asked.prefetch_depth + 1, "the depth is above what is asked for");
        recall();
        while (workers.size() < asked.num_workers)
            add_worker();
        turn(true, false, surplus);
        raise();
        require(!machine.too_many() || policy().begun() > policy().parked(), "who is too many sleeps on");
    }
    void step() {
        if (policy().admitted() == policy().limit() && (any(3) == 0 || policy().wanted() == 0) && ready.empty() &&
            position == policy().next_position())
            begin_pass();
        const std::uint64_t choice = any(1000);
        if (choice < 30)
            change();
        else if (choice < 32)
            end_early();
        else if (choice < 60)
            prepare();
        else if (choice < 600)
            work_somebody();
        else if (choice < 750 && !drawn.empty())
            give_back();
        else if (!ready.empty())
            draw();
        else
            wait();
    }
};

BOOST_AUTO_TEST_SUITE(loader_machine)

BOOST_AUTO_TEST_CASE(whatever_happens_every_batch_is_handed_over_once_in_its_order_within_depth_and_budget) {
    constexpr std::uint64_t runs = 500, changes_each = 200;
    std::uint64_t changes = 0, handed = 0, rested = 0, came_back = 0, trimmed = 0, raised_late = 0;
    for (std::uint64_t seed = 0; seed < runs; ++seed) {
        Events events{seed};
        std::uint64_t steps_at_rest = 0, last = 0;
        while (events.changes < changes_each) {
            events.step();
            rested += events.count(Events::Doing::rests);
            steps_at_rest = std::exchange(last, events.handed_over) == events.handed_over ? steps_at_rest + 1 : 0;
            require(steps_at_rest < 5'000, "nothing is handed over any more");
        }
        // Without further changes, every admitted batch arrives, and what was given back is all there is.
        for (std::uint64_t steps = 0; events.policy().wanted() != 0 ||
                                      events.policy().admitted() != events.policy().limit() || !events.ready.empty();
             ++steps) {
            require(steps < 100'000, "what was admitted does not come");
            if (!events.ready.empty())
                events.draw();
            else if (events.any(2) == 0)
                events.wait();
            else
                events.work_somebody();
        }
        require(events.pending.empty(), "a batch is lost");
        changes += events.changes;
        handed += events.handed_over;
        trimmed += events.trimmed;
        came_back += events.came_back;
        raised_late += events.raised_late;
    }
    BOOST_TEST(changes == runs * changes_each);
    BOOST_TEST(handed > changes);
    BOOST_TEST(rested > 1'000u);
    BOOST_TEST(came_back > 1'000u);
    BOOST_TEST(trimmed > 1'000u);
    BOOST_TEST(raised_late > 1'000u);
    BOOST_TEST_MESSAGE(changes << " changes, " << handed << " batches");
}

BOOST_AUTO_TEST_CASE(a_worker_of_which_there_are_too_many_does_not_sleep) {
    LoaderMachine machine{{.batch_size = 1, .num_workers = 2, .prefetch_depth = 1},
                          {.num_workers = 2, .prefetch_depth = 1}};
    BOOST_TEST(machine.arrives());
    BOOST_TEST(machine.arrives());
    (void)machine.turn({});
    (void)machine.reconfigure({.num_workers = 1, .prefetch_depth = 1}, OrderRule{}, false, 0);
    BOOST_TEST(machine.too_many());
    BOOST_TEST(!machine.sleeps(false));
    BOOST_TEST(machine.leaves());
    BOOST_TEST(machine.sleeps(false));
}

BOOST_AUTO_TEST_CASE(a_new_worker_counts_one_that_is_still_leaving) {
    LoaderMachine machine{{.batch_size = 1, .num_workers = 2, .prefetch_depth = 1},
                          {.num_workers = 2, .prefetch_depth = 1}};
    BOOST_TEST(machine.arrives());
    BOOST_TEST(machine.arrives());
    (void)machine.reconfigure({.num_workers = 1, .prefetch_depth = 1}, OrderRule{}, false, 0);
    BOOST_TEST(machine.leaves());
    (void)machine.reconfigure({.num_workers = 2, .prefetch_depth = 1}, OrderRule{}, false, 0);
    BOOST_TEST(!machine.arrives());
    machine.rests();
    BOOST_TEST(machine.recall() == 1u);
}

BOOST_AUTO_TEST_CASE(memory_for_reads_that_was_not_asked_for_limits_nothing) {
    const LiveLimits none{}, some{.reads_bytes = 5}, more{.reads_bytes = 7};
    BOOST_TEST(least(none, some).reads_bytes == 5u);
    BOOST_TEST(least(more, some).reads_bytes == 5u);
    BOOST_TEST(least(some, more).reads_bytes == 5u);
}

BOOST_AUTO_TEST_CASE(a_gate_that_counts_beyond_the_threshold_is_armed_anew) {
    LoaderMachine machine{{.batch_size = 1, .num_workers = 1, .prefetch_depth = 2},
                          {.num_workers = 1, .prefetch_depth = 2}};
    BOOST_TEST(machine.arrives());
    (void)machine.turn({});
    BOOST_TEST(machine.sleeps(false));
    const std::size_t threshold = machine.policy().wake_threshold();
    const auto arms = [&](LoaderMachine::Gate gate, std::size_t left) {
        return machine.turn({.gate = gate, .left = left}).arm;
    };
    BOOST_TEST((arms(LoaderMachine::Gate::off, 0) == threshold));
    BOOST_TEST((arms(LoaderMachine::Gate::counting, threshold + 1) == threshold));
    BOOST_TEST((arms(LoaderMachine::Gate::counting, threshold) == std::nullopt));
}

BOOST_AUTO_TEST_CASE(there_is_no_room_while_a_worker_that_left_still_frees_what_it_held) {
    LoaderMachine machine{{.batch_size = 1, .num_workers = 3, .prefetch_depth = 1},
                          {.num_workers = 3, .prefetch_depth = 1}};
    for (int worker = 0; worker < 3; ++worker)
        BOOST_TEST(machine.arrives());
    (void)machine.reconfigure({.num_workers = 1, .prefetch_depth = 2}, OrderRule{}, true, 0);
    BOOST_TEST(machine.waits_for_room());
    BOOST_TEST(!machine.has_room(1, 0));
    for (int worker = 0; worker < 2; ++worker)
        BOOST_TEST(machine.leaves());
    BOOST_TEST(!machine.has_room(1, 0));
    machine.rests();
    BOOST_TEST(!machine.has_room(1, 0));
    machine.rests();
    BOOST_TEST(machine.has_room(1, 0));
}

BOOST_AUTO_TEST_CASE(there_is_no_room_while_batches_in_flight_exceed_the_budget_until_they_are_drawn) {
    LoaderMachine machine{{.batch_size = 1, .num_workers = 1, .prefetch_depth = 2, .batches_budget_bytes = 1000},
                          {.num_workers = 1, .prefetch_depth = 2, .batches_budget_bytes = 1000}};
    machine.extend({.batches = 9, .samples = 9});
    LoaderMachine::HeldBytes held{};
    BOOST_TEST(machine.turn({.held = &held}).open.size() > 0u);
    held[0] = {.all = 900};
    machine.count(held);
    (void)machine.reconfigure({.num_workers = 1, .prefetch_depth = 4, .batches_budget_bytes = 500}, OrderRule{}, true,
                              0);
    const auto in_flight = static_cast<std::uint64_t>(std::popcount(machine.policy().wanted()));
    BOOST_TEST_REQUIRE(in_flight >= 1u);
    BOOST_TEST(!machine.has_room(in_flight, 0));
    BOOST_TEST(machine.has_room(in_flight + 1, 0));   // a single batch may exceed the budget
    held[0] = {.all = 400};
    machine.count(held);
    BOOST_TEST(machine.has_room(0, 0));
}

BOOST_AUTO_TEST_CASE(the_last_batch_of_a_pass_has_the_samples_that_are_left) {
    LoaderMachine machine{{.batch_size = 4, .num_workers = 1, .prefetch_depth = 3},
                          {.num_workers = 1, .prefetch_depth = 3}};
    machine.extend({.batches = 3, .samples = 7, .first_size = 2});
    std::vector<std::uint32_t> sizes;
    for (const LoaderMachine::Open& batch : machine.turn({}).open)
        sizes.push_back(batch.size);
    BOOST_TEST(sizes == (std::vector<std::uint32_t>{2, 4, 1}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
}   // namespace drawpoint
