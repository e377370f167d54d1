#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <iterator>
#include <latch>
#include <memory>
#include <ostream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <drawpoint/instrumentation/ledger/attribution.hpp>
#include <drawpoint/instrumentation/recorder/recorder.hpp>
#include <drawpoint/instrumentation/recorder/region.hpp>
#include <drawpoint/instrumentation/facts.hpp>
#include <drawpoint/instrumentation/sampling/stack_sampler.hpp>
#include "instrumentation/sampling/stack_table.hpp"
#include "instrumentation/sampling/stack_walk.hpp"
#include "instrumentation/sampling/thread_timers.hpp"

namespace drawpoint {
std::ostream& boost_test_print_type(std::ostream& out, StackSamplerBackend backend) { return out << name_of(backend); }
}   // namespace drawpoint

namespace sampled {

std::atomic<std::uint64_t> sink = 0;

[[gnu::noinline]] void first_burner() {
    std::uint64_t state = sink.load(std::memory_order_relaxed) + 1;
    for (int i = 0; i < 200'000; ++i)
        state = state * 6364136223846793005u + 1;
    sink.store(state, std::memory_order_relaxed);
}

[[gnu::noinline]] void second_burner() {
    std::uint64_t state = sink.load(std::memory_order_relaxed) + 3;
    for (int i = 0; i < 200'000; ++i)
        state = state * 2862933555777941757u + 5;
    sink.store(state, std::memory_order_relaxed);
}

}   // namespace sampled

namespace {

using namespace drawpoint;
namespace data = boost::unit_test::data;

const std::vector<StackSamplerBackend> backends{StackSamplerBackend::perf_event, StackSamplerBackend::timers};

/// Starts the sampler. False if this machine refuses the back end, as a container may: then there is nothing to test.
bool started(StackSampler& sampler, StackSamplerBackend backend) {
    try {
        sampler.start();
        return true;
    } catch (const std::system_error& error) {
        BOOST_TEST(backend == StackSamplerBackend::perf_event);
        BOOST_TEST_MESSAGE("skipped: " << error.what());
        return false;
    }
}

double cpu_seconds() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

/// Burns CPU time until `enough`, or for longer than a working sampler needs.
template <class Enough>
bool burn_until(Enough&& enough, void (*burner)() = sampled::first_burner) {
    const double begin = cpu_seconds();
    while (!enough() && cpu_seconds() - begin < 30.0)
        burner();
    return enough();
}

bool has_samples(const StackSampler& sampler, std::uint64_t count) { return sampler.state().samples >= count; }

/// Whether a function is on a sample's stack.
bool stands_in(const Ledger& ledger, const StackSampleRow& sample, std::string_view function) {
    for (std::uint32_t at = sample.stack; at != nothing; at = ledger.stacks.at(at).parent) {
        const FrameRow& frame = ledger.frames.at(ledger.stacks[at].frame);
        if (ledger.names.at(frame.function).find(function) != std::string::npos)
            return true;
    }
    return false;
}

std::size_t samples_of(const Ledger& ledger, std::uint64_t tid) {
    return static_cast<std::size_t>(
        std::count_if(ledger.stack_samples.begin(), ledger.stack_samples.end(),
                      [&](const StackSampleRow& row) { return ledger.threads.at(row.thread).tid == tid; }));
}

}   // namespace

BOOST_AUTO_TEST_SUITE(stack_sampler)

BOOST_DATA_TEST_CASE(a_busy_thread_is_sampled_in_the_function_it_runs, data::make(backends), backend) {
    Recorder recorder;
    StackSampler sampler{recorder, {.backend = backend}};
    const std::int64_t begin_ns = recorder.now_ns();
    if (!started(sampler, backend))
        return;
    const bool enough = burn_until([&] { return has_samples(sampler, 100); });
    sampler.stop();
    const std::int64_t end_ns = recorder.now_ns();
    BOOST_REQUIRE(enough);

    const Ledger ledger = recorder.ledger();
    BOOST_TEST(ledger.stack_samples.size() == sampler.state().samples);
    std::size_t inside = 0, mine = 0;
    for (const StackSampleRow& row : ledger.stack_samples) {
        BOOST_TEST(row.weight_ns > 0);
        BOOST_TEST((row.at_ns >= begin_ns - 1'000'000 && row.at_ns <= end_ns + 1'000'000));
        mine += ledger.threads.at(row.thread).tid == static_cast<std::uint64_t>(gettid());
        inside += stands_in(ledger, row, "first_burner");
    }
    BOOST_TEST(mine > 50u);
#if !defined(__SANITIZE_THREAD__)   // TSan delays signals to the next call that it intercepts
    BOOST_TEST(inside * 2 > mine);
#endif
}

BOOST_DATA_TEST_CASE(a_sample_belongs_to_the_region_open_around_the_function, data::make(backends), backend) {
    Recorder recorder;
    StackSampler sampler{recorder, {.backend = backend}};
    if (!started(sampler, backend))
        return;
    const bool enough = burn_until([&] {
        const auto outer = profile_region(recorder, "outer");
        {
            const auto inner = profile_region(recorder, "inner");
            for (int i = 0; i < 5; ++i)
                sampled::second_burner();
        }
        for (int i = 0; i < 5; ++i)
            sampled::first_burner();
        return has_samples(sampler, 200);
    });
    sampler.stop();
    BOOST_REQUIRE(enough);
#if !defined(__SANITIZE_THREAD__)
    const Ledger ledger = recorder.ledger();
    const Attribution attribution{ledger};
    std::size_t right = 0, wrong = 0;
    for (const StackSampleRow& row : ledger.stack_samples) {
        if (!stands_in(ledger, row, "second_burner"))
            continue;
        const bool is_inner = attribution.action_of(attribution.at(row.thread, row.at_ns)) == "inner";
        ++(is_inner ? right : wrong);
    }
    BOOST_TEST(right > 20u);
    BOOST_TEST(wrong * 20 <= right);   // the two clocks agree within some microseconds
#endif
}

BOOST_DATA_TEST_CASE(a_thread_that_sleeps_is_not_sampled, data::make(backends), backend) {
    Recorder recorder;
    std::latch begun{1}, end{1};
    std::uint64_t sleeper_tid = 0;
    std::thread sleeper{[&] {
        sleeper_tid = static_cast<std::uint64_t>(gettid());
        begun.count_down();
        end.wait();
    }};
    begun.wait();
    StackSampler sampler{recorder, {.backend = backend}};
    const bool runs = started(sampler, backend);
    const bool enough = !runs || burn_until([&] { return has_samples(sampler, 100); });
    sampler.stop();
    end.count_down();
    sleeper.join();
    BOOST_TEST(enough);
    if (runs)
        BOOST_TEST(samples_of(recorder.ledger(), sleeper_tid) < 10u);   // from just before it slept
}

BOOST_DATA_TEST_CASE(a_thread_begun_later_is_sampled, data::make(backends), backend) {
    Recorder recorder;
    StackSampler sampler{recorder, {.backend = backend}};
    if (!started(sampler, backend))
        return;
    std::uint64_t later_tid = 0;
    bool enough = false;
    std::thread later{[&] {
        later_tid = static_cast<std::uint64_t>(gettid());
        enough = burn_until([&] { return has_samples(sampler, 50); });
    }};
    later.join();
    sampler.stop();
    BOOST_TEST(enough);
    BOOST_TEST(samples_of(recorder.ledger(), later_tid) > 25u);
}

BOOST_AUTO_TEST_CASE(a_thread_met_while_it_blocks_every_signal_is_sampled_once_it_does_not) {
    Recorder recorder;
    StackSampler sampler{recorder, {.backend = StackSamplerBackend::timers}};
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    sampler.start();
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    BOOST_TEST(burn_until([&] { return has_samples(sampler, 20); }));
    sampler.stop();
    BOOST_TEST(samples_of(recorder.ledger(), static_cast<std::uint64_t>(gettid())) > 0u);
}

BOOST_AUTO_TEST_CASE(a_thread_that_blocks_every_signal_until_the_end_counts_as_unsampled) {
    Recorder recorder;
    StackSampler sampler{recorder, {.backend = StackSamplerBackend::timers}};
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    sampler.start();
    sampler.stop();
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    BOOST_TEST(sampler.state().unsampled >= 1u);
}

BOOST_AUTO_TEST_CASE(a_timer_may_tick_once_a_second) {
    ThreadTimers timers{1, 4096, 16};
    const std::unique_ptr<ThreadSource> source = timers.add(gettid());
    BOOST_TEST((source != nullptr));
}

BOOST_AUTO_TEST_CASE(a_stack_is_read_no_further_than_its_threads_own_block_nor_16_mib) {
    const auto here = [] { return reinterpret_cast<std::uint64_t>(__builtin_frame_address(0)); };
    const std::uint64_t first = here();
    BOOST_TEST(stack_limit(first, first + 4096) == first + 4096);
    BOOST_TEST(stack_limit(first, UINT64_MAX) <= first + (16u << 20));
    std::uint64_t sp = 0, limit = 0, top = 0;
    std::thread{[&] {
        pthread_attr_t attributes;
        pthread_getattr_np(pthread_self(), &attributes);
        void* begin = nullptr;
        std::size_t bytes = 0;
        pthread_attr_getstack(&attributes, &begin, &bytes);
        pthread_attr_destroy(&attributes);
        sp = here();
        limit = stack_limit(sp, UINT64_MAX);
        top = reinterpret_cast<std::uint64_t>(begin) + bytes;
    }}.join();
    BOOST_TEST(sp < limit);
    BOOST_TEST(limit <= top);
}

BOOST_AUTO_TEST_CASE(a_return_address_of_0_is_no_code_like_any_other) {
    Recorder recorder;
    StackTable table{recorder};
    const auto code = reinterpret_cast<std::uint64_t>(&sampled::first_burner);
    const std::uint64_t alone[]{code}, called_from_0[]{code, 0};
    const std::uint32_t first = table.stack_of(alone, false), second = table.stack_of(called_from_0, false);
    const Ledger ledger = recorder.ledger();
    const auto outermost = [&](std::uint32_t at) {
        while (ledger.stacks.at(at).parent != nothing)
            at = ledger.stacks[at].parent;
        return ledger.names.at(ledger.frames.at(ledger.stacks[at].frame).function);
    };
    BOOST_TEST(outermost(first) != "[unknown]");
    BOOST_TEST(outermost(second) == "[unknown]");
}

BOOST_DATA_TEST_CASE(threads_may_come_and_go_while_sampled, data::make(backends), backend) {
    Recorder recorder;
    StackSampler sampler{recorder, {.backend = backend}};
    if (!started(sampler, backend))
        return;
    for (int round = 0; round < 50; ++round) {
        std::vector<std::thread> threads;
        for (int i = 0; i < 4; ++i)
            threads.emplace_back([] { sampled::first_burner(); });
        for (std::thread& thread : threads)
            thread.join();
    }
    sampler.stop();
    const Ledger ledger = recorder.ledger();
    BOOST_TEST(ledger.stack_samples.size() == sampler.state().samples);
    for (const StackSampleRow& row : ledger.stack_samples)
        BOOST_TEST((row.thread < ledger.threads.size() && row.stack < ledger.stacks.size()));
}

BOOST_DATA_TEST_CASE(it_may_be_started_and_stopped_again_and_again, data::make(backends), backend) {
    Recorder recorder;
    StackSampler sampler{recorder, {.backend = backend}};
    std::atomic<bool> over = false;
    std::thread busy{[&] {
        while (!over.load(std::memory_order_relaxed))
            sampled::first_burner();
    }};
    for (int i = 0; i < 100 && started(sampler, backend); ++i) {
        sampler.start();   // no effect
        sampler.stop();
        sampler.stop();
    }
    over = true;
    busy.join();
    BOOST_TEST(recorder.ledger().stack_samples.size() == sampler.state().samples);
}

BOOST_DATA_TEST_CASE(samplers_one_after_the_other_do_not_disturb_each_other, data::make(backends), backend) {
    Recorder recorder;
    for (int i = 0; i < 20; ++i) {
        StackSampler sampler{recorder, {.backend = backend}};
        if (!started(sampler, backend))
            return;
        sampled::first_burner();
    }   // the destructor stops the sampler
    StackSampler last{recorder, {.backend = backend}};
    BOOST_REQUIRE(started(last, backend));
    BOOST_TEST(burn_until([&] { return has_samples(last, 20); }));
}

BOOST_DATA_TEST_CASE(what_it_did_and_cost_are_facts, data::make(backends), backend) {
    Recorder recorder;
    StackSampler sampler{recorder, {.rate_hz = 500, .timer_rate_hz = 500, .backend = backend}};
    if (!started(sampler, backend))
        return;
    burn_until([&] { return has_samples(sampler, 20); });
    sampler.stop();
    const Ledger ledger = recorder.ledger();
    const StackSamplerState state = sampler.state();
    BOOST_TEST(ledger.fact(facts::sampling_backend).value() == name_of(backend));
    BOOST_TEST(ledger.fact(facts::sampling_rate_asked_hz).value() == "500");
    BOOST_TEST(ledger.fact(facts::sampling_samples).value() == std::to_string(state.samples));
    BOOST_TEST(ledger.fact(facts::sampling_lost).value() == std::to_string(state.lost));
    BOOST_TEST(std::stod(std::string{ledger.fact(facts::sampling_rate_hz).value()}) > 0.0);
    BOOST_TEST(std::stod(std::string{ledger.fact(facts::sampling_cpu_s).value()}) > 0.0);
    BOOST_TEST((state.share_of_cpu() > 0.0 && state.share_of_cpu() < 1.0));
}

BOOST_AUTO_TEST_CASE(weights_of_timers_do_not_exceed_the_cpu_time_used) {
    Recorder recorder;
    StackSampler sampler{recorder, {.backend = StackSamplerBackend::timers}};
    sampler.start();
    burn_until([&] { return has_samples(sampler, 200); });
    sampler.stop();
    double weights_s = 0.0;
    for (const StackSampleRow& row : recorder.ledger().stack_samples)
        weights_s += static_cast<double>(row.weight_ns) * 1e-9;
    BOOST_TEST(weights_s > 0.0);
    BOOST_TEST(weights_s <= sampler.state().sampled_cpu_s);
}

BOOST_DATA_TEST_CASE(a_stack_is_no_deeper_than_asked, data::make(backends), backend) {
    Recorder recorder;
    StackSampler sampler{recorder, {.backend = backend, .max_depth = 1}};
    if (!started(sampler, backend))
        return;
    BOOST_TEST(burn_until([&] { return has_samples(sampler, 20); }));
    sampler.stop();
    const Ledger ledger = recorder.ledger();
    const auto inside = std::ranges::count_if(ledger.stack_samples, [&](const StackSampleRow& row) {
        return stands_in(ledger, row, "burn_until");   // of deeper stacks all do
    });
    BOOST_TEST(10 * inside <= std::ssize(ledger.stack_samples));   // taken between two calls of the burner
}

BOOST_AUTO_TEST_CASE(an_option_out_of_range_is_refused_by_name) {
    Recorder recorder;
    const auto refuses = [&](StackSamplerOptions options, std::string_view name) {
        BOOST_CHECK_EXCEPTION((StackSampler{recorder, options}), std::invalid_argument, [&](const auto& error) {
            return std::string_view{error.what()}.find(name) != std::string_view::npos;
        });
    };
    refuses({.rate_hz = 0}, "rate_hz");
    refuses({.rate_hz = 10'001}, "rate_hz");
    refuses({.timer_rate_hz = 0}, "timer_rate_hz");
    refuses({.ring_bytes = 4095}, "ring_bytes");
    refuses({.ring_bytes = 12'288}, "ring_bytes");
    refuses({.max_depth = 0}, "max_depth");
    refuses({.max_depth = 128}, "max_depth");
}

BOOST_AUTO_TEST_CASE(a_sampler_never_started_costs_and_records_nothing) {
    Recorder recorder;
    {
        StackSampler sampler{recorder};
    }
    BOOST_TEST(recorder.ledger().stack_samples.empty());
    BOOST_TEST(!recorder.ledger().fact(facts::sampling_backend));
}

BOOST_AUTO_TEST_SUITE_END()
