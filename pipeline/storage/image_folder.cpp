#include "drawpoint/pipeline/storage/image_folder.hpp"

#include <algorithm>
#include <cerrno>
#include <set>
#include <stdexcept>
#include <system_error>
#include <utility>

#include <sys/stat.h>

namespace drawpoint {
namespace {

namespace fs = std::filesystem;

constexpr int deepest_folder = 64;

using FolderId = std::pair<dev_t, ino_t>;

[[noreturn]] void refuse(const fs::path& path, const std::string& why) {
    throw std::invalid_argument(path.string() + ": " + why);
}

FolderId folder_id(const fs::path& path) {
    struct stat status{};
    if (::stat(path.c_str(), &status) != 0)
        refuse(path, std::generic_category().message(errno));
    return {status.st_dev, status.st_ino};
}

bool is_image_name(const fs::path& path) {
    std::string extension = path.extension().string();
    for (char& letter : extension)
        if (letter >= 'A' && letter <= 'Z')
            letter = static_cast<char>(letter - 'A' + 'a');
    return extension == ".jpg" || extension == ".jpeg" || extension == ".png" || extension == ".webp";
}

bool is_folder(const fs::directory_entry& entry) {
    std::error_code error;
    return entry.is_directory(error);   // a link that leads nowhere is not a folder
}

// Entries of one folder sorted by byte value, without those whose name begins with a dot.
std::vector<fs::directory_entry> list(const fs::path& folder) {
    std::vector<fs::directory_entry> entries;
    std::error_code error;
    for (fs::directory_iterator it{folder, error}; !error && it != fs::directory_iterator{}; it.increment(error))
        if (it->path().filename().native().front() != '.')
            entries.push_back(*it);
    if (error)
        refuse(folder, "cannot list the folder: " + error.message());
    std::sort(entries.begin(), entries.end(),
              [](const auto& a, const auto& b) { return a.path().native() < b.path().native(); });
    return entries;
}

struct ClassWalk {
    std::vector<std::string> images;
    std::set<FolderId> seen;   // however links are laid, each real folder is walked once: no loop, no explosion
    std::size_t ignored = 0;

    void walk(const fs::path& folder, int depth) {
        if (depth > deepest_folder)
            refuse(folder, "more than " + std::to_string(deepest_folder) + " folders deep");
        if (!seen.insert(folder_id(folder)).second)
            return;
        for (const fs::directory_entry& entry : list(folder)) {
            if (is_folder(entry))
                walk(entry.path(), depth + 1);
            else if (is_image_name(entry.path()))   // whatever it turns out to be: reading it reports it, by name
                images.push_back(entry.path().native());
            else
                ++ignored;
        }
    }
};

}   // namespace

ImageFolder::ImageFolder(const fs::path& root) {
    std::error_code error;
    const fs::file_status status = fs::status(root, error);
    if (status.type() == fs::file_type::not_found)
        refuse(root, "no such folder");
    if (error)
        refuse(root, error.message());
    if (!fs::is_directory(status))
        refuse(root, "not a folder");

    bool images_beside = false;
    for (const fs::directory_entry& entry : list(root)) {
        if (!is_folder(entry)) {
            images_beside = images_beside || is_image_name(entry.path());
            ++ignored_files_;
            continue;
        }
        ClassWalk walk;
        walk.walk(entry.path(), 1);
        if (walk.images.empty())
            refuse(entry.path(), "the class folder holds no .jpg, .jpeg, .png or .webp file");
        std::sort(walk.images.begin(), walk.images.end());
        for (const std::string& path : walk.images) {
            offsets_.push_back(paths_.size());
            paths_.insert(paths_.end(), path.c_str(), path.c_str() + path.size() + 1);
        }
        ignored_files_ += walk.ignored;
        class_names_.push_back(entry.path().filename().string());
        class_ends_.push_back(offsets_.size());
    }
    if (class_names_.empty() && images_beside)
        refuse(root, "images lie directly in the folder; put them into one folder per class");
    if (class_names_.empty())
        refuse(root, "the folder holds no class folders");
    paths_.shrink_to_fit();
    offsets_.shrink_to_fit();
}

std::size_t ImageFolder::label(std::size_t index) const noexcept {
    const auto end = std::upper_bound(class_ends_.begin(), class_ends_.end(), index);
    return static_cast<std::size_t>(end - class_ends_.begin());
}

}   // namespace drawpoint
