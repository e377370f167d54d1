#include <drawpoint/instrumentation/ledger/folded.hpp>
#include <drawpoint/instrumentation/report/summary.hpp>

namespace drawpoint {

bool Summary::Device::is_paced_by_loop() const noexcept {
    return mean_lag_s * static_cast<double>(steps) < DeviceTotals::little_lag * span_s;
}

bool Summary::Device::is_synchronised() const noexcept {
    return is_paced_by_loop() && (mean_forward_lag_s - mean_lag_s) * static_cast<double>(steps) - copy_wait_s >=
                                     DeviceTotals::little_lag * span_s;
}

}   // namespace drawpoint
