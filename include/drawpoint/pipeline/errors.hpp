#pragma once

#include <cstdint>
#include <exception>
#include <stdexcept>
#include <string>

namespace drawpoint {

/// A sample that could not be made, thrown by the `next()` that would have returned its batch. index() is its index in
/// the data set, path() its file (empty if it has none), stage() the source's stage that failed, and cause() the
/// original exception, never null. Outside a stage, stage() is "sampler" for an index beyond the data set, "batch
/// memory" if there was none, "make_scratch" if that threw, and "collate" if collating the batch failed: only then
/// index() is that of the batch's first sample.
class SampleError : public std::runtime_error {
public:
    /// what() is "sample 17 (photos/a.jpg): decode_jpeg: not a JPEG", without the part in brackets if `path` is empty.
    SampleError(std::uint64_t index, std::string path, std::string stage, std::exception_ptr cause);

    [[nodiscard]] std::uint64_t index() const noexcept { return index_; }
    [[nodiscard]] const std::string& path() const noexcept { return path_; }
    [[nodiscard]] const std::string& stage() const noexcept { return stage_; }
    [[nodiscard]] const std::exception_ptr& cause() const noexcept { return cause_; }

private:
    std::uint64_t index_;
    std::string path_, stage_;
    std::exception_ptr cause_;
};

}   // namespace drawpoint
