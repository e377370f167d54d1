#include <drawpoint/pipeline/loader/machine/loader_machine.hpp>

#include <boost/test/unit_test.hpp>

#include <cstdlib>
#include <deque>
#include <random>
#include <string>
#include <vector>

#include "pipeline/loader/give_back_gate.hpp"
#include "pipeline/loader/machine/old_turns.hpp"

namespace drawpoint {
namespace {

/// Random events for the machine and the old code at once; what each decides must be the same.
struct Both {
    std::mt19937_64 random;
    PolicyOptions options;
    LiveLimits limits;
    LoaderMachine machine;
    GiveBackGate gate;
    test::OldTurns old;
    LoaderMachine::HeldBytes held{}, old_held{};
    std::vector<std::uint32_t> open{}, drawn{};   // slots whose batch is claimed and made; of the user
    std::deque<std::uint32_t> unclaimed{}, ready{};
    std::size_t sleeping = 0, leaving = 0;
    std::uint64_t epoch = 0;
    std::string differs{};

    static PolicyOptions options_of(std::mt19937_64& random) {
        return {.batch_size = 1 + random() % 64,
                .num_workers = 1 + random() % 6,
                .prefetch_depth = 1 + random() % (random() % 8 == 0 ? 55 : 6),
                .order = static_cast<BatchOrder>(random() % 3),
                .max_overtakes = 1 + random() % 3,
                .batches_budget_bytes = random() % 2 * (1 + random() % 20'000),
                .batch_bytes_hint = random() % 2 * 300,
                .cores = random() % 4};
    }
    static LiveLimits limits_of(const PolicyOptions& options, std::mt19937_64& random) {
        return {.num_workers = options.num_workers,
                .prefetch_depth = options.prefetch_depth,
                .read_concurrency = random() % 64,
                .sample_sets = 1 + random() % 4,
                .batches_budget_bytes = options.batches_budget_bytes,
                .reads_bytes = random() % 2 * (random() % 1000),
                .worker_bytes = 100};
    }
    explicit Both(std::uint64_t seed)
        : random{seed},
          options{options_of(random)},
          limits{limits_of(options, random)},
          machine{options, limits},
          old{options, limits} {
        old.held = &old_held;
    }

    std::uint64_t any(std::uint64_t below) { return random() % below; }
    void same(bool holds, const char* what) {
        if (!holds && differs.empty())
            differs = what;
    }

    void turn(bool loop_waits, bool leaves = false, std::size_t wakes_at_least = 0) {
        old.unclaimed_ = unclaimed.size();
        old.turn(loop_waits, leaves, wakes_at_least);
        FixedVector<LoaderMachine::Open, 2 * LoaderPolicy::max_slots> opened;
        FixedVector<LoaderPolicy::HandOver, 2 * LoaderPolicy::max_slots> handed;
        opened.clear();
        handed.clear();
        std::size_t wakes = 0;
        std::uint64_t trimmed = 0;
        const LoaderMachine::Effects* effects;
        do {
            LoaderMachine::Seen seen{.drawn = loop_waits ? old.position_ : 0,
                                     .unclaimed = unclaimed.size(),
                                     .held = &held,
                                     .loop_waits = loop_waits,
                                     .leaves = leaves,
                                     .wakes_at_least = wakes_at_least};
            if (machine.takes_up(loop_waits, gate.is_armed(), !unclaimed.empty())) {
                const auto taken = gate.take_up(machine.policy().wake_threshold());
                seen.given_back = taken.slots;
                seen.gate = taken.state;
                seen.left = taken.left;
            }
            effects = &machine.turn(seen);
            for (std::uint32_t slot = 0; slot < held.size(); ++slot)
                if ((effects->trim >> slot & 1) != 0)
                    held[slot] = {};
            trimmed |= effects->trim;
            for (const auto& batch : effects->open) {
                opened.push_back(batch);
                unclaimed.push_back(batch.slot);
            }
            for (const auto& batch : effects->hand_over) {
                handed.push_back(batch);
                ready.push_back(batch.slot);
            }
            wakes += effects->wake;
            if (effects->disarm && gate.disarm())
                --wakes;
        } while (effects->arm && !gate.arm(*effects->arm));
        same(std::equal(opened.begin(), opened.end(), old.effects.open.begin(), old.effects.open.end()), "opened");
        same(std::equal(handed.begin(), handed.end(), old.effects.hand_over.begin(), old.effects.hand_over.end()),
             "handed over");
        same(wakes == old.effects.wake, "woken");
        same(trimmed == old.trimmed, "trimmed");
        same(effects->prepare_order == old.prepare, "prepares");
        same(held == old_held, "bytes held");
        sleeping -= std::min(sleeping, wakes);
    }
    void extend() {
        const std::uint64_t batches = 1 + any(9),
                            samples = (batches - 1) * options.batch_size + 1 + any(options.batch_size);
        old.pass_first = old.policy_.limit();
        old.pass_samples = samples;
        old.policy_.extend(batches);
        machine.extend({.batches = batches, .samples = samples});
    }
    void begin_pass() {
        ++epoch;
        const bool was_prepared = old.next_prepared_ && old.order_epoch_ == epoch;
        if (was_prepared)
            old.next_prepared_ = false;
        same(machine.begin_pass(epoch) == was_prepared, "prepared");
        if (!was_prepared) {
            abandon();
            old.order_epoch_ = epoch;
            machine.orders(epoch);
            extend();
        }
        old.next_wanted_ = any(2) != 0;
        machine.want_next(old.next_wanted_);
    }
    void prepare() {
        const bool wanted = old.next_wanted_ && !old.order_busy_ && old.policy_.admitted() == old.policy_.limit();
        const auto next = machine.begin_preparing();
        same(next.has_value() == wanted, "begins to prepare");
        if (!wanted)
            return;
        same(*next == old.order_epoch_ + 1, "the epoch to prepare");
        const bool made = any(8) != 0;
        old.order_busy_ = old.next_wanted_ = false;
        same(machine.prepared(made) == made, "is prepared");
        if (!made)
            return;
        ++old.order_epoch_;
        extend();
        old.next_prepared_ = true;
        turn(false);
    }
    void complete(std::uint32_t slot) {
        const bool failed = any(16) == 0;
        old.policy_.complete(slot, failed);
        machine.complete(slot, failed);
    }
    void abandon() {
        std::uint64_t undrawn = 0;
        for (const std::uint32_t slot : ready) {
            undrawn |= std::uint64_t{1} << slot;
            old.policy_.release(slot);
        }
        old.position_ += ready.size();
        ready.clear();
        const LoaderPolicy::Abandoned given_up = old.policy_.abandon();
        same(machine.abandon(undrawn) == given_up, "given up");
        for (const std::uint32_t slot : unclaimed)
            complete(slot);
        unclaimed.clear();
        old.next_wanted_ = old.next_prepared_ = false;
        old.trimmed = 0;
        old.retire_slots();
        const std::uint64_t retired = machine.retire();
        same(retired == old.trimmed, "retired");
        held = old_held;
    }
    void recall() {
        const std::size_t back = machine.recall();
        same(back == std::exchange(old.recalled, 0), "recalled");
    }
    void reconfigure() {
        LiveLimits asked = limits_of(options_of(random), random);
        if (limits.batches_budget_bytes == 0 || asked.batches_budget_bytes == 0)
            asked.batches_budget_bytes = limits.batches_budget_bytes;
        const auto order = static_cast<BatchOrder>(any(3));
        const std::size_t overtakes = any(4);
        const bool holds_back = any(2) != 0;
        old.slots_bytes = any(10'000);
        const std::size_t old_surplus = old.reconfigure(asked, order, overtakes, holds_back);
        const std::size_t surplus = machine.reconfigure(asked, order, overtakes, holds_back, old.slots_bytes);
        recall();
        same(surplus == old_surplus, "sleepers too many");
        turn(true, false, surplus);
        raise();
    }
    void raise() {
        const std::uint64_t reads = any(1000);
        same(machine.waits_for_room() == old.waits_for_room_, "waits for room");
        same(machine.has_room(old.position_, reads) == old.has_room(reads), "has room");
        if (!old.waits_for_room_ || !old.has_room(reads))
            return;
        old.hold_to(old.all_);
        machine.raise_limits(old.slots_bytes);
        recall();
        turn(false);
    }
    void work() {
        const std::size_t awake = machine.policy().begun() - machine.policy().parked();
        switch (any(5)) {
        case 0:   // of the oldest batch, the last samples are claimed; then they are made
            if (!unclaimed.empty()) {
                open.push_back(unclaimed.front());
                unclaimed.pop_front();
            }
            return;
        case 1:
        case 2:
            if (!open.empty()) {
                const std::size_t at = any(open.size());
                const std::uint32_t slot = open[at];
                open.erase(open.begin() + static_cast<std::ptrdiff_t>(at));
                const std::uint64_t bytes = any(4'000);
                held[slot] = old_held[slot] = {.all = bytes, .passing = bytes / 3};
                const WorkerUse use{.claims = any(2) * any(40),
                                    .computed_ns = 1'000'000,
                                    .queued_ns = any(100'000),
                                    .waited_ns = any(2) * any(400'000)};
                const std::uint64_t samples = 1 + any(64), ns = samples * any(any(3) == 0 ? 100'000 : 500);
                old.observe(samples, ns, use);
                if (machine.observe(samples, ns, use))
                    recall();
                same(old.recalled == 0, "recalled after observe");
                complete(slot);
                return turn(false);
            }
            return;
        case 3:   // a worker without work
            turn(false);
            if (awake > 0) {
                old.unclaimed_ = unclaimed.size();
                bool sleeps = machine.sleeps(!unclaimed.empty());
                if (sleeps && !gate.arm(machine.policy().wake_threshold())) {
                    machine.woken();
                    sleeps = false;
                }
                same(sleeps == old.sleeps(), "sleeps");
                sleeping += sleeps;
            }
            return;
        default:
            if (leaving != 0 && any(2) == 0) {
                --leaving;
                old.rest();
                machine.rests();
                return recall();
            }
            if (awake > 0 && any(2) == 0) {
                const bool left = old.leave();
                same(machine.leaves() == left, "leaves");
                recall();
                leaving += left;
                if (left)
                    turn(false, true);
                return;
            }
            if (machine.policy().begun() < 8)
                same(machine.arrives() == old.arrive(), "arrives");
        }
    }
    void loop() {
        switch (any(8)) {
        case 0: return reconfigure();
        case 1:
            if (any(8) == 0 || (ready.empty() && old.policy_.admitted() == old.policy_.limit()))
                begin_pass();
            return;
        case 2: return prepare();
        case 3: return turn(true);
        case 4: return raise();
        case 5:
            if (!drawn.empty()) {
                const std::size_t at = any(drawn.size());
                const std::uint32_t slot = drawn[at];
                drawn.erase(drawn.begin() + static_cast<std::ptrdiff_t>(at));
                const bool fires = !gate.give_quietly(slot) && gate.give(slot) == GiveBackGate::Then::wake_worker;
                same(fires == old.give(slot), "a slot that comes back wakes");
            }
            return;
        default:
            if (!ready.empty()) {
                drawn.push_back(ready.front());
                ready.pop_front();
                ++old.position_;
            }
        }
    }
    void step() {
        if (any(2) == 0)
            work();
        else
            loop();
        same(gate.word() == old.gate_, "the gate");
        same(machine.policy().begun() == old.policy_.begun(), "workers at work");
        same(machine.policy().parked() == old.policy_.parked(), "workers asleep");
        same(machine.limits() == old.held_to_, "limits");
        same(machine.holds_all(old.position_) ==
                 (old.policy_.next_position() == old.position_ && old.policy_.wanted() == 0 &&
                  static_cast<std::size_t>(std::popcount(old.policy_.handed())) >= old.policy_.slots()),
             "all are held");
        same(machine.peak_bytes() == std::max(old.past_peak_bytes_, old.most_workers_bytes_ + old.most_slots_bytes_),
             "peak");
        same(machine.largest_samples_bytes() == old.largest_samples_bytes_, "largest samples");
        same(machine.policy().most_batches_bytes() == old.policy_.most_batches_bytes(), "most bytes of batches");
    }
};

BOOST_AUTO_TEST_SUITE(loader_machine)

BOOST_AUTO_TEST_CASE(random_events_have_the_effects_that_the_code_before_it_had) {
    const char* const asked = std::getenv("DRAWPOINT_SEQUENCES");
    const std::uint64_t sequences = asked != nullptr ? std::stoull(asked) : 20'000;
    std::uint64_t handed = 0, batches = 0, slept = 0, rested = 0;
    for (std::uint64_t seed = 0; seed < sequences; ++seed) {
        Both both{seed};
        for (int i = 0; i < 60 && both.differs.empty(); ++i) {
            both.step();
            slept += both.sleeping;
            rested += both.leaving;
        }
        BOOST_REQUIRE_MESSAGE(both.differs.empty(), "sequence " << seed << ": " << both.differs << " differs");
        handed += both.machine.policy().next_position();
        batches += both.machine.policy().admitted();
    }
    BOOST_TEST_MESSAGE(sequences << " sequences, " << batches << " batches admitted, " << handed << " handed over");
    BOOST_TEST(handed > sequences);
    BOOST_TEST(slept > sequences / 10);
    BOOST_TEST(rested > sequences / 100);
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
}   // namespace drawpoint
