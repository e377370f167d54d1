#include <drawpoint/pipeline/storage/tar_pack.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <unordered_map>
#include <utility>

#include <unistd.h>

#include <drawpoint/pipeline/storage/file_reader.hpp>
#include <drawpoint/pipeline/storage/tar_shards.hpp>
#include "pipeline/storage/file_writer.hpp"
#include "pipeline/storage/tar_index.hpp"
#include "pipeline/storage/tar_output.hpp"

namespace drawpoint {

namespace {

namespace fs = std::filesystem;

/// A folder beside `to` that takes its name in the end, and else goes with all that is in it.
class FolderInWork {
public:
    explicit FolderInWork(fs::path to) : to_{std::move(to)} {
        if (!to_.has_filename())
            to_ = to_.parent_path();   // "out/"
        std::error_code error;
        if (fs::exists(to_, error) && !(fs::is_directory(to_, error) && fs::is_empty(to_, error)))
            throw std::invalid_argument{to_.string() + ": out must not exist, or be an empty folder"};
        const fs::path above = to_.has_parent_path() ? to_.parent_path() : fs::path{"."};
        fs::create_directories(above);
        const std::string name = "." + to_.filename().string() + "-" + std::to_string(::getpid()) + "-";
        for (int number = 0; path_.empty(); ++number)   // one of a killed run may lie there
            if (const fs::path path = above / (name + std::to_string(number)); fs::create_directory(path))
                path_ = path;
    }
    FolderInWork(const FolderInWork&) = delete;
    FolderInWork& operator=(const FolderInWork&) = delete;
    ~FolderInWork() {
        std::error_code ignored;
        if (!path_.empty())
            fs::remove_all(path_, ignored);
    }

    const fs::path& path() const noexcept { return path_; }

    void finish() {
        fs::rename(path_, to_);
        path_.clear();
    }

private:
    fs::path to_, path_;
};

/// "class/name" without dots in the last part, which would end the key there.
/// `used`: keys there are already, and the number of the copy to try next of each.
std::string key_of(const std::string& class_name, const fs::path& image, std::unordered_map<std::string, int>& used) {
    std::string stem = image.stem().string();
    std::ranges::replace(stem, '.', '_');
    const std::string wanted = class_name + '/' + stem;
    const auto [entry, unused] = used.try_emplace(wanted, 2);
    if (unused)
        return wanted;
    int& copy = entry->second;   // stays where it is
    std::string key;
    do
        key = wanted + '-' + std::to_string(copy++);
    while (!used.try_emplace(key, 2).second);
    return key;
}

std::string field_of(const fs::path& image) {
    std::string field = image.extension().string().substr(1);
    for (char& letter : field)
        if (letter >= 'A' && letter <= 'Z')
            letter = static_cast<char>(letter - 'A' + 'a');
    return field;
}

/// The shard that is being written, and its index.
class Shard {
public:
    Shard(const fs::path& folder, std::size_t number, TarCompression compression)
        : path_{folder / name(number, compression)}, compression_{compression}, output_{path_, compression} {}

    std::uint64_t position() const noexcept { return output_.position(); }

    void add(const std::string& key, const std::string& field, std::int64_t label, std::span<const std::byte> image) {
        const std::string text = std::to_string(label), member = key + '.' + field;
        output_.add(key + ".cls", std::as_bytes(std::span{text}));
        index_.add(output_.add(member, image), image.size(), label, member);
    }

    /// Returns the file's bytes.
    std::uint64_t finish() {
        output_.finish();
        const RegularFile file{path_.c_str()};
        index_.file_bytes = file.size();
        index_.modified_ns = file.modified_ns();
        index_.compression = compression_;
        write_tar_index(index_, tar_index_path(path_.string()));
        return file.size();
    }

private:
    static std::string name(std::size_t number, TarCompression compression) {
        std::array<char, 48> text{};
        std::snprintf(text.data(), text.size(), "shard-%06zu.tar%s", number,
                      compression == TarCompression::gzip   ? ".gz"
                      : compression == TarCompression::zstd ? ".zst"
                                                            : "");
        return text.data();
    }

    fs::path path_;
    TarCompression compression_;
    TarOutput output_;
    TarIndex index_;
};

void write_classes(const ImageFolder& images, const fs::path& path) {
    std::string text;
    for (std::size_t label = 0; label < images.num_classes(); ++label) {
        if (images.class_name(label).find('\n') != std::string::npos)
            throw std::invalid_argument{"class '" + images.class_name(label) + "': a line end in the name of a class"};
        text += images.class_name(label) + '\n';
    }
    FileWriter out{path};
    out.write(std::as_bytes(std::span{text}));
    out.close();
}

}   // namespace

TarPackSummary pack_image_folder(const ImageFolder& images, std::span<const std::uint64_t> order,
                                 const TarPackOptions& options) {
    if (options.shard_bytes < 1)
        throw std::invalid_argument{"shard_bytes must be at least 1, got 0"};
    if (order.empty())
        throw std::invalid_argument{"there is nothing to pack"};
    FolderInWork folder{options.out};
    write_classes(images, folder.path() / "classes.txt");
    TarPackSummary summary;
    std::optional<Shard> shard;
    std::unordered_map<std::string, int> keys;
    std::vector<std::byte> file;
    const auto finish = [&] {
        summary.bytes += shard->finish();
        shard.reset();
        ++summary.shards;
    };
    for (const std::uint64_t number : order) {
        const auto index = static_cast<std::size_t>(number);
        if (index >= images.size())
            throw std::invalid_argument{"order: image " + std::to_string(number) + " of " +
                                        std::to_string(images.size())};
        if (options.stop.stop_requested())
            throw std::system_error{std::make_error_code(std::errc::operation_canceled), options.out.string()};
        const std::size_t label = images.label(index);
        const fs::path path = images.path(index);
        read_file(path.c_str(), file);
        if (file.size() > max_tar_image_bytes)
            throw std::invalid_argument{path.string() + ": an image file of " + std::to_string(file.size()) +
                                        " bytes is too large"};
        const std::string key = key_of(images.class_name(label), path, keys), field = field_of(path);
        const std::uint64_t bytes =
            TarOutput::member_bytes(key + ".cls", 1) + TarOutput::member_bytes(key + '.' + field, file.size());
        if (shard && TarOutput::archive_bytes(shard->position() + bytes) > options.shard_bytes)
            finish();
        if (!shard)
            shard.emplace(folder.path(), summary.shards, options.compression);
        shard->add(key, field, static_cast<std::int64_t>(label), file);
        ++summary.samples;
    }
    finish();
    folder.finish();
    return summary;
}

}   // namespace drawpoint
