#include <drawpoint/pipeline/errors.hpp>

#include <utility>

namespace drawpoint {

namespace {

std::string message_of(std::uint64_t index, const std::string& path, const std::string& stage,
                       const std::exception_ptr& cause) {
    std::string message = "sample " + std::to_string(index);
    if (!path.empty())
        message += " (" + path + ")";
    message += ": " + stage + ": ";
    try {
        if (cause)
            std::rethrow_exception(cause);
        return message + "no cause given";
    } catch (const std::exception& error) {
        return message + error.what();
    } catch (...) {
        return message + "an exception that is no std::exception";
    }
}

}   // namespace

SampleError::SampleError(std::uint64_t index, std::string path, std::string stage, std::exception_ptr cause)
    : std::runtime_error{message_of(index, path, stage, cause)},
      index_{index},
      path_{std::move(path)},
      stage_{std::move(stage)},
      cause_{std::move(cause)} {}

}   // namespace drawpoint
