#pragma once

#include <chrono>
#include <cstddef>
#include <exception>
#include <optional>
#include <utility>
#include <vector>

#include <asio/co_spawn.hpp>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <asio/use_awaitable.hpp>

#include <drawpoint/instrumentation/clock.hpp>
#include <drawpoint/pipeline/loader/core/batch_source.hpp>

namespace drawpoint::test {

using std::chrono::nanoseconds;

/// The time that one draw from a tape takes, by piece.
struct DrawCost {
    nanoseconds starved{}, handoff{}, transfer{};
    std::size_t size = 1;
};

/// A batch drawn from a tape; giving it back takes time, too.
class TapeBatch {
public:
    TapeBatch(ManualClock& clock, std::size_t size, DrawStamps stamps, nanoseconds give_back) noexcept
        : clock_{&clock}, size_{size}, stamps_{stamps}, give_back_{give_back} {}
    TapeBatch(TapeBatch&& other) noexcept
        : clock_{std::exchange(other.clock_, nullptr)},
          size_{other.size_},
          stamps_{other.stamps_},
          give_back_{other.give_back_} {}
    TapeBatch& operator=(TapeBatch&&) = delete;
    ~TapeBatch() { reset(); }

    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    [[nodiscard]] DrawStamps draw_stamps() const noexcept { return stamps_; }
    void reset() noexcept {
        if (clock_ != nullptr)
            std::exchange(clock_, nullptr)->advance(give_back_);
    }

private:
    ManualClock* clock_;
    std::size_t size_;
    DrawStamps stamps_;
    nanoseconds give_back_;
};

/// An EpochSource that plays given draws on the test's clock. `suspends`: every draw goes through the executor once.
class Tape {
public:
    using Epochs = std::vector<std::vector<DrawCost>>;
    Tape(ManualClock& clock, Epochs epochs) : clock_{&clock}, epochs_{std::move(epochs)} {}

    nanoseconds opening{}, give_back{};   ///< time that epoch() takes, and giving a batch back
    bool known_size = true, suspends = false;
    std::optional<std::size_t> claimed_size;   ///< what size() returns instead of the true size
    std::exception_ptr failure;                ///< thrown by draw number `fails_at` (from 0) of a pass
    std::size_t fails_at = 0;
    std::size_t drawn = 0;   ///< batches handed over so far

    class Pass {
    public:
        using Batch = TapeBatch;
        Pass(Tape& tape, const std::vector<DrawCost>& draws) noexcept : tape_{&tape}, draws_{&draws} {}
        [[nodiscard]] std::optional<std::size_t> size() const noexcept {
            return tape_->known_size ? std::optional{tape_->claimed_size.value_or(draws_->size())} : std::nullopt;
        }
        [[nodiscard]] Awaitable<std::optional<TapeBatch>> next() {
            if (tape_->suspends) {
                asio::use_awaitable_t<> token;
                co_await asio::post(token);
            }
            if (tape_->failure && at_ == tape_->fails_at)
                std::rethrow_exception(tape_->failure);
            if (at_ == draws_->size())
                co_return std::nullopt;
            ++tape_->drawn;
            const DrawCost& cost = (*draws_)[at_++];
            ManualClock& clock = *tape_->clock_;
            DrawStamps stamps;
            clock.advance(cost.starved);
            stamps.offered_ns = clock.now_ns();
            clock.advance(cost.handoff);
            stamps.transferred_ns = clock.now_ns();
            clock.advance(cost.transfer);
            stamps.taken_ns = clock.now_ns();
            co_return TapeBatch(clock, cost.size, stamps, tape_->give_back);
        }

    private:
        Tape* tape_;
        const std::vector<DrawCost>* draws_;
        std::size_t at_ = 0;
    };

    [[nodiscard]] Pass epoch(std::size_t e, EpochOptions = {}) {
        clock_->advance(opening);
        return Pass(*this, epochs_.at(e));
    }

private:
    ManualClock* clock_;
    Epochs epochs_;
};
static_assert(EpochSource<Tape> && StampedBatch<TapeBatch>);

/// Runs a coroutine to its end on an event loop of its own.
template <class T>
void run_alone(Awaitable<T> work) {
    asio::io_context context;
    std::exception_ptr error;
    auto done = [&error](std::exception_ptr thrown) { error = std::move(thrown); };
    asio::co_spawn(context, std::move(work), std::move(done));
    context.run();
    if (error)
        std::rethrow_exception(error);
}

}   // namespace drawpoint::test
