#include <drawpoint/pipeline/storage/image_folder.hpp>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <set>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <utility>

#include <dirent.h>
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

bool is_image_name(std::string_view name) {
    const std::size_t dot = name.rfind('.');
    if (dot == std::string_view::npos)
        return false;
    std::string extension{name.substr(dot)};
    for (char& letter : extension)
        if (letter >= 'A' && letter <= 'Z')
            letter = static_cast<char>(letter - 'A' + 'a');
    return extension == ".jpg" || extension == ".jpeg" || extension == ".png" || extension == ".webp";
}

struct Entry {
    std::string name;
    unsigned char type;   // DT_DIR …, as far as the file system says
};

/// A folder's path that names can be put behind.
std::string with_slash(std::string folder) {
    if (folder.back() != '/')
        folder += '/';
    return folder;
}

bool is_folder(const std::string& path, const Entry& entry) {
    if (entry.type != DT_LNK && entry.type != DT_UNKNOWN)
        return entry.type == DT_DIR;
    struct stat status{};
    return ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);   // a link that leads nowhere is not a folder
}

// Entries of one folder sorted by byte value, without those whose name begins with a dot. Not by std::filesystem: its
// paths, each taken to pieces, are most of what listing a data set costs, and the first batch waits for it.
std::vector<Entry> list(const std::string& folder) {
    const auto refuse_listing = [&] {
        refuse(folder, "cannot list the folder: " + std::generic_category().message(errno));
    };
    const std::unique_ptr<DIR, int (*)(DIR*)> stream{::opendir(folder.c_str()), ::closedir};
    if (!stream)
        refuse_listing();
    std::vector<Entry> entries;
    for (errno = 0; const dirent* const entry = ::readdir(stream.get()); errno = 0)   // others leave theirs in it
        if (entry->d_name[0] != '.')
            entries.push_back({entry->d_name, entry->d_type});
    if (errno != 0)
        refuse_listing();
    std::ranges::sort(entries, {}, &Entry::name);
    return entries;
}

struct ClassWalk {
    std::vector<std::string> images;
    std::set<FolderId> seen;   // however links are laid, each real folder is walked once: no loop, no explosion
    std::size_t ignored = 0;

    void walk(const std::string& folder, int depth) {
        if (depth > deepest_folder)
            refuse(folder, "more than " + std::to_string(deepest_folder) + " folders deep");
        if (!seen.insert(folder_id(folder)).second)
            return;
        for (const Entry& entry : list(folder)) {
            std::string path = with_slash(folder) + entry.name;
            if (is_folder(path, entry))
                walk(path, depth + 1);
            else if (is_image_name(entry.name))   // whatever it turns out to be: reading it reports it, by name
                images.push_back(std::move(path));
            else
                ++ignored;
        }
    }
};

}   // namespace

ImageFolder::ImageFolder(const fs::path& root) {
    if (root.empty())
        throw std::invalid_argument{"no folder of images is named"};
    std::error_code error;
    const fs::file_status status = fs::status(root, error);
    if (status.type() == fs::file_type::not_found)
        refuse(root, "no such folder");
    if (error)
        refuse(root, error.message());
    if (!fs::is_directory(status))
        refuse(root, "not a folder");

    bool images_beside = false;
    for (const Entry& entry : list(root.native())) {
        const std::string folder = with_slash(root.native()) + entry.name;
        if (!is_folder(folder, entry)) {
            images_beside = images_beside || is_image_name(entry.name);
            ++ignored_files_;
            continue;
        }
        ClassWalk walk;
        walk.walk(folder, 1);
        if (walk.images.empty())
            refuse(folder, "the class folder holds no .jpg, .jpeg, .png or .webp file");
        std::sort(walk.images.begin(), walk.images.end());
        for (const std::string& path : walk.images) {
            offsets_.push_back(paths_.size());
            paths_.insert(paths_.end(), path.c_str(), path.c_str() + path.size() + 1);
        }
        ignored_files_ += walk.ignored;
        class_names_.push_back(entry.name);
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
