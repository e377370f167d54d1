// The recorder's writer thread: its start, and what it does between two pauses.

#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <limits>
#include <mutex>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include <drawpoint/instrumentation/host/host.hpp>
#include <drawpoint/instrumentation/facts.hpp>
#include "instrumentation/recorder/recorder_impl.hpp"

namespace drawpoint {

namespace {

using namespace std::chrono_literals;

// A wake-up costs more than the records it finds: the quieter the rings, the longer the pause.
constexpr std::chrono::milliseconds longest_pause{80}, shortest_pause{1};

const RecorderOptions& checked(const RecorderOptions& options) {
    if (!(options.drop_share >= 0.0 && options.drop_share <= 1.0))
        throw std::invalid_argument("drop_share must be between 0 and 1, got " + std::to_string(options.drop_share));
    return options;
}

/// The shortest decimal text of the number, whatever the locale.
std::string decimal(double number) {
    char text[32];
    return {text, std::to_chars(std::begin(text), std::end(text), number).ptr};
}

/// The cost of one stamp and its share of a push: samples of four stages, five stamps each; the best of five rounds.
double measure_ns_per_event(const AnyClock& clock) {
    constexpr int rounds = 5, samples = 256;
    Ring ring{1024};
    SampleRecord record;
    record.stage_count = 4;
    double best = std::numeric_limits<double>::max();
    for (int round = 0; round < rounds; ++round) {
        const std::uint64_t begin_ns = system_clock_ns(CLOCK_MONOTONIC);
        for (int i = 0; i < samples; ++i) {
            record.row.begin_ns = clock.now_ns();
            for (std::size_t stage = 0; stage < 4; ++stage)
                record.stages[stage] = {record.row.begin_ns, clock.now_ns()};
            push_sample(ring, record);
        }
        const std::uint64_t end_ns = system_clock_ns(CLOCK_MONOTONIC);
        best = std::min(best, static_cast<double>(end_ns - begin_ns) / (5.0 * samples));
        ring.consume(ring.head(), [](const std::byte*) {});
    }
    return best;
}

/// The CPU time of going to sleep and waking up: the median of five tries. Takes half a millisecond.
std::int64_t measure_sleep_cpu_ns() {
    std::array<std::int64_t, 5> took_ns{};
    for (std::int64_t& ns : took_ns) {
        const std::uint64_t begin_ns = system_clock_ns(CLOCK_THREAD_CPUTIME_ID);
        std::this_thread::sleep_for(50us);
        ns = static_cast<std::int64_t>(system_clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin_ns);
    }
    std::ranges::nth_element(took_ns, took_ns.begin() + took_ns.size() / 2);
    return took_ns[took_ns.size() / 2];
}

}   // namespace

Recorder::Impl::Impl(const std::filesystem::path* file, const RecorderOptions& given, const AnyClock& any)
    : options{checked(given)},
      clock{any},
      start{read_start_times(any)},
      ns_per_event{measure_ns_per_event(any)},
      loop_ring{given.ring_records},
      definitions{given.operator_limit_bytes},
      thread_rings{given.ring_records, definitions},
      sink{given, any, start},
      refused_until_ns{start.start_ns} {
    if (given.host_period.count() > 0 && !any.is_manual()) {
        host.emplace();
        rare.emplace_back(Fact{facts::host_cores, decimal(usable_cores())});
        rare.emplace_back(Fact{facts::host_affinity_cores, std::to_string(affinity_cores())});
        rare.emplace_back(Fact{facts::host_sleep_cpu_ns, std::to_string(measure_sleep_cpu_ns())});
        rare.emplace_back(Fact{facts::host_online_cores, std::to_string(::sysconf(_SC_NPROCESSORS_ONLN))});
        rare.emplace_back(Fact{facts::host_tick_ns, std::to_string(kernel_tick_ns())});
        if (const auto ns = scheduler_number("base_slice_ns"))
            rare.emplace_back(Fact{facts::host_base_slice_ns, std::to_string(*ns)});
        if (const auto ns = scheduler_number("migration_cost_ns"))
            rare.emplace_back(Fact{facts::host_migration_cost_ns, std::to_string(*ns)});
    }
    if (file != nullptr)
        status.file = *file;
    publish_status(0.0);
    // Signals are for the program's own threads; with SIGXFSZ blocked, a full file is an error like any other.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    std::unique_lock lock{mutex};   // the thread waits for it before it does anything
    try {
        thread = std::thread{[this] { run(); }};
    } catch (const std::system_error& error) {
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
        throw std::system_error(error.code(), "the recorder's thread");
    } catch (...) {
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
        throw;
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (file == nullptr)
        return;
    try {
        sink.open(*file);   // last, since it replaces a recording that is there
    } catch (...) {
        stop = true;
        lock.unlock();
        thread.join();
        throw;
    }
}

void Recorder::Impl::run() noexcept {
    for (bool last = false; !last;) {
        std::uint64_t asked = 0;
        bool tell_all = false;
        {
            std::unique_lock lock{mutex};
            nudge.wake.wait_for(lock, pause, [&] {
                return stop || flush_asked != flush_done || nudge.asked.load(std::memory_order_acquire);
            });
            nudge.asked.store(false, std::memory_order_release);
            asked = flush_asked;
            last = stop;
            tell_all = last || asked != flush_done;
            if (last) {
                loop_ring.close();
                thread_rings.close();
                for (const auto& worker : workers)
                    worker->ring.close();
            }
        }
        try {
            drain(tell_all);
            if (last) {
                const std::lock_guard lock{ledger_mutex};
                look_at_host(1);
                sink.close();
            }
            publish_status(static_cast<double>(system_clock_ns(CLOCK_THREAD_CPUTIME_ID)) * 1e-9);
        } catch (const std::exception& error) {
            give_up(error.what());
        }
        const std::lock_guard lock{mutex};
        flush_done = asked;
        finished = last;
        flushed.notify_all();
    }
}

void Recorder::Impl::make_room() noexcept {
    nudge();
    const std::uint64_t nearly_full = loop_ring.capacity() - loop_ring.capacity() / 4;
    // A writer that is stuck, for example on a hanging disk, must not hold up training again and again.
    for (int waited = 0; loop_waits && loop_ring.fuller_than(nearly_full); ++waited) {
        std::this_thread::sleep_for(100us);
        nudge();
        loop_waits = waited < 2'000;
    }
    loop_waits = loop_waits || !loop_ring.fuller_than(nearly_full);
}

void Recorder::Impl::drain(bool tell_all) {
    // The loop's head is read first: what happened before its records is then below the other heads and written first.
    const std::uint64_t loop_head = loop_ring.head();
    Ring::Drops packed_lost;
    std::uint32_t packed_lost_ring = 0;
    {
        const std::lock_guard lock{mutex};
        rings.clear();
        heads.clear();
        for (const auto& worker : workers) {
            rings.push_back(worker.get());
            heads.push_back(worker->ring.head());
        }
        taken.clear();
        taken.swap(rare);
        packed_bytes = 0;
        packed_lost = std::exchange(packed_drops, {});
        packed_lost_ring = packed_ring;
        for (const std::int64_t child : new_children)
            children.add(child);
        new_children.clear();
    }
    operator_heads.clear();
    thread_rings.list(operator_rings);
    for (const ThreadRing* of_thread : operator_rings)
        operator_heads.push_back(of_thread->ring.head());
    const Definitions added = definitions.take();   // after the heads: records below them name nothing newer
    const std::lock_guard lock{ledger_mutex};
    if (!taken.empty()) {
        const std::int64_t now_ns = clock.now_ns();
        for (const RareRow& row : taken)
            sink.add(row, now_ns);
    }
    sink.add(added);
    sink.add_dropped(packed_lost_ring, packed_lost);
    bool busy = false;
    const auto consume = [&](Ring& ring, std::uint64_t head) {
        const std::uint64_t records = ring.consume(head, [&](const std::byte* message) { sink.take(message); });
        busy = busy || records > ring.capacity() / 4;
        const Ring::Drops over_limit = sink.take_dropped();
        all_over_limit += over_limit.count;
        return over_limit;
    };
    const auto consume_of = [&](Ring& ring, std::uint64_t head, std::uint32_t number) {
        sink.add_dropped(number, consume(ring, head));
        sink.add_dropped(number, ring.take_drops());
    };
    for (std::size_t i = 0; i < rings.size(); ++i)
        consume_of(rings[i]->ring, heads[i], rings[i]->worker + 1u);
    for (std::size_t i = 0; i < operator_rings.size(); ++i) {
        Ring::Drops drops = consume(operator_rings[i]->ring, operator_heads[i]);
        merge(drops, operator_rings[i]->ring.take_drops());
        tell_drops(i, drops, tell_all);
    }
    if (const std::uint64_t refused_so_far = thread_rings.refused(); refused_so_far != refused_taken) {
        const std::int64_t from_ns = std::exchange(refused_until_ns, clock.now_ns());
        tell_drops(ThreadRings::most, {refused_so_far - refused_taken, from_ns, refused_until_ns}, tell_all);
        refused_taken = refused_so_far;
    } else {
        tell_drops(ThreadRings::most, {}, tell_all);
    }
    consume_of(loop_ring, loop_head, 0);
    look_at_host(tell_all ? host_period_ns() / 10 : host_period_ns());   // frequent requests must not fill the ledger
    pause = busy ? shortest_pause : std::min(2 * pause, longest_pause);
    sink.end_block_if_due();
}

/// Records what the host's counters say, unless that was done less than `gap_ns` ago.
void Recorder::Impl::look_at_host(std::int64_t gap_ns) {
    if (!host)
        return;
    const std::int64_t now_ns = clock.now_ns();
    if (host_ns != no_stamp && now_ns - host_ns < gap_ns)
        return;
    host_ns = now_ns;
    HostRow row = host->read(now_ns);
    row.children_cpu_ns = children.read();
    sink.add(row);
}

/// A full recording drops records for the rest of the run. To keep rows few, each one reports at least as many as all
/// before it together; the last one reports the rest.
void Recorder::Impl::tell_drops(std::size_t operator_ring, const Ring::Drops& more, bool at_once) {
    Untold& of_ring = untold[operator_ring];
    merge(of_ring.drops, more);
    if (of_ring.drops.count == 0 || (!at_once && of_ring.drops.count < of_ring.told))
        return;
    sink.add_dropped(first_operator_ring + static_cast<std::uint32_t>(operator_ring), of_ring.drops);
    of_ring.told += std::exchange(of_ring.drops, {}).count;
}

/// When memory has run out: the recording ends here, and the program goes on.
void Recorder::Impl::give_up(const char* why) noexcept {
    sink.give_up();
    const std::lock_guard lock{mutex};
    try {
        status.error = "the recording ends early: " + std::string{why};
    } catch (...) {
        status.error.clear();
    }
}

void Recorder::Impl::publish_status(double writer_cpu_s) {
    const std::lock_guard lock{mutex};
    status.ns_per_event = ns_per_event;
    status.events = sink.events();
    thrown_away = all_over_limit;
    status.writer_cpu_s = writer_cpu_s;
    if (const TraceWriter* const writer = sink.writer()) {
        status.bytes = writer->file_bytes();
        if (status.error != writer->error())
            status.error = writer->error();
    }
}

}   // namespace drawpoint
