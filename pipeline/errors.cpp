#include <drawpoint/pipeline/errors.hpp>

#include <array>
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

std::string with_others(std::string message, std::size_t others, std::string_view note) {
    if (others != 0)
        message += " (and " + std::to_string(others) + " more sample" + (others == 1 ? "" : "s") + " of its batch)";
    return message.append(note);
}

}   // namespace

std::string_view name_of(OnError policy) noexcept {
    return std::array<std::string_view, 3>{"raise", "skip", "substitute"}[static_cast<std::size_t>(policy)];
}

SampleError::SampleError(std::uint64_t index, std::string path, std::string stage, std::exception_ptr cause,
                         std::vector<SampleError> others, std::string_view note)
    : std::runtime_error{with_others(message_of(index, path, stage, cause), others.size(), note)},
      index_{index},
      path_{std::move(path)},
      stage_{std::move(stage)},
      cause_{std::move(cause)},
      others_{others.empty() ? nullptr : std::make_shared<const std::vector<SampleError>>(std::move(others))} {}

std::span<const SampleError> SampleError::others() const noexcept {
    return others_ ? std::span<const SampleError>{*others_} : std::span<const SampleError>{};
}

}   // namespace drawpoint
