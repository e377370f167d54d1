#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include <drawpoint/diagnosis/whatif/whatif.hpp>
#include <drawpoint/instrumentation/ledger/ledger.hpp>

namespace drawpoint::cli {

/// A prediction beside what real runs gave.
struct Verification {
    struct Side {
        LoaderSetting setting;
        Interval predicted;                           ///< batches/s
        std::vector<double> measured_batches_per_s;   ///< of each run, steady
        [[nodiscard]] double measured() const;        ///< their median
    };
    Side recorded, recommended;
    std::vector<std::string> doubts;   ///< why a run is not to be trusted
};

/// Runs `drawpoint profile` with the options that the ledger's run had, `rounds` times with the recorded setting and as often
/// with the recommended one, in turns; their files go to a folder of their own that is removed. Of the options, those alone
/// that tell of data, model, loader and faults. Progress on stderr. Throws Failure where the run was none of
/// `drawpoint profile`, or one of these fails.
[[nodiscard]] Verification verify_setting(const Ledger&, const Whatif& predicted, std::size_t rounds);

[[nodiscard]] std::string to_text(const Verification&);
[[nodiscard]] nlohmann::ordered_json to_json(const Verification&);

}   // namespace drawpoint::cli
