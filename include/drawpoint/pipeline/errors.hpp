#pragma once

#include <cstdint>
#include <exception>
#include <stdexcept>
#include <string>

namespace drawpoint {

/// A sample that could not be made, thrown by the `next()` that would have returned its batch. `cause()` is the
/// original exception. If stage() is "collate", collating the batch failed, and index() is its first sample.
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
