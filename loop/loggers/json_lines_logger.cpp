#include <drawpoint/loop/loggers/file_loggers.hpp>

#include <utility>

#include <nlohmann/json.hpp>

#include "loop/loggers/record_file.hpp"

namespace drawpoint {
namespace {

using Json = nlohmann::ordered_json;

std::string line(const Json& record) { return record.dump(-1, ' ', false, Json::error_handler_t::replace) + '\n'; }

}   // namespace

JsonLinesLogger::JsonLinesLogger(std::filesystem::path file, bool append)
    : file_{std::make_unique<RecordFile>(std::move(file), append ? RecordFile::Mode::append : RecordFile::Mode::anew)} {
}

JsonLinesLogger::~JsonLinesLogger() = default;

void JsonLinesLogger::log_scalars(std::span<const Scalar> scalars, std::uint64_t step) {
    Json values = Json::object();
    for (const Scalar& scalar : scalars)
        values[std::string{scalar.name}] = scalar.value;
    file_->write(line({{"step", step}, {"time_s", time_s_.value_or(wall_time_s())}, {"scalars", std::move(values)}}));
}

void JsonLinesLogger::log_summary(std::string_view name, std::span<const double> values) {
    Json numbers = Json::array();
    for (const double value : values)
        numbers.push_back(value);
    file_->write(
        line({{"time_s", time_s_.value_or(wall_time_s())}, {"summary", name}, {"values", std::move(numbers)}}));
}

void JsonLinesLogger::log_table(std::string_view name, const LogTable& table) {
    file_->write(line({{"time_s", time_s_.value_or(wall_time_s())},
                       {"table", name},
                       {"columns", table.titles},
                       {"rows", table.rows}}));
}

void JsonLinesLogger::log_text(std::string_view name, std::string_view markdown) {
    file_->write(line({{"time_s", time_s_.value_or(wall_time_s())}, {"text", name}, {"markdown", markdown}}));
}

void JsonLinesLogger::log_settings(std::span<const LogSetting> settings, std::span<const std::string_view>) {
    Json values = Json::object();
    for (const LogSetting& setting : settings)
        values[std::string{setting.name}] = setting.value;
    file_->write(line({{"time_s", time_s_.value_or(wall_time_s())}, {"settings", std::move(values)}}));
}

std::string JsonLinesLogger::error() const { return file_->error(); }

}   // namespace drawpoint
