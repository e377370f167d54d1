#include <drawpoint/instrumentation/detail/replaced_file.hpp>

#include <cerrno>
#include <climits>
#include <new>
#include <string>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace drawpoint {
namespace {

namespace fs = std::filesystem;

constexpr int most_links = 40;   // as many as the kernel follows

fs::path name_of_attempt(const fs::path& target, int attempt) {
    const std::string ending = "." + std::to_string(::getpid()) + "." + std::to_string(attempt) + ".tmp";
    const std::string name = target.filename().string();
    return fs::path{target}.replace_filename(name.size() + ending.size() > NAME_MAX ? ending : name + ending);
}

std::string link_to(int descriptor) { return "/proc/self/fd/" + std::to_string(descriptor); }

}   // namespace

ReplacedFile::ReplacedFile(const fs::path& file) : target_{file} {
    std::error_code unknown;
    const fs::file_status before = fs::status(file, unknown);
    for (int links = 0; links < most_links && fs::is_symlink(fs::symlink_status(target_, unknown)); ++links)
        target_ = folder() / fs::read_symlink(target_, unknown);   // which may be absolute
    number_ = ::open(folder().c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
    if (number_ >= 0 && ::access(link_to(number_).c_str(), F_OK) != 0) {   // no /proc to name it through
        ::close(number_);
        number_ = -1;
    }
    for (int attempt = 0; number_ < 0; ++attempt) {
        temporary_ = name_of_attempt(target_, attempt);
        number_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (number_ < 0 && errno != EEXIST) {
            const int error = errno;
            throw std::system_error{error, std::generic_category(), file.string()};
        }
    }
    if (fs::exists(before))
        (void)::fchmod(number_, static_cast<mode_t>(before.permissions()) & 07777);
}

ReplacedFile::~ReplacedFile() {
    if (!temporary_.empty())
        (void)::unlink(temporary_.c_str());
    ::close(number_);
}

fs::path ReplacedFile::folder() const { return target_.has_parent_path() ? target_.parent_path() : fs::path{"."}; }

int ReplacedFile::commit() noexcept try {
    // If nothing has the target's name yet, the file gets it directly.
    if (temporary_.empty() &&
        ::linkat(AT_FDCWD, link_to(number_).c_str(), AT_FDCWD, target_.c_str(), AT_SYMLINK_FOLLOW) == 0)
        return 0;
    for (int attempt = 0; temporary_.empty(); ++attempt) {
        fs::path name = name_of_attempt(target_, attempt);
        if (::linkat(AT_FDCWD, link_to(number_).c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0)
            temporary_ = std::move(name);
        else if (errno != EEXIST)
            return errno;
    }
    if (::rename(temporary_.c_str(), target_.c_str()) != 0)
        return errno;
    temporary_.clear();
    return 0;
} catch (const std::bad_alloc&) {
    return ENOMEM;
}

}   // namespace drawpoint
