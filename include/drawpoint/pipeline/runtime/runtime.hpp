#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <system_error>
#include <type_traits>
#include <utility>

#include <asio/awaitable.hpp>
#include <asio/co_spawn.hpp>
#include <asio/error.hpp>
#include <asio/io_context.hpp>

namespace drawpoint {

class Recorder;
class WorkerPool;

/// The type of all coroutines of drawpoint: lazy, run by the loop's executor.
template <class T>
using Awaitable = asio::awaitable<T>;

/// What TBB code inside a sample, such as an image library's, gets. `arena`: only the thread of its worker, so that
/// workers do not compete with TBB's threads for cores. `threads`: TBB's threads too.
enum class WorkerThreads : std::uint8_t { arena, threads };

struct RuntimeOptions {
    /// The most workers that one loader may have, 0 … 256; 0: 256. Each loader has its own, as sleeping workers cost
    /// nothing.
    std::size_t max_threads = 0;
    WorkerThreads workers = WorkerThreads::arena;   ///< `arena` in a build without oneTBB means `threads`
    bool record = true;                             ///< whether loaders record their batches and samples
    /// Called on every worker thread before its first sample, e.g. `limit_torch_threads`; null: nothing. Threads
    /// started here or inside a sample inherit the worker's SCHED_BATCH (docs/design.md) and keep it.
    void (*on_worker_start)() noexcept = nullptr;
};
static_assert(std::is_trivially_destructible_v<RuntimeOptions>);

/// Owns the event loop of the training loop and all loader threads. Must outlive all loaders, passes and coroutines
/// made with it; the recorder must outlive the runtime. Only one thread at a time may run() it: that is the loop's
/// thread.
class Runtime {
public:
    /// Throws std::invalid_argument naming max_threads and its value.
    Runtime(const RuntimeOptions&, Recorder&);
    ~Runtime();
    Runtime(const Runtime&) = delete;
    Runtime& operator=(const Runtime&) = delete;

    [[nodiscard]] asio::io_context& context() noexcept;   ///< the event loop
    [[nodiscard]] Recorder& recorder() noexcept;
    [[nodiscard]] WorkerPool& workers() noexcept;   ///< for loaders
    [[nodiscard]] const RuntimeOptions& options() const noexcept;

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

/// Runs one coroutine to its end on the calling thread; blocks. Returns its result or throws its exception, or
/// std::system_error with asio's operation_aborted if the event loop is stopped before. Not inside a coroutine of the
/// same runtime.
template <class T>
T run(Runtime& runtime, Awaitable<T> work) {
    struct Nothing {};
    struct Outcome {
        bool ended = false;
        std::exception_ptr error;
        std::optional<std::conditional_t<std::is_void_v<T>, Nothing, T>> value;
    };
    // Shared, because an event loop that is stopped early leaves the coroutine and its handler behind.
    const auto outcome = std::make_shared<Outcome>();
    asio::io_context& context = runtime.context();
    context.restart();
    if constexpr (std::is_void_v<T>) {
        auto done = [outcome](std::exception_ptr thrown) {
            outcome->ended = true;
            outcome->error = std::move(thrown);
        };
        asio::co_spawn(context, std::move(work), std::move(done));
    } else {
        auto done = [outcome](std::exception_ptr thrown, T value) {
            outcome->ended = true;
            outcome->error = std::move(thrown);
            outcome->value.emplace(std::move(value));
        };
        asio::co_spawn(context, std::move(work), std::move(done));
    }
    context.run();
    if (!outcome->ended)
        throw std::system_error{asio::error::make_error_code(asio::error::operation_aborted)};
    if (outcome->error)
        std::rethrow_exception(outcome->error);
    if constexpr (!std::is_void_v<T>)
        return std::move(*outcome->value);
}

}   // namespace drawpoint
