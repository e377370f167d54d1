#include <drawpoint/loop/callbacks/checkpoint_file.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <optional>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <drawpoint/instrumentation/detail/replaced_file.hpp>

namespace drawpoint {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

using Bytes = std::span<const std::byte>;
using nlohmann::json;

constexpr std::string_view format_key = "drawpoint.checkpoint", format_version = "1";
constexpr std::string_view checksum_start = R"("crc32":")",
                           no_checksum = "00000000";                       // cannot occur inside another text
constexpr std::size_t length_bytes = 8, most_header_bytes = 100'000'000;   // safetensors' own limit

std::optional<std::size_t> size_of_type(std::string_view type) noexcept {
    constexpr std::array<std::pair<std::string_view, std::size_t>, 13> sizes{{{"F64", 8},
                                                                              {"I64", 8},
                                                                              {"U64", 8},
                                                                              {"F32", 4},
                                                                              {"I32", 4},
                                                                              {"U32", 4},
                                                                              {"F16", 2},
                                                                              {"BF16", 2},
                                                                              {"I16", 2},
                                                                              {"U16", 2},
                                                                              {"I8", 1},
                                                                              {"U8", 1},
                                                                              {"BOOL", 1}}};
    const auto found = std::ranges::find(sizes, type, &std::pair<std::string_view, std::size_t>::first);
    return found == sizes.end() ? std::nullopt : std::optional{found->second};
}

/// Size of an array; nullopt if the type is unknown, or the shape invalid or too large.
std::optional<std::size_t> bytes_of(std::string_view type, const std::vector<std::int64_t>& shape) noexcept {
    std::optional<std::size_t> bytes = size_of_type(type);
    for (const std::int64_t size : shape) {
        std::size_t product = 0;
        if (!bytes || size < 0 || __builtin_mul_overflow(*bytes, static_cast<std::size_t>(size), &product))
            return std::nullopt;
        bytes = product;
    }
    return bytes;
}

std::uint32_t checksum(std::uint32_t so_far, Bytes bytes) noexcept {
    if (bytes.empty())
        return so_far;   // given a null pointer, zlib would return the initial value
    return static_cast<std::uint32_t>(
        crc32_z(so_far, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size()));
}

Bytes bytes_of(std::string_view text) noexcept { return std::as_bytes(std::span{text}); }

std::string system_text(int error) { return std::system_category().message(error); }

class File {
public:
    File(const std::filesystem::path& path, int flags) noexcept
        : number_{::open(path.c_str(), flags | O_CLOEXEC, 0666)} {}
    File(const File&) = delete;
    File& operator=(const File&) = delete;
    ~File() {
        if (number_ >= 0)
            ::close(number_);
    }
    [[nodiscard]] int number() const noexcept { return number_; }
    [[nodiscard]] bool is_open() const noexcept { return number_ >= 0; }

private:
    int number_;
};

bool write_all(int file, Bytes bytes) noexcept {
    while (!bytes.empty()) {
        const ssize_t written = ::write(file, bytes.data(), bytes.size());
        if (written < 0 && errno != EINTR)
            return false;
        bytes = bytes.subspan(static_cast<std::size_t>(std::max<ssize_t>(0, written)));
    }
    return true;
}

/// Writes everything and syncs it to disk; returns 0 or the system's error.
int write_durably(int file, std::string_view header, const std::vector<Bytes>& data) noexcept {
    const std::uint64_t length = header.size();
    bool good = write_all(file, std::as_bytes(std::span{&length, 1})) && write_all(file, bytes_of(header));
    for (const Bytes bytes : data)
        good = good && write_all(file, bytes);
    return good && ::fsync(file) == 0 ? 0 : errno;
}

}   // namespace

void Checkpoint::set(const std::string& name, Array array) {
    if (bytes_of(array.type, array.shape) != array.data.size())
        throw std::invalid_argument{
            fmt::format("{}: {} bytes are not an array of that type and shape", name, array.data.size())};
    arrays_.insert_or_assign(name, std::move(array));
}

void Checkpoint::set_integer(const std::string& name, std::int64_t value) {
    const auto kept = std::make_shared<const std::int64_t>(value);
    set(name, {"I64", {}, std::as_bytes(std::span{kept.get(), 1}), kept});
}

void Checkpoint::set_number(const std::string& name, double value) {
    const auto kept = std::make_shared<const double>(value);
    set(name, {"F64", {}, std::as_bytes(std::span{kept.get(), 1}), kept});
}

void Checkpoint::set_numbers(const std::string& name, std::vector<double> values) {
    const auto kept = std::make_shared<const std::vector<double>>(std::move(values));
    set(name, {"F64", {static_cast<std::int64_t>(kept->size())}, std::as_bytes(std::span{*kept}), kept});
}

void Checkpoint::set_text(const std::string& name, std::string text) { texts_.insert_or_assign(name, std::move(text)); }

const Checkpoint::Array* Checkpoint::find(const std::string& name) const noexcept {
    const auto found = arrays_.find(name);
    return found == arrays_.end() ? nullptr : &found->second;
}

const std::string* Checkpoint::find_text(const std::string& name) const noexcept {
    const auto found = texts_.find(name);
    return found == texts_.end() ? nullptr : &found->second;
}

const Checkpoint::Array& Checkpoint::array(const std::string& name, std::string_view type,
                                           std::size_t dimensions) const {
    const Array* found = find(name);
    if (found == nullptr)
        refuse(fmt::format("{} is not in it", name));
    if (found->type != type || found->shape.size() != dimensions)
        refuse(fmt::format("{} is not of the type it should be", name));
    return *found;
}

std::int64_t Checkpoint::integer(const std::string& name) const {
    std::int64_t value = 0;
    std::memcpy(&value, array(name, "I64", 0).data.data(), sizeof value);
    return value;
}

double Checkpoint::number(const std::string& name) const {
    double value = 0;
    std::memcpy(&value, array(name, "F64", 0).data.data(), sizeof value);
    return value;
}

std::vector<double> Checkpoint::numbers(const std::string& name) const {
    const Bytes data = array(name, "F64", 1).data;
    std::vector<double> values(data.size() / sizeof(double));
    if (!values.empty())
        std::memcpy(values.data(), data.data(), data.size());
    return values;
}

const std::string& Checkpoint::text(const std::string& name) const {
    const std::string* found = find_text(name);
    if (found == nullptr)
        refuse(fmt::format("{} is not in it", name));
    return *found;
}

std::vector<std::string> Checkpoint::names(std::string_view prefix) const {
    std::vector<std::string> names;
    for (auto at = arrays_.lower_bound(std::string{prefix}); at != arrays_.end() && at->first.starts_with(prefix); ++at)
        names.push_back(at->first);
    return names;
}

void Checkpoint::refuse(const std::string& what) const { throw CheckpointError{fmt::format("{}: {}", file_, what)}; }

void Checkpoint::write(const std::filesystem::path& file) const {
    // The rename below would replace a device or pipe by a file.
    std::error_code unknown;
    if (const auto status = std::filesystem::status(file, unknown);
        exists(status) && !is_regular_file(status) && !is_directory(status))
        throw CheckpointError{file.string() + ": not a file, so no checkpoint goes there"};
    // Types with larger values come first, so that every array is aligned in the file.
    std::vector<const std::pair<const std::string, Array>*> order;
    for (const auto& entry : arrays_)
        order.push_back(&entry);
    std::ranges::stable_sort(order, std::ranges::greater{},
                             [](const auto* entry) { return size_of_type(entry->second.type).value_or(0); });

    json header;
    header["__metadata__"] = texts_;
    header["__metadata__"][std::string{format_key}] = format_version;
    header["__metadata__"]["crc32"] = no_checksum;
    std::vector<Bytes> data;
    std::size_t at = 0;
    for (const auto* entry : order) {
        const Array& array = entry->second;
        header[entry->first] = {
            {"dtype", array.type}, {"shape", array.shape}, {"data_offsets", {at, at + array.data.size()}}};
        data.push_back(array.data);
        at += array.data.size();
    }
    std::string text = header.dump(-1, ' ', false, json::error_handler_t::replace);
    text.append((length_bytes - text.size() % length_bytes) % length_bytes, ' ');
    std::uint32_t crc = checksum(0, bytes_of(text));
    for (const Bytes bytes : data)
        crc = checksum(crc, bytes);
    text.replace(text.find(checksum_start) + checksum_start.size(), no_checksum.size(), fmt::format("{:08x}", crc));

    const auto fail = [&](int error) {
        throw CheckpointError{fmt::format("{}: cannot write the checkpoint: {}", file.string(), system_text(error))};
    };
    std::filesystem::path folder_of_file;
    try {
        ReplacedFile replaced{file};   // private to this run: another may write the same checkpoint
        int error = write_durably(replaced.number(), text, data);
        if (error == 0)
            error = replaced.commit();
        if (error != 0)
            fail(error);
        folder_of_file = replaced.folder();
    } catch (const std::system_error& error) {
        fail(error.code().value());
    }
    // Syncs the new name too. Errors are ignored, since some file systems cannot sync folders.
    if (const File folder{folder_of_file, O_RDONLY | O_DIRECTORY}; folder.is_open())
        (void)::fsync(folder.number());
}

/// The header of a file, and how large the file is by what it says.
struct Checkpoint::Header {
    json arrays;
    std::string text;
    std::size_t bytes;   // with its length
    std::uint64_t file_bytes;
};

Checkpoint Checkpoint::read(const std::filesystem::path& file) {
    Checkpoint checkpoint;
    checkpoint.file_ = file.string();
    const File in{file, O_RDONLY | O_NONBLOCK};   // otherwise opening a pipe would wait for a writer
    struct stat status{};
    if (!in.is_open() || ::fstat(in.number(), &status) != 0)
        checkpoint.refuse(fmt::format("cannot read the checkpoint: {}", system_text(errno)));
    if (!S_ISREG(status.st_mode))
        checkpoint.refuse("is no checkpoint: not a file");
    const auto size = static_cast<std::uint64_t>(status.st_size);
    const auto read_first = [&](std::uint64_t bytes) {
        std::vector<std::byte> content(static_cast<std::size_t>(std::min(bytes, size)));
        for (std::size_t have = 0; have < content.size();) {
            const ssize_t got =
                ::pread(in.number(), content.data() + have, content.size() - have, static_cast<off_t>(have));
            if (got < 0 && errno == EINTR)
                continue;
            if (got < 0)
                checkpoint.refuse(fmt::format("cannot read the checkpoint: {}", system_text(errno)));
            if (got == 0)
                content.resize(have);   // the file became shorter meanwhile
            have += static_cast<std::size_t>(got);
        }
        return content;
    };
    // First the header alone, which says how large the file is: a large file that is no checkpoint takes no memory.
    const std::uint64_t header_bytes = checkpoint.header_bytes(read_first(length_bytes + 1), size);
    const std::vector<std::byte> start = read_first(header_bytes);
    if (start.size() != header_bytes)
        checkpoint.refuse("became shorter while it was read");
    Header header = checkpoint.parse_header(start);
    if (header.file_bytes > size)
        checkpoint.refuse(fmt::format("is cut short: {} of {} bytes are there", size, header.file_bytes));
    if (header.file_bytes < size)
        checkpoint.refuse(fmt::format("is damaged: {} bytes follow its arrays", size - header.file_bytes));
    checkpoint.parse_arrays(header, std::make_shared<std::vector<std::byte>>(read_first(size)));
    return checkpoint;
}

std::uint64_t Checkpoint::header_bytes(Bytes start, std::uint64_t size) const {
    std::uint64_t length = 0;
    if (start.size() < length_bytes)
        refuse("is no checkpoint, or cut short");
    std::memcpy(&length, start.data(), sizeof length);
    if (length > most_header_bytes || length < 2 ||
        (start.size() > length_bytes && start[length_bytes] != std::byte{'{'}))
        refuse("is no checkpoint");
    if (length > size - length_bytes)
        refuse("is no checkpoint, or cut short");
    return length_bytes + length;
}

Checkpoint::Header Checkpoint::parse_header(Bytes bytes) const {
    std::string text{reinterpret_cast<const char*>(bytes.data()) + length_bytes, bytes.size() - length_bytes};
    json header = json::parse(text, nullptr, false);
    static const json none;
    const auto member = [](const json& of, std::string_view key) -> const json& {   // no copy: that is recursive
        const auto found = of.is_object() ? of.find(key) : of.end();
        return of.is_object() && found != of.end() ? *found : none;
    };
    const json& metadata = member(header, "__metadata__");
    if (header.is_discarded() || !member(metadata, format_key).is_string())
        refuse(header.is_object() ? "is a safetensors file, but no checkpoint of drawpoint" : "is no checkpoint");
    if (const json& version = member(metadata, format_key); version != json(format_version))
        refuse(fmt::format("is a checkpoint of another version ({}), this program reads version {}",
                           version.get<std::string>(), format_version));

    std::size_t end = 0;
    for (const auto& [name, value] : header.items())
        if (const json& offsets = member(value, "data_offsets");
            offsets.is_array() && offsets.size() == 2 && offsets[1].is_number_unsigned())
            end = std::max(end, offsets[1].get<std::size_t>());
    return {std::move(header), std::move(text), bytes.size(), bytes.size() + end};
}

void Checkpoint::parse_arrays(Header& head, const std::shared_ptr<std::vector<std::byte>>& file) {
    auto& [header, text, data_at, file_bytes] = head;
    if (file->size() != file_bytes)
        refuse("became shorter while it was read");
    const Bytes data = Bytes{*file}.subspan(data_at);
    const auto& metadata = header.at("__metadata__");
    const std::size_t crc_at = text.find(checksum_start);
    const std::string expected =
        crc_at == text.npos ? "" : text.substr(crc_at + checksum_start.size(), no_checksum.size());
    if (expected.size() == no_checksum.size())
        text.replace(crc_at + checksum_start.size(), no_checksum.size(), no_checksum);
    if (fmt::format("{:08x}", checksum(checksum(0, bytes_of(text)), data)) != expected)
        refuse("is damaged: its checksum does not fit");

    for (const auto& [name, value] : metadata.items())
        if (value.is_string() && name != "crc32" && name != format_key)
            texts_[name] = value.get<std::string>();
    for (const auto& [name, value] : header.items()) {
        if (name == "__metadata__")
            continue;
        try {
            Array array{value.at("dtype"), value.at("shape"), {}, file};
            const std::size_t from = value.at("data_offsets").at(0), to = value.at("data_offsets").at(1);
            if (from > to || to > data.size() || bytes_of(array.type, array.shape) != to - from)
                refuse(fmt::format("{} has another size than its type and shape", name));
            array.data = data.subspan(from, to - from);
            arrays_.emplace(name, std::move(array));
        } catch (const json::exception&) {
            refuse(fmt::format("{} is not described as an array is", name));
        }
    }
}

}   // namespace drawpoint
