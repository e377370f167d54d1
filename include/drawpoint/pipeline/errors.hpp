#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace drawpoint {

/// What becomes of a batch with samples that cannot be made (`LoaderOptions::on_error`).
enum class OnError : std::uint8_t {
    raise,       ///< its draw throws a SampleError
    skip,        ///< it comes without them; a batch without any sample is left out
    substitute   ///< each is replaced by a copy of the next sample of the batch that could be made, or of the first one
};
/// "raise", "skip" or "substitute".
[[nodiscard]] std::string_view name_of(OnError) noexcept;

/// A sample that could not be made, thrown by the `next()` that would have returned its batch. index() is its index in
/// the data set, path() its file (empty if it has none), stage() the source's stage that failed, and cause() the
/// original exception, never null. Outside a stage, stage() is "sampler" for an index beyond the data set, "batch
/// memory" if there was none, "make_scratch" if that threw, and "collate" if collating the batch failed: only then
/// index() is that of the batch's first sample.
class SampleError : public std::runtime_error {
public:
    /// what() is "sample 17 (photos/a.jpg): decode_jpeg: not a JPEG", without the part in brackets if `path` is empty,
    /// then " (and N more samples of its batch)" if there are others, then `note`.
    SampleError(std::uint64_t index, std::string path, std::string stage, std::exception_ptr cause,
                std::vector<SampleError> others = {}, std::string_view note = {});

    [[nodiscard]] std::uint64_t index() const noexcept { return index_; }
    [[nodiscard]] const std::string& path() const noexcept { return path_; }
    [[nodiscard]] const std::string& stage() const noexcept { return stage_; }
    [[nodiscard]] const std::exception_ptr& cause() const noexcept { return cause_; }
    /// The other samples of the batch that could not be made, by index. Valid as long as this or a copy of it.
    [[nodiscard]] std::span<const SampleError> others() const noexcept;

private:
    std::uint64_t index_;
    std::string path_, stage_;
    std::exception_ptr cause_;
    std::shared_ptr<const std::vector<SampleError>> others_;   // null: none
};

/// What a device did not do: there is none, its memory does not suffice, or a call failed. The message names the device
/// and the call.
class DeviceError : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

}   // namespace drawpoint
