#include <drawpoint/instrumentation/recorder.hpp>

#include <pthread.h>
#include <signal.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <limits>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include <instrumentation/definitions.hpp>
#include <instrumentation/ledger_builder.hpp>
#include <instrumentation/ring_message.hpp>
#include <instrumentation/thinning.hpp>
#include <instrumentation/thread_rings.hpp>
#include <instrumentation/trace_writer.hpp>

namespace drawpoint {

namespace {

/// Ends the writer's pause early. Any thread; a system call at most once a drain.
struct Nudge {
    std::condition_variable wake;
    std::atomic<bool> asked = false;

    void operator()() noexcept {
        if (!asked.exchange(true, std::memory_order_acq_rel))
            wake.notify_one();   // without the mutex: one that comes a moment too early costs the rest of a pause
    }
};

}   // namespace

struct WorkerTrack::Ring {
    Ring(std::uint32_t records, std::uint16_t number, double share, Nudge& nudge_writer)
        : ring{records}, worker{number}, drop_share{share}, nudge{&nudge_writer} {}

    drawpoint::Ring ring;
    const std::uint16_t worker;
    const double drop_share;
    Nudge* nudge;
    double owed = 0.0;   // drops
    std::atomic<bool> in_use = true;
};

namespace {

using namespace std::chrono_literals;

// A wake-up costs more than the records it finds: the quieter the rings, the longer the pause.
constexpr std::chrono::milliseconds longest_pause{80}, shortest_pause{1};
constexpr std::size_t most_text_bytes = 1u << 20;
constexpr std::uint64_t batch_stamps = 9;

std::uint64_t read_clock(clockid_t clock) noexcept {
    timespec time{};
    clock_gettime(clock, &time);
    return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(time.tv_nsec);
}

/// All clocks read together: of several tries the tightest.
StartTimes read_start(const AnyClock& clock) noexcept {
    StartTimes best;
    std::uint64_t tightest = std::numeric_limits<std::uint64_t>::max();
    for (int attempt = 0; attempt < 8; ++attempt) {
        StartTimes times;
        times.start_ns = clock.now_ns();
        times.monotonic_ns = read_clock(CLOCK_MONOTONIC);
        times.boottime_ns = read_clock(CLOCK_BOOTTIME);
        times.realtime_ns = read_clock(CLOCK_REALTIME);
        const std::uint64_t took = read_clock(CLOCK_MONOTONIC) - times.monotonic_ns;
        if (took < tightest) {
            tightest = took;
            best = times;
        }
    }
    return best;
}

void push_sample(Ring& ring, const SampleRecord& record) noexcept {
    const std::size_t stages = std::min<std::size_t>(record.stage_count, max_stages);
    push_message(ring, MessageKind::sample, record.slices, record.row.begin_ns, record.row,
                 std::span<const StageRow>{record.stages}.first(stages));
}

/// The price of one stamp and its share of a push: samples of four stages, five stamps each; the best of some rounds.
double measure_ns_per_event(const AnyClock& clock) {
    constexpr int rounds = 5, samples = 256;
    Ring ring{1024};
    SampleRecord record;
    record.stage_count = 4;
    double best = std::numeric_limits<double>::max();
    for (int round = 0; round < rounds; ++round) {
        const std::uint64_t begin_ns = read_clock(CLOCK_MONOTONIC);
        for (int i = 0; i < samples; ++i) {
            record.row.begin_ns = clock.now_ns();
            for (std::size_t stage = 0; stage < 4; ++stage)
                record.stages[stage] = {record.row.begin_ns, clock.now_ns()};
            push_sample(ring, record);
        }
        const std::uint64_t end_ns = read_clock(CLOCK_MONOTONIC);
        best = std::min(best, static_cast<double>(end_ns - begin_ns) / (5.0 * samples));
        ring.consume(ring.head(), [](const std::byte*) {});
    }
    return best;
}

/// A text that a recording keeps: what is beyond a mebibyte is cut off.
std::string_view bounded(std::string_view text) noexcept { return text.substr(0, most_text_bytes); }

// What `begin_operator` returns: the ring's number, then a serial number that is never 0.
constexpr unsigned serial_bits = 23;
constexpr std::uint32_t serial_mask = (1u << serial_bits) - 1;
static_assert(ThreadRings::most <= 1u << (32 - serial_bits));

void merge(Ring::Drops& into, const Ring::Drops& more) noexcept {
    if (more.count == 0)
        return;
    into.from_ns = into.count == 0 ? more.from_ns : std::min(into.from_ns, more.from_ns);
    into.to_ns = into.count == 0 ? more.to_ns : std::max(into.to_ns, more.to_ns);
    into.count += more.count;
}

std::uint64_t bytes_of(const Definitions& added) noexcept {
    std::uint64_t bytes = added.names.size() * sizeof(std::string) + added.threads.size() * sizeof(ThreadRow) +
                          added.frames.size() * sizeof(FrameRow) + added.stacks.size() * sizeof(StackRow);
    for (const std::string& name : added.names)
        bytes += name.size();
    return bytes;
}

constexpr std::uint64_t packed(std::uint32_t slices_every, std::uint32_t samples_every) noexcept {
    return std::uint64_t{slices_every} << 32 | samples_every;
}

}   // namespace

struct Recorder::Impl {
    Impl(const std::filesystem::path* file, const RecorderOptions&, const AnyClock&);

    void run() noexcept;
    void drain(bool tell_all);
    void write_rare();
    void take(const std::byte* message);
    void take_sample(const std::byte* message);
    void take_operator_begin(const std::byte* message);
    void take_operator_end(const std::byte* message);
    template <class Row>
    void take_moment(const Row&, bool (LedgerBuilder::*)(const Row&), void (TraceWriter::*)(const Row&));
    void end_operators(std::uint32_t of_thread, std::size_t left, std::int64_t at_ns);
    [[nodiscard]] bool operators_full() const noexcept;
    void drop(std::int64_t at_ns) noexcept { merge(over_limit, {1, at_ns, at_ns}); }
    void tell_drops(std::size_t operator_ring, const Ring::Drops& more, bool at_once);
    void thin(std::uint64_t used_bytes);
    void add_dropped(std::uint32_t ring, const Ring::Drops&);
    void give_up(const char* why) noexcept;
    void publish_status(double writer_cpu_s);

    /// Hands a row of the loop over. Steps and batches are kept: a loop that is faster than the writer for long waits for it.
    template <class Row>
    void push(MessageKind kind, bool slices, std::int64_t at_ns, const Row& row,
              std::span<const SpanRow> side = {}) noexcept {
        if (loop_ring.fuller_than(loop_ring.capacity() / 2)) [[unlikely]]
            make_room();
        push_message(loop_ring, kind, slices, at_ns, row, side.first(std::min(side.size(), max_step_spans)));
    }
    void make_room() noexcept;
    /// Hands an operator's message, an allocation or a stack sample over.
    template <class Row>
    bool push(ThreadRing& mine, MessageKind kind, bool first, std::int64_t at_ns, const Row& row) noexcept {
        if (mine.ring.fuller_than(mine.ring.capacity() / 2)) [[unlikely]]
            nudge();
        return push_message(mine.ring, kind, first, at_ns, row);
    }

    /// Calls `to(builder)` and, while there is a file, `to(writer)`.
    template <class To>
    void both(To&& to) {
        to(builder);
        if (writer)
            to(*writer);
    }

    const RecorderOptions options;
    const AnyClock clock;
    const StartTimes start;
    const double ns_per_event;
    std::atomic<std::uint64_t> detail{packed(1, 1)};   // slices_every, samples_every
    Ring loop_ring;
    bool loop_waits = true;   // the loop's: not again until a wait has helped
    Nudge nudge;
    DefinitionTable definitions;
    ThreadRings thread_rings;

    std::mutex mutex;   // of what follows
    std::condition_variable flushed;
    std::vector<std::unique_ptr<WorkerTrack::Ring>> workers;
    std::vector<std::variant<PipelineRow, FailureRow, Fact>> rare;
    std::uint32_t pipelines = 0;
    std::uint64_t flush_asked = 0, flush_done = 0;
    bool stop = false, finished = false;
    std::uint64_t refused = 0;   // rare rows that could not be kept
    RecordingState status;       // as of the last drain, without `dropped`
    std::uint64_t thrown_away = 0;

    std::mutex ledger_mutex;   // of the builder, which only the writer thread changes
    LedgerBuilder builder;

    // Of the writer thread.
    std::unique_ptr<TraceWriter> writer;
    Thinning thinning;
    std::vector<WorkerTrack::Ring*> rings;
    std::vector<ThreadRing*> operator_rings;
    std::vector<std::uint64_t> heads, operator_heads;
    std::vector<std::vector<std::uint32_t>> open_operators;          // tickets, of each thread, outermost first
    std::array<std::uint32_t, ThreadRings::most> threads_of_rings;   // the last one that began an operator
    std::uint64_t operator_memory = 0;                               // bytes
    struct Untold {
        Ring::Drops drops;
        std::uint64_t told = 0;
    };
    std::vector<Untold> untold = std::vector<Untold>(ThreadRings::most + 1);   // of operators' rings; last: of no ring
    std::uint64_t refused_taken = 0;
    std::int64_t refused_until_ns = 0;
    std::vector<std::variant<PipelineRow, FailureRow, Fact>> taken;
    std::array<SpanRow, max_step_spans> spans{};
    std::array<StageRow, max_stages> stages{};
    Ring::Drops over_limit;
    std::uint64_t events = 0, all_over_limit = 0;
    std::chrono::milliseconds pause = shortest_pause;
    bool gave_up = false;

    std::mutex finish_mutex;
    std::thread thread;
};

Recorder::Impl::Impl(const std::filesystem::path* file, const RecorderOptions& given, const AnyClock& any)
    : options{given},
      clock{any},
      start{read_start(any)},
      ns_per_event{measure_ns_per_event(any)},
      loop_ring{given.ring_records},
      thread_rings{given.ring_records, definitions},
      builder{start.start_ns, given.ledger_steps},
      thinning{given.limit_bytes},
      refused_until_ns{start.start_ns} {
    if (!(given.drop_share >= 0.0 && given.drop_share <= 1.0))
        throw std::invalid_argument("drop_share must be between 0 and 1, got " + std::to_string(given.drop_share));
    threads_of_rings.fill(nothing);
    if (file != nullptr) {
        status.file = *file;
        writer = std::make_unique<TraceWriter>(*file, start);
    }
    publish_status(0.0);
    // Signals are for the program's own threads; a blocked SIGXFSZ makes a full file an error like any other.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
        thread = std::thread{[this] { run(); }};
    } catch (...) {
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
        throw;
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

// ---- the writer thread ----

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
            if (last && writer)
                writer->close();
            publish_status(static_cast<double>(read_clock(CLOCK_THREAD_CPUTIME_ID)) * 1e-9);
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
    // A writer that is stuck, on a disk that hangs say, must not hold training up again and again.
    for (int waited = 0; loop_waits && loop_ring.fuller_than(nearly_full); ++waited) {
        std::this_thread::sleep_for(100us);
        nudge();
        loop_waits = waited < 2'000;
    }
    loop_waits = loop_waits || !loop_ring.fuller_than(nearly_full);
}

void Recorder::Impl::drain(bool tell_all) {
    // The loop's head first: what happened before its records is then behind the other heads, and is written first.
    const std::uint64_t loop_head = loop_ring.head();
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
    }
    operator_heads.clear();
    thread_rings.list(operator_rings);
    for (const ThreadRing* of_thread : operator_rings)
        operator_heads.push_back(of_thread->ring.head());
    const Definitions added = definitions.take();   // after the heads: what is behind them names no other definitions
    const std::lock_guard lock{ledger_mutex};
    write_rare();
    if (!added.empty() && !gave_up) {
        both([&](auto& to) { to.definitions(added); });
        operator_memory += bytes_of(added);
    }
    bool busy = false;
    const auto consume = [&](Ring& ring, std::uint64_t head) {
        over_limit = {};
        const std::uint64_t records = ring.consume(head, [&](const std::byte* message) { take(message); });
        busy = busy || records > ring.capacity() / 4;
        all_over_limit += over_limit.count;
    };
    const auto consume_of = [&](Ring& ring, std::uint64_t head, std::uint32_t number) {
        consume(ring, head);
        add_dropped(number, over_limit);
        add_dropped(number, ring.take_drops());
    };
    for (std::size_t i = 0; i < rings.size(); ++i)
        consume_of(rings[i]->ring, heads[i], rings[i]->worker + 1u);
    for (std::size_t i = 0; i < operator_rings.size(); ++i) {
        consume(operator_rings[i]->ring, operator_heads[i]);
        merge(over_limit, operator_rings[i]->ring.take_drops());
        tell_drops(i, over_limit, tell_all);
    }
    if (const std::uint64_t refused_so_far = thread_rings.refused(); refused_so_far != refused_taken) {
        const std::int64_t from_ns = std::exchange(refused_until_ns, clock.now_ns());
        tell_drops(ThreadRings::most, {refused_so_far - refused_taken, from_ns, refused_until_ns}, tell_all);
        refused_taken = refused_so_far;
    } else {
        tell_drops(ThreadRings::most, {}, tell_all);
    }
    consume_of(loop_ring, loop_head, 0);
    pause = busy ? shortest_pause : std::min(2 * pause, longest_pause);
    if (writer)
        writer->end_block_if_due(std::chrono::steady_clock::now());
}

void Recorder::Impl::write_rare() {
    if (taken.empty() || gave_up)
        return;
    const std::int64_t now_ns = clock.now_ns();
    for (const auto& row : taken) {
        if (const auto* pipeline = std::get_if<PipelineRow>(&row)) {
            builder.pipeline(*pipeline);
            if (writer)
                writer->pipeline(*pipeline, now_ns);
        } else if (const auto* failure = std::get_if<FailureRow>(&row)) {
            builder.failure(*failure);
            if (writer)
                writer->failure(*failure, now_ns);
        } else {
            const auto& [key, value] = std::get<Fact>(row);
            builder.fact(key, value);
            if (writer)
                writer->fact(key, value, now_ns);
        }
    }
}

void Recorder::Impl::take(const std::byte* message) {
    if (gave_up) {
        ++over_limit.count;
        return;
    }
    const MessageHeader header = header_of(message);
    events += header.kind == MessageKind::batch ? batch_stamps : 1u + header.side_rows;
    switch (header.kind) {
    case MessageKind::sample: take_sample(message); break;
    case MessageKind::batch: {
        const auto row = row_of<BatchRow>(message);
        builder.batch(row);
        if (writer)
            writer->batch(row, header.slices);
        break;
    }
    case MessageKind::step: {
        const auto row = row_of<StepRow>(message);
        both([&](auto& to) { to.step(row, side_rows_of<StepRow>(message, spans)); });
        break;
    }
    case MessageKind::pass: {
        const auto row = row_of<PassRow>(message);
        both([&](auto& to) { to.pass(row, side_rows_of<PassRow>(message, spans)); });
        break;
    }
    case MessageKind::pass_begin: both([&](auto& to) { to.pass_begin(row_of<PassRow>(message)); }); break;
    case MessageKind::end_of_data: both([&](auto& to) { to.end_of_data(row_of<EndOfDataRow>(message)); }); break;
    case MessageKind::operator_begin: take_operator_begin(message); break;
    case MessageKind::operator_end: take_operator_end(message); break;
    case MessageKind::allocation:
        take_moment(row_of<AllocationRow>(message), &LedgerBuilder::allocation, &TraceWriter::allocation);
        break;
    case MessageKind::stack_sample:
        take_moment(row_of<StackSampleRow>(message), &LedgerBuilder::stack_sample, &TraceWriter::stack_sample);
        break;
    case MessageKind::skip: break;
    }
}

bool Recorder::Impl::operators_full() const noexcept {
    const bool file = writer && writer->error().empty();
    return (file ? writer->operator_bytes() : operator_memory) >= options.operator_limit_bytes;
}

void Recorder::Impl::take_operator_begin(const std::byte* message) {
    const auto begun = row_of<BegunOperator>(message);
    if (header_of(message).slices) {   // a thread's first: its ring may have been a dead thread's, its id too
        std::uint32_t& last = threads_of_rings[begun.ticket >> serial_bits];
        end_operators(std::exchange(last, begun.thread), 0, begun.at_ns);
        end_operators(begun.thread, 0, begun.at_ns);
    }
    const OperatorRow row{.kind = begun.what.kind,
                          .ended = false,
                          .name = begun.what.name,
                          .thread = begun.thread,
                          .shapes = begun.what.shapes,
                          .stack = begun.what.stack,
                          .begin_ns = begun.at_ns,
                          .sequence = begun.what.sequence,
                          .forward_thread = begun.what.forward_thread,
                          .flops = begun.what.flops};
    if (operators_full() || !builder.operator_begin(row)) {
        drop(begun.at_ns);
        return;
    }
    if (open_operators.size() <= begun.thread)
        open_operators.resize(begun.thread + 1u);
    open_operators[begun.thread].push_back(begun.ticket);
    operator_memory += sizeof row;
    if (writer)
        writer->operator_begin(row);
}

void Recorder::Impl::take_operator_end(const std::byte* message) {
    const auto end = row_of<EndedOperator>(message);
    if (end.thread >= open_operators.size())
        return;
    // An end whose begin was not taken, or was closed already, ends nothing; one whose inner ends were lost ends them too.
    const std::vector<std::uint32_t>& open = open_operators[end.thread];
    const auto found = std::find(open.rbegin(), open.rend(), end.ticket);
    if (found == open.rend())
        return;
    end_operators(end.thread, static_cast<std::size_t>(open.rend() - found), end.at_ns);
    open_operators[end.thread].pop_back();
    both([&](auto& to) { to.operator_end(end.thread, end.at_ns, false); });
}

/// Closes the innermost open operators of a thread until `left` are.
void Recorder::Impl::end_operators(std::uint32_t of_thread, std::size_t left, std::int64_t at_ns) {
    if (of_thread >= open_operators.size())
        return;
    for (; open_operators[of_thread].size() > left; open_operators[of_thread].pop_back())
        both([&](auto& to) { to.operator_end(of_thread, at_ns, true); });
}

template <class Row>
void Recorder::Impl::take_moment(const Row& row, bool (LedgerBuilder::*build)(const Row&),
                                 void (TraceWriter::*write)(const Row&)) {
    if (operators_full() || !(builder.*build)(row)) {
        drop(row.at_ns);
        return;
    }
    operator_memory += sizeof row;
    if (writer)
        (*writer.*write)(row);
}

/// A full recording drops for as long as the run lasts: each row tells of as many as all before it, and the last of the rest.
void Recorder::Impl::tell_drops(std::size_t operator_ring, const Ring::Drops& more, bool at_once) {
    Untold& of_ring = untold[operator_ring];
    merge(of_ring.drops, more);
    if (of_ring.drops.count == 0 || (!at_once && of_ring.drops.count < of_ring.told))
        return;
    add_dropped(first_operator_ring + static_cast<std::uint32_t>(operator_ring), of_ring.drops);
    of_ring.told += std::exchange(of_ring.drops, {}).count;
}

void Recorder::Impl::take_sample(const std::byte* message) {
    const auto row = row_of<SampleRow>(message);
    const bool file = writer && writer->error().empty();
    if (file && writer->detail_bytes() + TraceWriter::max_sample_bytes > options.limit_bytes) {
        // Thinning comes too late for what was in flight already: with a small limit it may not be enough.
        drop(row.begin_ns);
        thin(options.limit_bytes);
        return;
    }
    const auto row_stages = side_rows_of<SampleRow>(message, stages);
    builder.sample(row, row_stages);
    if (!file)
        return;
    writer->sample(row, row_stages, header_of(message).slices);
    thin(writer->detail_bytes());
}

void Recorder::Impl::thin(std::uint64_t used_bytes) {
    if (!thinning.update(used_bytes))
        return;
    // Read before it is published: every batch that keeps less was admitted after this time.
    const ThinningRow change{clock.now_ns(), thinning.slices_every(), thinning.samples_every()};
    detail.store(packed(change.slices_every, change.samples_every), std::memory_order_relaxed);
    both([&](auto& to) { to.thinning(change); });
}

void Recorder::Impl::add_dropped(std::uint32_t ring, const Ring::Drops& drops) {
    if (drops.count != 0 && !gave_up)
        both([&](auto& to) { to.dropped({drops.count, drops.from_ns, drops.to_ns, ring}); });
}

/// Memory has run out: the recording ends here, what it watches goes on.
void Recorder::Impl::give_up(const char* why) noexcept {
    gave_up = true;
    writer.reset();
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
    status.events = events;
    status.thinned_to = thinning.samples_every();
    thrown_away = all_over_limit;
    status.writer_cpu_s = writer_cpu_s;
    if (writer) {
        status.bytes = writer->file_bytes();
        if (status.error != writer->error())
            status.error = writer->error();
    }
}

// ---- Recorder ----

Recorder::Recorder(const RecorderOptions& options, const AnyClock& clock)
    : clock_{clock}, impl_{std::make_unique<Impl>(nullptr, options, clock)} {}

Recorder::Recorder(const std::filesystem::path& file, const RecorderOptions& options, const AnyClock& clock)
    : clock_{clock}, impl_{std::make_unique<Impl>(&file, options, clock)} {}

Recorder::~Recorder() { finish(); }

std::uint8_t Recorder::add_pipeline(const PipelineRow& row) {
    const std::lock_guard lock{impl_->mutex};
    if (impl_->pipelines > std::numeric_limits<std::uint8_t>::max())
        throw std::length_error("a recording names at most 256 loaders");
    impl_->rare.emplace_back(row);
    return static_cast<std::uint8_t>(impl_->pipelines++);
}

WorkerTrack Recorder::add_worker() {
    const std::lock_guard lock{impl_->mutex};
    for (const auto& worker : impl_->workers)
        if (!worker->in_use.exchange(true, std::memory_order_acquire))
            return WorkerTrack{worker.get()};
    if (impl_->workers.size() > std::numeric_limits<std::uint16_t>::max())
        throw std::length_error("a recording has at most 65536 workers");
    const auto number = static_cast<std::uint16_t>(impl_->workers.size());
    impl_->workers.push_back(std::make_unique<WorkerTrack::Ring>(impl_->options.ring_records, number,
                                                                 impl_->options.drop_share, impl_->nudge));
    if (impl_->stop)
        impl_->workers.back()->ring.close();
    return WorkerTrack{impl_->workers.back().get()};
}

BatchDetail Recorder::batch_detail(std::uint64_t serial) const noexcept {
    const std::uint64_t every = impl_->detail.load(std::memory_order_relaxed);
    const bool samples = serial % (every & 0xffff'ffffu) == 0;
    return {.samples = samples, .slices = samples && serial % (every >> 32) == 0};
}

void Recorder::push(const BatchRow& row, BatchDetail detail) noexcept {
    impl_->push(MessageKind::batch, detail.slices, row.taken_ns != no_stamp ? row.taken_ns : row.admitted_ns, row);
}

void Recorder::push(const StepRow& row, std::span<const SpanRow> spans) noexcept {
    impl_->push(MessageKind::step, false, row.draw_begin_ns, row, spans);
}

void Recorder::push(const PassRow& row, std::span<const SpanRow> spans) noexcept {
    impl_->push(MessageKind::pass, false, row.end_ns, row, spans);
}

void Recorder::push_begin(const PassRow& row) noexcept {
    impl_->push(MessageKind::pass_begin, false, row.begin_ns, row);
}

void Recorder::push(const EndOfDataRow& row) noexcept {
    impl_->push(MessageKind::end_of_data, false, row.begin_ns, row);
}

std::uint32_t Recorder::begin_operator(const OperatorBegin& begin) noexcept {
    return begin_operator(begin, clock_.now_ns());
}

std::uint32_t Recorder::begin_operator(const OperatorBegin& begin, std::int64_t at_ns) noexcept {
    ThreadRing* const mine = impl_->thread_rings.mine();
    if (mine == nullptr)
        return 0;
    mine->serial = mine->serial % serial_mask + 1;
    const std::uint32_t ticket = mine->number << serial_bits | mine->serial;
    if (!impl_->push(*mine, MessageKind::operator_begin, mine->fresh, at_ns,
                     BegunOperator{at_ns, ticket, mine->thread, begin}))
        return 0;
    mine->fresh = false;
    return ticket;
}

void Recorder::end_operator(std::uint32_t ticket) noexcept { end_operator(ticket, clock_.now_ns()); }

void Recorder::end_operator(std::uint32_t ticket, std::int64_t at_ns) noexcept {
    ThreadRing* const mine = ticket != 0 ? impl_->thread_rings.mine(ticket >> serial_bits) : nullptr;
    if (mine != nullptr)
        impl_->push(*mine, MessageKind::operator_end, false, at_ns, EndedOperator{at_ns, ticket, mine->thread});
}

void Recorder::push(AllocationRow row) noexcept {
    if (ThreadRing* const mine = impl_->thread_rings.mine()) {
        row.thread = mine->thread;
        impl_->push(*mine, MessageKind::allocation, false, row.at_ns, row);
    }
}

void Recorder::push(const StackSampleRow& row) noexcept {
    if (ThreadRing* const mine = impl_->thread_rings.mine())
        impl_->push(*mine, MessageKind::stack_sample, false, row.at_ns, row);
}

std::uint32_t Recorder::add_name(std::string_view name) noexcept { return impl_->definitions.add_name(bounded(name)); }

std::uint32_t Recorder::add_thread(const ThreadRow& row) noexcept { return impl_->definitions.add_thread(row); }

std::uint32_t Recorder::add_this_thread(std::string_view name) noexcept {
    return impl_->definitions.add_this_thread(bounded(name));
}

std::uint32_t Recorder::add_frame(const FrameRow& row) noexcept { return impl_->definitions.add_frame(row); }

std::uint32_t Recorder::add_stack(const StackRow& row) noexcept { return impl_->definitions.add_stack(row); }

void Recorder::add_failure(const FailureRow& row) noexcept {
    const std::lock_guard lock{impl_->mutex};
    try {
        if (impl_->stop)
            throw std::length_error("finished");
        FailureRow kept{row.index, row.epoch, row.batch, row.pipeline, {}, {}, {}};
        kept.path = bounded(row.path);
        kept.stage = bounded(row.stage);
        kept.message = bounded(row.message);
        impl_->rare.emplace_back(std::move(kept));
    } catch (...) {
        ++impl_->refused;
    }
}

void Recorder::set_fact(std::string_view key, std::string_view value) noexcept {
    const std::lock_guard lock{impl_->mutex};
    try {
        if (impl_->stop)
            throw std::length_error("finished");
        impl_->rare.emplace_back(Fact{bounded(key), bounded(value)});
    } catch (...) {
        ++impl_->refused;
    }
}

Ledger Recorder::ledger() {
    {
        std::unique_lock lock{impl_->mutex};
        const std::uint64_t mine = ++impl_->flush_asked;
        impl_->nudge.wake.notify_one();
        impl_->flushed.wait(lock, [&] { return impl_->finished || impl_->flush_done >= mine; });
    }
    const std::lock_guard lock{impl_->ledger_mutex};
    return impl_->builder.ledger();
}

void Recorder::finish() noexcept {
    const std::lock_guard once{impl_->finish_mutex};
    if (!impl_->thread.joinable())
        return;
    {
        const std::lock_guard lock{impl_->mutex};
        impl_->stop = true;
        impl_->nudge.wake.notify_one();
    }
    impl_->thread.join();
}

RecordingState Recorder::state() {
    const std::lock_guard lock{impl_->mutex};
    RecordingState state = impl_->status;
    state.dropped = impl_->loop_ring.dropped() + impl_->thrown_away + impl_->refused;
    for (const auto& worker : impl_->workers)
        state.dropped += worker->ring.dropped();
    state.dropped += impl_->thread_rings.dropped() + impl_->thread_rings.refused();
    return state;
}

// ---- WorkerTrack ----

WorkerTrack::WorkerTrack(WorkerTrack&& other) noexcept : ring_{std::exchange(other.ring_, nullptr)} {}

WorkerTrack& WorkerTrack::operator=(WorkerTrack&& other) noexcept {
    if (this != &other) {
        if (ring_ != nullptr)
            ring_->in_use.store(false, std::memory_order_release);
        ring_ = std::exchange(other.ring_, nullptr);
    }
    return *this;
}

WorkerTrack::~WorkerTrack() {
    if (ring_ != nullptr)
        ring_->in_use.store(false, std::memory_order_release);
}

void WorkerTrack::push(SampleRecord& record) noexcept {
    if (ring_ == nullptr)
        return;
    record.row.worker = ring_->worker;
    if (ring_->drop_share > 0.0) {
        ring_->owed += ring_->drop_share;
        if (ring_->owed >= 1.0) {
            ring_->owed -= 1.0;
            ring_->ring.count_drop(record.row.begin_ns);
            return;
        }
    }
    push_sample(ring_->ring, record);
    if (ring_->ring.fuller_than(ring_->ring.capacity() / 2)) [[unlikely]]
        (*ring_->nudge)();
}

std::uint16_t WorkerTrack::worker() const noexcept { return ring_ != nullptr ? ring_->worker : std::uint16_t{0}; }

}   // namespace drawpoint
