#include <drawpoint/pipeline/storage/tar_shards.hpp>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <optional>

#include <sys/uio.h>

#include <drawpoint/pipeline/storage/file_reader.hpp>
#include "pipeline/storage/regular_file.hpp"
#include "pipeline/storage/tar_files.hpp"
#include "pipeline/storage/tar_index.hpp"
#include "pipeline/storage/tar_reader.hpp"
#include "pipeline/storage/tar_streams.hpp"

namespace drawpoint {

namespace {

// Enough for a header, a label's member and the next header.
constexpr std::size_t scan_buffer = std::size_t{1} << 12;
constexpr std::size_t longest_classes = std::size_t{1} << 24;

/// The lines of classes.txt beside the shard; none if there is no such file.
std::vector<std::string> read_classes(const std::filesystem::path& shard) {
    const std::filesystem::path path = shard.parent_path() / "classes.txt";
    std::error_code error;
    const std::filesystem::file_status status = std::filesystem::status(path, error);
    if (!std::filesystem::exists(status))
        return {};
    if (!std::filesystem::is_regular_file(status))
        throw std::invalid_argument{path.string() + ": not a regular file with the names of classes"};
    if (std::filesystem::file_size(path, error) > longest_classes)
        throw std::invalid_argument{path.string() + ": too long for the names of classes"};
    std::vector<std::byte> file;
    read_file(path.c_str(), file);
    const std::string_view text{reinterpret_cast<const char*>(file.data()), file.size()};
    std::vector<std::string> names;
    for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t end = std::min(text.find('\n', begin), text.size());
        std::string_view line = text.substr(begin, end - begin);
        if (line.ends_with('\r'))
            line.remove_suffix(1);
        if (line.empty() || line.find('\0') != line.npos)
            throw std::invalid_argument{path.string() + ": line " + std::to_string(names.size() + 1) +
                                        " must be the name of a class"};
        names.emplace_back(line);
        begin = end + 1;
    }
    return names;
}

/// Reads a member's header and image at once; opens the shard for it if it is not open.
void read_at_random(const TarShard& shard, std::size_t sample, std::vector<std::byte>& contents) {
    const RegularFile opened = shard.file.descriptor() < 0 ? RegularFile{shard.path.c_str()} : RegularFile{};
    const int descriptor = shard.file.descriptor() < 0 ? opened.descriptor() : shard.file.descriptor();
    TarBlock header;
    const std::uint64_t begin = shard.index.offsets[sample] - tar_block;
    const std::size_t all = tar_block + contents.size();
    for (std::size_t done = 0; done < all;) {
        iovec parts[2];
        int count = 0;
        if (done < tar_block)
            parts[count++] = {header.data() + done, tar_block - done};
        const std::size_t of_image = done < tar_block ? 0 : done - tar_block;
        parts[count++] = {contents.data() + of_image, contents.size() - of_image};
        const ssize_t got = ::preadv(descriptor, parts, count, static_cast<off_t>(begin + done));
        if (got > 0)
            done += static_cast<std::size_t>(got);
        else if (got == 0)
            throw TarError{shard.path, begin + done, "cannot read: the file shrank meanwhile"};
        else if (errno != EINTR)
            detail::fail_io("cannot read", shard.path.c_str(), errno);
    }
    check_tar_header(shard, sample, header);
}

}   // namespace

struct TarShards::State {
    std::vector<TarShard> shards;
    std::vector<std::size_t> ends;   // index one past each shard's last image
    std::vector<std::string> classes;
    std::size_t num_classes = 0;
    bool sequential = false, random_access = true;
    std::uint64_t largest = 0;
    mutable std::optional<TarStreams> streams;

    struct Place {
        const TarShard& shard;
        std::size_t sample;
    };
    Place place(std::size_t index) const noexcept {
        const auto end = std::ranges::upper_bound(ends, index);
        const auto shard = static_cast<std::size_t>(end - ends.begin());
        return {shards[shard], index - (shard == 0 ? 0 : ends[shard - 1])};
    }
    bool reads_at_random(const TarShard& shard) const noexcept {
        return !sequential && shard.index.compression == TarCompression::none;
    }
};

TarShards::TarShards(const std::string& where, const TarOptions& options) {
    if (options.held < 1 || options.held > 1'000'000)
        throw std::invalid_argument{"held must be 1 to 1000000, got " + std::to_string(options.held)};
    if (options.open_streams < 1)
        throw std::invalid_argument{"open_streams must be at least 1, got 0"};
    auto state = std::make_shared<State>();
    state->sequential = options.sequential;
    TarInput input{scan_buffer};
    const std::vector<std::string> files = tar_files(where);
    bool stay_open = files.size() <= most_open_files();
    std::size_t images = 0;
    std::int64_t last_label = 0;
    state->shards.reserve(files.size());   // streams keep addresses
    for (const std::string& file : files) {
        try {
            input.open(file.c_str());
        } catch (const std::filesystem::filesystem_error& error) {
            if (!stay_open || error.code() != std::errc::too_many_files_open)
                throw;
            stay_open = false;   // others have most of them: opened when they are read
            for (TarShard& shard : state->shards)
                shard.file = RegularFile{};
            input.open(file.c_str());
        }
        TarShard& shard = state->shards.emplace_back(TarShard{file, index_of_tar(input), {}});
        const TarIndex& index = shard.index;
        if (!state->reads_at_random(shard))
            state->random_access = false;
        else if (stay_open)
            shard.file = input.take_file();
        last_label = std::max(last_label, *std::ranges::max_element(index.labels));
        state->largest = std::max(state->largest, *std::ranges::max_element(index.bytes));
        state->ends.push_back(images += index.size());
    }
    state->classes = read_classes(state->shards.front().path);
    state->num_classes = static_cast<std::size_t>(last_label) + 1;
    if (!state->classes.empty()) {
        for (const TarShard& shard : state->shards)
            for (std::size_t i = 0; i < shard.index.size(); ++i)
                if (static_cast<std::size_t>(shard.index.labels[i]) >= state->classes.size())
                    throw TarError{shard.path, shard.index.offsets[i] - tar_block,
                                   "member '" + std::string{shard.index.name(i)} + "' has label " +
                                       std::to_string(shard.index.labels[i]) + ", but classes.txt names " +
                                       std::to_string(state->classes.size()) + " classes"};
        state->num_classes = state->classes.size();
    }
    state->streams.emplace(options.open_streams, options.held, state->largest);
    state_ = std::move(state);
}

TarShards::~TarShards() = default;
TarShards::TarShards(const TarShards&) noexcept = default;
TarShards& TarShards::operator=(const TarShards&) noexcept = default;

std::size_t TarShards::size() const noexcept { return state_->ends.back(); }

std::size_t TarShards::num_classes() const noexcept { return state_->num_classes; }

std::string TarShards::class_name(std::size_t label) const {
    if (label >= state_->num_classes)
        throw std::out_of_range{"class " + std::to_string(label) + " of " + std::to_string(state_->num_classes)};
    return state_->classes.empty() ? std::to_string(label) : state_->classes[label];
}

std::int64_t TarShards::label(std::size_t index) const noexcept {
    const auto [shard, sample] = state_->place(index);
    return shard.index.labels[sample];
}

std::string TarShards::path(std::size_t index) const {
    const auto [shard, sample] = state_->place(index);
    return shard.path + ':' + std::string{shard.index.name(sample)};
}

std::uint64_t TarShards::bytes(std::size_t index) const noexcept {
    const auto [shard, sample] = state_->place(index);
    return shard.index.bytes[sample];
}

void TarShards::read(std::size_t index, std::vector<std::byte>& contents) const {
    const auto [shard, sample] = state_->place(index);
    if (!state_->reads_at_random(shard)) {
        state_->streams->read(shard, sample, contents);
        return;
    }
    reserve_image(contents, shard.index.bytes[sample], state_->largest);
    read_at_random(shard, sample, contents);
}

bool TarShards::random_access() const noexcept { return state_->random_access; }

TarRange TarShards::location(std::size_t index) const noexcept {
    const auto [shard, sample] = state_->place(index);
    if (!state_->reads_at_random(shard))
        return {};
    return {shard.path.c_str(), shard.file.descriptor(), shard.index.offsets[sample], shard.index.bytes[sample]};
}

std::vector<std::uint64_t> TarShards::shard_sizes() const {
    std::vector<std::uint64_t> sizes;
    for (const TarShard& shard : state_->shards)
        sizes.push_back(shard.index.size());
    return sizes;
}

const std::string& TarShards::shard_path(std::size_t shard) const { return state_->shards.at(shard).path; }

std::uint64_t TarShards::shard_bytes(std::size_t shard) const { return state_->shards.at(shard).index.file_bytes; }

std::size_t TarShards::indexed_shards() const noexcept {
    return static_cast<std::size_t>(
        std::ranges::count_if(state_->shards, [](const TarShard& shard) { return shard.index.from_file; }));
}

std::uint64_t TarShards::streams_started() const noexcept { return state_->streams->started(); }

}   // namespace drawpoint
