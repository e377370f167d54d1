#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include <asio/execution_context.hpp>

namespace drawpoint {

class PrefetchCore;

/// A fixed buffer for the wake-up that is posted to the loop; hardly ever is there more than one. Any thread.
class WakeBuffer {
public:
    /// The buffer, or memory from the heap if it is in use or too small. Throws std::bad_alloc.
    [[nodiscard]] void* take(std::size_t bytes);
    void give(void* memory) noexcept;
    /// How often take() used the heap.
    [[nodiscard]] std::uint64_t fallbacks() const noexcept { return fallbacks_.load(std::memory_order_relaxed); }

private:
    alignas(std::max_align_t) std::byte memory_[192];
    std::atomic<bool> used_{false};
    std::atomic<std::uint64_t> fallbacks_{0};
};

/// A WakeBuffer as an allocator for Asio.
template <class T>
class WakeAllocator {
public:
    using value_type = T;
    explicit WakeAllocator(WakeBuffer* buffer) noexcept : buffer_{buffer} {}
    template <class U>
    WakeAllocator(const WakeAllocator<U>& other) noexcept : buffer_{other.buffer()} {}
    T* allocate(std::size_t n) { return static_cast<T*>(buffer_->take(n * sizeof(T))); }
    void deallocate(T* memory, std::size_t) noexcept { buffer_->give(memory); }
    [[nodiscard]] WakeBuffer* buffer() const noexcept { return buffer_; }
    template <class U>
    bool operator==(const WakeAllocator<U>& other) const noexcept {
        return buffer_ == other.buffer();
    }

private:
    WakeBuffer* buffer_;
};

/// When the event loop is destroyed, destroys the coroutines that are suspended in its loaders. The frame of such a
/// coroutine owns its pass, the pass the loader's core, and the core the coroutine's handler: only the loop can break
/// this cycle.
class ParkedDraws : public asio::execution_context::service {
public:
    static asio::execution_context::id id;
    explicit ParkedDraws(asio::execution_context&);

    /// The living cores; shared with them, because they may outlive the loop.
    struct Registry {
        std::mutex mutex;
        std::vector<PrefetchCore*> cores;
        void add(PrefetchCore*);
        void remove(PrefetchCore*) noexcept;
    };
    [[nodiscard]] const std::shared_ptr<Registry>& registry() const noexcept { return registry_; }

private:
    void shutdown() override;
    std::shared_ptr<Registry> registry_ = std::make_shared<Registry>();
};

}   // namespace drawpoint
