#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <drawpoint/diagnosis/verdict/verdict.hpp>

namespace drawpoint {

/// What decides between two words for the same change.
struct Traits {
    bool bandwidth = false;        ///< reads share a line, or their bytes make them long
    bool bursty_compute = false;   ///< the loop's own time varies more than the loader's
};

/// Every unit change that this run can show, without gains; settings first, in order of cost.
[[nodiscard]] std::vector<Intervention> unit_interventions(const RecordedRun&, const Traits&);

/// The verdict that the change of this key shows when it gains most.
[[nodiscard]] std::string word_of(std::string_view key, const RecordedRun&, const Traits&);

/// Of settings: the smaller, the cheaper to take. 0: none.
[[nodiscard]] int cost_of(std::string_view key) noexcept;

}   // namespace drawpoint
