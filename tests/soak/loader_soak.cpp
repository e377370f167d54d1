// loader_soak [SECONDS [SEED]]: draws, cancels, times out, holds batches, changes settings, stops early, restores and
// destroys loaders whose reads are slow, fail for a moment or for good. Checks that each pass gives each sample that
// can be read once, with its own bytes. Prints a line every ten seconds; at the end, from an hour on, whether memory
// grew and whether samples came to cost more CPU time than they cost a new process. That one does a piece of the same
// work every ten seconds, so that whatever else runs on the machine weighs on both. Status 1: something was lost, or
// grew. Its workers have no arenas of oneTBB, whose allocator keeps slowly more for itself: 88 KiB in 26 minutes.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <fstream>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <asio/bind_cancellation_slot.hpp>
#include <asio/cancellation_signal.hpp>
#include <asio/co_spawn.hpp>
#include <asio/steady_timer.hpp>
#include <asio/use_awaitable.hpp>

#include <drawpoint/instrumentation/recorder/recorder.hpp>
#include <drawpoint/pipeline/loader/data_loader.hpp>

#include "pipeline/loader/stored_source.hpp"

namespace {

using namespace drawpoint;
using namespace std::chrono_literals;
using test::NumberedSource;
using test::StoredSource;
using Clock = std::chrono::steady_clock;

constexpr std::uint64_t samples = 600;

[[noreturn]] void lost(const std::string& what) {
    std::printf("LOST: %s\n", what.c_str());
    std::exit(1);
}

double cpu_s() {
    rusage use{};
    ::getrusage(RUSAGE_SELF, &use);
    const auto seconds = [](const timeval& time) {
        return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
    };
    return seconds(use.ru_utime) + seconds(use.ru_stime);
}

/// Without what malloc keeps for later.
double resident_kib() {
    ::malloc_trim(0);
    std::ifstream file{"/proc/self/statm"};
    std::uint64_t all = 0, resident = 0;
    file >> all >> resident;
    return static_cast<double>(resident) * static_cast<double>(::sysconf(_SC_PAGESIZE)) / 1024;
}

struct Counts {
    std::uint64_t passes = 0, batches = 0, samples = 0, failed = 0, timeouts = 0, cancels = 0, changes = 0,
                  restores = 0, loaders = 0;
};

/// Slow and failing reads: every read of a thread may be slow or fail for a moment, and the files of some samples are
/// not there, whoever reads them.
class Faults {
public:
    static bool fails_always(std::uint64_t index) { return index % 101 == 7; }
    explicit Faults(StoredSource& source) {
        for (std::uint64_t index = 0; index < samples; ++index)
            if (fails_always(index))
                std::filesystem::remove(source.file(index));
        source.before_read = [this](std::uint64_t index) {
            const std::uint64_t call = calls_.fetch_add(1, std::memory_order_relaxed) * 0x9E3779B97F4A7C15;
            if ((call >> 40) % 16 == 0)
                std::this_thread::sleep_for(std::chrono::microseconds{(call >> 50) % 200});
            if ((call >> 30) % 256 != 0)
                failed_[index] = 0;
            else if (++failed_[index] < 3)   // no read fails for good
                throw std::filesystem::filesystem_error{"cannot read", "x", std::make_error_code(std::errc::io_error)};
        };
    }

private:
    std::atomic<std::uint64_t> calls_{0};
    std::vector<std::atomic<std::uint32_t>> failed_ = std::vector<std::atomic<std::uint32_t>>(samples);   // in a row
};

struct Quiet final : StallObserver {
    void stalled(std::string_view) noexcept override {}
};

/// One recorder, runtime and several loaders after one another.
class Life {
public:
    Life(StoredSource& source, const std::string& file, std::uint64_t seed, Counts& counts)
        : source_{source},
          random_{seed},
          counts_{counts},
          recorder_{file, RecorderOptions{.limit_bytes = 4u << 20, .ring_records = 1u << 12, .ledger_bytes = 1u << 20}},
          runtime_{{.workers = WorkerThreads::threads}, recorder_} {}

    void live() {
        const RandomSampler sampler{samples, random_()};
        std::uint64_t epoch = 0;
        std::string state;
        const std::size_t batch_size = 1 + random_() % 24;
        for (std::size_t loaders = 1 + random_() % 4; loaders != 0; --loaders, ++counts_.loaders) {
            DataLoader loader{runtime_, source_, sampler, options(batch_size)};
            if (!state.empty()) {
                loader.restore(state);
                ++counts_.restores;
            }
            for (std::size_t passes = 1 + random_() % 6; passes != 0; --passes) {
                run(runtime_, pass(loader, epoch));
                if (left_early_)
                    break;
                ++epoch;
                seen_.assign(samples, false);
                missing_ = 0;
            }
            state = loader.state();
            if (left_early_ && random_() % 2 == 0) {   // another loader begins with the next epoch
                state.clear();
                seen_.assign(samples, false);
                missing_ = 0;
                ++epoch;
            }
        }
    }

private:
    bool one_in(std::uint64_t n) { return random_() % n == 0; }
    std::chrono::microseconds some_time() { return std::chrono::microseconds{random_() % 300}; }

    LoaderOptions options(std::size_t batch_size) {
        LoaderOptions all{.batch_size = batch_size,
                          .num_workers = random_() % 5,
                          .prefetch_depth = 1 + random_() % 6,
                          .seed = 3,
                          .order = order(),
                          .on_error = OnError::skip,
                          .max_errors = samples,
                          .read_concurrency = one_in(3) ? 0 : random_() % 24,
                          .read_retries = 3};
        if (one_in(3)) {
            all.stall_timeout = 50ms;
            all.on_stall = &quiet_;
        }
        return all;
    }
    OrderRule order() {
        return one_in(2)   ? OrderRule::in_order()
               : one_in(2) ? OrderRule::out_of_order()
                           : OrderRule::bounded(1 + random_() % 4);
    }

    void change(DataLoader& loader) {
        LoaderChange change{.prefetch_depth = 1 + random_() % 6, .order = order()};
        if (loader.options().num_workers != 0)
            change.num_workers = 1 + random_() % 6;
        loader.reconfigure(change);
        ++counts_.changes;
    }

    /// A draw that is cancelled after a while.
    Awaitable<std::optional<Batch>> drawn_or_cancelled(DataLoader::Pass& pass) {
        const auto signal = std::make_shared<asio::cancellation_signal>();   // the timer may ring after the draw
        asio::steady_timer timer{runtime_.context(), some_time()};
        timer.async_wait([signal](std::error_code error) {
            if (!error)
                signal->emit(asio::cancellation_type::terminal);
        });
        auto cancellable = asio::bind_cancellation_slot(signal->slot(), asio::use_awaitable);
        auto batch = co_await asio::co_spawn(runtime_.context(), pass.next(), std::move(cancellable));
        co_return batch;
    }

    Awaitable<void> pass(DataLoader& loader, std::uint64_t epoch) {
        left_early_ = false;
        std::uint64_t skipped = loader.counters().samples_skipped;
        std::deque<Batch> held;
        {
            DataLoader::Pass pass = loader.epoch(epoch, {.next_epoch = one_in(2)});
            const std::uint64_t leaves_at = one_in(5) ? 1 + random_() % 30 : ~std::uint64_t{0};
            for (std::uint64_t drawn = 0;; ++drawn) {
                if (drawn == leaves_at) {
                    left_early_ = true;
                    break;
                }
                while (held.size() + 1 > loader.options().prefetch_depth || (!held.empty() && one_in(2)))
                    held.pop_front();
                if (one_in(40)) {
                    held.clear();
                    change(loader);
                }
                std::optional<Batch> batch;
                bool has_left = false;
                if (one_in(4)) {
                    try {
                        auto drawn_in_time = co_await pass.next_for(some_time());
                        batch = std::move(drawn_in_time);
                    } catch (const std::system_error& error) {
                        if (error.code() != asio::error::timed_out)
                            throw;
                        has_left = true;
                        ++counts_.timeouts;
                    }
                } else if (one_in(4)) {
                    try {
                        auto drawn_in_time = co_await drawn_or_cancelled(pass);
                        batch = std::move(drawn_in_time);
                    } catch (const std::system_error& error) {
                        if (error.code() != asio::error::operation_aborted)
                            throw;
                        has_left = true;
                        ++counts_.cancels;
                    }
                } else {
                    auto one = co_await pass.next();
                    batch = std::move(one);
                }
                if (has_left)
                    continue;
                if (!batch)
                    break;
                take(*batch);
                held.push_back(std::move(*batch));
            }
        }
        missing_ += loader.counters().samples_skipped - skipped;
        if (left_early_)
            co_return;
        ++counts_.passes;
        counts_.failed += missing_;
        const auto came = static_cast<std::uint64_t>(std::ranges::count(seen_, true));
        if (came + missing_ != samples)
            lost(std::to_string(came) + " samples came and " + std::to_string(missing_) + " failed, of " +
                 std::to_string(samples));
        for (std::uint64_t index = 0; index < samples; ++index)   // a read that fails for a moment is tried again
            if (seen_[index] == Faults::fails_always(index))
                lost("sample " + std::to_string(index) +
                     (seen_[index] ? " came, which cannot be read" : " is missing"));
    }

    void take(const Batch& batch) {
        if (const std::string fault = numbers_.fault(batch, 3); !fault.empty())
            lost("another " + fault);
        for (const std::uint64_t index : batch.indices()) {
            if (seen_[index])
                lost("sample " + std::to_string(index) + " came twice");
            seen_[index] = true;
        }
        ++counts_.batches;
        counts_.samples += batch.size();
    }

    StoredSource& source_;
    std::mt19937_64 random_;
    Counts& counts_;
    Quiet quiet_;
    Recorder recorder_;
    Runtime runtime_;
    NumberedSource numbers_{samples};   // only to compare with
    std::vector<bool> seen_ = std::vector<bool>(samples);
    std::uint64_t missing_ = 0;
    bool left_early_ = false;
};

/// What malloc has given out, if it has one arena.
double in_use_kib() {
    const struct mallinfo2 info = ::mallinfo2();
    return static_cast<double>(info.uordblks + info.hblkhd) / 1024;
}

struct Look {
    double at_s, resident_kib, in_use_kib, cpu_us_per_sample, aged_to_new;
};

double mean_of(const std::vector<Look>& looks, std::size_t from, std::size_t to, double Look::* what) {
    double sum = 0;
    for (std::size_t i = from; i < to; ++i)
        sum += looks[i].*what;
    return sum / static_cast<double>(to - from);
}

/// Least squares, in KiB an hour.
double slope(const std::vector<Look>& looks, std::size_t from, double Look::* what) {
    const double at = mean_of(looks, from, looks.size(), &Look::at_s), kib = mean_of(looks, from, looks.size(), what);
    double both = 0, squares = 0;
    for (std::size_t i = from; i < looks.size(); ++i) {
        both += (looks[i].at_s - at) * (looks[i].*what - kib);
        squares += (looks[i].at_s - at) * (looks[i].at_s - at);
    }
    return 3600 * both / squares;
}

/// CPU time a sample of `lives` lives, in microseconds.
double cost_us(StoredSource& source, const std::string& file, std::uint64_t seed, std::uint64_t lives, Counts& counts) {
    const double cpu = cpu_s();
    const std::uint64_t samples_before = counts.samples;
    for (std::uint64_t life = 0; life < lives; ++life)
        Life{source, file, seed + life, counts}.live();
    return 1e6 * (cpu_s() - cpu) / static_cast<double>(counts.samples - samples_before);
}

constexpr std::uint64_t compared_lives = 30;

/// What `compared_lives` lives cost a process that has just begun.
int tell_cost_of_new(std::uint64_t seed) {
    const test::TemporaryFolder folder;
    StoredSource source{samples, StoredSource::In::files};
    const Faults faults{source};
    Counts counts;
    std::printf("%.9g\n", cost_us(source, folder.file("run.pftrace"), seed, compared_lives, counts));
    return 0;
}

/// What they cost here, over what they cost a new process that lives them at the same time.
double aged_to_new(StoredSource& source, const std::string& file, std::uint64_t seed, Counts& counts) {
    const std::string program = "/proc/" + std::to_string(::getpid()) + "/exe";   // also once its file was replaced
    std::FILE* const told = ::popen((program + " --new " + std::to_string(seed)).c_str(), "r");
    const double aged = cost_us(source, file, seed, compared_lives, counts);
    double of_new = 0;
    if (told == nullptr || std::fscanf(told, "%lf", &of_new) != 1 || ::pclose(told) != 0 || !(of_new > 0))
        lost("the new process to compare with failed");
    return aged / of_new;
}

int soak(double seconds, std::uint64_t seed) {
    constexpr double every_s = 10, judged_from_s = 3600;   // the noise of less is more than the limits
    const test::TemporaryFolder folder;
    StoredSource source{samples, StoredSource::In::files};
    const Faults faults{source};
    Counts counts;
    std::vector<Look> looks;
    looks.reserve(static_cast<std::size_t>(seconds / every_s) + 1);
    const auto begin = Clock::now();
    const auto now_s = [&] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
    double last_s = 0, last_cpu_s = cpu_s();
    std::uint64_t last_samples = 0;
    for (std::uint64_t lives = 0; now_s() < seconds; ++lives) {
        Life{source, folder.file("run.pftrace"), seed + lives, counts}.live();
        if (now_s() - last_s < every_s)
            continue;
        const double cost = 1e6 * (cpu_s() - last_cpu_s) / static_cast<double>(counts.samples - last_samples);
        const double ratio = aged_to_new(source, folder.file("run.pftrace"), ~(seed + lives), counts);
        looks.push_back({now_s(), resident_kib(), in_use_kib(), cost, ratio});
        last_s = now_s();
        last_cpu_s = cpu_s();
        last_samples = counts.samples;
        std::printf("%.0f s: %llu loaders, %llu passes, %llu batches, %llu timeouts, %llu cancels, %llu changes, %llu "
                    "restores, %llu failed samples; %.0f KiB resident, %.1f in use, %.2f us of CPU a sample, %.3f of "
                    "what it is in a new process\n",
                    last_s, static_cast<unsigned long long>(counts.loaders),
                    static_cast<unsigned long long>(counts.passes), static_cast<unsigned long long>(counts.batches),
                    static_cast<unsigned long long>(counts.timeouts), static_cast<unsigned long long>(counts.cancels),
                    static_cast<unsigned long long>(counts.changes), static_cast<unsigned long long>(counts.restores),
                    static_cast<unsigned long long>(counts.failed), looks.back().resident_kib, looks.back().in_use_kib,
                    looks.back().cpu_us_per_sample, looks.back().aged_to_new);
        std::fflush(stdout);
    }
    if (counts.passes == 0)
        lost("no pass was whole");
    std::printf("nothing lost in %llu whole passes, %llu samples\n", static_cast<unsigned long long>(counts.passes),
                static_cast<unsigned long long>(counts.samples));
    if (seconds < judged_from_s) {
        std::printf("memory and CPU time are judged from %.0f s on\n", judged_from_s);
        return 0;
    }
    const std::size_t fifth = looks.size() / 5;
    const auto grows = [&](const char* name, double Look::* what) {
        const double mean = mean_of(looks, fifth, looks.size(), what), growth = slope(looks, fifth, what);
        std::printf("after the first fifth: memory %s %.1f KiB, slope %+.1f KiB an hour\n", name, mean, growth);
        return growth > 0.01 * mean;
    };
    const bool any_grows = grows("resident", &Look::resident_kib) | grows("in use", &Look::in_use_kib);
    const double drift = mean_of(looks, looks.size() - 2 * fifth, looks.size(), &Look::aged_to_new) /
                             mean_of(looks, fifth, 3 * fifth, &Look::aged_to_new) -
                         1;
    std::printf("CPU time a sample, against that of a new process: %+.2f %%, last two fifths against the two before\n",
                100 * drift);
    return !any_grows && drift < 0.02 ? 0 : 1;
}

}   // namespace

int main(int count, char** arguments) {
    // One arena and no caches of threads: memory that is free is given back, so that only what is in use grows.
    if (std::getenv("GLIBC_TUNABLES") == nullptr) {
        ::setenv("GLIBC_TUNABLES", "glibc.malloc.tcache_count=0:glibc.malloc.arena_max=1", 0);
        ::execv("/proc/self/exe", arguments);
    }
    if (count == 3 && std::string_view{arguments[1]} == "--new")
        return tell_cost_of_new(std::strtoull(arguments[2], nullptr, 10));
    const double seconds = count > 1 ? std::atof(arguments[1]) : 3600;
    const std::uint64_t seed = count > 2 ? std::strtoull(arguments[2], nullptr, 10) : 1;
    if (!(seconds > 0)) {
        std::fprintf(stderr, "usage: loader_soak [SECONDS [SEED]]\n");
        return 2;
    }
    return soak(seconds, seed);
}
