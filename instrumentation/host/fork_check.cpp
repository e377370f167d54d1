#include <drawpoint/instrumentation/host/detail/fork_check.hpp>

#include <pthread.h>

namespace drawpoint {

std::atomic<std::uint32_t> ForkCheck::forks{0};

const int ForkCheck::watched =
    ::pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); });

}   // namespace drawpoint
