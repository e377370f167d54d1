#pragma once

#include <cstdint>
#include <exception>
#include <stdexcept>
#include <string>

namespace drawpoint {

/// A sample that could not be loaded, thrown by the `next()` of its batch. `cause()` is the original exception. With
/// the stage `collate`: a batch that could not be made of its samples, of which this is the first.
class SampleError : public std::runtime_error {
public:
    /// what() is "sample 17 (photos/a.jpg): decode_jpeg: not a JPEG", without the part in brackets when `path` is
    /// empty.
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
