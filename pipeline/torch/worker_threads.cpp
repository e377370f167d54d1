#include <drawpoint/pipeline/torch/worker_threads.hpp>

#include <dlfcn.h>

#include <ATen/Parallel.h>

namespace drawpoint {

void limit_torch_threads() noexcept {
    try {
        (void)at::get_num_threads();   // the first call of a thread sets its number: it must not come after ours
    } catch (...) {
        return;
    }
    // Looked up: LibTorch's packages bring an OpenMP of their own under another name, and another library's would not
    // do.
    if (void* const set = ::dlsym(RTLD_DEFAULT, "omp_set_num_threads"))
        reinterpret_cast<void (*)(int)>(set)(1);
}

}   // namespace drawpoint
