#include <drawpoint/pipeline/loader/data_loader.hpp>

#include <boost/test/unit_test.hpp>

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include <asio/error.hpp>

#include "pipeline/loader/numbered_source.hpp"
#include "pipeline/loader/orders.hpp"
#include "support/coro_test.hpp"

namespace drawpoint {
namespace {

using test::NumberedSource;

enum class End { run_out, stop_from_a_thread, destroy_loader, destroy_context };

/// Everything that a seed determines.
struct Case {
    std::uint64_t seed;
    std::mt19937_64 random{seed};
    std::size_t below(std::size_t n) { return static_cast<std::size_t>(random() % n); }

    End end = static_cast<End>(below(4));
    LoaderOptions options{.batch_size = 1 + below(8),
                          .num_workers = below(5),
                          .prefetch_depth = 1 + below(9),
                          .seed = seed,
                          .drop_last = below(2) == 0,
                          .order = test::nth_order(below(3), static_cast<std::uint32_t>(1 + seed % 4))};
    bool runs = below(3) == 0;
    std::size_t samples = below(2) == 0 ? below(40) : below(400);
    std::size_t epochs = 1 + below(3);
    bool next_epoch = below(2) == 0;
    std::size_t held = below(options.prefetch_depth + 1);
    std::uint64_t fails_every = below(3) == 0 ? 5 + below(50) : 0;
    std::uint64_t slow_every = below(3) == 0 ? 1 + below(20) : 0;
    std::size_t slow_ns = below(60'000);
    std::size_t leave_pass_after = below(4) == 0 ? below(30) : ~std::size_t{0};
    std::size_t other_thread_gives_back = below(3);
    std::size_t handlers = below(60);
    std::size_t stop_after_ns = below(300'000);
    bool runs_on = below(2) == 0;
    bool threads = below(2) == 0;
};

void busy(std::size_t ns) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::nanoseconds{ns};
    while (std::chrono::steady_clock::now() < until) {
    }
}

struct Seen {
    std::string fault;
    std::size_t drawn = 0, failed = 0;
    bool aborted = false, ended = false;
};

/// Gives batches back on another thread.
class GiveBack {
public:
    ~GiveBack() {
        ended_ = true;
        thread_.join();
    }
    void operator()(Batch batch) {
        const std::lock_guard lock{mutex_};
        batches_.push_back(std::move(batch));
    }

private:
    std::mutex mutex_;
    std::vector<Batch> batches_;
    std::atomic<bool> ended_{false};
    std::thread thread_{[this] {
        while (!ended_) {
            {
                const std::lock_guard lock{mutex_};
                batches_.clear();
            }
            std::this_thread::yield();
        }
    }};
};

Awaitable<void> draw_pass(Case& a_case, DataLoader& loader, NumberedSource& source, const Sampler& sampler, Seen& seen,
                          std::deque<Batch>& held, GiveBack& give_back, std::size_t e) {
    std::vector<std::uint64_t> order(sampler.size());
    sampler.order(e, order);
    EpochOptions options{.next_epoch = a_case.next_epoch && e + 1 < a_case.epochs};
    auto pass = loader.epoch(e, options);
    const std::size_t batches = *pass.size(), size_of_batch = a_case.options.batch_size;
    std::vector<std::size_t> came;   // batch numbers, in the order of draws
    for (std::size_t drawn_before = 0; drawn_before < a_case.leave_pass_after; ++drawn_before) {
        bool failed = false;
        std::size_t number = 0;
        std::optional<Batch> batch;
        try {
            auto drawn = co_await pass.next();
            batch = std::move(drawn);
            if (batch)
                number = batch->number();
        } catch (const SampleError& error) {
            failed = true;
            const auto at = std::find(order.begin(), order.end(), error.index());
            number = static_cast<std::size_t>(at - order.begin()) / size_of_batch;
        }
        if (!failed && !batch) {
            if (drawn_before != batches)
                seen.fault = "the pass ended after " + std::to_string(drawn_before) + " of " + std::to_string(batches);
            co_return;
        }
        if (number >= batches || std::find(came.begin(), came.end(), number) != came.end()) {
            seen.fault = "batch " + std::to_string(number) + " twice, or of another pass";
            co_return;
        }
        const auto overtaken = std::count_if(came.begin(), came.end(), [&](std::size_t n) { return n > number; });
        if (overtaken > std::ptrdiff_t{a_case.options.order.max_overtakes})
            seen.fault = "batch " + std::to_string(number) + " overtaken by " + std::to_string(overtaken);
        came.push_back(number);
        const std::size_t first = number * size_of_batch;
        const std::size_t size = std::min(size_of_batch, order.size() - first);
        bool should_fail = false;
        for (std::size_t i = first; i < first + size; ++i)
            should_fail |= source.fails(order[i]);
        if (failed != should_fail)
            seen.fault = "batch " + std::to_string(number) + (failed ? " failed" : " should have failed");
        if (failed) {
            ++seen.failed;
            continue;
        }
        ++seen.drawn;
        if (batch->epoch() != e || batch->size() != size)
            seen.fault = "not batch " + std::to_string(number);
        else if (!std::equal(batch->indices().begin(), batch->indices().end(),
                             order.begin() + static_cast<std::ptrdiff_t>(first)))
            seen.fault = "indices of batch " + std::to_string(number);
        else if (const std::string wrong = source.fault(*batch, a_case.seed); !wrong.empty())
            seen.fault = wrong;
        held.push_back(std::move(*batch));
        while (held.size() > a_case.held) {
            // Never so many that the user holds all batches, since the other thread takes its time.
            if (a_case.other_thread_gives_back == 0 && a_case.held == 0 && number % 3 == 0 &&
                a_case.options.prefetch_depth > 2)
                give_back(std::move(held.front()));
            held.pop_front();
        }
    }
}

Awaitable<void> draw(Case& a_case, DataLoader& loader, NumberedSource& source, const Sampler& sampler, Seen& seen) {
    std::deque<Batch> held;
    GiveBack give_back;
    try {
        for (std::size_t e = 0; e < a_case.epochs; ++e) {
            co_await draw_pass(a_case, loader, source, sampler, seen, held, give_back, e);
            for (const Batch& batch : held)
                if (const std::string wrong = source.fault(batch, a_case.seed); !wrong.empty())
                    seen.fault = "held: " + wrong;
        }
        seen.ended = true;
    } catch (const std::system_error& error) {
        seen.aborted = error.code() == asio::error::operation_aborted;
        if (!seen.aborted)
            seen.fault = error.what();
    } catch (const std::logic_error& error) {
        // The thread that gives back may be several batches late.
        if (a_case.other_thread_gives_back != 0 || a_case.held != 0)
            seen.fault = error.what();
        else
            seen.ended = true;
    }
}

/// The loader is a local variable of the coroutine.
Awaitable<void> draw_own(Case& a_case, Runtime& runtime, NumberedSource& source, const Sampler& sampler, Seen& seen) {
    DataLoader loader{runtime, source, sampler, a_case.options};
    co_await draw(a_case, loader, source, sampler, seen);
}

std::string run_case(std::uint64_t seed, Recorder& recorder) {
    Case a_case{seed};
    NumberedSource source{a_case.samples};
    source.runs = a_case.runs;
    if (a_case.fails_every)
        source.fails = [&](std::uint64_t index) { return index % a_case.fails_every == 3; };
    if (a_case.slow_every)
        source.before_fill = [&](std::uint64_t index) {
            if (index % a_case.slow_every == 0)
                busy(a_case.slow_ns);
        };
    const RandomSampler sampler{a_case.samples, seed};
    Seen seen;
    {
        const RuntimeOptions options{.workers = a_case.threads ? WorkerThreads::threads : WorkerThreads::arena,
                                     .record = false};
        auto runtime = std::make_unique<Runtime>(options, recorder);
        std::exception_ptr error;
        auto done = [&error](std::exception_ptr thrown) { error = std::move(thrown); };
        auto& context = runtime->context();
        if (a_case.end == End::destroy_context) {
            asio::co_spawn(context, draw_own(a_case, *runtime, source, sampler, seen), done);
            for (std::size_t i = 0; i < a_case.handlers && context.run_one() != 0; ++i) {
            }
            runtime.reset();
        } else {
            auto loader = std::make_unique<DataLoader>(*runtime, source, sampler, a_case.options);
            asio::co_spawn(context, draw(a_case, *loader, source, sampler, seen), done);
            if (a_case.end == End::run_out) {
                context.run();
                if (!seen.ended)
                    seen.fault += " it did not end";
                if (loader->counters().handler_fallbacks != 0)
                    seen.fault += " a wake-up allocated";
                loader.reset();
            } else if (a_case.end == End::stop_from_a_thread) {
                std::thread stopper{[&] {
                    busy(a_case.stop_after_ns);
                    loader->request_stop();
                }};
                context.run();
                stopper.join();
                if (!seen.ended && !seen.aborted)
                    seen.fault += " neither ended nor stopped";
                loader.reset();
            } else {
                // At least one handler, so that the coroutine begins while the loader exists.
                for (std::size_t i = 0; i <= a_case.handlers && context.run_one() != 0; ++i) {
                }
                loader.reset();
                source.closed = true;
                // The coroutine refers to the destroyed loader: it must leave its draw without touching it.
                if (a_case.runs_on) {
                    context.run();
                    if (!seen.ended && !seen.aborted)
                        seen.fault += " neither ended nor aborted";
                }
            }
        }
        source.closed = true;
        if (error)
            seen.fault += " an exception left the coroutine";
    }
    if (source.filled_closed)
        seen.fault += " fill() ran after the destructor";
    return seen.fault;
}

BOOST_AUTO_TEST_SUITE(hand_over)

BOOST_AUTO_TEST_CASE(random_schedules_lose_nothing_and_end_at_every_end) {
    const char* const given = std::getenv("DRAWPOINT_STRESS_SEEDS");
    const char* const from = std::getenv("DRAWPOINT_STRESS_FROM");
    const std::uint64_t first = from ? std::strtoull(from, nullptr, 10) : 0;
    const std::uint64_t seeds = given ? std::strtoull(given, nullptr, 10) : 3000;
    const auto recorder = test::small_recorder();
    for (std::uint64_t seed = first; seed < first + seeds; ++seed) {
        ::alarm(60);   // ends the program, and thus the test, if it hangs
        const std::string fault = run_case(seed, *recorder);
        BOOST_TEST(fault == "", "seed " << seed << ": " << fault);
    }
    ::alarm(0);
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
}   // namespace drawpoint
