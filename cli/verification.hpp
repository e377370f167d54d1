#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include <drawpoint/diagnosis/whatif/whatif.hpp>
#include <drawpoint/instrumentation/ledger/ledger.hpp>
#include <drawpoint/instrumentation/text/terminal.hpp>

namespace drawpoint::cli {

/// Predicted against measured throughput.
struct Verification {
    struct Side {
        LoaderSetting setting;
        Interval predicted;                           ///< batches/s
        std::vector<double> measured_batches_per_s;   ///< of each run, in its steady part
        [[nodiscard]] double measured() const;        ///< their median
    };
    Side recorded, recommended;
    std::vector<std::string> doubts;   ///< why a run is not to be trusted
};

/// Runs `drawpoint profile` with the recorded options of data, model, loader and faults: `rounds` times with the
/// recorded setting and `rounds` times with the recommended one, in turns. The runs write to a temporary folder.
/// Progress goes to stderr. Throws Failure if the recording is not from `drawpoint profile`, or a run fails.
[[nodiscard]] Verification verify_setting(const Ledger&, const Whatif& predicted, std::size_t rounds);

[[nodiscard]] std::string to_text(const Verification&, TextOptions = {});
[[nodiscard]] nlohmann::ordered_json to_json(const Verification&);

}   // namespace drawpoint::cli
