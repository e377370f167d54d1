#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include <drawpoint/bench/suite/suite.hpp>
#include <drawpoint/pipeline/image/photo_crops.hpp>

#include "temporary_folder.hpp"

namespace drawpoint::bench {

/// JPEG crops of generated pictures, for machines without photographs. The destructor removes them.
class TemporaryPhotos {
public:
    /// `count`: a multiple of 8.
    explicit TemporaryPhotos(std::uint32_t count, ImageSize = {500, 375});
    [[nodiscard]] std::filesystem::path folder() const { return folder_.path() / "crops/train"; }

private:
    TemporaryFolder folder_;
};

/// The photographs of a suite: those of its option --data or of DRAWPOINT_BENCH_DATA, else generated ones, which the
/// processes of its rows share.
class SuitePhotos {
public:
    SuitePhotos(Suite&, int& argc, char** argv);
    [[nodiscard]] const std::filesystem::path& folder() const noexcept { return folder_; }

private:
    std::optional<TemporaryPhotos> generated_;
    std::filesystem::path folder_;
};

}   // namespace drawpoint::bench
