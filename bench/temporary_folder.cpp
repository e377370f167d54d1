#include "temporary_folder.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cstdlib>
#include <stdexcept>
#include <string>

namespace drawpoint::bench {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view prefix = "drawpoint-bench-";

int open_folder(const fs::path& folder) noexcept { return ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); }

void remove_leftovers(const fs::path& place) {
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator{place, ignored}) {
        if (!entry.path().filename().string().starts_with(prefix))
            continue;
        const int folder = open_folder(entry.path());
        if (folder < 0)
            continue;
        if (::flock(folder, LOCK_EX | LOCK_NB) == 0)
            fs::remove_all(entry.path(), ignored);
        ::close(folder);
    }
}

fs::path memory_place() {
    const fs::path memory = "/dev/shm";
    std::error_code none;
    const bool roomy = fs::is_directory(memory, none) && fs::space(memory, none).available > std::uintmax_t{1} << 30;
    return roomy ? memory : fs::temp_directory_path();
}

}   // namespace

TemporaryFolder::TemporaryFolder() : TemporaryFolder{fs::temp_directory_path()} {}
TemporaryFolder TemporaryFolder::in_memory() { return TemporaryFolder{memory_place()}; }

TemporaryFolder::TemporaryFolder(const fs::path& place) {
    remove_leftovers(place);
    do {
        if (lock_ >= 0)
            ::close(lock_);
        std::string name = (place / prefix).string() + "XXXXXX";
        if (mkdtemp(name.data()) == nullptr)
            throw std::runtime_error{"cannot make " + name};
        path_ = name;
        lock_ = open_folder(path_);
        ::flock(lock_, LOCK_EX);
    } while (!fs::exists(path_));   // another program took it for a leftover, before the lock
}

TemporaryFolder::~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
    ::close(lock_);
}

}   // namespace drawpoint::bench
