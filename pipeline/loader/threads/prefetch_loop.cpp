// PrefetchCore's functions for the loop: draws and the wake-up.
#include <algorithm>
#include <cerrno>
#include <exception>
#include <new>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>

#include <poll.h>
#include <sys/eventfd.h>

#include <asio/associated_cancellation_slot.hpp>
#include <asio/error.hpp>
#include <asio/post.hpp>

#include <drawpoint/pipeline/errors.hpp>

#include "pipeline/loader/threads/prefetch_core.hpp"

namespace drawpoint {

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
        asio::post(context_->get_executor(), WakeOp{this});   // any_io_executor would ignore the allocator
    posting_.fetch_sub(1, std::memory_order_release);
}

void PrefetchCore::park(Handler&& handler) {
    handler_.emplace(std::move(handler));
    is_special_ = true;
    parked_draw_ = suspensions_;
    if (auto cancellation = asio::get_associated_cancellation_slot(*handler_); cancellation.is_connected())
        cancellation.assign([this](asio::cancellation_type type) {
            if (type != asio::cancellation_type::none)
                interrupt(asio::error::make_error_code(asio::error::operation_aborted));
        });
}

void PrefetchCore::withdraw_unless_parked(std::uint64_t draw) noexcept {
    if (parked_draw_ >= draw)
        return;
    mailbox_.retract(position_, DrawMailbox::Kind::waiting);
    end_wait();
}

void PrefetchCore::end_wait() noexcept {
    gate_.end_wait();
    if (watch_)
        watch_->end_wait();
}

PrefetchCore::Handler PrefetchCore::unpark() noexcept {
    end_wait();
    Handler handler = std::move(*handler_);
    handler_.reset();
    is_special_ = false;
    if (auto cancellation = asio::get_associated_cancellation_slot(handler); cancellation.is_connected())
        cancellation.clear();
    return handler;
}

void PrefetchCore::resume() {
    if (!handler_ || (!mailbox_.has(position_) && !stopping()))
        return;   // a wake-up for a draw that was interrupted
    Handler handler = unpark();
    handler(std::exception_ptr{});
}

void PrefetchCore::interrupt(const std::error_code& why) noexcept {
    if (!handler_)
        return;
    mailbox_.retract(position_, DrawMailbox::Kind::waiting);
    asio::post(context_->get_executor(),
               [handler = unpark(), error = std::make_exception_ptr(std::system_error{why})]() mutable {
                   handler(std::move(error));
               });
}

void PrefetchCore::context_shutdown() noexcept {
    down_.store(true, std::memory_order_seq_cst);
    // Store to `down_`, then load of `posting_`; wake_loop() does the opposite, so one of the two sees the other.
    while (posting_.load(std::memory_order_seq_cst) != 0 && !fork_.is_forked())
        std::this_thread::yield();
    handler_.reset();
    is_special_ = false;
}

bool PrefetchCore::spin_until_ready() noexcept {
    const std::int64_t begin = clock_.now_ns(), most = spin_.begin();
    std::int64_t spun = 0;
    do {
        if (ready() || stopping()) {
            spin_.succeeded(spun);
            return true;
        }
        spin_pause();
        spun = clock_.now_ns() - begin;
    } while (spun < most);
    spin_.failed();
    return false;
}

bool PrefetchCore::must_wait(DrawMailbox::Kind how) {
    if (stopping())
        throw_aborted();
    if (handler_)
        throw_another_waits();
    end_outside_wait();
    check_process();
    if (!watch_)
        return waits_for_batch(how);
    watch_->begin_wait(progress_.epoch(), drawn());
    bool waits = false;
    try {
        waits = waits_for_batch(how);
    } catch (...) {
        watch_->end_wait();
        throw;
    }
    if (!waits)
        watch_->end_wait();
    return waits;
}

bool PrefetchCore::waits_for_batch(DrawMailbox::Kind how) {
    if (due_pass_)
        begin_due_pass();
    if (inline_) {
        draw_inline();
        return false;
    }
    if (spin_until_ready())
        return false;
    gate_.announce_wait();
    Wakes wakes;
    bool user_holds_all;
    {
        // The turn takes up slots that came back without waking a worker; the next give-back will wake one.
        const auto guard = guarded_.lock();
        wakes = turn(*guard, Asks{.loop_waits = true});
        if (waits_for_room_ && guard->machine->holds_all(position_)) {   // room would come only from the user
            guard->machine.decide<&LoaderMachine::raise_limits>(slots_bytes());
            follow_limits(*guard);
            note_setting(*guard);
            wakes += turn(*guard, Asks{.loop_waits = true});
        }
        user_holds_all = guard->machine->holds_all(position_);
    }
    perform(wakes);
    if (user_holds_all && !stopping()) {
        gate_.end_wait();
        throw_all_held();
    }
    switch (mailbox_.announce(position_, how)) {
    case DrawMailbox::Wait::another: gate_.end_wait(); throw_another_waits();
    case DrawMailbox::Wait::is_there: gate_.end_wait(); return false;
    case DrawMailbox::Wait::announced: break;
    }
    ++suspensions_;
    return true;
}

void PrefetchCore::wait_blocked() noexcept {
    mailbox_.wait(position_);
    end_wait();
}

int PrefetchCore::ready_descriptor() {
    if (descriptor_ < 0)
        descriptor_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (descriptor_ < 0)
        throw std::system_error{errno, std::generic_category(), "eventfd"};
    return descriptor_;
}

bool PrefetchCore::wait_outside(std::chrono::nanoseconds timeout) {
    pollfd readable{ready_descriptor(), POLLIN, 0};
    settle_outside_wait();
    if (!waits_outside_) {
        if (ready() || stopping() || !must_wait(DrawMailbox::Kind::waiting_outside))
            return true;
        is_special_ = waits_outside_ = true;
    }
    using Clock = std::chrono::steady_clock;
    constexpr std::chrono::nanoseconds none{0}, longest = std::chrono::hours{1};
    const Clock::time_point end = Clock::now() + std::clamp(timeout, none, longest);
    do {
        const std::chrono::nanoseconds left = std::max<std::chrono::nanoseconds>(end - Clock::now(), none);
        const auto seconds = std::chrono::floor<std::chrono::seconds>(left);
        const timespec time{.tv_sec = static_cast<time_t>(seconds.count()),
                            .tv_nsec = static_cast<long>((left - seconds).count())};
        if (::ppoll(&readable, 1, &time, nullptr) != 1)
            return false;
        drain_descriptor();   // what was written may be of a batch that is drawn by now
    } while (!mailbox_.has(position_));
    end_outside_wait();
    return true;
}

void PrefetchCore::drain_descriptor() const noexcept {
    eventfd_t count = 0;
    (void)::eventfd_read(descriptor_, &count);
}

void PrefetchCore::end_outside_wait() noexcept {
    if (!std::exchange(waits_outside_, false))
        return;
    is_special_ = false;
    mailbox_.retract(position_, DrawMailbox::Kind::waiting_outside);
    drain_descriptor();
    end_wait();
}

void PrefetchCore::draw_inline() {
    for (;;) {
        const Wakes wakes = turn(*guarded_.lock());
        perform(wakes);   // of readers: there are no workers
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

void PrefetchCore::advance(Slot& s, std::uint32_t slot, bool comes) noexcept {
    ++position_;
    --pass_left_;
    if (!counts_draws_) [[unlikely]]
        progress_.draw(s.number);
    if (!recorder_)
        return;
    s.taken_ns = clock_.now_ns();
    last_offered_ns_ = s.offered_ns;
    record(s, slot, comes ? BatchStatus::taken : BatchStatus::failed, s.taken_ns,
           published_.load(std::memory_order_relaxed) - position_);
}

ReadyBatch PrefetchCore::peek(std::size_t ahead) const noexcept {
    const Slot& s = slots_[mailbox_.at(position_ + ahead).slot];
    const std::span<const BatchPart> parts = s.collation ? s.collation->batch.parts() : std::span<const BatchPart>{};
    return {.size = s.size,
            .number = s.number,
            .memory = s.memory,
            .data = s.collation ? parts.front().data() : std::span{s.memory->data(), s.size * sample_bytes_},
            .targets = {s.memory->targets(), s.size},
            .indices = {s.indices.get(), s.size},
            .parts = parts};
}

bool PrefetchCore::pass_over() {
    if (stopping())
        return false;
    const std::uint32_t i = mailbox_.at(position_).slot;
    Slot& s = slots_[i];
    if (s.kept != 0u || pass_errors_ + s.failures.size() > most_errors_)
        return false;
    advance(s, i, settle_failed(s));
    give_back_unlent(i);
    return true;
}

Batch PrefetchCore::take() {
    if (stopping())
        throw_aborted();
    const DrawMailbox::Entry entry = mailbox_.at(position_);
    const std::uint32_t i = entry.slot;
    Slot& s = slots_[i];
    std::uint32_t size = entry.size;   // s.size is on a cache line that workers write
    if (entry.kind != DrawMailbox::Kind::batch) [[unlikely]] {
        const bool comes = settle_failed(s);
        advance(s, i, comes);
        if (!comes)
            throw_failure(i);
        size = s.size;
    } else {
        advance(s, i, true);
    }
    ++batches_taken_;
    samples_taken_ += size;
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
        retry_raise_at_draw();
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
    // The end first, with acquire: an abandoned batch may still be collated, and a row with an end has the rest too.
    const std::int64_t collate_end_ns = collated ? collated->end_ns.load(std::memory_order_acquire) : no_stamp;
    const std::int64_t collate_begin_ns = collated ? collated->begin_ns.load(std::memory_order_relaxed) : no_stamp;
    const std::int32_t worker = collated ? collated->worker.load(std::memory_order_relaxed) : -1;
    std::optional<std::uint16_t> collate_worker;
    if (worker >= 0)
        collate_worker = static_cast<std::uint16_t>(worker);
    recorder_->push(
        BatchRow{.epoch = static_cast<std::uint32_t>(s.epoch),
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
                 .collate_cpu_ns = collated ? collated->cpu_ns.load(std::memory_order_relaxed) : no_stamp,
                 .collate_run_queue_ns = collated ? collated->run_queue_ns.load(std::memory_order_relaxed) : no_stamp,
                 .offered_ns = s.offered_ns,
                 .taken_ns = at_ns});
}

bool PrefetchCore::settle_failed(Slot& s) noexcept {
    if (!s.kept)
        return false;
    pass_errors_ += s.failures.size();
    if (pass_errors_ > most_errors_)
        return false;
    samples_settled_ += s.failures.size();
    s.size = *s.kept;
    return true;
}

void PrefetchCore::throw_failure(std::uint32_t slot) {
    std::string note;
    if (slots_[slot].kept)
        note = " (samples of this pass that failed: " + std::to_string(pass_errors_) +
               ", max_errors = " + std::to_string(most_errors_) + ")";
    std::vector<SampleFailure> failures = std::move(slots_[slot].failures);
    if (failures.empty())
        failures.push_back({.index = slots_[slot].indices[0],
                            .path = {},
                            .stage = "fill",
                            .cause = std::make_exception_ptr(std::bad_alloc{})});
    slots_[slot].failures.clear();
    give_back_unlent(slot);
    std::ranges::sort(failures, {}, &SampleFailure::index);
    std::vector<SampleError> others;
    for (std::size_t i = 1; i < failures.size(); ++i)
        others.emplace_back(failures[i].index, std::move(failures[i].path), std::move(failures[i].stage),
                            std::move(failures[i].cause));
    SampleFailure& lowest = failures.front();
    throw SampleError{
        lowest.index, std::move(lowest.path), std::move(lowest.stage), std::move(lowest.cause), std::move(others),
        note};
}

void PrefetchCore::throw_aborted() {
    throw std::system_error{asio::error::make_error_code(asio::error::operation_aborted)};
}

void PrefetchCore::check_process() const {
    if (lacks_threads())
        throw std::logic_error{
            "DataLoader: this process is a fork of the one that made the loader, and has none of its "
            "threads: make the loader after the fork"};
}

void PrefetchCore::throw_another_waits() {
    throw std::logic_error{"next(): called while another draw of this loader is waiting"};
}

void PrefetchCore::throw_all_held() const {
    throw std::logic_error{"next(): all prefetch_depth + 1 = " + std::to_string(options_.prefetch_depth + 1) +
                           " batches are held; give one back or raise prefetch_depth"};
}

}   // namespace drawpoint
