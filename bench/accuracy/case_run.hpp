#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <drawpoint/instrumentation/ledger.hpp>
#include <drawpoint/pipeline/sample_source.hpp>

#include "../photos.hpp"
#include "case.hpp"

namespace drawpoint::bench {

/// What the runs of one process share: the core's speed and, once a case asks for them, pictures.
class Rig {
public:
    /// `data`: a folder of class folders of JPEG files; empty: generated ones. Measures the core: 20 ms.
    explicit Rig(std::string data = {});

    [[nodiscard]] double turns_per_us() const noexcept { return turns_per_us_; }
    /// Real pictures to tensors of 3 x 64 x 64. Makes them at the first call: seconds.
    [[nodiscard]] std::shared_ptr<const SampleSource> pictures();

private:
    std::string data_;
    double turns_per_us_;
    std::optional<TemporaryPhotos> generated_;
    std::shared_ptr<const SampleSource> pictures_;
};

/// One real run.
struct CaseRun {
    double batches_per_s = 0;       ///< of the steps after warm-up, by a clock of the loop's own
    std::uint64_t peak_bytes = 0;   ///< of the loader's memory
    Ledger ledger;                  ///< what was recorded
};

/// Steps at the begin that do not count.
[[nodiscard]] std::size_t warm_up_steps(const Case&) noexcept;

/// Trains nothing on the case's pipeline: the product's own loader, loop and recorder, threads and all, with the case's
/// disturbance. Throws what they throw.
[[nodiscard]] CaseRun run_case(const Case&, Rig&);

/// The ledger as a clock would have left it that jumped by `by_ns` > 0 at `at_ns`.
void step_clock(Ledger&, std::int64_t at_ns, std::int64_t by_ns);

}   // namespace drawpoint::bench
