// PrefetchCore's part for the loop: passes, draws and the wake-up.
#include <algorithm>
#include <new>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>

#include <asio/error.hpp>
#include <asio/post.hpp>

#include "pipeline/loader/threads/prefetch_core.hpp"

namespace drawpoint {

namespace {

constexpr std::int64_t least_spin_ns = 500;
constexpr std::uint64_t waits_between_probes = 32;   // of the longest spin, once shorter ones have failed

}   // namespace

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
        extend();
    }
    next_wanted_ = options.next_epoch && !inline_ && batches_per_epoch_ > 0;
    Wakes wakes;
    if (!inline_) {
        wakes = turn();
        wakes += go_on();
    }
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

bool PrefetchCore::spin_until_ready() noexcept {
    const std::int64_t begin = clock_.now_ns();
    const std::int64_t most = ++waits_ % waits_between_probes == 0 ? most_spin_ns_ : spin_ns_;
    std::int64_t spun = 0;
    do {
        if (ready() || stopping()) {
            spin_ns_ = std::clamp(2 * spun, std::min(spin_ns, most_spin_ns_), most_spin_ns_);
            return true;
        }
        spin_pause();
        spun = clock_.now_ns() - begin;
    } while (spun < most);
    spin_ns_ = std::max(spin_ns_ / 2, least_spin_ns);
    return false;
}

bool PrefetchCore::holds_all() const noexcept {
    // Where the depth has shrunk, more may be held than there are to be, and others still come.
    return policy_.next_position() == position_ && policy_.wanted() == 0 &&
           static_cast<std::size_t>(std::popcount(policy_.handed())) >= policy_.slots();
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
        wakes = turn(Asks{.loop_waits = true});
        if (waits_for_room_ && holds_all()) {   // room would come from what the user holds
            hold_to(numbers());
            note_setting();
            wakes += turn(Asks{.loop_waits = true});
        }
        user_holds_all = holds_all();
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
    const Cell& mailbox = cells_[position_ & cell_mask];
    const std::uint64_t cell = mailbox.word.load(std::memory_order_acquire);
    const auto i = static_cast<std::uint32_t>(cell >> 3 & 0x1fff'ffff);
    ++position_;
    --pass_left_;
    Slot& s = slots_[i];
    const bool whole = (cell & 7) == batch;
    if (recorder_) {
        s.taken_ns = clock_.now_ns();
        last_offered_ns_ = s.offered_ns;
        record(s, i, whole ? BatchStatus::taken : BatchStatus::failed, s.taken_ns,
               published_.load(std::memory_order_relaxed) - position_);
    }
    if (!whole) [[unlikely]]
        throw_failure(i);
    ++batches_taken_;
    samples_taken_ += mailbox.size;   // the slot's own line is the workers'
    if (digest_) [[unlikely]] {
        digest_->add(std::as_bytes(std::span{s.indices.get(), s.size}));
        digest_->add(std::as_bytes(std::span{s.memory->targets(), s.size}));
        if (!s.collation)
            digest_->add({s.memory->data(), s.size * sample_bytes_});
        else
            for (const BatchPart& part : s.collation->batch.parts()) {
                digest_->add(std::as_bytes(part.shape()));
                digest_->add(part.data());
            }
    }
    if (waits_for_room_) [[unlikely]]
        look_for_room();
    return lend(i);
}

void PrefetchCore::record(const Slot& s, std::uint32_t slot, BatchStatus status, std::int64_t at_ns,
                          std::uint64_t ready_batches) noexcept {
    batches_abandoned_ += status == BatchStatus::abandoned;
    if (!recorder_)
        return;
    const SlotCollation* const collated = s.collation.get();
    const std::uint64_t data_bytes =
        collated ? collated->bytes.load(std::memory_order_relaxed) : s.size * sample_bytes_;
    // The end first: a batch that is given up may be in mid-collate, and a row with an end has the others too.
    const std::int64_t collate_end_ns = collated ? collated->end_ns.load(std::memory_order_acquire) : no_stamp;
    const std::int64_t collate_begin_ns = collated ? collated->begin_ns.load(std::memory_order_relaxed) : no_stamp;
    const std::int32_t worker = collated ? collated->worker.load(std::memory_order_relaxed) : -1;
    std::optional<std::uint16_t> collate_worker;
    if (worker >= 0)
        collate_worker = static_cast<std::uint16_t>(worker);
    recorder_->push(BatchRow{.epoch = static_cast<std::uint32_t>(s.epoch),
                             .batch = s.number,
                             .slot = slot,
                             .pipeline = pipeline_,
                             .status = status,
                             .collate_worker = collate_worker,
                             .size = s.size,
                             .bytes = data_bytes + s.size * sizeof(std::int64_t),
                             .ready_batches = static_cast<std::uint32_t>(ready_batches),
                             .admitted_ns = s.admitted_ns,
                             .first_claim_ns = s.first_claim_ns.load(std::memory_order_relaxed),
                             .last_done_ns = s.last_done_ns.load(std::memory_order_relaxed),
                             .collate_begin_ns = collate_begin_ns,
                             .collate_end_ns = collate_end_ns,
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

}   // namespace drawpoint
