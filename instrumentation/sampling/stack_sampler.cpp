#include <drawpoint/instrumentation/sampling/stack_sampler.hpp>

#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <vector>

#include <drawpoint/instrumentation/facts.hpp>
#include "instrumentation/sampling/perf_event.hpp"
#include "instrumentation/sampling/process.hpp"
#include "instrumentation/sampling/stack_table.hpp"
#include "instrumentation/sampling/thread_timers.hpp"

namespace drawpoint {
namespace {

using namespace std::chrono_literals;

/// The pause between drains in which even samples of maximal depth cannot fill a ring. A drain costs about 100 µs.
std::chrono::milliseconds pause_of(const StackSamplerOptions& options) {
    const double sample_bytes = 32.0 + 8.0 * options.max_depth;
    const double full_ms =
        1000.0 * options.ring_bytes / (std::max(options.rate_hz, options.timer_rate_hz) * sample_bytes);
    return std::chrono::milliseconds{static_cast<int>(std::clamp(0.8 * full_ms, 5.0, 100.0))};
}

StackSamplerOptions checked(const StackSamplerOptions& options) {
    const auto require = [](bool holds, const char* option, std::uint32_t value, const char* range) {
        if (!holds)
            throw std::invalid_argument{std::string{option} + " must be " + range + ", got " + std::to_string(value)};
    };
    require(options.rate_hz >= 1 && options.rate_hz <= 10'000, "rate_hz", options.rate_hz, "between 1 and 10000");
    require(options.timer_rate_hz >= 1 && options.timer_rate_hz <= 10'000, "timer_rate_hz", options.timer_rate_hz,
            "between 1 and 10000");
    require(options.ring_bytes >= 4096 && std::has_single_bit(options.ring_bytes), "ring_bytes", options.ring_bytes,
            "a power of two of at least 4096");
    require(options.max_depth >= 1 && options.max_depth <= 127, "max_depth", options.max_depth, "between 1 and 127");
    return options;
}

std::string decimal(double value) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%.6g", value);
    return text.data();
}

}   // namespace

std::string_view name_of(StackSamplerBackend backend) noexcept {
    switch (backend) {
    case StackSamplerBackend::automatic: break;
    case StackSamplerBackend::perf_event: return "perf_event";
    case StackSamplerBackend::timers: return "timers";
    }
    return "automatic";
}

struct StackSampler::Impl {
    /// One sampled thread.
    struct Watched {
        pid_t thread = 0;
        std::unique_ptr<ThreadSource> source;   // nullptr: sampling it has failed so far
        int attempts_left = 10;                 // a thread that starts or ends blocks every signal for a moment
        std::int64_t first_cpu_ns = 0, cpu_ns = 0;
        std::uint32_t row = nothing;   // position among the recorder's threads, once it has a sample
    };

    /// Puts one thread's samples into the recorder.
    struct Sink final : RawSink {
        Sink(Impl& of, Watched& watched) noexcept : impl{of}, from{watched} {}
        void take(const RawSample& raw) override {
            if (from.row == nothing)   // no name is given, so an existing name is kept
                from.row = impl.recorder.add_thread({.tid = static_cast<std::uint64_t>(from.thread)});
            const std::uint32_t stack = impl.stacks.stack_of(raw.addresses, raw.in_kernel);
            if (from.row == nothing || stack == nothing) {
                ++impl.lost;
                return;
            }
            impl.recorder.push(StackSampleRow{raw.at_ns + impl.clock_offset_ns, from.row, stack, raw.weight_ns});
            ++impl.samples;
        }
        Impl& impl;
        Watched& from;
    };

    Impl(Recorder& to, const StackSamplerOptions& given) : recorder{to}, options{checked(given)}, stacks{to} {}

    void open_backend();
    void turn();
    void watch(pid_t thread);
    void attempt(Watched& watched);
    void drain(Watched& watched);
    void forget(Watched& watched);
    void finish();
    void let_go() noexcept;
    void publish();
    void set_facts();
    void run() noexcept;

    Recorder& recorder;
    const StackSamplerOptions options;
    std::thread thread;

    std::mutex mutex;   // guards the next three
    std::condition_variable wake;
    bool stop_asked = false;
    StackSamplerState published;

    // Used only by the thread that samples: first the caller of start(), then `thread`, then the caller of stop().
    StackTable stacks;
    std::unique_ptr<SamplingBackend> backend;
    std::vector<Watched> watched;   // by thread id
    ThreadList thread_list;
    std::vector<pid_t> listed;
    pid_t own_thread = 0;
    std::int64_t clock_offset_ns = 0;
    std::uint64_t samples = 0, lost = 0;
    std::uint32_t threads = 0, unsampled = 0;
    std::int64_t ended_cpu_ns = 0, ended_own_ns = 0;   // sums over threads no longer watched
    std::int64_t thread_cpu_ns = 0;                    // CPU time of the sampler's past threads
    std::int64_t thread_cpu_before_ns = 0;
    StackSamplerBackend kind = StackSamplerBackend::automatic;
    std::string refused, process_name;
};

// ---- which back end

void StackSampler::Impl::open_backend() {
    refused.clear();
    const auto open = [this](StackSamplerBackend wanted) {
        kind = wanted;
        if (wanted == StackSamplerBackend::perf_event)
            backend = std::make_unique<PerfEvents>(options.rate_hz, options.ring_bytes, options.max_depth);
        else
            backend = std::make_unique<ThreadTimers>(options.timer_rate_hz, options.ring_bytes, options.max_depth);
    };
    if (options.backend != StackSamplerBackend::automatic)
        return open(options.backend);
    try {
        open(StackSamplerBackend::perf_event);
    } catch (const std::system_error& error) {
        refused = error.what();
        open(StackSamplerBackend::timers);
    }
}

// ---- one drain

void StackSampler::Impl::turn() {
    // The recorder's clock may be the CPU's time stamp counter, which drifts by a few ppm against the system clock.
    clock_offset_ns = recorder.now_ns() - read_clock(CLOCK_MONOTONIC);
    thread_list.read(listed);
    auto known = watched.begin();
    const std::size_t before = watched.size();
    std::vector<pid_t> fresh;
    for (const pid_t id : listed) {
        while (known != watched.end() && known->thread < id)
            forget(*known++);
        if (known != watched.end() && known->thread == id)
            ++known;
        else if (id != own_thread)
            fresh.push_back(id);
    }
    while (known != watched.end())
        forget(*known++);
    std::erase_if(watched, [](const Watched& one) { return one.thread == 0; });
    for (Watched& one : watched) {
        drain(one);
        attempt(one);
    }
    for (const pid_t id : fresh)
        watch(id);
    if (!fresh.empty() || watched.size() != before)
        std::sort(watched.begin(), watched.end(),
                  [](const Watched& a, const Watched& b) { return a.thread < b.thread; });
    publish();
}

void StackSampler::Impl::watch(pid_t id) {
    Watched fresh{.thread = id};
    attempt(fresh);
    if (!fresh.source && !cpu_time_of(id))
        return;   // it has ended meanwhile
    if (std::string name = system_name_of(id); !name.empty() && name != process_name)
        recorder.set_fact(std::string{facts::sampling_thread_prefix} + std::to_string(id), name);
    watched.push_back(std::move(fresh));
}

void StackSampler::Impl::attempt(Watched& one) {
    if (one.attempts_left == 0)
        return;
    const std::optional<std::int64_t> cpu_ns = cpu_time_of(one.thread);
    if (!cpu_ns)
        return;
    one.first_cpu_ns = one.cpu_ns = *cpu_ns;
    one.source = backend->add(one.thread);
    one.attempts_left = one.source ? 0 : one.attempts_left - 1;
    if (one.source)
        ++threads;
    else if (one.attempts_left == 0)
        ++unsampled;
}

void StackSampler::Impl::drain(Watched& one) {
    if (!one.source)
        return;
    Sink sink{*this, one};
    lost += one.source->drain(sink);
    if (const std::optional<std::int64_t> cpu_ns = cpu_time_of(one.thread)) {
        one.source->on_cpu_time(*cpu_ns, *cpu_ns - one.cpu_ns);
        one.cpu_ns = *cpu_ns;
    }
}

void StackSampler::Impl::forget(Watched& one) {
    drain(one);
    if (one.source) {
        ended_cpu_ns += one.cpu_ns - one.first_cpu_ns;
        ended_own_ns += one.source->own_ns();
    } else if (one.attempts_left > 0) {
        ++unsampled;
    }
    one.source.reset();
    one.thread = 0;
}

void StackSampler::Impl::publish() {
    std::int64_t sampled_ns = ended_cpu_ns, own_ns = ended_own_ns + thread_cpu_ns;
    for (const Watched& one : watched) {
        if (!one.source)
            continue;
        sampled_ns += one.cpu_ns - one.first_cpu_ns;
        own_ns += one.source->own_ns();
    }
    if (own_thread != 0)
        own_ns += read_clock(CLOCK_THREAD_CPUTIME_ID);
    const std::lock_guard lock{mutex};
    published = {.backend = kind,
                 .refused = refused,
                 .kernel = backend && backend->kernel(),
                 .samples = samples,
                 .lost = lost,
                 .threads = threads,
                 .unsampled = unsampled,
                 .sampled_cpu_s = static_cast<double>(sampled_ns) * 1e-9,
                 .own_cpu_s = static_cast<double>(own_ns) * 1e-9};
}

void StackSampler::Impl::set_facts() {
    const auto set = [this](std::string_view key, const std::string& value) { recorder.set_fact(key, value); };
    set(facts::sampling_backend, std::string{name_of(kind)});
    set(facts::sampling_rate_asked_hz,
        std::to_string(kind == StackSamplerBackend::timers ? options.timer_rate_hz : options.rate_hz));
    set(facts::sampling_kernel, published.kernel ? "sampled" : "excluded");
    set(facts::sampling_symbols, std::string{Symbols::library()});
    if (!refused.empty())
        set(facts::sampling_refused, refused);
    if (published.samples + published.lost == 0 && published.sampled_cpu_s == 0.0)
        return;
    set(facts::sampling_rate_hz, decimal(published.rate_hz()));
    set(facts::sampling_share_of_cpu, decimal(published.share_of_cpu()));
    set(facts::sampling_cpu_s, decimal(published.own_cpu_s));
    set(facts::sampling_samples, std::to_string(published.samples));
    set(facts::sampling_lost, std::to_string(published.lost));
    set(facts::sampling_threads, std::to_string(published.threads));
    set(facts::sampling_unsampled, std::to_string(published.unsampled));
}

// ---- the sampler's thread

void StackSampler::Impl::run() noexcept {
    own_thread = gettid();
    try {
        std::unique_lock lock{mutex};
        while (!wake.wait_for(lock, pause_of(options), [this] { return stop_asked; })) {
            lock.unlock();
            turn();
            lock.lock();
        }
        lock.unlock();
        finish();
    } catch (const std::exception& error) {
        recorder.set_fact(facts::sampling_refused, std::string{"sampling ended early: "} + error.what());
    }
    let_go();
    thread_cpu_ns += read_clock(CLOCK_THREAD_CPUTIME_ID);
    own_thread = 0;
}

void StackSampler::Impl::finish() {
    for (Watched& one : watched) {
        if (one.source)
            one.source->end();   // ends all before forget() waits for the first
    }
    clock_offset_ns = recorder.now_ns() - read_clock(CLOCK_MONOTONIC);
    for (Watched& one : watched)
        forget(one);
    watched.clear();
    publish();
    set_facts();
}

void StackSampler::Impl::let_go() noexcept {
    for (Watched& one : watched) {
        if (one.source)
            one.source->end();
    }
    watched.clear();
    backend.reset();
}

// ---- from outside

StackSampler::StackSampler(Recorder& recorder, const StackSamplerOptions& options)
    : impl_{std::make_unique<Impl>(recorder, options)} {}

StackSampler::~StackSampler() { stop(); }

void StackSampler::start() {
    if (impl_->thread.joinable())
        return;
    impl_->stop_asked = false;
    impl_->open_backend();
    impl_->process_name = system_name_of(getpid());
    impl_->turn();
    impl_->set_facts();
    // The sampler's thread blocks all signals, so that the program's own threads receive them.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
        impl_->thread = std::thread{[this] { impl_->run(); }};
    } catch (...) {
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
        impl_->let_go();
        throw;
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    pthread_setname_np(impl_->thread.native_handle(), "sampler");
}

void StackSampler::stop() noexcept {
    if (!impl_->thread.joinable())
        return;
    {
        const std::lock_guard lock{impl_->mutex};
        impl_->stop_asked = true;
    }
    impl_->wake.notify_one();
    impl_->thread.join();
}

StackSamplerState StackSampler::state() const {
    const std::lock_guard lock{impl_->mutex};
    return impl_->published;
}

}   // namespace drawpoint
