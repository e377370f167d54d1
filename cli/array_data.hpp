#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "cli/options.hpp"
#include <drawpoint/pipeline/stages/array_rows.hpp>

namespace drawpoint::cli {

/// "idx", "cifar" or "npy" if `data` looks like one of these, by its name or by what lies in the folder.
[[nodiscard]] std::optional<std::string_view> array_format_of(const std::string& data);

struct ArraySet {
    ArrayRows rows;   ///< float32
    std::size_t classes;
};

/// Throws UsageError where --format raw has no --record, or one that says no record.
void check_record(const ProfileOptions&);

/// Opens what --data names in the format idx, cifar, npy or raw; `train` tells the two parts of a data set that has
/// two. Throws UsageError naming an option, or what opening throws.
[[nodiscard]] ArraySet open_arrays(const ProfileOptions&, std::string_view format, const std::string& data, bool train);

}   // namespace drawpoint::cli
