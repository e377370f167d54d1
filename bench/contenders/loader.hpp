#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "workload.hpp"

namespace drawpoint::bench {

/// A view of one batch, float32 [targets.size(), …]; valid until the callback that receives it returns.
struct BatchView {
    const float* data = nullptr;   ///< null: from a bound, which delivers no data
    std::span<const std::int64_t> targets;
};

/// A loader under measurement, with its workers started. Not thread-safe.
class Loader {
public:
    virtual ~Loader() = default;
    /// Runs one pass. `more`: the next epoch follows at once. `see` returns false to end the pass early.
    virtual void pass(std::size_t epoch, bool more, const std::function<bool(const BatchView&)>& see) = 0;
    /// Settings and library versions, in one line.
    [[nodiscard]] virtual std::string describe() const = 0;
    /// For a contender that times itself: the time of its passes since the last call, and the shortest possible time.
    struct Times {
        std::int64_t wall_ns = 0, bound_ns = 0;
    };
    [[nodiscard]] virtual Times take_times() { return {}; }
};

/// drawpoint's own DataLoader, recording as it does by default. All workloads; `consumer` is a contender of its own.
[[nodiscard]] std::unique_ptr<Loader> make_drawpoint(const Workload&);
[[nodiscard]] std::unique_ptr<Loader> make_drawpoint_consumer(const Workload&);

/// LibTorch's `torch::data` loader with its default settings, Stack, and a dataset as its users would write it;
/// variants same_kernel… decode with drawpoint's kernel and the workload's decoder. For jpeg, tiny, tensor,
/// straggler.
[[nodiscard]] std::unique_ptr<Loader> make_torch_data(const Workload&);

// Bounds: only the work that no loader can avoid.

/// All workers decode every file's whole picture with libjpeg-turbo from memory. For jpeg.
[[nodiscard]] std::unique_ptr<Loader> make_decode_bound(const Workload&);
/// One thread copies every row into a ring of batches. For tensor.
[[nodiscard]] std::unique_ptr<Loader> make_memcpy_bound(const Workload&);
/// Plain threads make all items, one after the other. For straggler.
[[nodiscard]] std::unique_ptr<Loader> make_threads_bound(const Workload&);

}   // namespace drawpoint::bench
