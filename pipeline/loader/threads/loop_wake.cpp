#include "pipeline/loader/threads/loop_wake.hpp"

#include <new>

#include "pipeline/loader/threads/prefetch_core.hpp"

namespace drawpoint {

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

}   // namespace drawpoint
