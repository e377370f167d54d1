#include "instrumentation/sampling/perf_event.hpp"

#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <new>
#include <string>
#include <system_error>
#include <vector>

#include "instrumentation/sampling/process.hpp"

namespace drawpoint {
namespace {

int open_event(pid_t thread, std::uint32_t rate_hz, std::uint32_t ring_bytes, std::uint32_t depth, bool kernel) {
    perf_event_attr attr{};
    attr.size = sizeof attr;
    attr.type = PERF_TYPE_SOFTWARE;
    attr.config = PERF_COUNT_SW_CPU_CLOCK;
    attr.freq = 1;
    attr.sample_freq = rate_hz;
    attr.sample_type = PERF_SAMPLE_TIME | PERF_SAMPLE_CALLCHAIN;
    attr.sample_max_stack = static_cast<std::uint16_t>(depth);
    attr.exclude_kernel = kernel ? 0 : 1;
    attr.exclude_hv = 1;
    attr.exclude_callchain_kernel = 1;
    attr.use_clockid = 1;
    attr.clockid = CLOCK_MONOTONIC;
    attr.watermark = 1;   // nobody waits on the event: avoid wake-ups
    attr.wakeup_watermark = ring_bytes;
    return static_cast<int>(syscall(SYS_perf_event_open, &attr, thread, -1, -1, PERF_FLAG_FD_CLOEXEC));
}

class PerfThread final : public ThreadSource {
public:
    PerfThread(int event, void* pages, std::size_t page_bytes, std::size_t ring_bytes, std::int64_t period_ns)
        : event_{event},
          head_{static_cast<perf_event_mmap_page*>(pages)},
          ring_{static_cast<const std::byte*>(pages) + page_bytes},
          ring_bytes_{ring_bytes},
          mapped_bytes_{page_bytes + ring_bytes},
          period_ns_{period_ns} {}
    PerfThread(const PerfThread&) = delete;
    PerfThread& operator=(const PerfThread&) = delete;
    ~PerfThread() override {
        munmap(head_, mapped_bytes_);
        close(event_);
    }

    std::uint64_t drain(RawSink& sink) override {
        std::uint64_t lost = 0;
        std::atomic_ref tail_word{head_->data_tail};
        const std::uint64_t head = std::atomic_ref{head_->data_head}.load(std::memory_order_acquire);
        std::uint64_t tail = head_->data_tail;
        while (tail < head) {
            perf_event_header header{};
            copy(tail, &header, sizeof header);
            if (header.size < sizeof header)   // no kernel writes this; do not loop for ever
                break;
            record_.resize(header.size / sizeof(std::uint64_t));
            copy(tail, record_.data(), record_.size() * sizeof(std::uint64_t));
            tail += header.size;
            if (header.type == PERF_RECORD_SAMPLE)
                take(header, sink);
            else if (header.type == PERF_RECORD_LOST && record_.size() > 2)
                lost += record_[2];
        }
        tail_word.store(tail, std::memory_order_release);
        return lost;
    }

    void end() noexcept override { ioctl(event_, PERF_EVENT_IOC_DISABLE, 0); }

private:
    void copy(std::uint64_t from, void* to, std::size_t bytes) const noexcept {
        const std::size_t at = from & (ring_bytes_ - 1);
        const std::size_t first = std::min(bytes, ring_bytes_ - at);
        std::memcpy(to, ring_ + at, first);
        std::memcpy(static_cast<std::byte*>(to) + first, ring_, bytes - first);
    }

    /// A record is header, time, count, addresses; marks (PERF_CONTEXT_…) separate kernel and user addresses.
    void take(const perf_event_header& header, RawSink& sink) {
        if (record_.size() < 3 || record_[2] > record_.size() - 3)
            return;
        addresses_.clear();
        for (std::size_t i = 0; i < record_[2]; ++i) {
            const std::uint64_t address = record_[3 + i];
            if (address < 4096 && !addresses_.empty())   // not a return address: stop here, as walk_stack does
                break;
            if (address < static_cast<std::uint64_t>(PERF_CONTEXT_MAX))
                addresses_.push_back(address);
        }
        const bool in_kernel = (header.misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL;
        sink.take({static_cast<std::int64_t>(record_[1]), period_ns_, in_kernel, addresses_});
    }

    int event_;
    perf_event_mmap_page* head_;
    const std::byte* ring_;
    std::size_t ring_bytes_, mapped_bytes_;
    std::int64_t period_ns_;
    std::vector<std::uint64_t> record_, addresses_;
};

std::string paranoid() {
    std::ifstream file{"/proc/sys/kernel/perf_event_paranoid"};
    std::string level;
    return std::getline(file, level) ? " (kernel.perf_event_paranoid is " + level + ")" : "";
}

}   // namespace

PerfEvents::PerfEvents(std::uint32_t rate_hz, std::uint32_t ring_bytes, std::uint32_t max_depth)
    : rate_hz_{rate_hz}, ring_bytes_{ring_bytes}, max_depth_{max_depth} {
    if (add(gettid()) != nullptr)
        return;
    kernel_ = false;   // an unprivileged process may sample its own user code only
    if (add(gettid()) == nullptr)
        throw std::system_error{errno, std::generic_category(), "perf_event_open" + paranoid()};
}

std::unique_ptr<ThreadSource> PerfEvents::add(pid_t thread) {
    const int event = open_event(thread, rate_hz_, ring_bytes_, max_depth_, kernel_);
    if (event < 0)
        return nullptr;
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    std::size_t ring = std::max<std::size_t>(ring_bytes_, page);
    void* pages = mmap(nullptr, page + ring, PROT_READ | PROT_WRITE, MAP_SHARED, event, 0);
    while (pages == MAP_FAILED && ring > page) {   // the amount of memory that a user may lock is limited
        ring /= 2;
        pages = mmap(nullptr, page + ring, PROT_READ | PROT_WRITE, MAP_SHARED, event, 0);
    }
    if (pages == MAP_FAILED) {
        const int error = errno;
        close(event);
        errno = error;
        return nullptr;
    }
    std::unique_ptr<ThreadSource> source{
        new (std::nothrow) PerfThread{event, pages, page, ring, 1'000'000'000 / std::int64_t{rate_hz_}}};
    if (!source) {
        munmap(pages, page + ring);
        close(event);
        errno = ENOMEM;
    }
    return source;
}

}   // namespace drawpoint
