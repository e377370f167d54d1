#include "cli/array_data.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <drawpoint/pipeline/storage/array_file.hpp>

namespace drawpoint::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::pair<std::string_view, ScalarType>, 9> scalar_types{{{"uint8", ScalarType::uint8},
                                                                               {"int8", ScalarType::int8},
                                                                               {"int16", ScalarType::int16},
                                                                               {"int32", ScalarType::int32},
                                                                               {"int64", ScalarType::int64},
                                                                               {"float16", ScalarType::float16},
                                                                               {"bfloat16", ScalarType::bfloat16},
                                                                               {"float32", ScalarType::float32},
                                                                               {"float64", ScalarType::float64}}};

bool has_any(const fs::path& folder, std::initializer_list<std::string_view> names) {
    std::error_code unknown;
    return std::ranges::any_of(names, [&](std::string_view name) { return fs::exists(folder / name, unknown); });
}

bool is_cifar100(const fs::path& folder) { return has_any(folder, {"cifar-100-binary", "train.bin"}); }

std::string_view name_of(ScalarType type) {
    const auto found = std::ranges::find(scalar_types, type, &std::pair<std::string_view, ScalarType>::second);
    return found == scalar_types.end() ? "bool" : found->first;
}

[[noreturn]] void refuse_record(const std::string& record) {
    throw UsageError{
        fmt::format("--record must be fields joined by '+', label:TYPE or TYPE:SHAPE, the values once, e.g. "
                    "label:uint8+uint8:3x32x32, got '{}'",
                    record)};
}

ScalarType type_named(const std::string& record, std::string_view name) {
    const auto found = std::ranges::find(scalar_types, name, &std::pair<std::string_view, ScalarType>::first);
    if (found == scalar_types.end())
        refuse_record(record);
    return found->second;
}

/// What `--record label:uint8+uint8:3x32x32` says a record is.
RawRecords parse_record(const std::string& record, const std::string& file) {
    RawRecords raw{.paths = {file}, .layout = {}};
    bool has_values = false;
    std::uint64_t at = 0;
    for (std::string_view rest = record; !rest.empty();) {
        const std::string_view field = rest.substr(0, rest.find('+'));
        rest.remove_prefix(std::min(rest.size(), field.size() + 1));
        const std::size_t colon = field.find(':');
        if (colon == field.npos)
            refuse_record(record);
        const std::string_view first = field.substr(0, colon), second = field.substr(colon + 1);
        if (first == "label") {
            if (raw.label)
                refuse_record(record);
            raw.label = RecordLabel{.at = at, .type = type_named(record, second)};
            at += size_of(raw.label->type);
            continue;
        }
        SampleLayout layout{.type = type_named(record, first)};
        for (std::string_view sizes = second; !sizes.empty(); ++layout.rank) {
            std::uint32_t size = 0;
            const auto [end, error] = std::from_chars(sizes.data(), sizes.data() + sizes.size(), size);
            sizes.remove_prefix(static_cast<std::size_t>(end - sizes.data()));
            if (error != std::errc{} || size == 0 || layout.rank == layout.shape.size() ||
                (!sizes.empty() && (sizes.front() != 'x' || sizes.size() == 1)))
                refuse_record(record);
            layout.shape[layout.rank] = size;
            sizes.remove_prefix(sizes.empty() ? 0 : 1);
        }
        if (has_values || layout.rank == 0)
            refuse_record(record);
        has_values = true;
        raw.layout = layout;
        raw.data_at = at;
        at += layout.bytes();
    }
    if (!has_values || record.ends_with('+'))
        refuse_record(record);
    raw.record_bytes = at;
    return raw;
}

/// The largest target + 1. Reads all rows once, a few megabytes at a time.
std::size_t classes_of(const ArrayRows& rows, const std::string& data) {
    const std::uint64_t bytes = rows.layout().bytes(), available = available_memory();
    constexpr std::uint64_t always_tried = 256 << 20;                  // the system gives that, or says so itself
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

/// What a model takes. Throws Failure naming the type of what it does not.
ArrayRows as_floats(const ArrayRows& rows, const std::string& data) {
    const ScalarType type = rows.layout().type;
    if (type == ScalarType::float32)
        return rows;
    if (type == ScalarType::uint8)
        return rows.to_float();
    throw Failure{fmt::format("{}: models here take uint8 or float32 values, these are {}", data, name_of(type))};
}

}   // namespace

std::optional<std::string_view> array_format_of(const std::string& data) {
    const fs::path path{data};
    std::error_code unknown;
    if (path.extension() == ".npy")
        return "npy";
    if (data.ends_with("-ubyte") || data.ends_with("-ubyte.gz"))
        return "idx";
    if (!fs::is_directory(path, unknown))
        return std::nullopt;
    for (const fs::path& folder : {path, path / "raw", path / "MNIST" / "raw"})
        if (has_any(folder, {"train-images-idx3-ubyte", "train-images-idx3-ubyte.gz"}))
            return "idx";
    if (has_any(path, {"cifar-10-batches-bin", "data_batch_1.bin"}) || is_cifar100(path))
        return "cifar";
    return std::nullopt;
}

void check_record(const ProfileOptions& options) {
    if (options.record.empty())
        throw UsageError{"--format raw needs --record, e.g. --record label:uint8+uint8:3x32x32"};
    (void)parse_record(options.record, options.data);
}

ArraySet open_arrays(const ProfileOptions& options, std::string_view format, const std::string& data, bool train) {
    std::error_code unknown;
    if (format == "cifar") {
        if (is_cifar100(data))
            return {cifar100(data, train).to_float(), 100};
        return {cifar10(data, train).to_float(), 10};
    }
    if (format == "idx" && fs::is_directory(data, unknown)) {
        const ArrayRows rows = mnist(data, train);
        return {rows.to_float(), classes_of(rows, data)};
    }
    if (format != "raw" && options.targets.empty())
        throw UsageError{fmt::format("--data {} needs --targets: the file of its classes", data)};
    const ArrayRows rows = format == "idx"   ? idx(data, options.targets)
                           : format == "npy" ? npy(data, options.targets)
                                             : raw_records(parse_record(options.record, data));
    return {as_floats(rows, data), classes_of(rows, data)};
}

}   // namespace drawpoint::cli
