// The loop's account of a fit with batches on a device: in virtual time, so every nanosecond is known.
#include <drawpoint/pipeline/torch/device_loader.hpp>

#include <cstdint>
#include <map>

#include <boost/test/unit_test.hpp>

#include <drawpoint/instrumentation/ledger/ledger.hpp>
#include <drawpoint/loop/fit.hpp>

#include "torch/device_bench.hpp"

namespace drawpoint {
namespace {

using test::ms;
namespace fake = fake_accelerator;

struct Account {
    std::map<Span, std::int64_t> spent;   // inside the steps
    std::int64_t residual_ns = 0;
    DeviceCounters counters;
};

/// 40 steps: the loader takes 1 ms a batch, the loop 1 ms a step, and the device `kernel_ns`.
Account fit_with(std::int64_t kernel_ns, bool waits) {
    ManualClock clock{1};
    Recorder recorder{RecorderOptions{.ring_records = 1u << 12}, AnyClock{clock}};
    Runtime runtime{{}, recorder};
    test::NumberedSource source{160, 4};
    source.before_fill = [](std::uint64_t index) {
        if (index % 4 == 0)
            fake::advance(ms);
    };
    fake::reset({.query_ns = 100, .nap_ns = 20'000, .copy_ns = ms / 2, .on_advance = [&](std::int64_t ns) {
                     clock.advance(std::chrono::nanoseconds{ns});
                 }});
    const SequentialSampler sampler{160};
    DataLoader host{runtime, source, sampler, {.batch_size = 4, .num_workers = 0, .slot_memory = pinned_memory()}};
    DeviceLoader loader{host, {.device_prefetch = 1}};
    test::DeviceSteps steps{.kernel_ns = kernel_ns, .host_ns = ms};
    test::KernelLearner learner{steps, waits};
    run(runtime, fit(learner, loader, {.epochs = 1, .record_loss = false}, recorder));
    fake::synchronize();
    BOOST_TEST(steps.looks == 80u);
    BOOST_TEST(steps.wrong == 0u);

    const Ledger ledger = recorder.ledger();
    Account account{.residual_ns = max_residual_ns(ledger), .counters = loader.counters()};
    BOOST_TEST(ledger.steps.size() == 40u);
    for (const StepRow& step : ledger.steps) {
        std::int64_t draw_ns = 0;
        for (const SpanRow& piece : ledger.spans_of(step)) {
            account.spent[piece.span] += piece.ns;
            if (piece.span == Span::starved || piece.span == Span::handoff || piece.span == Span::transfer)
                draw_ns += piece.ns;
        }
        BOOST_TEST(draw_ns == step.draw_ns);
    }
    fake::settings().on_advance = {};
    return account;
}

BOOST_AUTO_TEST_SUITE(device_conservation)

BOOST_AUTO_TEST_CASE(a_draw_that_waits_for_the_device_says_so_and_nothing_is_unaccounted_for) {
    Account account = fit_with(5 * ms, false);
    BOOST_TEST(account.residual_ns == 0);
    BOOST_TEST(account.counters.waits > 30u);
    // Of 5 ms a step the loop has 1 ms and the loader 1 ms; the rest it waits, but for the first steps.
    BOOST_TEST(account.spent[Span::forward] == 40 * ms);
    BOOST_TEST(account.spent[Span::starved] >= 40 * ms);
    BOOST_TEST(account.spent[Span::starved] < 41 * ms);   // a few looks at copies that do not wait
    BOOST_TEST(account.spent[Span::transfer] > 34 * 3 * ms);
    BOOST_TEST(account.spent[Span::transfer] < 39 * 3 * ms);
}

BOOST_AUTO_TEST_CASE(without_a_wait_the_draw_does_not_count_the_copy) {
    Account account = fit_with(5 * ms, true);
    BOOST_TEST(account.residual_ns == 0);
    BOOST_TEST(account.counters.waits == 0u);
    BOOST_TEST(account.spent[Span::starved] + account.spent[Span::transfer] >= 40 * ms);
    BOOST_TEST(account.spent[Span::transfer] < 40 * 100'000);   // queries of copies
    BOOST_TEST(account.spent[Span::opt_step] > 40 * 4 * ms);
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
}   // namespace drawpoint
