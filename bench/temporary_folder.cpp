#include "temporary_folder.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

namespace drawpoint::bench {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view prefix = "drawpoint-bench-", lock_name = ".drawpoint-bench-lock";

/// The lock of a folder that this class made; < 0 if it has none.
int open_lock(const fs::path& folder, int create = 0) noexcept {
    return ::open((folder / lock_name).c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | create, 0600);
}

void remove_leftovers(const fs::path& place) {
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator{place, ignored}) {
        if (!entry.path().filename().string().starts_with(prefix))
            continue;
        const int lock = open_lock(entry.path());
        if (lock < 0)
            continue;
        if (::flock(lock, LOCK_EX | LOCK_NB) == 0)
            fs::remove_all(entry.path(), ignored);
        ::close(lock);
    }
}

fs::path temporary_place() {
    std::error_code error;
    fs::path place = fs::temp_directory_path(error);
    if (error) {
        const char* const named = std::getenv("TMPDIR");
        throw std::runtime_error{std::string{"TMPDIR: "} + (named ? named : "/tmp") + ": " + error.message()};
    }
    return place;
}

fs::path memory_place() {
    const fs::path memory = "/dev/shm";
    std::error_code none;
    const bool roomy = fs::is_directory(memory, none) && fs::space(memory, none).available > std::uintmax_t{1} << 30;
    return roomy ? memory : temporary_place();
}

}   // namespace

TemporaryFolder::TemporaryFolder() : TemporaryFolder{temporary_place()} {}
TemporaryFolder TemporaryFolder::in_memory() { return TemporaryFolder{memory_place()}; }

TemporaryFolder::TemporaryFolder(const fs::path& place) {
    remove_leftovers(place);
    do {
        if (lock_ >= 0)
            ::close(lock_);
        std::string name = (place / prefix).string() + "XXXXXX";
        if (mkdtemp(name.data()) == nullptr)
            throw std::runtime_error{"cannot make " + name + ": " + std::strerror(errno)};
        path_ = name;
        lock_ = open_lock(path_, O_CREAT);
        ::flock(lock_, LOCK_EX);
    } while (!fs::exists(path_));   // another program took it for a leftover, before the lock
}

TemporaryFolder::~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
    ::close(lock_);
}

}   // namespace drawpoint::bench
