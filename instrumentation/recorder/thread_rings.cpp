#include "instrumentation/recorder/thread_rings.hpp"

#include <exception>
#include <type_traits>

namespace drawpoint {

static_assert(std::is_integral_v<pthread_t>, "threads are told apart by their handles");

ThreadRings::ThreadRings(std::uint32_t records, DefinitionTable& definitions)
    : records_{records}, definitions_{&definitions} {
    rings_.reserve(most);
}

ThreadRing* ThreadRings::make(pthread_t self, clockid_t clock, std::size_t at) noexcept {
    // No other thread adds this one, but the slot may have been taken since.
    const std::uint32_t thread = definitions_->add_this_thread({});
    const std::lock_guard lock{mutex_};
    try {
        if (thread != nothing && rings_.size() < most) {
            auto made = std::make_unique<ThreadRing>(records_, static_cast<std::uint32_t>(rings_.size()), self);
            made->clock.store(clock, std::memory_order_relaxed);
            made->thread = thread;
            if (closed_)
                made->ring.close();
            ThreadRing* const ring = rings_.emplace_back(std::move(made)).get();
            while (slots_[at].load(std::memory_order_relaxed) != nullptr)
                at = (at + 1) % slots;
            by_number_[ring->number].store(ring, std::memory_order_release);
            slots_[at].store(ring, std::memory_order_release);
            return ring;
        }
    } catch (const std::exception&) {   // no memory for a ring
    }
    refused_.fetch_add(1, std::memory_order_relaxed);
    return nullptr;
}

ThreadRing* ThreadRings::take_over(ThreadRing& ring, clockid_t clock) noexcept {
    const std::uint32_t thread = definitions_->add_this_thread({});
    if (thread == nothing) {
        refused_.fetch_add(1, std::memory_order_relaxed);
        return nullptr;
    }
    // The dead thread's last action was a publish or a counted drop: these two loads make all it did visible.
    static_cast<void>(ring.ring.head());
    static_cast<void>(ring.ring.dropped());
    ring.clock.store(clock, std::memory_order_relaxed);
    ring.thread = thread;
    ring.fresh = true;
    return &ring;
}

void ThreadRings::list(std::vector<ThreadRing*>& into) const {
    const std::lock_guard lock{mutex_};
    into.clear();
    for (const auto& ring : rings_)
        into.push_back(ring.get());
}

std::uint64_t ThreadRings::dropped() const noexcept {
    const std::lock_guard lock{mutex_};
    std::uint64_t sum = 0;
    for (const auto& ring : rings_)
        sum += ring->ring.dropped();
    return sum;
}

void ThreadRings::close() noexcept {
    const std::lock_guard lock{mutex_};
    closed_ = true;
    for (const auto& ring : rings_)
        ring->ring.close();
}

}   // namespace drawpoint
