#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <functional>
#include <random>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <drawpoint/pipeline/loader/machine/detail/loader_policy.hpp>

namespace drawpoint::test {

using Sizes = std::function<std::uint64_t(std::uint64_t batch)>;

/// A loader in virtual time. Batches take `size_of` bytes, in memory that a slot keeps until it is trimmed. The loop
/// holds up to `user_holds` batches, and up to `open_at_once` are made at a time.
struct Driven {
    LoaderPolicy policy;
    PolicyOptions options;
    Sizes size_of;
    std::mt19937_64 random;
    std::size_t user_holds = 1, open_at_once = 2;
    bool claims_late = false;   // some samples of every open batch are unclaimed
    bool keeps_memory = true;   // otherwise a slot shrinks to what its complete batch needs

    struct Batch {
        std::uint64_t number = 0, bytes = 0;
        std::uint32_t slot = 0;
    };
    std::vector<Batch> open{}, drawn{};
    std::vector<LoaderPolicy::HandOver> ready{};
    std::array<std::uint64_t, LoaderPolicy::max_slots> held{};   // memory that slots hold
    std::array<std::uint64_t, LoaderPolicy::max_slots> largest_of{};
    std::uint64_t drawn_count = 0, peak = 0, largest = 0, trimmed = 0;
    std::uint64_t touched = 0;   // one bit per slot

    Driven(const PolicyOptions& with, Sizes sizes, std::uint64_t seed)
        : policy{with}, options{with}, size_of{std::move(sizes)}, random{seed} {}

    [[nodiscard]] std::uint64_t total() const {
        std::uint64_t sum = 0;
        for (const std::uint64_t bytes : held)
            sum += bytes;
        return sum;
    }
    [[nodiscard]] std::uint64_t bytes_out() const {   // handed over or held by the loop
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
    /// Does a driver's turn: reports memory, admits, trims, opens, hands over.
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
        if (!keeps_memory)
            held[at->slot] = 0;
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
    /// Takes one random step. False: nothing is left to do.
    bool step() {
        const std::uint64_t choice = random() % 4;
        if (choice == 0 && !open.empty()) {   // makes a part of a batch
            const Batch& batch = open[random() % open.size()];
            grow(batch, random() % (batch.bytes + 1));
        } else if (choice == 1 && !drawn.empty()) {
            give_one_back();
            turn(false);
        } else if (choice == 2 && !ready.empty() && drawn.size() < user_holds) {
            draw_one();
        } else if (!open.empty()) {
            complete_one();
        } else if (ready.empty()) {   // the loop waits, and keeps what it holds
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

}   // namespace drawpoint::test
