#include "cli/array_data.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <vector>

#include <fmt/format.h>

#include <drawpoint/pipeline/storage/array_file.hpp>

namespace drawpoint::cli {
namespace {

namespace fs = std::filesystem;

/// Names of types in the order of ScalarType, whose last, bool, is no type of a record.
constexpr std::array<std::string_view, 10> scalar_names{"uint8", "int64",   "float32",  "int8",    "int16",
                                                        "int32", "float16", "bfloat16", "float64", "bool"};

bool has_any(const fs::path& folder, std::initializer_list<std::string_view> names) {
    std::error_code unknown;
    return std::ranges::any_of(names, [&](std::string_view name) { return fs::exists(folder / name, unknown); });
}

bool is_cifar100(const fs::path& folder) { return has_any(folder, {"cifar-100-binary", "train.bin"}); }

[[noreturn]] void refuse_record(std::string_view record) {
    throw UsageError{
        fmt::format("--record must be fields joined by '+', label:TYPE or TYPE:SHAPE, the values once, e.g. "
                    "label:uint8+uint8:3x32x32, got '{}'",
                    record)};
}

ScalarType type_named(std::string_view record, std::string_view name) {
    const auto end = scalar_names.end() - 1, found = std::find(scalar_names.begin(), end, name);
    if (found == end)
        refuse_record(record);
    return static_cast<ScalarType>(found - scalar_names.begin());
}

/// Reads the field TYPE:SHAPE of a record.
SampleLayout layout_in(std::string_view record, std::string_view type, std::string_view shape) {
    SampleLayout layout{.type = type_named(record, type)};
    for (const std::string_view text : split(shape, 'x')) {
        const auto size = number_in<std::uint32_t>(text);
        if (!size || *size == 0 || layout.rank == layout.shape.size())
            refuse_record(record);
        layout.shape[layout.rank++] = *size;
    }
    return layout;
}

/// The largest target + 1. Reads all rows once, a few megabytes at a time.
std::size_t classes_of(const ArrayRows& rows, const std::string& data) {
    const std::uint64_t bytes = rows.layout().bytes(), available = available_memory();
    constexpr std::uint64_t always_tried = 256 << 20;                  // allocated, or refused by the system
    if (bytes > always_tried && available != 0 && bytes > available)   // 0: not known
        throw Failure{
            fmt::format("{}: a sample of {} bytes is more than the {} of memory available", data, bytes, available)};
    const auto run = static_cast<std::size_t>(std::clamp<std::uint64_t>((4 << 20) / bytes, 1, 1024));
    const auto scratch = rows.make_scratch();
    std::vector<std::uint64_t> indices;
    std::vector<std::byte> values(run * bytes);
    std::vector<std::int64_t> targets(run);
    std::int64_t most = 0;
    for (std::uint64_t first = 0; first < rows.size(); first += run) {
        indices.clear();
        for (std::uint64_t i = first; i < std::min<std::uint64_t>(first + run, rows.size()); ++i)
            indices.push_back(i);
        SampleRun samples{.indices = indices, .data = values.data(), .targets = targets.data()};
        rows.fill_run(samples, *scratch);
        for (std::size_t i = 0; i < indices.size(); ++i) {
            if (targets[i] < 0 || targets[i] > 1'000'000)
                throw Failure{fmt::format("{}: the target {} of sample {} is no class", data, targets[i], indices[i])};
            most = std::max(most, targets[i]);
        }
    }
    return static_cast<std::size_t>(most) + 1;
}

/// The rows as float32, which models take. Throws Failure naming the type of rows that cannot be converted.
ArrayRows as_floats(const ArrayRows& rows, const std::string& data) {
    const ScalarType type = rows.layout().type;
    if (type == ScalarType::float32)
        return rows;
    if (type == ScalarType::uint8)
        return rows.to_float();
    throw Failure{fmt::format("{}: models here take uint8 or float32 values, these are {}", data,
                              scalar_names[static_cast<std::size_t>(type)])};
}

}   // namespace

std::optional<DataFormat> array_format_of(const std::string& data) {
    const fs::path path{data};
    std::error_code unknown;
    if (path.extension() == ".npy")
        return DataFormat::npy;
    if (data.ends_with("-ubyte") || data.ends_with("-ubyte.gz"))
        return DataFormat::idx;
    if (!fs::is_directory(path, unknown))
        return std::nullopt;
    for (const fs::path& folder : {path, path / "raw", path / "MNIST" / "raw"})
        if (has_any(folder, {"train-images-idx3-ubyte", "train-images-idx3-ubyte.gz"}))
            return DataFormat::idx;
    if (has_any(path, {"cifar-10-batches-bin", "data_batch_1.bin"}) || is_cifar100(path))
        return DataFormat::cifar;
    return std::nullopt;
}

std::optional<RawRecords> record_in(std::string_view, std::string_view text) {
    if (text.empty())
        return std::nullopt;
    RawRecords raw{.paths = {}, .layout = {}};
    bool has_values = false;
    std::uint64_t at = 0;
    for (const std::string_view field : split(text, '+')) {
        const std::size_t colon = field.find(':');
        if (colon == field.npos)
            refuse_record(text);
        const std::string_view first = field.substr(0, colon), second = field.substr(colon + 1);
        if (first == "label" ? raw.label.has_value() : has_values)
            refuse_record(text);
        if (first == "label") {
            raw.label = RecordLabel{.at = at, .type = type_named(text, second)};
            at += size_of(raw.label->type);
        } else {
            has_values = true;
            raw.layout = layout_in(text, first, second);
            raw.data_at = at;
            at += raw.layout.bytes();
        }
    }
    if (!has_values)
        refuse_record(text);
    raw.record_bytes = at;
    return raw;
}

ArraySet open_arrays(const ProfileOptions& options, DataFormat format, const std::string& data, bool train) {
    std::error_code unknown;
    if (format == DataFormat::cifar) {
        if (is_cifar100(data))
            return {cifar100(data, train).to_float(), 100};
        return {cifar10(data, train).to_float(), 10};
    }
    if (format == DataFormat::idx && fs::is_directory(data, unknown)) {
        const ArrayRows rows = mnist(data, train);
        return {rows.to_float(), classes_of(rows, data)};
    }
    RawRecords records = options.record.value.value_or(RawRecords{});
    records.paths = {data};
    if (format != DataFormat::raw && options.targets.empty())
        throw UsageError{fmt::format("--data {} needs --targets: the file of its classes", data)};
    const ArrayRows rows = format == DataFormat::idx   ? idx(data, options.targets)
                           : format == DataFormat::npy ? npy(data, options.targets)
                                                       : raw_records(records);
    return {as_floats(rows, data), classes_of(rows, data)};
}

}   // namespace drawpoint::cli
