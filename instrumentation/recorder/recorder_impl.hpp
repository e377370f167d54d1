#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include <drawpoint/instrumentation/recorder/recorder.hpp>

#include "instrumentation/ledger/definitions.hpp"
#include <drawpoint/instrumentation/host/detail/fork_check.hpp>
#include <drawpoint/instrumentation/host/detail/host_counters.hpp>
#include "instrumentation/host/children_cpu.hpp"
#include "instrumentation/recorder/message_sink.hpp"
#include "instrumentation/recorder/ring_message.hpp"
#include "instrumentation/trace/start_times.hpp"
#include "instrumentation/recorder/thread_rings.hpp"

namespace drawpoint {

/// Ends the writer's pause early. Any thread; at most one system call per drain.
struct Nudge {
    std::condition_variable wake;
    std::atomic<bool> asked = false;

    void operator()() noexcept {
        if (!asked.exchange(true, std::memory_order_acq_rel))
            wake.notify_one();   // no mutex: if this comes a moment too early, the writer sleeps out its pause
    }
};

struct WorkerTrack::Ring {
    Ring(std::uint32_t records, std::uint16_t number, double share, Nudge& nudge_writer)
        : ring{records, drawpoint::Ring::Pages::as_used}, worker{number}, drop_share{share}, nudge{&nudge_writer} {}

    drawpoint::Ring ring;
    const std::uint16_t worker;
    const double drop_share;
    Nudge* nudge;
    double owed = 0.0;   // drops due, below 1
    std::atomic<bool> in_use = true;
};

/// The rings, and the thread that empties them into the ledger and the file.
struct Recorder::Impl {
    Impl(const std::filesystem::path* file, const RecorderOptions&, const AnyClock&);

    /// Hands over a row of the loop. Steps and batches are not to be lost: a loop far ahead of the writer waits for it.
    template <class Row>
    void push(MessageKind kind, std::int64_t at_ns, const Row& row, std::span<const SpanRow> side = {}) noexcept {
        if (loop_ring.fuller_than(loop_ring.capacity() / 2)) [[unlikely]]
            make_room();
        push_message(loop_ring, kind, at_ns, row, side.first(std::min(side.size(), max_step_spans)));
    }
    void make_room() noexcept;
    /// Hands over an operator's message, an allocation or a stack sample.
    template <class Row>
    bool push(ThreadRing& mine, MessageKind kind, std::int64_t at_ns, const Row& row, bool first = false) noexcept {
        if (mine.ring.fuller_than(mine.ring.capacity() / 2)) [[unlikely]]
            nudge();
        return push_message(mine.ring, kind, at_ns, row, std::span<const std::byte>{}, first);
    }

    // In recorder_thread.cpp, on the writer thread:
    void run() noexcept;
    void drain(bool tell_all);
    void look_at_host(std::int64_t gap_ns);
    [[nodiscard]] std::int64_t host_period_ns() const noexcept {
        using namespace std::chrono;
        return nanoseconds{std::min(options.host_period, duration_cast<milliseconds>(nanoseconds::max()))}.count();
    }
    void tell_drops(std::size_t operator_ring, const Ring::Drops& more, bool at_once);
    void give_up(const char* why) noexcept;
    void publish_status(double writer_cpu_s);

    const RecorderOptions options;
    const AnyClock clock;
    const StartTimes start;
    const double ns_per_event;
    Ring loop_ring;
    bool loop_waits = true;   // for the loop's thread; false: the last wait did not help
    Nudge nudge;
    DefinitionTable definitions;
    ThreadRings thread_rings;

    std::mutex mutex;   // of the members below
    std::condition_variable flushed;
    std::vector<std::unique_ptr<WorkerTrack::Ring>> workers;
    std::vector<RareRow> rare;
    std::vector<std::string> pipelines;   // their names
    std::unordered_map<std::string, unsigned> pipeline_names;
    std::uint64_t flush_asked = 0, flush_done = 0;
    bool stop = false, finished = false;
    std::uint64_t packed_bytes = 0;   // of `rare`
    Ring::Drops packed_drops;         // of samples from other processes
    std::uint32_t packed_ring = 0;    // of the last of them
    std::vector<std::int64_t> new_children;
    std::uint64_t refused = 0;   // rare rows that could not be kept
    RecordingState status;       // as of the last drain, without `dropped`
    std::uint64_t thrown_away = 0;

    std::mutex ledger_mutex;   // of the sink's ledger, which only the writer thread changes
    MessageSink sink;

    // For the writer thread only.
    std::vector<WorkerTrack::Ring*> rings;
    std::vector<ThreadRing*> operator_rings;
    std::vector<std::uint64_t> heads, operator_heads;
    struct Untold {
        Ring::Drops drops;
        std::uint64_t told = 0;
    };
    std::vector<Untold> untold = std::vector<Untold>(ThreadRings::most + 1);   // by operator ring; last: without a ring
    std::uint64_t refused_taken = 0;
    std::int64_t refused_until_ns = 0;
    std::vector<RareRow> taken;
    std::uint64_t all_over_limit = 0;
    std::chrono::milliseconds pause{1};
    std::optional<HostCounters> host;   // none: switched off
    std::int64_t host_ns = no_stamp;    // of the last row
    ChildrenCpu children;

    ForkCheck fork;
    std::mutex finish_mutex;
    std::thread thread;
};

/// Hands over a sample.
inline void push_sample(Ring& ring, const SampleRecord& record) noexcept {
    const std::size_t stages = std::min<std::size_t>(record.stage_count, max_stages);
    push_message(ring, MessageKind::sample, record.row.begin_ns, record.row,
                 std::span<const StageRow>{record.stages}.first(stages));
}

}   // namespace drawpoint
