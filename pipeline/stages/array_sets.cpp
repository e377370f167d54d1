// The functions that open array data sets.
#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <drawpoint/pipeline/stages/array_rows.hpp>
#include <drawpoint/pipeline/storage/array_file.hpp>
#include <drawpoint/pipeline/storage/cifar_file.hpp>
#include <drawpoint/pipeline/storage/idx_file.hpp>

#include "pipeline/stages/array_data.hpp"

namespace drawpoint {
namespace {

namespace fs = std::filesystem;

ScalarType scalar_type(ArrayType type) {
    switch (type) {
    case ArrayType::uint8: return ScalarType::uint8;
    case ArrayType::int8: return ScalarType::int8;
    case ArrayType::int16: return ScalarType::int16;
    case ArrayType::int32: return ScalarType::int32;
    case ArrayType::int64: return ScalarType::int64;
    case ArrayType::float16: return ScalarType::float16;
    case ArrayType::float32: return ScalarType::float32;
    case ArrayType::float64: return ScalarType::float64;
    case ArrayType::boolean: break;
    }
    return ScalarType::boolean;
}

std::uint64_t limit_of(const ArrayOptions& options) {
    return options.memory_limit ? *options.memory_limit : available_memory() / 2;
}

void check_packed(const ArrayFile& file, std::uint64_t limit) {
    if (file.packed() && file.header().bytes > limit)
        throw ArrayFileError{
            file.file().path(), 0,
            fmt::format("{} bytes when unpacked are more than the memory limit of {}; unpack the file to read "
                        "it from disk",
                        file.header().bytes, limit)};
}

/// The whole numbers of an array file, one for each of `count` samples, 0 … classes - 1 unless `classes` is 0.
std::vector<std::int64_t> read_targets(const fs::path& path, ArrayFormat format, std::uint64_t count,
                                       std::int64_t classes, std::uint64_t limit) {
    const ArrayFile file{path, format};
    const ArrayHeader& header = file.header();
    if (header.type == ArrayType::float16 || header.type == ArrayType::float32 || header.type == ArrayType::float64)
        throw ArrayFileError{path, 0, fmt::format("targets are whole numbers, these are {}", name_of(header.type))};
    const std::size_t width = size_of(header.type);
    if (header.shape.front() != count || header.bytes / width != count)
        throw ArrayFileError{path, 0,
                             fmt::format("{} targets are needed, one for each sample; the shape is [{}]", count,
                                         fmt::join(header.shape, ", "))};
    check_packed(file, limit);
    std::vector<std::byte> bytes(header.bytes);
    file.load(bytes.data());
    std::vector<std::int64_t> targets(count);
    const bool is_signed = header.type != ArrayType::uint8 && header.type != ArrayType::boolean;
    for (std::size_t i = 0; i < targets.size(); ++i) {
        targets[i] = whole_number(bytes.data() + i * width, width, header.big_endian, is_signed);
        if (classes > 0 && (targets[i] < 0 || targets[i] >= classes))
            throw ArrayFileError{path, header.offset + i * width,
                                 fmt::format("label {} of sample {} is none of 0 to {}", targets[i], i, classes - 1)};
    }
    return targets;
}

std::shared_ptr<ArrayData> open_array(const ArrayFile& file, std::uint64_t limit, bool sequential) {
    const ArrayHeader& header = file.header();
    auto data = std::make_shared<ArrayData>();
    if (header.shape.size() > data->layout.shape.size() + 1)
        throw ArrayFileError{file.file().path(), 0,
                             fmt::format("a sample has at most {} dimensions, and these have {}",
                                         data->layout.shape.size(), header.shape.size() - 1)};
    data->layout.type = scalar_type(header.type);
    data->layout.rank = static_cast<std::uint8_t>(header.shape.size() - 1);
    std::transform(header.shape.begin() + 1, header.shape.end(), data->layout.shape.begin(),
                   [](std::uint64_t side) { return static_cast<std::int64_t>(side); });
    data->record_bytes = data->layout.bytes();
    data->big_endian = header.big_endian;
    data->sequential = sequential;
    data->size = header.shape.front();
    data->parts.push_back({.path = file.file().path(), .offset = header.offset, .count = data->size});
    check_packed(file, limit);
    if (header.bytes > limit) {
        data->parts.front().file = file.file();
        return data;
    }
    data->take_memory();
    file.load(data->records.get());
    data->finish_memory();
    return data;
}

ArrayRows open_pair(const fs::path& path, const fs::path& targets, ArrayFormat format, const ArrayOptions& options) {
    const std::uint64_t limit = limit_of(options);
    const auto data = open_array(ArrayFile{path, format}, limit, options.sequential);
    if (!targets.empty())
        data->targets = read_targets(targets, format, data->size, 0, limit);
    return ArrayRows{data};
}

[[noreturn]] void refuse(const std::string& why) { throw std::invalid_argument{"raw_records: " + why}; }

/// Fills in `record_bytes`.
RawRecords checked(RawRecords records) {
    if (records.paths.empty())
        refuse("paths must name at least one file");
    if (records.layout.rank > records.layout.shape.size())
        refuse(fmt::format("layout.rank must be 0 to 4, got {}", records.layout.rank));
    std::uint64_t bytes = size_of(records.layout.type);
    for (std::size_t dimension = 0; dimension < records.layout.rank; ++dimension) {
        const std::int64_t side = records.layout.shape[dimension];
        if (side < 1 || static_cast<std::uint64_t>(side) > (std::uint64_t{1} << 62) / bytes)
            refuse(
                fmt::format("layout.shape must be sizes of at least 1 that make less than 2^62 bytes, got {}", side));
        bytes *= static_cast<std::uint64_t>(side);
    }
    if (records.record_bytes == 0)
        records.record_bytes = bytes;
    const auto fits = [&records](std::uint64_t at, std::uint64_t length) {
        return length <= records.record_bytes && at <= records.record_bytes - length;
    };
    if (!fits(records.data_at, bytes))
        refuse(fmt::format("data_at must leave room for {} bytes in a record of {}, got {}", bytes,
                           records.record_bytes, records.data_at));
    if (!records.label)
        return records;
    const RecordLabel& label = *records.label;
    switch (label.type) {
    case ScalarType::uint8:
    case ScalarType::int8:
    case ScalarType::int16:
    case ScalarType::int32:
    case ScalarType::int64: break;
    default: refuse("label.type must be uint8, int8, int16, int32 or int64");
    }
    if (!fits(label.at, size_of(label.type)))
        refuse(fmt::format("label.at must leave room for {} bytes in a record of {}, got {}", size_of(label.type),
                           records.record_bytes, label.at));
    if (label.classes < 0)
        refuse(fmt::format("label.classes must be at least 0, got {}", label.classes));
    return records;
}

ArrayPart open_part(const fs::path& path, const RawRecords& records, std::uint64_t first) {
    DataFile file{path};
    if (file.size() <= records.header_bytes)
        throw ArrayFileError{
            path, file.size(),
            fmt::format("the file ends here, and its first record is to begin at byte {}", records.header_bytes)};
    const std::uint64_t bytes = file.size() - records.header_bytes, over = bytes % records.record_bytes;
    if (over != 0)
        throw ArrayFileError{
            path, file.size() - over,
            fmt::format("the last record begins here and has {} of {} bytes", over, records.record_bytes)};
    return {.path = file.path(),
            .offset = records.header_bytes,
            .first = first,
            .count = bytes / records.record_bytes,
            .file = std::move(file)};
}

}   // namespace

ArrayRows idx(const fs::path& data, const fs::path& targets, const ArrayOptions& options) {
    return open_pair(data, targets, ArrayFormat::idx, options);
}

ArrayRows npy(const fs::path& data, const fs::path& targets, const ArrayOptions& options) {
    return open_pair(data, targets, ArrayFormat::npy, options);
}

ArrayRows mnist(const fs::path& folder, bool train, const ArrayOptions& options) {
    const std::uint64_t limit = limit_of(options);
    const IdxPair files = find_mnist(folder, train);
    const ArrayFile images{files.images, ArrayFormat::idx};
    const ArrayHeader& header = images.header();
    if (header.type != ArrayType::uint8 || header.shape.size() != 3 || header.shape[1] != 28 || header.shape[2] != 28)
        throw ArrayFileError{files.images, 0,
                             fmt::format("MNIST's images are uint8 of [n, 28, 28], these are {} of [{}]",
                                         name_of(header.type), fmt::join(header.shape, ", "))};
    const auto data = open_array(images, limit, options.sequential);
    data->layout.rank = 3;
    data->layout.shape = {1, 28, 28};
    data->targets = read_targets(files.labels, ArrayFormat::idx, data->size, 10, limit);
    return ArrayRows{data};
}

ArrayRows raw_records(const RawRecords& given, const ArrayOptions& options) {
    const RawRecords records = checked(given);
    auto data = std::make_shared<ArrayData>();
    data->layout = records.layout;
    data->record_bytes = records.record_bytes;
    data->data_at = records.data_at;
    data->big_endian = records.big_endian;
    data->label = records.label;
    data->sequential = options.sequential;
    for (const fs::path& path : records.paths) {
        data->parts.push_back(open_part(path, records, data->size));
        data->size += data->parts.back().count;
    }
    if (data->size > limit_of(options) / records.record_bytes)
        return ArrayRows{data};
    data->take_memory();
    for (ArrayPart& part : data->parts) {
        part.file->read(part.offset,
                        {data->records.get() + part.first * records.record_bytes, part.count * records.record_bytes});
        part.file.reset();
    }
    data->finish_memory();
    return ArrayRows{data};
}

namespace {

ArrayRows cifar(const CifarFiles& files, const ArrayOptions& options) {
    constexpr std::uint64_t pixels = 3 * 32 * 32;
    return raw_records({.paths = files.paths,
                        .layout = {ScalarType::uint8, 3, {3, 32, 32}},
                        .record_bytes = files.pixels_at + pixels,
                        .data_at = files.pixels_at,
                        .label = RecordLabel{.at = files.label_at, .classes = files.classes}},
                       options);
}

}   // namespace

ArrayRows cifar10(const fs::path& folder, bool train, const ArrayOptions& options) {
    return cifar(find_cifar10(folder, train), options);
}

ArrayRows cifar100(const fs::path& folder, bool train, Cifar100Labels labels, const ArrayOptions& options) {
    return cifar(find_cifar100(folder, train, labels == Cifar100Labels::coarse), options);
}

}   // namespace drawpoint
