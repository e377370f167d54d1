#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <drawpoint/instrumentation/ledger/ledger.hpp>
#include "instrumentation/export/chrome_events.hpp"

namespace drawpoint {

/// The arrows of a Chrome trace. Each slice is reported to it, with its thread, when it is written; arrows between
/// slices of the host are written at the end, when all are known.
class ChromeFlows {
public:
    ChromeFlows(const Ledger&, ChromeEvents&, std::uint64_t process, std::uint64_t loop_tid);

    void shows_call(std::uint32_t row, std::uint64_t tid) { tid_of_call_[row] = tid; }
    void shows_batch(std::uint32_t row, std::uint64_t tid) { batch_tids_[row] = tid; }
    void shows_sample(std::uint32_t row, std::uint64_t tid) { sample_tids_[row] = tid; }

    /// Arrow from a call to what it launched on a device; call it for both ends.
    void device(const OperatorRow&, std::int64_t pid, std::uint64_t tid, std::int64_t begin_ns);
    /// Links forward and backward calls that share a sequence number. As in Kineto, the last begun of each are linked:
    /// the innermost forward call with the innermost backward call.
    void forward_backward();
    /// Arrows from samples to their batch, and from the batch to the step that drew it.
    void loader();

private:
    void host(std::string_view category, std::uint64_t from_tid, std::int64_t from_ns, std::uint64_t to_tid,
              std::int64_t to_ns);

    const Ledger& ledger_;
    ChromeEvents& events_;
    std::uint64_t process_, loop_tid_;
    std::uint64_t next_flow_ = 1;
    std::vector<std::optional<std::uint64_t>> tid_of_call_;   // nullopt: left out
    std::map<std::uint32_t, std::uint64_t> batch_tids_;       // of the batches shown
    std::map<std::uint32_t, std::uint64_t> sample_tids_;
    std::unordered_set<std::uint64_t> kernels_;                       // correlations
    std::unordered_map<std::uint64_t, std::uint64_t> device_flows_;   // by correlation
};

}   // namespace drawpoint
