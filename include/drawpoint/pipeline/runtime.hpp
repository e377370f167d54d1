#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include <asio/awaitable.hpp>
#include <asio/co_spawn.hpp>
#include <asio/io_context.hpp>

namespace drawpoint {

class Recorder;
class WorkerPool;

/// Every coroutine of drawpoint: lazy, on the loop's executor.
template <class T>
using Awaitable = asio::awaitable<T>;

/// Where workers run. `arena`: a oneTBB arena, which users' own TBB code shares. `threads`: plain threads.
enum class WorkerThreads : std::uint8_t { arena, threads };

struct RuntimeOptions {
    std::size_t max_threads =
        0;   ///< workers a loader may have, 1 … 256 (asleep they cost nothing, so loaders don't share); 0: 256
    WorkerThreads workers = WorkerThreads::arena;   ///< `arena` in a build without oneTBB means `threads`
    bool record = true;                             ///< whether loaders record their batches and samples
};
inline constexpr std::size_t max_worker_threads = 256;
static_assert(std::is_trivially_destructible_v<RuntimeOptions>);

/// Owns the loop's event loop and every loader thread; outlives all loaders, passes and coroutines made with it.
/// Its executor runs one thing at a time: `run()` from one thread. The recorder outlives it.
class Runtime {
public:
    /// Throws std::invalid_argument naming the field and value.
    Runtime(const RuntimeOptions&, Recorder&);
    ~Runtime();
    Runtime(const Runtime&) = delete;
    Runtime& operator=(const Runtime&) = delete;

    [[nodiscard]] asio::io_context& context() noexcept;
    [[nodiscard]] Recorder& recorder() noexcept;
    [[nodiscard]] WorkerPool& workers() noexcept;
    [[nodiscard]] const RuntimeOptions& options() const noexcept;

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

/// Runs one coroutine to its end on the calling thread and returns its result or throws its exception. Not from inside a
/// coroutine of the same runtime.
template <class T>
T run(Runtime& runtime, Awaitable<T> work) {
    asio::io_context& context = runtime.context();
    context.restart();
    std::exception_ptr error;
    if constexpr (std::is_void_v<T>) {
        auto done = [&error](std::exception_ptr thrown) { error = std::move(thrown); };
        asio::co_spawn(context, std::move(work), std::move(done));
        context.run();
        if (error)
            std::rethrow_exception(error);
    } else {
        std::optional<T> result;
        auto done = [&](std::exception_ptr thrown, T value) {
            error = std::move(thrown);
            if (!error)
                result.emplace(std::move(value));
        };
        asio::co_spawn(context, std::move(work), std::move(done));
        context.run();
        if (error)
            std::rethrow_exception(error);
        return std::move(*result);
    }
}

}   // namespace drawpoint
