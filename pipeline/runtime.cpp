#include <drawpoint/pipeline/runtime.hpp>

#include <stdexcept>
#include <string>

#include <drawpoint/instrumentation/recorder.hpp>

#include "pipeline/thread_scheduling.hpp"
#include "pipeline/worker_pool.hpp"

namespace drawpoint {
namespace {

constexpr std::uint64_t short_slice_ns = 100'000;   // the shortest that Linux takes

}   // namespace

detail::ShortSlice::ShortSlice() noexcept : before_ns_{0} {
    ThreadScheduling own = usual_scheduling();
    const std::uint64_t before_ns = own.slice_ns;   // 0 where the system knows no slices of usual threads
    if (before_ns <= short_slice_ns)
        return;
    own.slice_ns = short_slice_ns;
    if (schedule_thread(own))
        before_ns_ = before_ns;
}

detail::ShortSlice::~ShortSlice() {
    ThreadScheduling own = usual_scheduling();
    if (before_ns_ == 0 || own.slice_ns != short_slice_ns)   // somebody else has chosen meanwhile
        return;
    own.slice_ns = before_ns_;
    schedule_thread(own);
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
