#include <drawpoint/pipeline/runtime/runtime.hpp>

#include <stdexcept>
#include <string>

#include <drawpoint/instrumentation/recorder/recorder.hpp>
#include <drawpoint/pipeline/loader/machine/loader_setting.hpp>

#include "pipeline/runtime/worker_pool.hpp"

namespace drawpoint {

struct Runtime::Impl {
    Impl(const RuntimeOptions& given, Recorder& into) : options{given}, recorder{&into}, pool{given.workers} {}

    RuntimeOptions options;
    Recorder* recorder;
    WorkerPool pool;   // declared first: destroying the context destroys suspended coroutines and the loaders in them
    asio::io_context context{1};
};

Runtime::Runtime(const RuntimeOptions& options, Recorder& recorder) {
    if (options.max_threads > loader_limits::most_workers)
        throw std::invalid_argument{"max_threads must be at most " + std::to_string(loader_limits::most_workers) +
                                    ", got " + std::to_string(options.max_threads)};
    impl_ = std::make_unique<Impl>(options, recorder);
}

Runtime::~Runtime() = default;

asio::io_context& Runtime::context() noexcept { return impl_->context; }
Recorder& Runtime::recorder() noexcept { return *impl_->recorder; }
WorkerPool& Runtime::workers() noexcept { return impl_->pool; }
const RuntimeOptions& Runtime::options() const noexcept { return impl_->options; }

}   // namespace drawpoint
