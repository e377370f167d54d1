#include <drawpoint/loop/loggers/file_loggers.hpp>

#include <exception>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "loop/loggers/record_file.hpp"

namespace drawpoint {
namespace {

std::string cell(std::string_view text) {
    if (text.find_first_of(",\"\r\n") == text.npos)
        return std::string{text};
    std::string quoted = "\"";
    for (const char c : text)
        quoted += c == '"' ? std::string{"\"\""} : std::string{c};
    return quoted + '"';
}

std::string line(const std::vector<std::string>& cells) {
    std::string text;
    for (const std::string& one : cells)
        text += (&one == &cells.front() ? "" : ",") + cell(one);
    return text + '\n';
}

std::string as_file_name(std::string_view name) {
    std::string text{name};
    for (char& c : text)
        if (static_cast<unsigned char>(c) < ' ' || std::string_view{"\\/:*?\"<>|"}.find(c) != std::string_view::npos)
            c = '_';
    return text;
}

}   // namespace

CsvLogger::CsvLogger(std::filesystem::path file, bool append)
    : path_{std::move(file)},
      append_{append},
      scalars_{std::make_unique<RecordFile>(path_, append ? RecordFile::Mode::append : RecordFile::Mode::anew)} {
    if (scalars_->is_empty())
        scalars_->write("step,name,value\n");
}

CsvLogger::~CsvLogger() = default;

std::filesystem::path CsvLogger::beside(std::string_view name) const {
    std::filesystem::path path = path_;
    if (path.extension() == ".csv")
        path.replace_extension();
    path += "." + as_file_name(name) + ".csv";
    return path;
}

void CsvLogger::log_scalars(std::span<const Scalar> scalars, std::uint64_t step) {
    std::string text;
    for (const Scalar& scalar : scalars)
        fmt::format_to(std::back_inserter(text), "{},{},{}\n", step, cell(scalar.name), scalar.value);
    scalars_->write(text);
}

void CsvLogger::log_summary(std::string_view name, std::span<const double> values) {
    std::string text;
    for (std::size_t i = 0; i < values.size(); ++i)
        fmt::format_to(std::back_inserter(text), "{},{},{}\n", cell(name), i, values[i]);
    try {
        if (!summary_)
            summary_ = std::make_unique<RecordFile>(beside("summary"),
                                                    append_ ? RecordFile::Mode::append : RecordFile::Mode::anew);
    } catch (const std::exception& failed) {
        table_error_ = failed.what();
        return;
    }
    if (summary_->is_empty())
        summary_->write("name,index,value\n");
    summary_->write(text);
}

void CsvLogger::log_table(std::string_view name, const LogTable& table) {
    std::string text = line(table.titles);
    for (const auto& row : table.rows)
        text += line(row);
    try {
        RecordFile file{beside(name), RecordFile::Mode::anew};
        file.write(text);
        if (!file.error().empty())
            table_error_ = file.error();
    } catch (const std::exception& failed) {
        table_error_ = failed.what();
    }
}

std::string CsvLogger::error() const {
    if (!scalars_->error().empty())
        return scalars_->error();
    return summary_ && !summary_->error().empty() ? summary_->error() : table_error_;
}

}   // namespace drawpoint
