#include <drawpoint/pipeline/loader_policy.hpp>

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <limits>
#include <random>
#include <vector>

namespace drawpoint {
namespace {

using Sizes = std::function<std::uint64_t(std::uint64_t batch)>;

/// A loader in virtual time whose batches take as many bytes as `size_of` says, in memory that slots keep until it is trimmed.
/// The loop holds up to `user_holds` batches; up to `open_at_once` are made at a time.
struct Driven {
    LoaderPolicy policy;
    PolicyOptions options;
    Sizes size_of;
    std::mt19937_64 random;
    std::size_t user_holds = 1, open_at_once = 2;
    bool claims_late = false;   // some samples of every open batch are unclaimed

    struct Batch {
        std::uint64_t number = 0, bytes = 0;
        std::uint32_t slot = 0;
    };
    std::vector<Batch> open{}, drawn{};
    std::vector<LoaderPolicy::HandOver> ready{};
    std::array<std::uint64_t, LoaderPolicy::max_slots> held{};   // what is really there
    std::array<std::uint64_t, LoaderPolicy::max_slots> largest_of{};
    std::uint64_t drawn_count = 0, peak = 0, largest = 0, trimmed = 0;
    std::uint64_t touched = 0;   // slots, a bit each

    Driven(const PolicyOptions& with, Sizes sizes, std::uint64_t seed)
        : policy{with}, options{with}, size_of{std::move(sizes)}, random{seed} {}

    [[nodiscard]] std::uint64_t total() const {
        std::uint64_t sum = 0;
        for (const std::uint64_t bytes : held)
            sum += bytes;
        return sum;
    }
    [[nodiscard]] std::uint64_t bytes_out() const {   // published or held by the loop
        std::uint64_t sum = 0;
        for (std::uint64_t left = policy.handed(); left != 0; left &= left - 1)
            sum += held[static_cast<std::size_t>(std::countr_zero(left))];
        return sum;
    }

    void grow(const Batch& batch, std::uint64_t bytes) {
        held[batch.slot] = std::max(held[batch.slot], bytes);
        peak = std::max(peak, total());
        largest = std::max(largest, held[batch.slot]);
    }
    void trim() {
        for (std::uint64_t left = policy.trims(); left != 0; left &= left - 1) {
            const auto slot = static_cast<std::size_t>(std::countr_zero(left));
            const bool is_free = ((policy.in_flight() | policy.handed()) >> slot & 1) == 0;
            BOOST_REQUIRE(is_free);
            BOOST_REQUIRE(held[slot] != 0);
            held[slot] = 0;
            ++trimmed;
        }
    }
    /// As a driver's turn: says what is held, admits, frees, opens, hands over.
    void turn(bool loop_waits) {
        for (std::uint32_t slot = 0; slot < held.size(); ++slot)
            policy.holds(slot, held[slot]);
        while (open.size() < open_at_once) {
            const auto admission = policy.admit(loop_waits ? drawn_count : 0, claims_late ? open.size() : 0);
            if (!admission)
                break;
            trim();
            touched |= std::uint64_t{1} << admission->slot;
            open.push_back({admission->batch, size_of(admission->batch), admission->slot});
        }
        trim();
        while (const auto next = policy.hand_over())
            ready.push_back(*next);
        BOOST_REQUIRE_EQUAL(policy.batches_bytes(), total());
    }
    void complete_one() {
        const auto at = open.begin() + static_cast<std::ptrdiff_t>(random() % open.size());
        grow(*at, at->bytes);
        policy.complete(at->slot, false);
        open.erase(at);
        turn(false);
    }
    void draw_one() {
        drawn.push_back({.number = ready.front().batch, .slot = ready.front().slot});
        ready.erase(ready.begin());
        ++drawn_count;
    }
    void give_one_back() {
        const auto at = drawn.begin() + static_cast<std::ptrdiff_t>(random() % drawn.size());
        policy.release(at->slot);
        drawn.erase(at);
    }
    /// One random step. False: nothing is left to do.
    bool step() {
        const std::uint64_t choice = random() % 4;
        if (choice == 0 && !open.empty()) {   // a part of a batch is made
            const Batch& batch = open[random() % open.size()];
            grow(batch, random() % (batch.bytes + 1));
        } else if (choice == 1 && !drawn.empty()) {
            give_one_back();
            turn(false);
        } else if (choice == 2 && !ready.empty() && drawn.size() < user_holds) {
            draw_one();
        } else if (!open.empty()) {
            complete_one();
        } else if (ready.empty()) {   // the loop waits, with what it holds
            const std::uint64_t before = policy.admitted();
            turn(true);
            if (policy.admitted() == before && ready.empty()) {
                BOOST_REQUIRE(policy.admitted() == policy.limit() || drawn.size() == policy.slots());
                if (drawn.empty())
                    return false;
                give_one_back();
            }
        } else if (drawn.size() == user_holds) {
            give_one_back();
        } else {
            draw_one();
        }
        return true;
    }
};

constexpr std::uint64_t any = std::numeric_limits<std::uint64_t>::max();

BOOST_AUTO_TEST_SUITE(loader_policy_bytes)

BOOST_AUTO_TEST_CASE(no_more_than_the_budget_is_held_as_long_as_no_batch_is_larger_than_expected) {
    std::uint64_t steps = 0, filled = 0;
    for (std::uint64_t seed = 0; steps < 100'000; ++seed) {
        std::mt19937_64 random{seed};
        const std::uint64_t most = 1 + random() % 1000, budget = 2 * most + random() % (20 * most);
        Driven driven{{.num_workers = 3,
                       .prefetch_depth = 1 + random() % 30,
                       .order = static_cast<BatchOrder>(random() % 3),
                       .max_overtakes = 2,
                       .batches_budget_bytes = budget,
                       .batch_bytes_hint = most},
                      [&](std::uint64_t) { return 1 + random() % most; },
                      seed};
        driven.open_at_once = 1 + random() % 6;
        driven.policy.extend(60);
        while (driven.step()) {
            ++steps;
            BOOST_REQUIRE_LE(driven.total(), budget);
        }
        BOOST_REQUIRE_EQUAL(driven.drawn_count, 60u);
        filled += driven.peak > budget - 2 * most;
    }
    BOOST_TEST(filled > 20u);   // the budget is used, too
}

BOOST_AUTO_TEST_CASE(whatever_batches_take_one_at_a_time_exceeds_the_budget_by_one_batch_at_most) {
    std::uint64_t steps = 0, beyond = 0;
    for (std::uint64_t seed = 0; steps < 100'000; ++seed) {
        std::mt19937_64 random{seed};
        const std::uint64_t budget = 1 + random() % 100'000;
        Driven driven{{.num_workers = 1, .prefetch_depth = 1 + random() % 30, .batches_budget_bytes = budget},
                      [&](std::uint64_t batch) {
                          switch (seed % 3) {
                          case 0: return std::uint64_t{1} << std::min<std::uint64_t>(batch, 40);   // grows for ever
                          case 1: return std::uint64_t{1} << (random() % 18);
                          default: return batch % 7 == 6 ? budget + random() % budget : 1 + random() % (budget / 2 + 1);
                          }
                      },
                      seed};
        driven.open_at_once = 1;
        driven.policy.extend(60);
        while (driven.step()) {
            ++steps;
            BOOST_REQUIRE_LE(driven.total(), std::max(budget, driven.bytes_out()) + driven.largest);
            beyond += driven.total() > budget;
        }
        BOOST_REQUIRE_EQUAL(driven.drawn_count, 60u);
        driven.turn(false);   // everything is back
        BOOST_REQUIRE_LE(driven.total(), budget);
    }
    BOOST_TEST(beyond > 0u);
}

BOOST_AUTO_TEST_CASE(batches_are_opened_before_those_open_are_claimed_only_while_sizes_are_calm_and_room_is_ample) {
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
        constexpr std::uint64_t budget = 100'000;
        Driven driven{{.num_workers = 1, .prefetch_depth = 55, .batches_budget_bytes = budget},
                      [](std::uint64_t batch) { return 100 + batch * 100; },   // each is larger than all before
                      seed};
        driven.open_at_once = 56;
        driven.claims_late = true;
        driven.policy.extend(300);
        while (driven.step())
            BOOST_REQUIRE_LE(driven.total(), std::max(budget, driven.bytes_out()) + driven.largest);
        BOOST_REQUIRE_EQUAL(driven.drawn_count, 300u);
    }
    LoaderPolicy policy{{.num_workers = 2, .prefetch_depth = 3, .batches_budget_bytes = 80}};
    policy.extend(100);
    for (int i = 0; i < 9; ++i) {   // 2 × 4 after the first
        const auto admission = policy.admit(0, 1);
        BOOST_REQUIRE(admission.has_value());
        BOOST_TEST(!policy.admit(0, 1).has_value());
        policy.complete(admission->slot, false);
        policy.holds(admission->slot, 10);
        BOOST_REQUIRE(policy.hand_over().has_value());
        policy.release(admission->slot);
    }
    BOOST_TEST(policy.admit(0, 1).has_value());
    BOOST_TEST(policy.admit(0, 1).has_value());    // 20, and 60 for two that are three times larger
    BOOST_TEST(!policy.admit(0, 1).has_value());   // 30, and 90
    BOOST_TEST(!policy.admit(0, 2).has_value());
    BOOST_TEST(policy.admit(0, 0).has_value());
}

BOOST_AUTO_TEST_CASE(however_calm_sizes_were_no_more_than_two_batches_are_open_before_they_are_claimed) {
    LoaderPolicy policy{{.num_workers = 2, .prefetch_depth = 9, .batches_budget_bytes = 1000, .batch_bytes_hint = 1}};
    policy.extend(100);
    BOOST_TEST(policy.admit(0, 0).has_value());
    BOOST_TEST(policy.admit(0, 1).has_value());
    BOOST_TEST(!policy.admit(0, 2).has_value());
    BOOST_TEST(policy.admit(0, 1).has_value());
    policy.holds(0, 500);   // still open: the others may become as large
    BOOST_TEST(!policy.admit(0, 0).has_value());
    BOOST_TEST(policy.largest_batch_bytes() == 500u);
}

BOOST_AUTO_TEST_CASE(under_a_budget_samples_are_claimed_one_by_one) {
    for (const std::uint64_t budget : {std::uint64_t{0}, std::uint64_t{1000}, any}) {
        LoaderPolicy policy{{.batch_size = 64, .num_workers = 2, .batches_budget_bytes = budget}};
        policy.observe(1000, 1000);
        BOOST_TEST(policy.claim_size() == (budget == 1000 ? 1u : 64u));
        BOOST_TEST(policy.claims_whole_batches() == (budget != 1000));
    }
}

BOOST_AUTO_TEST_CASE(what_is_beyond_the_budget_is_growth_of_batches_that_were_open_together) {
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
        constexpr std::uint64_t budget = 1000;
        Driven driven{{.num_workers = 2, .prefetch_depth = 55, .batches_budget_bytes = budget},
                      [](std::uint64_t batch) { return 1 + batch * 3; },   // each is larger than all before
                      seed};
        driven.open_at_once = 2;
        driven.policy.extend(300);
        while (driven.step())
            // Two that were open: each at most 3 × 56 larger than the largest complete one; or one alone.
            BOOST_REQUIRE_LE(driven.total(), std::max(budget + 2 * 3 * 56, driven.bytes_out() + 2 * driven.largest));
        BOOST_REQUIRE_EQUAL(driven.drawn_count, 300u);
    }
}

BOOST_AUTO_TEST_CASE(every_batch_is_made_however_small_the_budget_and_however_many_the_loop_holds) {
    for (std::uint64_t seed = 0; seed < 400; ++seed) {
        std::mt19937_64 random{seed};
        Driven driven{{.num_workers = 1 + seed % 4,
                       .prefetch_depth = 1 + random() % 10,
                       .order = static_cast<BatchOrder>(seed % 3),
                       .max_overtakes = 1,
                       .batches_budget_bytes = 1 + random() % 50},
                      [&](std::uint64_t) { return 1 + random() % 100; },
                      seed};
        driven.user_holds = 1 + random() % driven.policy.slots();
        driven.open_at_once = 1 + random() % 4;
        driven.policy.extend(40);
        std::size_t steps = 0;
        while (driven.step())
            BOOST_REQUIRE(++steps < 10'000);
        BOOST_TEST(driven.drawn_count == 40u);
    }
}

BOOST_AUTO_TEST_CASE(without_workers_every_batch_is_made_too) {
    LoaderPolicy policy{{.num_workers = 0, .prefetch_depth = 4, .batches_budget_bytes = 10}};
    policy.extend(5);
    for (std::uint64_t i = 0; i < 5; ++i) {
        const auto admission = policy.admit(i);
        BOOST_REQUIRE(admission.has_value());
        policy.complete(admission->slot, false);
        policy.holds(admission->slot, 25);
        BOOST_REQUIRE(policy.hand_over().has_value());
        BOOST_TEST(!policy.admit(i).has_value());   // not drawn yet
        if (i % 2 == 1)
            policy.release(admission->slot);
    }
}

BOOST_AUTO_TEST_CASE(until_one_batch_is_complete_only_one_is_open_unless_a_size_was_given) {
    LoaderPolicy policy{{.num_workers = 2, .prefetch_depth = 5, .batches_budget_bytes = 100}};
    policy.extend(10);
    BOOST_TEST(policy.admit().has_value());
    BOOST_TEST(!policy.admit().has_value());
    policy.holds(0, 30);   // what is there so far says little about a batch
    BOOST_TEST(!policy.admit().has_value());
    policy.complete(0, false);
    policy.holds(0, 30);
    std::size_t more = 0;
    while (policy.admit())
        ++more;
    BOOST_TEST(more == 2u);

    LoaderPolicy told{{.num_workers = 2, .prefetch_depth = 5, .batches_budget_bytes = 100, .batch_bytes_hint = 40}};
    told.extend(10);
    BOOST_TEST(told.admit().has_value());
    BOOST_TEST(told.admit().has_value());
    BOOST_TEST(!told.admit().has_value());
    told.holds(0, 61);   // still open, and already more than expected
    told.holds(1, 1);
    BOOST_TEST(told.trims() == 0u);
    BOOST_TEST(!told.admit().has_value());
}

BOOST_AUTO_TEST_CASE(memory_once_taken_is_used_again_and_nothing_is_trimmed_in_steady_state) {
    for (const std::size_t fitting : {2u, 3u, 7u}) {
        Driven driven{{.num_workers = 2, .prefetch_depth = 20, .batches_budget_bytes = 100 * fitting + 99},
                      [](std::uint64_t) { return 100; },
                      fitting};
        driven.policy.extend(500);
        while (driven.step()) {
        }
        BOOST_TEST(driven.peak == 100 * fitting);
        BOOST_TEST(driven.policy.expected_batches_bytes() == 100 * fitting);
        BOOST_TEST(driven.policy.most_batches_bytes() == 100 * fitting);
        BOOST_TEST(std::popcount(driven.touched) == static_cast<int>(fitting));
        BOOST_TEST(driven.trimmed == 0u);
    }
}

BOOST_AUTO_TEST_CASE(a_free_slot_with_much_memory_is_taken_and_the_smallest_other_ones_make_room) {
    LoaderPolicy policy{{.num_workers = 2, .prefetch_depth = 3, .batches_budget_bytes = 100, .batch_bytes_hint = 10}};
    policy.extend(10);
    for (const std::uint64_t bytes : {5u, 35u, 10u, 40u}) {
        const auto admission = policy.admit();
        BOOST_REQUIRE(admission.has_value());
        policy.complete(admission->slot, false);
        policy.holds(admission->slot, bytes);
        BOOST_REQUIRE(policy.hand_over().has_value());
    }
    for (const std::uint32_t slot : {0u, 1u, 2u, 3u})
        policy.release(slot);
    BOOST_TEST(policy.trims() == 0u);
    BOOST_TEST(policy.admit()->slot == 3u);
    BOOST_TEST(policy.trims() == 0u);
    BOOST_TEST(policy.admit()->slot == 1u);   // needs 5 more, 10 are left
    BOOST_TEST(policy.trims() == 0u);
    BOOST_TEST(!policy.admit().has_value());   // 40 + 40 + 40
    BOOST_TEST(policy.trims() == 0u);          // not in vain
    policy.complete(1, false);
    policy.holds(1, 43);
    BOOST_TEST(policy.trims() == 0b0001u);   // 98, and 3 more that the open one may yet take
    BOOST_TEST(policy.batches_bytes() == 93u);
    policy.complete(3, false);
    policy.holds(3, 60);
    BOOST_TEST(policy.trims() == 0b0100u);
    BOOST_TEST(policy.batches_bytes() == 103u);
}

BOOST_AUTO_TEST_CASE(a_slot_out_of_use_gives_its_memory_up_when_it_is_needed) {
    LoaderPolicy policy{{.num_workers = 2, .prefetch_depth = 2, .batches_budget_bytes = 30, .batch_bytes_hint = 10}};
    policy.extend(10);
    for (std::uint32_t slot = 0; slot < 3; ++slot) {
        BOOST_TEST(policy.admit()->slot == slot);
        policy.complete(slot, false);
        policy.holds(slot, 10);
        BOOST_TEST(policy.hand_over().has_value());
    }
    policy.retarget(2, 1);
    policy.release(2);
    policy.release(0);
    policy.holds(1, 15);
    BOOST_TEST(policy.trims() == 0b001u);   // 35 of 30
    BOOST_TEST(policy.admit()->slot == 0u);
    BOOST_TEST(policy.trims() == 0b100u);   // 25 + 15
}

BOOST_AUTO_TEST_CASE(memory_left_to_its_holder_is_not_counted_any_more) {
    LoaderPolicy policy{{.num_workers = 2, .prefetch_depth = 5, .batches_budget_bytes = 20, .batch_bytes_hint = 10}};
    policy.extend(10);
    for (std::uint32_t slot = 0; slot < 2; ++slot) {
        BOOST_TEST(policy.admit()->slot == slot);
        policy.complete(slot, false);
        policy.holds(slot, 10);
        BOOST_TEST(policy.hand_over().has_value());
    }
    BOOST_TEST(!policy.admit().has_value());
    policy.release(0);
    policy.holds(0, 0);
    BOOST_TEST(policy.batches_bytes() == 10u);
    BOOST_TEST(policy.admit().has_value());
    BOOST_TEST(!policy.admit().has_value());
}

BOOST_AUTO_TEST_CASE(batches_given_up_count_until_their_workers_are_done) {
    LoaderPolicy policy{{.num_workers = 2, .prefetch_depth = 3, .batches_budget_bytes = 20, .batch_bytes_hint = 10}};
    policy.extend(10);
    while (policy.admit())
        ;
    policy.complete(0, false);
    policy.holds(0, 10);
    policy.abandon();
    policy.extend(10);
    BOOST_TEST(policy.admit()->slot == 0u);
    BOOST_TEST(!policy.admit().has_value());
    BOOST_TEST(!policy.complete(1, false));
    policy.holds(1, 10);
    BOOST_TEST(policy.admit()->slot == 1u);
}

BOOST_AUTO_TEST_CASE(a_loop_that_waits_gets_its_batch_as_soon_as_one_given_up_is_done) {
    LoaderPolicy policy{{.num_workers = 2, .prefetch_depth = 3, .batches_budget_bytes = 20}};
    policy.extend(10);
    BOOST_TEST(policy.admit()->slot == 0u);
    policy.abandon();
    policy.extend(10);
    BOOST_TEST(!policy.admit(0).has_value());
    policy.complete(0, false);
    policy.holds(0, 50);
    BOOST_TEST(policy.admit(0)->slot == 0u);
}

BOOST_AUTO_TEST_CASE(who_waits_for_bytes_is_woken_by_the_first_slot_that_comes_back) {
    LoaderPolicy policy{{.batch_size = 64, .num_workers = 2, .prefetch_depth = 8, .batches_budget_bytes = 20}};
    policy.extend(10);
    BOOST_TEST(policy.admit()->slot == 0u);
    BOOST_TEST(policy.wake_threshold() == 4u);
    policy.complete(0, false);
    policy.holds(0, 15);
    BOOST_TEST(policy.hand_over().has_value());
    BOOST_TEST(!policy.admit().has_value());
    BOOST_TEST(policy.wake_threshold() == 1u);
    policy.release(0);
    BOOST_TEST(policy.admit().has_value());
    BOOST_TEST(policy.wake_threshold() == 4u);
}

BOOST_AUTO_TEST_CASE(with_a_budget_beyond_all_memory_the_depth_alone_decides) {
    LoaderPolicy policy{{.num_workers = 2, .prefetch_depth = 9, .batches_budget_bytes = any}};
    BOOST_TEST(policy.counts_bytes());
    BOOST_TEST(policy.expected_batches_bytes() == 0u);
    policy.extend(100);
    while (policy.admit(0, 1))
        ;
    BOOST_TEST(std::popcount(policy.in_flight()) == 10);
    policy.complete(0, false);
    policy.holds(0, 7);
    BOOST_TEST(policy.expected_batches_bytes() == 70u);
    policy.holds(3, any / 2);
    policy.complete(3, false);
    policy.holds(3, any / 2);
    BOOST_TEST(policy.trims() == 0u);
    BOOST_TEST(policy.expected_batches_bytes() == any / 2 * 2);
}

BOOST_AUTO_TEST_CASE(of_batches_larger_than_the_budget_one_is_expected) {
    const LoaderPolicy policy{{.prefetch_depth = 9, .batches_budget_bytes = 10, .batch_bytes_hint = 25}};
    BOOST_TEST(policy.expected_batches_bytes() == 25u);
}

BOOST_AUTO_TEST_CASE(without_a_budget_nothing_is_counted) {
    LoaderPolicy policy{{.num_workers = 2, .prefetch_depth = 3}};
    BOOST_TEST(!policy.counts_bytes());
    policy.extend(100);
    while (policy.admit())
        ;
    BOOST_TEST(std::popcount(policy.in_flight()) == 4);
    BOOST_TEST(policy.trims() == 0u);
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
}   // namespace drawpoint
