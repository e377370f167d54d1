#include <drawpoint/instrumentation/host/detail/thread_usage.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <utility>

#include <drawpoint/instrumentation/ledger/ledger.hpp>

namespace drawpoint {

ThreadUsage::~ThreadUsage() {
    if (descriptor_ >= 0)
        ::close(descriptor_);
}

void ThreadUsage::attach() noexcept {
    static_assert(absent == no_stamp);
    if (descriptor_ >= 0)
        ::close(descriptor_);
    descriptor_ = ::open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
    thread_ = ::pthread_self();
    clock_ = clock_of_this_thread();
    attached_ = true;
    if (descriptor_ >= 0 && read_run_queue() == absent)
        ::close(std::exchange(descriptor_, -1));
}

std::int64_t ThreadUsage::read_run_queue() const noexcept {
    // Time on a core, time waiting for one, number of times it got one; all 0 in a kernel built without these counters.
    std::array<char, 64> text;
    const ssize_t read = ::pread(descriptor_, text.data(), text.size(), 0);
    std::array<std::int64_t, 3> fields{};
    const char *at = text.data(), *const end = at + (read > 0 ? read : 0);
    for (std::int64_t& field : fields) {
        const auto [next, error] = std::from_chars(at, end, field);
        if (error != std::errc{})
            return absent;
        at = next + (next != end);   // skips the blank
    }
    return fields[2] != 0 ? fields[1] : absent;
}

}   // namespace drawpoint
