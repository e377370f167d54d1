#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include <drawpoint/diagnosis/verdict/verdict.hpp>

namespace drawpoint {

/// What decides between two verdicts for the same change.
struct Traits {
    bool bandwidth = false;        ///< reads share a line, or their bytes make them long
    bool bursty_compute = false;   ///< the loop's own time varies more than the loader's
};

/// Every single change that could help this run, without gains; settings first, the cheapest first.
[[nodiscard]] std::vector<Intervention> unit_interventions(const RecordedRun&, const Traits&);

/// The cause that this lever shows if it gains most. `stage`: the stage's name, for Lever::stage.
[[nodiscard]] Verdict cause_of(Lever, std::string_view stage, const RecordedRun&, const Traits&);

/// The setting with this lever moved one step, within loader_limits. nullopt: the lever is no setting, or cannot move.
[[nodiscard]] std::optional<LoaderSetting> moved(Lever, const LoaderSetting&);

/// Whether each pass starts the workers of a PyTorch loader.
[[nodiscard]] bool starts_workers(const RecordedRun&) noexcept;

/// What a stage's name says, in small or capital letters: that it decodes; that it reads.
[[nodiscard]] bool says_decode(std::string_view stage);
[[nodiscard]] bool says_read(std::string_view stage);

}   // namespace drawpoint
