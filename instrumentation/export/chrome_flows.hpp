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

/// A Chrome trace's arrows. It is told of each slice as that is written, and on which thread; arrows between slices of
/// the host are written at the end, when all are known.
class ChromeFlows {
public:
    ChromeFlows(const Ledger&, ChromeEvents&, std::uint64_t process, std::uint64_t loop_tid);

    void shows_call(std::uint32_t row, std::uint64_t tid) { tid_of_call_[row] = tid; }
    void shows_batch(std::uint32_t row, std::uint64_t tid) { batch_tids_[row] = tid; }
    void shows_sample(std::uint32_t row, std::uint64_t tid) { sample_tids_[row] = tid; }

    /// From the call that launched it to what ran on a device; to be called for either.
    void device(const OperatorRow&, std::int64_t pid, std::uint64_t tid, std::int64_t begin_ns);
    /// Of the calls that share a sequence number the last begun are linked, as Kineto does: the innermost of the
    /// forward ones with the innermost of the backward ones.
    void forward_backward();
    /// Sample → batch → the step whose draw took it.
    void loader();

private:
    void host(std::string_view category, std::uint64_t from_tid, std::int64_t from_ns, std::uint64_t to_tid,
              std::int64_t to_ns);

    const Ledger& ledger_;
    ChromeEvents& events_;
    std::uint64_t process_, loop_tid_;
    std::uint64_t next_flow_ = 1;
    std::vector<std::optional<std::uint64_t>> tid_of_call_;   // absent: left out
    std::map<std::uint32_t, std::uint64_t> batch_tids_;       // of those shown
    std::map<std::uint32_t, std::uint64_t> sample_tids_;
    std::unordered_set<std::uint64_t> kernels_;                       // correlations
    std::unordered_map<std::uint64_t, std::uint64_t> device_flows_;   // by correlation
};

}   // namespace drawpoint
