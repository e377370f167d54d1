#include "pipeline/prefetch_core.hpp"

#include <algorithm>
#include <chrono>
#include <new>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>

#include <asio/error.hpp>
#include <asio/post.hpp>

namespace drawpoint {

namespace {

constexpr std::int64_t spin_ns = 5'000;   // longer gains nothing, and harms where threads outnumber cores
constexpr std::uint32_t tokens_of_stop = 1u << 16;

void pause() noexcept {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

std::string message_of(const std::exception_ptr& cause) {
    try {
        std::rethrow_exception(cause);
    } catch (const std::exception& error) {
        return error.what();
    } catch (...) {
        return "an exception that is no std::exception";
    }
}

}   // namespace

// ---------------------------------------------------------------------------------------------- waking the loop

void* WakeBuffer::take(std::size_t bytes) {
    if (bytes <= sizeof memory_ && !used_.exchange(true, std::memory_order_acquire))
        return memory_;
    fallbacks_.fetch_add(1, std::memory_order_relaxed);
    return ::operator new(bytes);
}

void WakeBuffer::give(void* memory) noexcept {
    if (memory == memory_)
        used_.store(false, std::memory_order_release);
    else
        ::operator delete(memory);
}

struct PrefetchCore::WakeOp {
    using allocator_type = WakeAllocator<void>;

    explicit WakeOp(PrefetchCore* of) noexcept : core{of} { core->retain(); }
    WakeOp(WakeOp&& other) noexcept : core{std::exchange(other.core, nullptr)} {}
    ~WakeOp() {
        if (core)
            core->release();
    }
    [[nodiscard]] allocator_type get_allocator() const noexcept { return allocator_type{&core->wake_buffer_}; }
    void operator()() { core->resume(); }

    PrefetchCore* core;
};

void PrefetchCore::wake_loop() noexcept {
    posting_.fetch_add(1, std::memory_order_seq_cst);
    if (!down_.load(std::memory_order_seq_cst))
        asio::post(context_->get_executor(), WakeOp{this});   // not an any_io_executor: that one ignores the allocator
    posting_.fetch_sub(1, std::memory_order_release);
}

void PrefetchCore::resume() {
    if (!handler_)
        return;
    Handler handler = std::move(*handler_);
    handler_.reset();
    handler();
}

void PrefetchCore::context_shutdown() noexcept {
    down_.store(true, std::memory_order_seq_cst);
    while (posting_.load(std::memory_order_seq_cst) !=
           0)   // a store to `down_` before it, as in wake_loop() the other way
        std::this_thread::yield();
    handler_.reset();
}

asio::execution_context::id ParkedDraws::id;

ParkedDraws::ParkedDraws(asio::execution_context& context) : asio::execution_context::service{context} {}

void ParkedDraws::Registry::add(PrefetchCore* core) {
    const std::lock_guard lock{mutex};
    cores.push_back(core);
}

void ParkedDraws::Registry::remove(PrefetchCore* core) noexcept {
    const std::lock_guard lock{mutex};
    std::erase(cores, core);
}

void ParkedDraws::shutdown() {
    std::vector<PrefetchCore*> living;
    {
        const std::lock_guard lock{registry_->mutex};
        for (PrefetchCore* core : registry_->cores)
            if (core->try_retain())
                living.push_back(core);
    }
    for (PrefetchCore* core : living) {
        core->context_shutdown();
        core->release();
    }
}

// ---------------------------------------------------------------------------------------------- construction

struct PrefetchCore::Worker {
    std::unique_ptr<WorkerScratch> scratch;
    WorkerTrack track;
    SampleTask task;
    SampleRecord record;
    std::uint64_t samples = 0, ns = 0;   // made since they were last reported
};

PrefetchCore::PrefetchCore(Runtime& runtime, const SampleSource& source, const Sampler& sampler,
                           const LoaderOptions& options, std::string_view name)
    : LoaderCore{source.layout(), options.batch_size, options.prefetch_depth + 1},
      context_{&runtime.context()},
      pool_{&runtime.workers()},
      source_{&source},
      sampler_{&sampler},
      options_{options},
      stages_{source.stages()},
      source_size_{source.size()},
      order_size_{sampler.size()},
      batches_per_epoch_{options.drop_last
                             ? std::max<std::size_t>(order_size_ / options.batch_size, order_size_ > 0)
                             : order_size_ / options.batch_size + (order_size_ % options.batch_size != 0)},
      recorder_{runtime.options().record ? &runtime.recorder() : nullptr},
      clock_{runtime.recorder().clock()},
      policy_{{.batch_size = options.batch_size,
               .num_workers = options.num_workers,
               .prefetch_depth = options.prefetch_depth,
               .order = BatchOrder::in_order}},
      order_(order_size_),
      inline_{options.num_workers == 0} {
    if (stages_.empty() || stages_.size() > max_stages)
        throw std::invalid_argument{"a sample source must have 1 to " + std::to_string(max_stages) + " stages, got " +
                                    std::to_string(stages_.size())};
    if (recorder_)
        pipeline_ = recorder_->add_pipeline({.name = std::string{name},
                                             .stages = stages_,
                                             .batch_size = static_cast<std::uint32_t>(options.batch_size),
                                             .num_workers = static_cast<std::uint32_t>(options.num_workers),
                                             .prefetch_depth = static_cast<std::uint32_t>(options.prefetch_depth)});
    registry_ = asio::use_service<ParkedDraws>(*context_).registry();
    registry_->add(this);
}

PrefetchCore::~PrefetchCore() { registry_->remove(this); }

std::unique_ptr<PrefetchCore::Worker> PrefetchCore::make_worker() {
    auto worker = std::make_unique<Worker>();
    if (recorder_)
        worker->track = recorder_->add_worker();
    return worker;
}

void PrefetchCore::start_crew() {
    if (!inline_) {
        crew_ = pool_->start(options_.num_workers, *this);
        if (crew_.size() != 0) {
            started_ = true;
            return;
        }
        inline_ = true;   // only now that no worker reads it
    }
    inline_worker_ = make_worker();
    const std::lock_guard lock{mutex_};
    policy_.retarget(0, options_.prefetch_depth);
    next_wanted_ = false;
    started_ = true;
}

// ---------------------------------------------------------------------------------------------- under the mutex

std::uint64_t PrefetchCore::take_up() noexcept {
    std::uint64_t gate = gate_.load(std::memory_order_acquire);
    std::uint64_t next;
    do {
        next = gate & ~slot_bits;
        if (armed_ && threshold(gate) != nobody)
            next = with_threshold(next, policy_.wake_threshold());   // counted down by what is taken up here
    } while ((gate & slot_bits) != 0 &&
             !gate_.compare_exchange_weak(gate, next, std::memory_order_acq_rel, std::memory_order_acquire));
    if (armed_ && threshold(gate) == nobody) {
        armed_ = false;
        policy_.woken(1);   // by the give-back that changed the threshold
    }
    return gate;
}

bool PrefetchCore::arm() noexcept {
    if (armed_)
        return (gate_.load(std::memory_order_acquire) & slot_bits) == 0;
    std::uint64_t gate = gate_.load(std::memory_order_relaxed);
    do {
        if ((gate & slot_bits) != 0)
            return false;
    } while (!gate_.compare_exchange_weak(gate, with_threshold(gate, policy_.wake_threshold()),
                                          std::memory_order_acq_rel, std::memory_order_relaxed));
    armed_ = true;
    return true;
}

PrefetchCore::Wakes PrefetchCore::turn(bool loop_waits) noexcept {
    Wakes wakes;
    ++turns_;
    do {
        const std::uint64_t gate = take_up();
        for (std::uint64_t back = gate & slot_bits; back != 0; back &= back - 1)
            policy_.release(static_cast<std::uint32_t>(std::countr_zero(back)));

        std::uint64_t samples = 0;
        while (const auto admission = policy_.admit(inline_ ? position_ : 0)) {
            open(*admission);
            samples += slots_[admission->slot].size;
        }
        while (const auto batch_to_hand = policy_.hand_over())
            wakes.loop |= publish(batch_to_hand->position, batch_to_hand->slot, batch_to_hand->failed ? failed : batch);

        wakes.workers += policy_.wake(samples);
        if (loop_waits && wakes.workers == 0 && policy_.parked() > 0 && work_is_open()) {
            policy_.woken(1);   // those awake may be stuck in what nobody wants any more
            ++wakes.workers;
        }
        if (armed_ && policy_.parked() == 0) {
            // A give-back that turned the threshold first has woken one of those counted here.
            if (threshold(gate_.fetch_or(nobody << 56, std::memory_order_acq_rel)) == nobody)
                --wakes.workers;
            armed_ = false;
        }
    } while (policy_.parked() > 0 && !armed_ && !arm());
    wakes_ += wakes.workers;
    // Batches first: whoever claimed the last of them comes by here again.
    wakes.prepare_next =
        next_wanted_ && !order_busy_ && policy_.admitted() == policy_.limit() && !policy_.stopped() && !work_is_open();
    return wakes;
}

void PrefetchCore::open(LoaderPolicy::Admission admission) noexcept {
    Slot& s = slots_[admission.slot];
    const std::uint64_t number = admission.batch - order_first_batch_;
    const std::size_t first = number * options_.batch_size;
    s.epoch = order_epoch_;
    s.number = static_cast<std::uint32_t>(number);
    s.size = static_cast<std::uint32_t>(std::min(options_.batch_size, order_size_ - first));
    std::copy_n(order_.begin() + static_cast<std::ptrdiff_t>(first), s.size, s.indices.get());
    s.failures.clear();
    s.failed = false;
    s.offered_ns = s.taken_ns = no_stamp;
    s.first_claim_ns.store(no_stamp, std::memory_order_relaxed);
    s.last_done_ns.store(no_stamp, std::memory_order_relaxed);
    if (recorder_) {
        s.detail = recorder_->batch_detail(admission.batch);
        s.admitted_ns = clock_.now_ns();
    }
    try {
        furnish(s);
    } catch (const std::bad_alloc&) {
        s.memory = nullptr;   // every sample of the batch will say so
    }
    s.remaining.store(s.size, std::memory_order_relaxed);
    s.claim.store(std::uint64_t{s.size} << 32, std::memory_order_release);
    slot_of_[admission.batch % slot_of_.size()].store(admission.slot, std::memory_order_relaxed);
    opened_.store(admission.batch + 1, std::memory_order_release);
}

bool PrefetchCore::publish(std::uint64_t position, std::uint64_t slot, Kind kind) noexcept {
    if (recorder_ && kind != stopped)
        slots_[slot].offered_ns = clock_.now_ns();
    published_.store(position + 1, std::memory_order_relaxed);
    std::atomic<std::uint64_t>& cell = cells_[position & cell_mask].word;
    const std::uint64_t before = cell.exchange((position + 1) << 32 | slot << 3 | kind, std::memory_order_acq_rel);
    if ((before & 7) == waiting_blocked)
        cell.notify_one();
    return (before & 7) == waiting;
}

void PrefetchCore::observe(Worker& worker) noexcept {
    if (worker.samples == 0)
        return;
    policy_.observe(worker.samples, worker.ns);
    worker.samples = worker.ns = 0;
    claim_size_.store(policy_.claim_size(), std::memory_order_relaxed);
}

void PrefetchCore::abandon() noexcept {
    const std::int64_t now = recorder_ ? clock_.now_ns() : no_stamp;
    for (; position_ != policy_.next_position(); ++position_) {
        const std::uint64_t cell = cells_[position_ & cell_mask].word.load(std::memory_order_acquire);
        const auto i = static_cast<std::uint32_t>(cell >> 3 & 0x1fff'ffff);
        record(slots_[i], i, BatchStatus::abandoned, now, 0);
        policy_.release(i);
    }
    const LoaderPolicy::Abandoned given_up = policy_.abandon();
    for (std::uint64_t left = given_up.complete; left != 0; left &= left - 1) {
        const auto i = static_cast<std::uint32_t>(std::countr_zero(left));
        record(slots_[i], i, BatchStatus::abandoned, now, 0);
    }
    for (std::uint64_t left = given_up.open; left != 0; left &= left - 1) {
        const auto i = static_cast<std::uint32_t>(std::countr_zero(left));
        Slot& s = slots_[i];
        record(s, i, BatchStatus::abandoned, now, 0);
        // Claims what nobody has begun, and counts it as done. Workers in the midst of a sample finish it.
        const std::uint64_t before = s.claim.fetch_add(s.size, std::memory_order_acq_rel);
        const auto next = static_cast<std::uint32_t>(before);
        const std::uint32_t rest = next < s.size ? s.size - next : 0;
        if (rest != 0 && (rest == s.size || s.remaining.fetch_sub(rest, std::memory_order_acq_rel) == rest))
            policy_.complete(i, false);
    }
    next_wanted_ = next_prepared_ = false;
}

// ---------------------------------------------------------------------------------------------- workers

void PrefetchCore::perform(Wakes wakes) noexcept {
    if (wakes.workers != 0) {
        tokens_.fetch_add(static_cast<std::uint32_t>(wakes.workers), std::memory_order_release);
        if (wakes.workers == 1)
            tokens_.notify_one();
        else
            tokens_.notify_all();
    }
    if (wakes.loop)
        wake_loop();
    if (wakes.prepare_next)
        prepare_next_order();
}

void PrefetchCore::prepare_next_order() noexcept {
    std::unique_lock lock{mutex_};
    if (!next_wanted_ || order_busy_ || policy_.admitted() != policy_.limit() || policy_.stopped())
        return;
    order_busy_ = true;
    const std::uint64_t next = order_epoch_ + 1;
    lock.unlock();
    bool done = true;
    try {
        sampler_->order(next, order_);
    } catch (...) {
        done = false;   // the pass itself will ask again, and throw
    }
    lock.lock();
    order_busy_ = next_wanted_ = false;
    Wakes wakes;
    if (done && !policy_.stopped()) {
        order_epoch_ = next;
        order_first_batch_ = policy_.limit();
        policy_.extend(batches_per_epoch_);
        next_prepared_ = true;
        wakes = turn();
    }
    lock.unlock();
    order_done_.notify_all();
    perform(wakes);
}

bool PrefetchCore::claim_one(Worker& worker) noexcept {
    for (;;) {
        if (stopping())
            return false;
        std::uint64_t oldest = current_.load(std::memory_order_acquire);
        if (oldest >= opened_.load(std::memory_order_acquire))
            return false;
        // A stale hint leads to a newer batch at worst: what is claimed says itself what it is.
        const std::uint32_t i = slot_of_[oldest % slot_of_.size()].load(std::memory_order_relaxed);
        Slot& s = slots_[i];
        const std::uint32_t most = claim_size_.load(std::memory_order_relaxed);
        const std::int64_t begin = clock_.now_ns();   // before the claim: no sample of the batch begins earlier
        const std::uint64_t before = s.claim.fetch_add(most, std::memory_order_acq_rel);
        const auto size = static_cast<std::uint32_t>(before >> 32);
        const auto next = static_cast<std::uint32_t>(before);
        if (std::uint64_t{next} + most >= size)
            current_.compare_exchange_strong(oldest, oldest + 1, std::memory_order_acq_rel);
        if (next >= size)
            continue;
        const std::uint32_t count = std::min(most, size - next);
        if (next == 0)   // a stale hint may have led to a batch admitted since
            s.first_claim_ns.store(std::max(begin, s.admitted_ns), std::memory_order_relaxed);
        make_samples(worker, i, next, count);
        const std::int64_t end = clock_.now_ns();
        worker.samples += count;
        worker.ns += static_cast<std::uint64_t>(std::max<std::int64_t>(end - begin, 0));
        if (count == size || s.remaining.fetch_sub(count, std::memory_order_acq_rel) == count) {
            s.last_done_ns.store(clock_.now_ns(), std::memory_order_relaxed);   // after everybody's last sample
            finish(worker, i);
        }
        return true;
    }
}

void PrefetchCore::make_samples(Worker& worker, std::uint32_t slot, std::uint32_t first, std::uint32_t count) noexcept {
    Slot& s = slots_[slot];
    const bool records = recorder_ && s.detail.samples && worker.track;
    SampleTask& task = worker.task;
    task.seed = options_.seed;
    task.epoch = s.epoch;
    task.clock = recorder_ ? &clock_ : nullptr;
    for (std::uint32_t at = first; at < first + count && !stopping(); ++at) {
        task.index = s.indices[at];
        task.bytes_read = 0;
        task.stage_count = 0;
        const std::int64_t begin = records ? clock_.now_ns() : 0;
        bool complete = false;
        const char* where = "sampler";
        try {
            if (task.index >= source_size_)
                throw std::out_of_range{"index " + std::to_string(task.index) + " of a data set of " +
                                        std::to_string(source_size_)};
            where = "batch memory";
            if (!s.memory)
                throw std::bad_alloc{};
            where = "make_scratch";
            if (!worker.scratch)
                worker.scratch = source_->make_scratch();
            where = nullptr;
            task.data = {s.memory->data() + at * sample_bytes_, sample_bytes_};
            task.target = s.memory->targets() + at;
            source_->fill(task, *worker.scratch);
            complete = true;
        } catch (...) {
            note_failure(s, task, where, std::current_exception());
        }
        if (records) {
            SampleRecord& record = worker.record;
            record.row = {.index = task.index,
                          .epoch = static_cast<std::uint32_t>(s.epoch),
                          .batch = s.number,
                          .slot = at,
                          .pipeline = pipeline_,
                          .status = complete ? SampleStatus::complete : SampleStatus::failed,
                          .bytes = task.bytes_read,
                          .begin_ns = begin};
            record.slices = s.detail.slices;
            record.stage_count = std::min<std::uint32_t>(task.stage_count, max_stages);
            std::copy_n(task.stages.begin(), record.stage_count, record.stages.begin());
            worker.track.push(record);
        }
    }
}

void PrefetchCore::note_failure(Slot& s, const SampleTask& task, const char* where, std::exception_ptr cause) noexcept {
    try {
        std::string stage{where ? where : "fill"};
        if (!where && task.stage_count > 0)
            stage = stages_[std::min<std::size_t>(task.stage_count, stages_.size()) - 1];
        std::string path;
        try {
            if (task.index < source_size_)
                path = source_->path(task.index);
        } catch (...) {
            path.clear();   // a message without its path, not another failure
        }
        if (recorder_)
            recorder_->add_failure({.index = task.index,
                                    .epoch = static_cast<std::uint32_t>(s.epoch),
                                    .batch = s.number,
                                    .pipeline = pipeline_,
                                    .path = path,
                                    .stage = stage,
                                    .message = message_of(cause)});
        const std::lock_guard lock{mutex_};
        s.failed = true;
        s.failures.push_back({task.index, std::move(path), std::move(stage), std::move(cause)});
    } catch (...) {
        const std::lock_guard lock{mutex_};
        s.failed = true;   // no memory for the words: the batch fails without them
    }
}

void PrefetchCore::finish(Worker& worker, std::uint32_t slot) noexcept {
    Wakes wakes;
    {
        const std::lock_guard lock{mutex_};
        observe(worker);
        policy_.complete(slot, slots_[slot].failed);
        wakes = turn();
    }
    perform(wakes);
}

void PrefetchCore::work(std::size_t) noexcept {
    std::unique_ptr<Worker> worker;
    try {
        worker = make_worker();
        if (recorder_)
            recorder_->add_this_thread("worker " + std::to_string(worker->track.worker()));
    } catch (...) {
        try {
            worker = std::make_unique<Worker>();   // without a ring: unrecorded, but working
        } catch (...) {
            stop();
            return;
        }
    }
    {
        const std::lock_guard lock{mutex_};
        policy_.begin();
    }
    do {
        while (claim_one(*worker)) {
        }
    } while (idle(*worker));
}

bool PrefetchCore::idle(Worker& worker) noexcept {
    Wakes wakes;
    {
        const std::lock_guard lock{mutex_};
        observe(worker);
        wakes = turn();
    }
    perform(wakes);
    const std::int64_t until = clock_.now_ns() + spin_ns;
    do {
        if (stopping())
            return false;
        if (work_is_open() || (gate_.load(std::memory_order_relaxed) & slot_bits) != 0)
            return true;
        pause();
    } while (clock_.now_ns() < until);

    bool sleeps = false;
    {
        const std::lock_guard lock{mutex_};
        wakes = turn();
        if (!stopping() && !work_is_open() && !wakes.prepare_next) {
            policy_.park();
            sleeps = arm();
            if (sleeps)
                ++parks_;
            else
                policy_.woken(1);
        }
    }
    perform(wakes);
    if (sleeps)
        wait_for_token();
    return !stopping();
}

void PrefetchCore::wait_for_token() noexcept {
    for (;;) {
        std::uint32_t tokens = tokens_.load(std::memory_order_acquire);
        while (tokens != 0)
            if (tokens_.compare_exchange_weak(tokens, tokens - 1, std::memory_order_acquire))
                return;
        tokens_.wait(0, std::memory_order_acquire);
    }
}

// ---------------------------------------------------------------------------------------------- the loop

std::uint64_t PrefetchCore::begin_pass(std::size_t epoch, EpochOptions options) {
    if (pass_left_ != 0)
        throw std::logic_error{"DataLoader::epoch: the pass before must be used up or destroyed first"};
    std::unique_lock lock{mutex_};
    order_done_.wait(lock, [this] { return !order_busy_; });
    if (next_prepared_ && order_epoch_ == epoch) {
        next_prepared_ = false;
    } else {
        abandon();
        lock.unlock();
        sampler_->order(epoch, order_);
        lock.lock();
        order_epoch_ = epoch;
        order_first_batch_ = policy_.limit();
        policy_.extend(batches_per_epoch_);
    }
    next_wanted_ = options.next_epoch && !inline_ && batches_per_epoch_ > 0;
    const Wakes wakes = inline_ ? Wakes{} : turn();
    lock.unlock();
    if (!started_)
        start_crew();
    perform(wakes);
    pass_left_ = batches_per_epoch_;
    return ++pass_serial_;
}

void PrefetchCore::end_pass(std::uint64_t serial) noexcept {
    if (exhausted(serial))
        return;
    std::unique_lock lock{mutex_};
    order_done_.wait(lock, [this] { return !order_busy_; });
    abandon();
    pass_left_ = 0;
}

bool PrefetchCore::spin_until_ready() const noexcept {
    const std::int64_t until = clock_.now_ns() + spin_ns;
    do {
        if (ready() || stopping())
            return true;
        pause();
    } while (clock_.now_ns() < until);
    return false;
}

bool PrefetchCore::must_wait(Kind how) {
    if (stopping())
        throw_aborted();
    if (inline_) {
        draw_inline();
        return false;
    }
    if (spin_until_ready())
        return false;
    gate_.fetch_or(waits, std::memory_order_acq_rel);
    Wakes wakes;
    bool user_holds_all;
    {
        // The turn takes up slots that came back while too few to wake anybody; what comes back from now on wakes.
        const std::lock_guard lock{mutex_};
        wakes = turn(true);
        user_holds_all = policy_.next_position() == position_ &&
                         static_cast<std::size_t>(std::popcount(policy_.handed())) >= policy_.slots();
    }
    wakes.prepare_next = false;   // a worker's: one finishes the batch that is waited for
    perform(wakes);
    if (user_holds_all && !stopping()) {
        resumed();
        throw_all_held();
    }
    std::atomic<std::uint64_t>& cell = cells_[position_ & cell_mask].word;
    std::uint64_t seen = cell.load(std::memory_order_acquire);
    const std::uint64_t tag = (position_ + 1) << 32;
    if (seen >> 32 == tag >> 32 && (seen & 7) > stopped) {
        throw std::logic_error{"next(): called while another next() of the same pass is waiting"};
    }
    if (seen >> 32 == tag >> 32 || !cell.compare_exchange_strong(seen, tag | how, std::memory_order_acq_rel)) {
        resumed();
        return false;
    }
    ++suspensions_;
    return true;
}

void PrefetchCore::wait_blocked() noexcept {
    const std::uint64_t announced = (position_ + 1) << 32 | waiting_blocked;
    cells_[position_ & cell_mask].word.wait(announced, std::memory_order_acquire);
    resumed();
}

void PrefetchCore::resumed() noexcept { gate_.fetch_and(~waits, std::memory_order_acq_rel); }

void PrefetchCore::draw_inline() {
    for (;;) {
        {
            const std::lock_guard lock{mutex_};
            (void)turn();   // nobody sleeps here
        }
        bool worked = false;
        while (!ready() && claim_one(*inline_worker_))
            worked = true;
        if (stopping())
            throw_aborted();
        if (ready())
            return;
        if (!worked)
            throw_all_held();
    }
}

Batch PrefetchCore::take() {
    if (stopping())
        throw_aborted();
    const std::uint64_t cell = cells_[position_ & cell_mask].word.load(std::memory_order_acquire);
    const auto i = static_cast<std::uint32_t>(cell >> 3 & 0x1fff'ffff);
    ++position_;
    --pass_left_;
    Slot& s = slots_[i];
    const bool whole = (cell & 7) == batch;
    if (recorder_) {
        s.taken_ns = clock_.now_ns();
        record(s, i, whole ? BatchStatus::taken : BatchStatus::failed, s.taken_ns,
               published_.load(std::memory_order_relaxed) - position_);
    }
    if (!whole) [[unlikely]]
        throw_failure(i);
    ++batches_taken_;
    samples_taken_ += s.size;
    if (digest_) [[unlikely]] {
        digest_->add(std::as_bytes(std::span{s.indices.get(), s.size}));
        digest_->add(std::as_bytes(std::span{s.memory->targets(), s.size}));
        digest_->add({s.memory->data(), s.size * sample_bytes_});
    }
    return lend(i);
}

void PrefetchCore::record(const Slot& s, std::uint32_t slot, BatchStatus status, std::int64_t at_ns,
                          std::uint64_t ready_batches) noexcept {
    batches_abandoned_ += status == BatchStatus::abandoned;
    if (!recorder_)
        return;
    recorder_->push(BatchRow{.epoch = static_cast<std::uint32_t>(s.epoch),
                             .batch = s.number,
                             .slot = slot,
                             .pipeline = pipeline_,
                             .status = status,
                             .size = s.size,
                             .bytes = s.size * (sample_bytes_ + sizeof(std::int64_t)),
                             .ready_batches = static_cast<std::uint32_t>(ready_batches),
                             .admitted_ns = s.admitted_ns,
                             .first_claim_ns = s.first_claim_ns.load(std::memory_order_relaxed),
                             .last_done_ns = s.last_done_ns.load(std::memory_order_relaxed),
                             .offered_ns = s.offered_ns,
                             .taken_ns = at_ns},
                    s.detail);
}

void PrefetchCore::throw_failure(std::uint32_t slot) {
    std::vector<SampleFailure>& failures = slots_[slot].failures;
    SampleFailure lowest{.index = slots_[slot].indices[0],
                         .path = {},
                         .stage = "fill",
                         .cause = std::make_exception_ptr(std::bad_alloc{})};
    const auto found = std::min_element(failures.begin(), failures.end(),
                                        [](const auto& a, const auto& b) { return a.index < b.index; });
    if (found != failures.end())
        lowest = std::move(*found);
    failures.clear();
    give_back(slot);
    throw SampleError{lowest.index, std::move(lowest.path), std::move(lowest.stage), std::move(lowest.cause)};
}

void PrefetchCore::throw_aborted() {
    throw std::system_error{asio::error::make_error_code(asio::error::operation_aborted)};
}

void PrefetchCore::throw_all_held() const {
    throw std::logic_error{"next(): all prefetch_depth + 1 = " + std::to_string(options_.prefetch_depth + 1) +
                           " batches are held; give one back or raise prefetch_depth"};
}

void PrefetchCore::stop() noexcept {
    retain();   // the loop that this ends may destroy the loader before we are through
    if (!stopping_.exchange(true, std::memory_order_acq_rel)) {
        bool loop = false;
        {
            const std::lock_guard lock{mutex_};
            policy_.stop();
            loop = publish(policy_.next_position(), 0, stopped);
        }
        tokens_.fetch_add(tokens_of_stop, std::memory_order_release);
        tokens_.notify_all();
        if (loop)
            wake_loop();
    }
    release();
}

void PrefetchCore::shut_down_loader() noexcept {
    stop();
    crew_.join();
    inline_worker_.reset();   // it refers to the recorder and the source, which batches may outlive
    {
        const std::lock_guard lock{mutex_};
        abandon();
    }
    pass_left_ = 0;
    close(policy_.handed());
}

LoaderCounters PrefetchCore::counters() noexcept {
    const std::lock_guard lock{mutex_};
    return {.batches_taken = batches_taken_,
            .batches_abandoned = batches_abandoned_,
            .samples_taken = samples_taken_,
            .slots_replaced = slots_replaced(),
            .suspensions = suspensions_,
            .worker_wakes = wakes_ + user_wakes_.load(std::memory_order_relaxed),
            .worker_parks = parks_,
            .turns = turns_,
            .handler_fallbacks = wake_buffer_.fallbacks(),
            .slots_bytes = slots_bytes(),
            .workers_running = policy_.begun()};
}

}   // namespace drawpoint
