#include "pipeline/loader/reading/read_threads.hpp"

#include <algorithm>
#include <exception>

#include <drawpoint/instrumentation/recorder/detail/reading_budget.hpp>
#include <drawpoint/instrumentation/host/detail/thread_usage.hpp>

namespace drawpoint {
namespace {

constexpr std::uint32_t readings = 5;   // cost of measuring one read, in readings; the run queue's cost more

}   // namespace

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
    ThreadUsage usage;
    ReadingBudget budget;
    // A read's CPU time counts from the end of the thread's previous read. It includes handing that one over and waking
    // up for this one.
    const auto cpu_if_measured = [&] { return ahead_->measures() && budget.next() ? ThreadUsage::cpu_ns() : no_stamp; };
    std::int64_t cpu_ns = cpu_if_measured();
    while (ReadBuffer* const buffer = ahead_->next_read(ReadAhead::Idle::blocks)) {
        const bool measured = cpu_ns != no_stamp;
        const std::int64_t run_queue_ns = measured ? usage.run_queue_ns() : no_stamp;
        const long switches = voluntary_switches();
        const std::int64_t begin = ahead_->clock().now_ns();
        try {
            ahead_->retried().read(buffer->index, buffer->bytes);
        } catch (...) {
            buffer->error = std::current_exception();
        }
        buffer->times.end_ns = ahead_->clock().now_ns();
        const std::int64_t ns = buffer->times.end_ns - begin;
        buffer->blocked = ahead_->has_blocked(ns, voluntary_switches() - switches);
        if (measured) {
            const auto since = [most = std::max<std::int64_t>(ns, 0)](std::int64_t before, std::int64_t now) {
                return before == no_stamp || now == no_stamp ? no_stamp
                                                             : std::clamp<std::int64_t>(now - before, 0, most);
            };
            buffer->times.cpu_ns = since(cpu_ns, ThreadUsage::cpu_ns());
            buffer->times.run_queue_ns = since(run_queue_ns, usage.run_queue_ns());
        }
        budget.took(ns, readings);
        cpu_ns = cpu_if_measured();
        ahead_->end_read(*buffer);
    }
}

void ReadThreads::join() noexcept {
    for (std::thread& thread : threads_)
        thread.join();
    threads_.clear();
}

}   // namespace drawpoint
