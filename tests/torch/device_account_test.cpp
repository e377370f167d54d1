// What a recording says of a device: in virtual time, against what the fake accelerator did.
#include <drawpoint/pipeline/torch/device_loader.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <drawpoint/instrumentation/ledger/device_time.hpp>
#include <drawpoint/diagnosis/verdict/verdict_report.hpp>
#include <drawpoint/instrumentation/report/summary.hpp>
#include <drawpoint/instrumentation/report/text.hpp>
#include <drawpoint/loop/fit.hpp>

#include "torch/device_bench.hpp"

namespace drawpoint {
namespace {

using test::ms;
namespace fake = fake_accelerator;
constexpr std::int64_t us = 1'000;

/// What a pass's steps are like.
struct Case {
    std::string name;
    std::int64_t loader_ns = 0, copy_ns = ms * 3 / 10;
    std::size_t kernels = 10;
    std::int64_t kernel_ns = ms / 2, launch_ns = 5 * us;
    bool syncs = false, pinned = true;
};

struct Interval {
    std::int64_t begin_ns = 0, end_ns = 0;
};

/// The part of these that intervals of another list, which do not overlap, do not cover.
std::int64_t uncovered(const std::vector<Interval>& of, const std::vector<Interval>& by) {
    std::int64_t ns = 0;
    for (const Interval& one : of) {
        ns += one.end_ns - one.begin_ns;
        auto other = std::ranges::upper_bound(by, one.begin_ns, {}, &Interval::end_ns);
        for (; other != by.end() && other->begin_ns < one.end_ns; ++other)
            ns -= std::min(one.end_ns, other->end_ns) - std::max(one.begin_ns, other->begin_ns);
    }
    return ns;
}

/// Runs fits in virtual time, and keeps what the loader and the device did.
class Account {
public:
    static constexpr std::size_t batch_size = 2;

    explicit Account(fake::Settings settings, std::size_t steps, std::size_t device_prefetch = 2, bool pinned = true,
                     bool record = true)
        : recorder_{RecorderOptions{.ring_records = 1u << 12}, AnyClock{clock_}},
          runtime_{{}, recorder_},
          source_{batch_size * steps, 4},
          sampler_{batch_size * steps},
          records_{record} {
        source_.before_fill = [this](std::uint64_t index) { fill(index); };
        settings.on_advance = [this](std::int64_t ns) { clock_.advance(std::chrono::nanoseconds{ns}); };
        settings.on_work = [this](std::int64_t stream, std::int64_t begin_ns, std::int64_t end_ns, bool waits) {
            if (stream != 0 || begin_ns == end_ns)
                return;
            add(busy_, {begin_ns + start_ns, end_ns + start_ns});
            if (waits)
                add(waits_, {begin_ns + start_ns, end_ns + start_ns});
        };
        fake::reset(settings);
        host_.emplace(runtime_, source_, sampler_,
                      LoaderOptions{.batch_size = batch_size,
                                    .num_workers = 0,
                                    .slot_memory = pinned ? pinned_memory() : nullptr});
        loader_.emplace(*host_, DeviceOptions{.device_prefetch = device_prefetch});
    }
    ~Account() {
        fake::synchronize();
        fake::settings().on_advance = {};
        fake::settings().on_work = {};
    }
    Account(const Account&) = delete;
    Account& operator=(const Account&) = delete;

    /// `next()` says what the next step is like.
    void fit(std::function<Case()> next, std::size_t epochs) {
        next_ = std::move(next);
        if (records_)
            run(runtime_, drawpoint::fit(learner_, *loader_, {.epochs = epochs, .record_loss = false}, recorder_));
        else
            run(runtime_, drawpoint::fit(learner_, *loader_, {.epochs = epochs, .record_loss = false}));
        ledger_ = recorder_.ledger();
    }

    [[nodiscard]] const Ledger& ledger() const noexcept { return ledger_; }
    /// How long of this time the stream that computes had nothing to do.
    [[nodiscard]] std::int64_t idle_ns(const Interval& in) const { return uncovered({in}, busy_); }
    /// When the loader made the batch of a step.
    [[nodiscard]] const Interval& fill(std::size_t step) const { return fills_[step]; }
    /// How long it waited for copies.
    [[nodiscard]] std::int64_t waits_ns() const { return uncovered(waits_, {}); }

private:
    /// A learner whose steps are kernels.
    struct KernelLearner {
        Account& account;
        void begin_phase(bool) {}
        void forward(DeviceBatch&) {
            for (std::size_t i = 0; i < account.now_.kernels; ++i) {
                fake::advance(account.now_.launch_ns);
                fake::kernel(account.now_.kernel_ns);
            }
        }
        void loss(DeviceBatch&) {}
        void backward() {}
        void opt_step() {
            if (account.now_.syncs)
                fake::synchronize();
        }
        void zero_grad() {}
        [[nodiscard]] double loss_value() const { return 0; }
    };
    static_assert(Learner<KernelLearner, DeviceBatch>);

    void fill(std::uint64_t index) {
        if (index % batch_size != 0)
            return;
        now_ = next_();
        fake::settings().copy_ns = now_.copy_ns;
        const std::int64_t begin_ns = clock_.now_ns();
        fake::advance(now_.loader_ns);
        fills_.push_back({begin_ns, clock_.now_ns()});
    }
    /// Appends it, or lengthens the last one if they touch.
    static void add(std::vector<Interval>& to, Interval one) {
        if (!to.empty() && to.back().end_ns == one.begin_ns)
            to.back().end_ns = one.end_ns;
        else
            to.push_back(one);
    }

    static constexpr std::int64_t start_ns = 1;   // when the device's time is 0
    ManualClock clock_{start_ns};
    Recorder recorder_;
    Runtime runtime_;
    test::NumberedSource source_;
    SequentialSampler sampler_;
    std::optional<DataLoader> host_;
    std::optional<DeviceLoader> loader_;
    std::function<Case()> next_;
    Case now_;
    bool records_;
    KernelLearner learner_{*this};
    std::vector<Interval> fills_, waits_, busy_;
    Ledger ledger_;
};

std::int64_t exposed_draw(const DeviceStepRow& row) {
    return row.dry_starved_ns + row.dry_handoff_ns + row.dry_transfer_ns + row.dry_callbacks_ns;
}

std::int64_t dry_parts(const DeviceStepRow& row) {
    return exposed_draw(row) + row.dry_step_ns + row.dry_between_ns + row.dry_launch_ns;
}

/// What holds for every recording of a device's passes, each of `steps` steps, in integers.
void check_identities(const Ledger& ledger, std::size_t steps, std::int64_t tick) {
    BOOST_TEST(max_residual_ns(ledger) == 0);
    BOOST_TEST(untiled_ns(ledger) == 0);
    BOOST_TEST_REQUIRE(ledger.device_steps.size() == ledger.steps.size());
    BOOST_TEST(ledger.transfers.size() == ledger.steps.size());
    for (std::size_t i = 0; i < ledger.device_steps.size(); ++i) {
        const DeviceStepRow& row = ledger.device_steps[i];
        const StepRow& step = ledger.steps[i];
        BOOST_TEST_REQUIRE(row.step == step.step);
        BOOST_TEST_REQUIRE((row.phase == step.phase && row.epoch == step.epoch));
        BOOST_TEST_REQUIRE(row.free_ns <= row.queued_ns);
        BOOST_TEST_REQUIRE(row.queued_ns <= row.begin_ns);
        BOOST_TEST_REQUIRE(row.begin_ns <= row.end_ns);
        BOOST_TEST_REQUIRE(row.host_queued_ns >= step.draw_begin_ns);
        BOOST_TEST_REQUIRE(row.host_queued_ns <= step.draw_begin_ns + step.draw_ns);
        const bool is_first = i % steps == 0;
        if (!is_first)
            BOOST_TEST_REQUIRE(row.free_ns == ledger.device_steps[i - 1].end_ns);
        // The loop's pieces cover all of the dry time, but for what lies before the pass's first step.
        const std::int64_t before_ns =
            is_first ? std::max<std::int64_t>(std::min(step.draw_begin_ns, row.queued_ns) - row.free_ns, 0) : 0;
        BOOST_TEST_REQUIRE(dry_parts(row) + before_ns == row.queued_ns - row.free_ns);
        for (const std::int64_t ns : {row.dry_starved_ns, row.dry_handoff_ns, row.dry_transfer_ns, row.dry_callbacks_ns,
                                      row.dry_step_ns, row.dry_between_ns, row.dry_launch_ns})
            BOOST_TEST_REQUIRE(ns >= 0);
        // What is not exposed of the draw is hidden. A stamp that is early may reach into the draw before.
        BOOST_TEST_REQUIRE(exposed_draw(row) < step.draw_ns + tick);
    }
    std::int64_t tiled_ns = 0;
    for (std::size_t pass = 0; pass < ledger.device_steps.size(); pass += steps)
        tiled_ns += ledger.device_steps[pass + steps - 1].end_ns - ledger.device_steps[pass].free_ns;
    const DeviceTotals totals = device_totals(ledger);
    BOOST_TEST(totals.dry_ns + totals.copy_wait_ns + totals.span_ns == tiled_ns);
}

/// The largest difference between what the rows say and what the device did, beyond two ticks a step.
std::int64_t check_truth(const Account& account, std::int64_t tick) {
    const Ledger& ledger = account.ledger();
    std::int64_t largest = 0, copy_waits_ns = 0;
    for (std::size_t i = 0; i < ledger.device_steps.size(); ++i) {
        const DeviceStepRow& row = ledger.device_steps[i];
        const std::int64_t exposed_ns = account.idle_ns({ledger.steps[i].draw_begin_ns, row.host_queued_ns});
        largest = std::max(largest, std::abs(exposed_draw(row) - exposed_ns) - 2 * tick);
        // While the loader makes the batch, the draw is starved, and later it may be.
        largest = std::max(largest, account.idle_ns(account.fill(i)) - row.dry_starved_ns - 2 * tick);
        copy_waits_ns += row.begin_ns - row.queued_ns;
    }
    const auto steps = static_cast<std::int64_t>(ledger.device_steps.size());
    return std::max(largest, (std::abs(copy_waits_ns - account.waits_ns()) - steps * 2 * tick) / steps);
}

const std::vector<Case>& cases() {
    static const std::vector<Case> all{
        {.name = "asynchronous", .loader_ns = ms},
        {.name = "a wait in each step", .loader_ns = ms, .syncs = true},
        {.name = "pageable", .loader_ns = ms, .pinned = false},
        {.name = "starved", .loader_ns = 7 * ms},
        {.name = "hidden", .loader_ns = 4 * ms},
        {.name = "launch-bound", .loader_ns = 10 * us, .kernels = 1000, .kernel_ns = 3 * us},
        {.name = "copy-bound", .loader_ns = ms, .copy_ns = 6 * ms},
    };
    return all;
}

BOOST_AUTO_TEST_SUITE(device_account)

BOOST_AUTO_TEST_CASE(the_seven_cases_are_told_as_the_device_did_them) {
    constexpr std::size_t steps = 200;
    for (const Case& one : cases())
        for (const std::int64_t tick : {1, 32, 500, 1000})
            BOOST_TEST_CONTEXT(one.name << ", ticks of " << tick << " ns") {
                const fake::Settings settings{.query_ns = 1, .nap_ns = 500 * us, .tick_ns = tick};
                std::uint64_t waits = 0;
                {
                    Account plain{settings, steps, 2, one.pinned, false};
                    plain.fit([&] { return one; }, 1);
                    waits = fake::counters().host_waits;
                }
                Account account{settings, steps, 2, one.pinned};
                account.fit([&] { return one; }, 1);
                BOOST_TEST(fake::counters().host_waits == waits);
                const Ledger& ledger = account.ledger();
                check_identities(ledger, steps, tick);
                const DeviceTotals totals = device_totals(ledger);
                BOOST_TEST(check_truth(account, tick) <= 2);
                BOOST_TEST_MESSAGE(one.name << ": tick " << tick << ", exposed "
                                            << totals.data_ns() - totals.copy_wait_ns << ", dry " << totals.dry_ns
                                            << ", copy wait " << totals.copy_wait_ns << ", span " << totals.span_ns
                                            << ", lag " << totals.lag_ns / static_cast<std::int64_t>(steps)
                                            << ", uncertainty " << totals.uncertainty_ns << " ns");
            }
}

double wall_s(const Ledger& ledger) { return static_cast<double>(wall_ns(ledger)) / 1e9; }

BOOST_AUTO_TEST_CASE(the_headroom_is_what_a_free_loader_gains) {
    constexpr std::size_t steps = 400;
    const fake::Settings settings{.query_ns = 1, .nap_ns = 20 * us};
    for (const Case& one : cases())
        BOOST_TEST_CONTEXT(one.name) {
            double slow_s = 0, gain = 0;
            Diagnosis diagnosis;
            {
                Account account{settings, steps, 2, one.pinned};
                account.fit([&] { return one; }, 1);
                const Summary summary = summarize(account.ledger());
                BOOST_REQUIRE(summary.device.has_value());
                slow_s = wall_s(account.ledger());
                gain = 1 + summary.headroom.throughput_gain_if_draw_were_zero.value();
                diagnosis = diagnose(account.ledger());
                const std::string text = to_text(summary);
                BOOST_TEST_MESSAGE(text.substr(0, text.find("\n\n")));
                BOOST_TEST(text.find("hidden behind the device") != std::string::npos);
                BOOST_TEST(summary.device->is_paced_by_loop() ==
                           (one.name == "launch-bound" || one.name == "a wait in each step"));
                BOOST_TEST(summary.device->is_synchronised() == (one.name == "a wait in each step"));
                BOOST_TEST_MESSAGE(to_text(diagnosis));
                BOOST_TEST(!diagnosis.abstained.has_value());
                BOOST_TEST(std::abs(diagnosis.unexplained) < 0.01);
                BOOST_TEST(summary.device->name == "fake:0");
                BOOST_TEST(diagnosis.blame.max_residual_ns == 0);
                std::int64_t blamed_ns = 0;
                for (const BlamePiece& piece : diagnosis.blame.pieces)
                    blamed_ns += piece.cause != Cause::hidden ? piece.ns : 0;
                BOOST_TEST(blamed_ns == device_totals(account.ledger()).exposed_ns());
                if (one.name == "hidden") {
                    BOOST_TEST(summary.headroom.draw_share.value() > 0.97);
                    BOOST_TEST(gain <= 1.01);
                    BOOST_TEST((diagnosis.verdict == Verdict::compute_bound));
                }
                if (one.name == "starved") {
                    BOOST_TEST_REQUIRE(!diagnosis.blame_rows.empty());
                    BOOST_TEST(diagnosis.blame_rows.front().key == "hidden");
                }
            }
            if (one.name != "starved")
                continue;
            Case free = one;
            free.loader_ns = free.copy_ns = 0;
            Account rerun{settings, steps, 2, one.pinned};
            rerun.fit([&] { return free; }, 1);
            const double true_gain = slow_s / wall_s(rerun.ledger());
            BOOST_TEST_MESSAGE(one.name << ": said x" << gain << ", rerun x" << true_gain);
            BOOST_TEST(gain == true_gain, boost::test_tools::tolerance(0.02));
        }
}

BOOST_AUTO_TEST_CASE(random_schedules_leave_nothing_unexplained) {
    constexpr std::size_t steps = 8, epochs = 20;
    std::mt19937_64 random{2026};
    const auto below = [&](std::uint64_t n) { return static_cast<std::int64_t>(random() % n); };
    std::int64_t largest = 0;
    for (int fits = 0; fits < 500; ++fits)
        BOOST_TEST_CONTEXT("fit " << fits) {
            constexpr std::int64_t ticks[]{1, 32, 500, 1000};
            const std::int64_t tick = ticks[below(4)];
            const fake::Settings settings{.query_ns = 1,
                                          .nap_ns = 1'000 + below(400'000),
                                          .tick_ns = tick,
                                          .launch_queue = static_cast<std::size_t>(2 + below(40))};
            Account account{settings, steps, static_cast<std::size_t>(below(4)), below(4) != 0};
            account.fit(
                [&] {
                    return Case{.loader_ns = below(3) == 0 ? below(5'000'003) : below(50'021),
                                .copy_ns = below(below(2) == 0 ? 1'000'033 : 10'007),
                                .kernels = static_cast<std::size_t>(below(12)),
                                .kernel_ns = below(below(2) == 0 ? 500'009 : 5'003),
                                .launch_ns = below(20'011),
                                .syncs = below(5) == 0};
                },
                epochs);
            const Ledger& ledger = account.ledger();
            check_identities(ledger, steps, tick);
            const std::int64_t beyond_ns = check_truth(account, tick);
            BOOST_TEST_REQUIRE(beyond_ns <= 2);
            largest = std::max(largest, beyond_ns);
        }
    BOOST_TEST_MESSAGE("beyond two ticks by at most " << largest << " ns");
}

BOOST_AUTO_TEST_CASE(short_steps_are_timed_now_and_then) {
    // On a real clock every event has its price, here at least 5 µs, and these steps take microseconds.
    fake::reset({.call_ns = 1, .query_ns = 1, .nap_ns = 1000, .copy_ns = 100, .on_advance = [](std::int64_t ns) {
                     const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds{5};
                     while (ns == 1 && std::chrono::steady_clock::now() < until) {
                     }
                 }});
    Recorder recorder{RecorderOptions{.ring_records = 1u << 12}};
    Runtime runtime{{}, recorder};
    constexpr std::size_t steps = 3'000;
    test::NumberedSource source{steps, 4};
    const SequentialSampler sampler{steps};
    DataLoader host{runtime, source, sampler, {.batch_size = 1, .num_workers = 0, .slot_memory = pinned_memory()}};
    DeviceLoader loader{host};
    struct {
        void begin_phase(bool) {}
        void forward(DeviceBatch&) { fake::kernel(500); }
        void loss(DeviceBatch&) {}
        void backward() {}
        void opt_step() {}
        void zero_grad() {}
        [[nodiscard]] double loss_value() const { return 0; }
    } learner;
    run(runtime, fit(learner, loader, {.epochs = 1, .record_loss = false}, recorder));
    BOOST_TEST(fake::stream_end_ns() <= fake::now_ns());   // the pass has ended with the device
    fake::synchronize();
    fake::settings().on_advance = {};
    const Ledger ledger = recorder.ledger();
    BOOST_TEST(ledger.steps.size() == steps);
    BOOST_TEST(ledger.device_steps.size() > 0u);
    BOOST_TEST(ledger.device_steps.size() < steps / 2);
    BOOST_TEST(ledger.transfers.size() > 0u);
    BOOST_TEST(ledger.transfers.size() < steps);
    for (const DeviceStepRow& row : ledger.device_steps) {
        BOOST_TEST_REQUIRE(row.queued_ns >= row.free_ns);
        BOOST_TEST_REQUIRE(row.begin_ns >= row.queued_ns);
        BOOST_TEST_REQUIRE(row.end_ns >= row.begin_ns);
        BOOST_TEST_REQUIRE(device_step_of(ledger, ledger.steps[row.step]) == &row);
    }
    const Summary summary = summarize(ledger);
    BOOST_TEST_REQUIRE(summary.device.has_value());
    BOOST_TEST(summary.device->steps == ledger.device_steps.size());
    BOOST_TEST_MESSAGE(ledger.device_steps.size() << " of " << steps << " steps timed");
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
}   // namespace drawpoint
