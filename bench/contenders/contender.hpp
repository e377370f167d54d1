#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "workload.hpp"

namespace drawpoint::bench {

/// One batch in hand, float32 [targets.size(), …]; valid until the callback it was given to returns.
struct BatchView {
    const float* data = nullptr;   ///< null: a bound, which delivers nothing
    std::span<const std::int64_t> targets;
};

/// A loader under measurement, its workers started. One thread at a time.
class Contender {
public:
    virtual ~Contender() = default;
    /// One pass. `more` says that the next epoch follows at once. `see` returns false to end the pass early.
    virtual void pass(std::size_t epoch, bool more, const std::function<bool(const BatchView&)>& see) = 0;
    /// Settings and library versions, one line.
    [[nodiscard]] virtual std::string describe() const = 0;
    /// Of a contender that times itself: the time of its passes since the last call, and the shortest it could have been.
    struct Times {
        std::int64_t wall_ns = 0, bound_ns = 0;
    };
    [[nodiscard]] virtual Times take_times() { return {}; }
};

/// drawpoint's own DataLoader, recording as it does by default. All workloads; consumer has a loop of its own.
[[nodiscard]] std::unique_ptr<Contender> make_drawpoint(const Workload&);
[[nodiscard]] std::unique_ptr<Contender> make_drawpoint_consumer(const Workload&);

/// LibTorch's `torch::data` loader with its default settings, Stack, and a dataset as a user of LibTorch would write it; the
/// variants same_kernel… decode with drawpoint's kernel and the workload's decoder. jpeg, tiny, tensor, straggler.
[[nodiscard]] std::unique_ptr<Contender> make_torch_data(const Workload&);

// Bounds: no loader, only the work that no loader gets around.

/// Every file's whole picture decoded by libjpeg-turbo from memory, by all workers. jpeg.
[[nodiscard]] std::unique_ptr<Contender> make_decode_bound(const Workload&);
/// Every row copied into a ring of batches by one thread. tensor.
[[nodiscard]] std::unique_ptr<Contender> make_memcpy_bound(const Workload&);
/// All items made by plain threads, one after the other. straggler.
[[nodiscard]] std::unique_ptr<Contender> make_threads_bound(const Workload&);

}   // namespace drawpoint::bench
