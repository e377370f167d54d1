#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "cli/options.hpp"
#include <drawpoint/pipeline/stages/array_rows.hpp>

namespace drawpoint::cli {

/// idx, cifar or npy if `data` looks like one of these, by its name or by what lies in the folder.
[[nodiscard]] std::optional<DataFormat> array_format_of(const std::string& data);

/// What --record label:uint8+uint8:3x32x32 says a record is, without paths; nullopt for an empty text. Throws
/// UsageError.
[[nodiscard]] std::optional<RawRecords> record_in(std::string_view option, std::string_view text);

struct ArraySet {
    ArrayRows rows;   ///< float32
    std::size_t classes;
};

/// Opens `data`, whose format is idx, cifar, npy or raw, the last with --record. `train`: which part to take of a data
/// set that has a training and a test part. Throws UsageError naming an option, or what opening throws.
[[nodiscard]] ArraySet open_arrays(const ProfileOptions&, DataFormat format, const std::string& data, bool train);

}   // namespace drawpoint::cli
