#include "pipeline/read_threads.hpp"

#include <exception>

namespace drawpoint {

ReadThreads::ReadThreads(ReadAhead& ahead) : ahead_{&ahead} { threads_.reserve(2 * ahead.concurrency()); }

bool ReadThreads::grow() noexcept {
    try {
        threads_.emplace_back([this] { work(); });
        return true;
    } catch (const std::exception&) {
        return false;
    }
}

void ReadThreads::work() noexcept {
    while (ReadBuffer* const buffer = ahead_->next_read(ReadAhead::Idle::blocks)) {
        const long switches = voluntary_switches();
        const std::int64_t begin = ahead_->clock().now_ns();
        try {
            ahead_->retried().read(buffer->index, buffer->bytes);
        } catch (...) {
            buffer->error = std::current_exception();
        }
        buffer->end_ns = ahead_->clock().now_ns();
        buffer->blocked = ahead_->has_blocked(buffer->end_ns - begin, voluntary_switches() - switches);
        ahead_->end_read(*buffer);
    }
}

void ReadThreads::join() noexcept {
    for (std::thread& thread : threads_)
        thread.join();
    threads_.clear();
}

}   // namespace drawpoint
