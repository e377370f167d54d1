#include <drawpoint/loop/loggers/tracker_loggers.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>
#include <random>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <protozero/pbf_writer.hpp>
#include <unistd.h>
#include <zlib.h>

#include "loop/loggers/record_file.hpp"
#include "loop/loggers/setting_number.hpp"
#include "loop/loggers/value_histogram.hpp"

// Field numbers are those of W&B's wandb_internal.proto.
namespace drawpoint {
namespace {

using protozero::pbf_writer;
using Json = nlohmann::ordered_json;

enum RecordField : protozero::pbf_tag_type {
    number = 1,
    history = 2,
    summary = 3,
    config = 5,
    files = 6,
    run = 17,
    exit_of_run = 18
};
constexpr protozero::pbf_tag_type item_field = 1, key_field = 1, json_field = 16;

/// The file is a log of blocks, of which the file's own header is the beginning of the first. A record is cut into
/// chunks that do not cross a block's end, each with its checksum, length and place in the record.
constexpr std::size_t block_bytes = 32'768, header_bytes = 7;

std::string random_id() {
    constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyz0123456789";
    std::random_device random;
    std::string id;
    for (int i = 0; i < 8; ++i)
        id += letters[random() % letters.size()];
    return id;
}

std::string json_of(const Json& value) { return value.dump(-1, ' ', false, Json::error_handler_t::replace); }
std::string json_of_number(double value) {   // as Python writes it: the reader is Python's
    return std::isfinite(value) ? json_of(Json(value))
           : std::isnan(value)  ? "NaN"
           : value > 0          ? "Infinity"
                                : "-Infinity";
}

void add_item(pbf_writer& to, std::string_view key, std::string_view json) {
    pbf_writer item{to, item_field};
    item.add_string(key_field, key.data(), key.size());
    item.add_string(json_field, json.data(), json.size());
}

/// The step of a record of the history.
void add_step(pbf_writer& to, std::uint64_t step) {
    add_item(to, "_step", fmt::format("{}", step));
    pbf_writer at{to, 2};
    at.add_int64(1, static_cast<std::int64_t>(step));
}

std::filesystem::path run_folder(const std::filesystem::path& folder, const std::string& id, double start_s) {
    const auto seconds = static_cast<std::time_t>(start_s);
    std::tm parts{};
    gmtime_r(&seconds, &parts);
    std::array<char, 32> text{};
    std::strftime(text.data(), text.size(), "%Y%m%d_%H%M%S", &parts);
    return folder / fmt::format("offline-run-{}-{}", text.data(), id);
}

/// A name for a file: without what file names cannot have.
std::string file_name(std::string_view name) {
    std::string text{name};
    std::ranges::replace(text, '/', '_');
    return text;
}

}   // namespace

WandbLogger::WandbLogger(const std::filesystem::path& folder, std::string_view project)
    : id_{random_id()}, project_{project} {
    folder_ = run_folder(folder, id_, wall_time_s());
    file_ = std::make_unique<RecordFile>(folder_ / fmt::format("run-{}.wandb", id_), RecordFile::Mode::exclusive);
    file_->write(std::string_view{":W&B\xE1\xBE\0", header_bytes});
    bytes_ = header_bytes;
}

WandbLogger::~WandbLogger() {
    if (is_over_)
        return;
    end_ = RunEnd::failed;
    try {
        finish();
    } catch (...) {   // no memory: the run has no end, which W&B takes for a failure, too
    }
}

void WandbLogger::begin() {
    if (std::exchange(has_begun_, true))
        return;
    start_s_ = time_s_.value_or(wall_time_s());
    std::string message;
    pbf_writer to{message};
    to.add_string(1, id_);
    to.add_string(3, project_);
    std::array<char, 256> host{};
    if (::gethostname(host.data(), host.size() - 1) == 0)
        to.add_string(13, host.data());
    {
        pbf_writer start{to, 17};
        start.add_int64(1, static_cast<std::int64_t>(start_s_));
        start.add_int32(2, static_cast<std::int32_t>((start_s_ - std::floor(start_s_)) * 1e9));
    }
    write(RecordField::run, message);
}

void WandbLogger::write(std::uint32_t field, std::string_view message) {
    std::string record;
    {
        pbf_writer to{record};
        to.add_int64(RecordField::number, static_cast<std::int64_t>(++records_));
        to.add_message(field, message.data(), message.size());
    }
    std::string chunks;
    enum Place : unsigned char { whole = 1, first = 2, middle = 3, last = 4 };
    bool is_first = true;
    for (std::size_t at = 0; is_first || at < record.size(); is_first = false) {
        std::size_t left = block_bytes - bytes_ % block_bytes;
        if (left < header_bytes) {
            chunks.append(left, '\0');
            bytes_ += left;
            left = block_bytes;
        }
        const std::size_t length = std::min(record.size() - at, left - header_bytes);
        const bool ends = at + length == record.size();
        std::string body(1, static_cast<char>(is_first ? (ends ? whole : first) : (ends ? last : middle)));
        body.append(record, at, length);
        const auto sum = static_cast<std::uint32_t>(
            ::crc32(0, reinterpret_cast<const Bytef*>(body.data()), static_cast<uInt>(body.size())));
        for (int byte = 0; byte < 4; ++byte)
            chunks += static_cast<char>(sum >> (8 * byte) & 0xFF);
        chunks += static_cast<char>(length & 0xFF);
        chunks += static_cast<char>(length >> 8 & 0xFF);
        chunks += body;
        bytes_ += header_bytes + length;
        at += length;
    }
    file_->write(chunks);
}

void WandbLogger::log_settings(std::span<const LogSetting> settings, std::span<const std::string_view>) {
    begin();
    std::string message;
    pbf_writer to{message};
    for (const LogSetting& setting : settings) {
        const auto number = number_in(setting.value);
        // W&B keeps each setting as an object.
        add_item(to, setting.name, json_of({{"value", number ? Json(*number) : Json(setting.value)}}));
    }
    write(RecordField::config, message);
}

void WandbLogger::log_scalars(std::span<const Scalar> scalars, std::uint64_t step) {
    begin();
    last_step_ = std::max(last_step_, step);
    const double now_s = time_s_.value_or(wall_time_s());
    std::string message;
    pbf_writer to{message};
    for (const Scalar& scalar : scalars) {
        add_item(to, scalar.name, json_of_number(scalar.value));
        last_.insert_or_assign(std::string{scalar.name}, scalar.value);
    }
    add_item(to, "_timestamp", json_of_number(now_s));
    add_item(to, "_runtime", json_of_number(now_s - start_s_));
    add_step(to, last_step_);
    write(RecordField::history, message);
}

void WandbLogger::log_summary(std::string_view name, std::span<const double> values) {
    const auto histogram = histogram_of(values);
    if (!histogram)
        return;
    begin();
    std::vector<double> edges{histogram->low};
    edges.insert(edges.end(), histogram->right_edges.begin(), histogram->right_edges.end());
    std::string message;
    pbf_writer to{message};
    add_item(to, name, json_of({{"_type", "histogram"}, {"values", histogram->counts}, {"bins", edges}}));
    add_step(to, ++last_step_);
    write(RecordField::history, message);
}

void WandbLogger::add_file(const std::string& name, std::string_view content) {
    begin();
    try {
        RecordFile file{folder_ / "files" / name, RecordFile::Mode::anew};
        file.write(content);
        if (file_error_.empty())
            file_error_ = file.error();
    } catch (const std::system_error& failed) {
        if (file_error_.empty())
            file_error_ = failed.what();
        return;
    }
    std::string message;
    pbf_writer to{message};
    {
        constexpr std::int32_t at_the_end = 1;
        pbf_writer one{to, 1};
        one.add_string(1, name);
        one.add_enum(2, at_the_end);
    }
    write(RecordField::files, message);
}

void WandbLogger::log_table(std::string_view name, const LogTable& table) {
    const std::string path = fmt::format("media/table/{}.table.json", file_name(name));
    const std::string content = json_of({{"columns", table.titles}, {"data", table.rows}});
    add_file(path, content);
    std::string message;
    pbf_writer to{message};
    add_item(to, name,
             json_of({{"_type", "table-file"},
                      {"path", path},
                      {"size", content.size()},
                      {"ncols", table.titles.size()},
                      {"nrows", table.rows.size()}}));
    add_step(to, ++last_step_);
    write(RecordField::history, message);
}

void WandbLogger::log_text(std::string_view name, std::string_view markdown) {
    add_file(file_name(name) + ".md", markdown);
}

void WandbLogger::finish() {
    if (std::exchange(is_over_, true))
        return;
    begin();
    std::string message;
    {
        pbf_writer to{message};
        for (const auto& [name, value] : last_) {
            add_item(to, name, json_of_number(value));
        }
    }
    write(RecordField::summary, message);
    message.clear();
    pbf_writer to{message};
    to.add_int32(1, end_ == RunEnd::finished ? 0 : 1);
    to.add_int32(2, static_cast<std::int32_t>(std::clamp(time_s_.value_or(wall_time_s()) - start_s_, 0.0, 2e9)));
    write(RecordField::exit_of_run, message);
}

std::string WandbLogger::error() const { return file_->error().empty() ? file_error_ : file_->error(); }
const std::filesystem::path& WandbLogger::file() const noexcept { return file_->path(); }

}   // namespace drawpoint
