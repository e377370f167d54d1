#pragma once

#include <atomic>
#include <cstddef>
#include <exception>
#include <memory>
#include <stdexcept>
#include <utility>

#include <boost/test/unit_test.hpp>

#include <asio/co_spawn.hpp>
#include <asio/post.hpp>

#include <drawpoint/instrumentation/recorder/recorder.hpp>
#include <drawpoint/pipeline/runtime/runtime.hpp>

namespace drawpoint::test {

/// A recorder without a file, with small rings and a clock that needs no calibration.
inline std::unique_ptr<Recorder> small_recorder() {
    return std::make_unique<Recorder>(RecorderOptions{.ring_records = 1u << 10}, AnyClock{SteadyClock{}});
}

/// Holds workers back until the loop has suspended, so that allocations made at a first suspension happen at a known
/// place.
class UntilSuspended {
public:
    /// Lets workers go on when `runtime`'s loop next has nothing to run. Call it from a coroutine on that loop.
    void watch(Runtime& runtime) {
        asio::post(runtime.context(), [this] {
            suspended_ = true;
            suspended_.notify_all();
        });
    }
    void wait() const noexcept { suspended_.wait(false); }

private:
    std::atomic<bool> suspended_ = false;
};

/// Runs the coroutine `body(runtime)` to its end, on a runtime of its own.
template <class Body>
void run_to_end(Body& body) {
    const auto recorder = small_recorder();
    Runtime runtime{RuntimeOptions{}, *recorder};
    run(runtime, body(runtime));
}

/// Runs `body(runtime)` repeatedly, stops after 0, 1, 2 … handlers of its event loop, and destroys the runtime with
/// the coroutine wherever it is suspended; ends with the round in which the coroutine reaches its end. Returns the
/// number of handlers of that round. Calls `after` when everything of a round is destroyed. `body` is a named closure.
template <class Body, class After>
std::size_t destroy_at_every_step(Body& body, After&& after, std::size_t most = 10'000) {
    for (std::size_t steps = 0; steps < most; ++steps) {
        bool ended = false;
        std::exception_ptr error;
        const auto recorder = small_recorder();
        {
            Runtime runtime{RuntimeOptions{}, *recorder};
            auto done = [&](std::exception_ptr thrown) {
                ended = true;
                error = std::move(thrown);
            };
            asio::co_spawn(runtime.context(), body(runtime), std::move(done));
            for (std::size_t handlers = 0; handlers < steps && !ended; ++handlers)
                runtime.context().run_one();
        }
        after();
        if (error)
            std::rethrow_exception(error);
        if (ended)
            return steps;
    }
    throw std::runtime_error{"destroy_at_every_step: the body did not end"};
}

template <class Body>
std::size_t destroy_at_every_step(Body& body) {
    return destroy_at_every_step(body, [] {});
}

}   // namespace drawpoint::test

/// Defines a test whose body is a coroutine with a `runtime`: DRAWPOINT_CORO_TEST_CASE(name) { … co_await …; }
/// No BOOST_ macro may contain a co_await: await first, then check.
#define DRAWPOINT_CORO_TEST_CASE(name)                                                                                 \
    static ::drawpoint::Awaitable<void> name##_body(::drawpoint::Runtime& runtime);                                    \
    BOOST_AUTO_TEST_CASE(name) { ::drawpoint::test::run_to_end(name##_body); }                                         \
    static ::drawpoint::Awaitable<void> name##_body([[maybe_unused]] ::drawpoint::Runtime& runtime)
