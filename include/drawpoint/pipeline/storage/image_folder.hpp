#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace drawpoint {

/// A labelled data set on disk: one folder per class, images (.jpg, .jpeg, .png or .webp in any case) anywhere below
/// it. Classes are sorted by name, files by path, both by byte value; names that begin with a dot are left out. Links
/// to folders are followed, each real folder once per class. Immutable after construction: any thread may read it.
class ImageFolder {
public:
    /// Lists the folder; O(files log files). Throws std::invalid_argument naming the path: missing, not a folder,
    /// unreadable, without class folders, a class without images, or deeper than 64 folders.
    explicit ImageFolder(const std::filesystem::path& root);

    /// Number of images.
    std::size_t size() const noexcept { return offsets_.size(); }

    /// Number of classes, at least 1.
    std::size_t num_classes() const noexcept { return class_names_.size(); }

    /// Name of class `label`, 0 <= label < num_classes().
    const std::string& class_name(std::size_t label) const { return class_names_.at(label); }

    /// Class of image `index`, 0 <= index < size(). O(log classes), never allocates.
    std::size_t label(std::size_t index) const noexcept;

    /// Path of image `index`, 0 <= index < size(). O(1), never allocates; valid as long as this object.
    const char* path(std::size_t index) const noexcept { return paths_.data() + offsets_[index]; }

    /// Number of files in class folders that have another extension and were left out.
    std::size_t ignored_files() const noexcept { return ignored_files_; }

private:
    std::vector<char> paths_;               // every path, each ending in a zero: one allocation however many files
    std::vector<std::size_t> offsets_;      // of each path in paths_
    std::vector<std::size_t> class_ends_;   // one past the index of each class's last image
    std::vector<std::string> class_names_;
    std::size_t ignored_files_ = 0;
};

}   // namespace drawpoint
