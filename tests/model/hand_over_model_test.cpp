#include <boost/test/unit_test.hpp>

#include <array>
#include <bit>
#include <memory>

#include "model/weakening.hpp"
#include "pipeline/loader/core/give_back_gate.hpp"
#include "pipeline/loader/core/wake_tokens.hpp"
#include "pipeline/loader/threads/draw_mailbox.hpp"

using namespace drawpoint;
using model::Atomic;
using model::Plain;
using model::Run;

namespace {

using Gate = BasicGiveBackGate<model::Atomics>;
using Tokens = BasicWakeTokens<model::Atomics>;
using Mailbox = BasicDrawMailbox<model::Atomics, 2>;
using Kind = Mailbox::Kind;

/// A loop, a worker, and what they hand each other: two slots.
struct Loader {
    Mailbox mailbox;
    Gate gate;
    Tokens tokens;
    Atomic<std::uint32_t> posted{0};   // wake-ups of the loop
    std::array<Plain<std::uint32_t>, 2> memory;

    // The worker.
    void make(std::uint32_t position, std::uint32_t slot) {
        memory[slot] = 10 * position + slot;
        if (mailbox.put(position, {Kind::batch, slot, position + 1}) != Kind::none) {
            posted.fetch_add(1, std::memory_order_release);
            posted.notify_one();
        }
    }
    [[nodiscard]] std::uint64_t wait_for_slot() {
        for (;;) {
            if (const std::uint64_t back = gate.take_up(1).slots; back != 0)
                return back;
            if (gate.arm(1))
                tokens.take();
        }
    }
    // The loop.
    void wait_for_post(std::uint32_t& resumed) {
        posted.wait(resumed, std::memory_order_acquire);
        ++resumed;
    }
    std::uint32_t look_at(std::uint32_t position) {
        const Mailbox::Entry entry = mailbox.at(position);
        Run::current().check(entry.kind == Kind::batch && entry.size == position + 1, "another entry");
        Run::current().check(memory[entry.slot] == 10 * position + entry.slot, "another batch's samples");
        return entry.slot;
    }
    // Whoever holds a batch.
    void give_back(std::uint32_t slot) {
        if (!gate.give_quietly(slot) && gate.give(slot) == Gate::Then::wake_worker)
            tokens.give(1);
    }
};

/// Three batches through two slots: the third is made in memory that came back.
void batches_and_slots(Run& run) {
    const auto state = std::make_shared<Loader>();
    run.thread([s = state.get()] {
        s->make(0, 0);
        s->make(1, 1);
        for (std::uint64_t slots = s->wait_for_slot(); slots != 0; slots &= slots - 1)
            s->memory[static_cast<std::size_t>(std::countr_zero(slots))] = 7;
    });
    run.thread([s = state.get()] {
        std::uint32_t resumed = 0;
        for (std::uint32_t position = 0; position < 2; ++position) {
            if (!s->mailbox.has(position)) {
                s->gate.announce_wait();
                if (s->mailbox.announce(position, Kind::waiting) == Mailbox::Wait::announced)
                    s->wait_for_post(resumed);
                s->gate.end_wait();
            }
            s->give_back(s->look_at(position));
        }
    });
    run.at_end([state] {});
}

/// A cell is used again by a later position.
void a_cell_used_again(Run& run) {
    const auto state = std::make_shared<Loader>();
    run.thread([s = state.get()] {
        s->make(0, 0);
        (void)s->wait_for_slot();
        s->make(2, 0);
    });
    run.thread([s = state.get()] {
        std::uint32_t resumed = 0;
        for (const std::uint32_t position : {0u, 2u}) {
            if (!s->mailbox.has(position) && s->mailbox.announce(position, Kind::waiting) == Mailbox::Wait::announced)
                s->wait_for_post(resumed);
            const std::uint32_t slot = s->look_at(position);
            if (position == 0)
                s->give_back(slot);
        }
    });
    run.at_end([state] {});
}

/// A draw is left, and the next one asks again.
void a_draw_left(Run& run) {
    const auto state = std::make_shared<Loader>();
    run.thread([s = state.get()] { s->make(0, 0); });
    run.thread([s = state.get()] {
        std::uint32_t resumed = 0;
        if (s->mailbox.announce(0, Kind::waiting) == Mailbox::Wait::announced) {
            Run::current().check(s->mailbox.announce(0, Kind::waiting) != Mailbox::Wait::announced, "two draws");
            s->mailbox.retract(0, Kind::waiting);
        }
        if (!s->mailbox.has(0) && s->mailbox.announce(0, Kind::waiting) == Mailbox::Wait::announced)
            s->wait_for_post(resumed);
        (void)s->look_at(0);
    });
    run.at_end([state] {});
}

/// A draw that blocks its thread.
void a_draw_that_blocks(Run& run) {
    const auto state = std::make_shared<Loader>();
    run.thread([s = state.get()] { s->make(0, 0); });
    run.thread([s = state.get()] {
        if (s->mailbox.announce(0, Kind::waiting_blocked) == Mailbox::Wait::announced)
            s->mailbox.wait(0);
        (void)s->look_at(0);
    });
    run.at_end([state] {});
}

/// Two threads give slots back to a worker that sleeps until both are there.
void two_givers(Run& run) {
    const auto state = std::make_shared<Loader>();
    for (std::uint32_t slot = 0; slot < 2; ++slot)
        run.thread([s = state.get(), slot] {
            (void)(s->memory[slot] + 0);
            s->give_back(slot);
        });
    run.thread([s = state.get()] {
        std::uint64_t back = 0;
        while (back != 3) {
            back |= s->gate.take_up(2).slots;
            if (back != 3 && s->gate.arm(static_cast<std::size_t>(2 - std::popcount(back))))
                s->tokens.take();
        }
        for (auto& memory : s->memory)
            memory = 1;
    });
    run.at_end([state] {});
}

/// A worker sleeps until two slots are back. Only one comes, and the loop waits for a batch.
void the_loop_waits(Run& run) {
    const auto state = std::make_shared<Loader>();
    Run::current().check(state->gate.arm(2), "armed");
    run.thread([s = state.get()] { s->tokens.take(); });
    run.thread([s = state.get()] {
        (void)(s->memory[0] + 0);
        s->give_back(0);
    });
    run.thread([s = state.get()] {
        s->gate.announce_wait();
        if (s->gate.take_up(2).slots != 0) {
            s->memory[0] = 1;
            s->tokens.give(1);
        }
    });
    run.at_end([state] {});
}

/// A worker that was about to sleep does not: a wake-up that was decided on meanwhile is its own to take.
void disarmed(Run& run) {
    const auto state = std::make_shared<Loader>();
    run.thread([s = state.get()] {
        if (s->gate.arm(1) && s->gate.disarm())
            s->tokens.take();
        s->posted.wait(0, std::memory_order_relaxed);
        Run::current().check(s->gate.take() == 1, "no slot is back");
        s->memory[0] = 1;
    });
    run.thread([s = state.get()] {
        (void)(s->memory[0] + 0);
        s->give_back(0);
        s->posted.store(1, std::memory_order_relaxed);
        s->posted.notify_one();
    });
    run.at_end([state] {});
}

/// The loader ends while two batches are out: whoever comes last frees the memory, once, when nobody uses it any more.
void the_end(Run& run) {
    struct State : Loader {
        Atomic<std::uint32_t> outstanding{0};
        std::uint32_t freed = 0;
        void free_all() {
            for (auto& slot : memory)
                slot = 0;
            ++freed;
        }
    };
    const auto state = std::make_shared<State>();
    for (std::uint32_t slot = 0; slot < 2; ++slot)
        run.thread([s = state.get(), slot] {
            s->memory[slot] = 5;
            if (!s->gate.give_quietly(slot) && s->gate.give(slot) == Gate::Then::note_closed &&
                s->outstanding.fetch_sub(1, std::memory_order_acq_rel) == 1)
                s->free_all();
        });
    run.thread([s = state.get()] {   // as LoaderCore::close
        std::uint64_t word = s->gate.word(), left;
        do {
            left = Gate::still_out(word, 3);
            s->outstanding.store(static_cast<std::uint32_t>(std::popcount(left)), std::memory_order_relaxed);
        } while (!s->gate.close(word));
        if (left == 0)
            s->free_all();
    });
    run.at_end([state] { Run::current().check(state->freed == 1, "not freed exactly once"); });
}

struct Sleepers {
    Tokens tokens;
    Plain<std::uint32_t> data;

    void take() {
        tokens.take();
        Run::current().check(data == 1, "stale data");
    }
};

/// `sleepers` threads that take `takes` tokens each, and one that calls `give`.
template <class Give>
void sleep_until(Run& run, int sleepers, int takes, Give give) {
    const auto state = std::make_shared<Sleepers>();
    for (int i = 0; i < sleepers; ++i)
        run.thread([s = state.get(), takes] {
            for (int take = 0; take < takes; ++take)
                s->take();
        });
    run.thread([s = state.get(), give] {
        s->data = 1;
        give(s->tokens);
    });
    run.at_end([state] {});
}

void one_sleeper(Run& run) {
    sleep_until(run, 1, 3, [](Tokens& tokens) {
        tokens.give(1);
        tokens.give(1);
        tokens.give(1);
    });
}
void two_sleepers(Run& run) {
    sleep_until(run, 2, 1, [](Tokens& tokens) { tokens.give(2); });
}
void all_sleepers(Run& run) {
    sleep_until(run, 2, 1, [](Tokens& tokens) { tokens.give_all(); });
}

}   // namespace

BOOST_AUTO_TEST_SUITE(hand_over_model)

BOOST_AUTO_TEST_CASE(the_mailbox_loses_no_batch_and_wakes_the_loop_under_every_schedule) {
    model::check_orders("threads/draw_mailbox.hpp", {{"batches and slots", batches_and_slots},
                                                     {"a cell used again", a_cell_used_again},
                                                     {"a draw left", a_draw_left},
                                                     {"a draw that blocks", a_draw_that_blocks}});
}

BOOST_AUTO_TEST_CASE(the_gate_loses_no_slot_and_wakes_a_worker_under_every_schedule) {
    model::check_orders("core/give_back_gate.hpp",
                        {{"batches and slots", batches_and_slots},
                         {"two givers", two_givers},
                         {"the loop waits", the_loop_waits},
                         {"disarmed", disarmed},
                         {"the end", the_end}},
                        {{"closed << shift, std::memory_order_acq_rel, -> acquire",
                          "keeps the store of `outstanding` before it; in the model, stores take effect at once"}});
}

BOOST_AUTO_TEST_CASE(no_token_is_lost_and_no_sleeper_forgotten_under_any_schedule) {
    model::check_orders("core/wake_tokens.hpp",
                        {{"one sleeper", one_sleeper}, {"two sleepers", two_sleepers}, {"all sleepers", all_sleepers}});
}

BOOST_AUTO_TEST_SUITE_END()
