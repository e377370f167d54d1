#include <drawpoint/pipeline/runtime.hpp>

#include <stdexcept>
#include <string>

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <drawpoint/instrumentation/recorder.hpp>

#include "pipeline/worker_pool.hpp"

namespace drawpoint {
namespace {

constexpr std::uint64_t short_slice_ns = 100'000;   // the shortest that Linux takes

/// Linux's `sched_attr`, first version. glibc has it and its two system calls from 2.41 on; the kernel's header collides with <sched.h>.
struct Scheduling {
    std::uint32_t size, policy;
    std::uint64_t flags;
    std::int32_t nice;
    std::uint32_t priority;
    std::uint64_t runtime_ns, deadline_ns, period_ns;
};
static_assert(sizeof(Scheduling) == 48);

/// The calling thread's, if it is a usual one; else all zero.
Scheduling usual_scheduling() noexcept {
    Scheduling own{};
    const bool known = ::syscall(SYS_sched_getattr, 0, &own, sizeof own, 0u) == 0;
    return known && own.policy == SCHED_OTHER ? own : Scheduling{};
}

bool take(const Scheduling& scheduling) noexcept { return ::syscall(SYS_sched_setattr, 0, &scheduling, 0u) == 0; }

}   // namespace

detail::ShortSlice::ShortSlice() noexcept : before_ns_{0} {
    Scheduling own = usual_scheduling();
    const std::uint64_t before_ns = own.runtime_ns;   // 0 where the system knows no slices of usual threads
    if (before_ns <= short_slice_ns)
        return;
    own.runtime_ns = short_slice_ns;
    if (take(own))
        before_ns_ = before_ns;
}

detail::ShortSlice::~ShortSlice() {
    Scheduling own = usual_scheduling();
    if (before_ns_ == 0 || own.runtime_ns != short_slice_ns)   // somebody else has chosen meanwhile
        return;
    own.runtime_ns = before_ns_;
    take(own);
}

struct Runtime::Impl {
    Impl(const RuntimeOptions& given, Recorder& into) : options{given}, recorder{&into}, pool{given.workers} {}

    RuntimeOptions options;
    Recorder* recorder;
    WorkerPool pool;   // before the context: a loader inside an abandoned coroutine joins its workers as that dies
    asio::io_context context{1};
};

Runtime::Runtime(const RuntimeOptions& options, Recorder& recorder) {
    if (options.max_threads > max_worker_threads)
        throw std::invalid_argument{"max_threads must be at most " + std::to_string(max_worker_threads) + ", got " +
                                    std::to_string(options.max_threads)};
    impl_ = std::make_unique<Impl>(options, recorder);
}

Runtime::~Runtime() = default;

asio::io_context& Runtime::context() noexcept { return impl_->context; }
Recorder& Runtime::recorder() noexcept { return *impl_->recorder; }
WorkerPool& Runtime::workers() noexcept { return impl_->pool; }
const RuntimeOptions& Runtime::options() const noexcept { return impl_->options; }

}   // namespace drawpoint
