#include "pipeline/stages/fingerprint.hpp"

#include <sys/stat.h>

#include <string>

namespace drawpoint::detail {

void Fingerprint::add(const struct stat& status) noexcept {
    add(static_cast<std::uint64_t>(status.st_size));
    add(static_cast<std::uint64_t>(status.st_mtim.tv_sec));
    add(static_cast<std::uint64_t>(status.st_mtim.tv_nsec));
}

bool Fingerprint::add_file(const std::optional<FileRange>& location, std::string_view path) {
    struct stat status{};
    add(path);
    if (!location) {
        if (::stat(std::string{path}.c_str(), &status) != 0)
            return false;
        add(status);
        return true;
    }
    const FileRange& part = *location;
    const bool is_open = part.descriptor >= 0;
    if (is_open ? part.descriptor != descriptor_ : part.path != path_ || path_ == nullptr) {
        if (is_open ? ::fstat(part.descriptor, &status) != 0 : part.path == nullptr || ::stat(part.path, &status) != 0)
            return false;
        add(status);
        descriptor_ = is_open ? part.descriptor : -1;
        path_ = is_open ? nullptr : part.path;
    }
    add(part.offset);
    add(part.bytes);
    return true;
}

std::array<std::uint64_t, 3> probes(std::size_t size) noexcept {
    const std::uint64_t last = size > 0 ? size - 1 : 0;
    return {0, last / 2, last};
}

}   // namespace drawpoint::detail
