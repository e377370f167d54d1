#pragma once

#include <filesystem>
#include <memory>

#include <drawpoint/loop/loggers/logger.hpp>

namespace drawpoint {

class RecordFile;

/// Numbers as CSV, `step,name,value`, one a line, in the shortest form that reads back exactly ("nan", "inf").
/// Summaries go to `FILE.summary.csv` (`name,index,value`) and tables to `FILE.NAME.csv` beside it, FILE without its
/// ".csv"; a name's characters that no file name takes become "_". Each record is in the system's hands when logged, so
/// a killed run leaves it.
class CsvLogger final : public Logger {
public:
    /// Begins `file` anew, or goes on in it (`append`: a resumed run). Creates its folder. Throws std::system_error
    /// naming it.
    explicit CsvLogger(std::filesystem::path file, bool append = false);
    ~CsvLogger() override;
    void log_scalars(std::span<const Scalar>, std::uint64_t step) override;
    void log_summary(std::string_view name, std::span<const double> values) override;
    void log_table(std::string_view name, const LogTable&) override;
    [[nodiscard]] std::string error() const override;

private:
    [[nodiscard]] std::filesystem::path beside(std::string_view name) const;
    std::filesystem::path path_;
    bool append_;
    std::unique_ptr<RecordFile> scalars_, summary_;
    std::string table_error_;
};

/// One JSON object a line, `time_s` being seconds since 1970:
/// `{"step":12,"time_s":…,"scalars":{"throughput/step":1645.5}}`, `{"time_s":…,"summary":"fit/duration","values":[…]}`,
/// `{"time_s":…,"table":"profile_report","columns":[…],"rows":[[…]]}`. What is not finite is null; what is not UTF-8 is
/// replaced. A killed run leaves all records but at most a part of the last.
class JsonLinesLogger final : public Logger {
public:
    /// As `CsvLogger`.
    explicit JsonLinesLogger(std::filesystem::path file, bool append = false);
    ~JsonLinesLogger() override;
    void log_scalars(std::span<const Scalar>, std::uint64_t step) override;
    void log_summary(std::string_view name, std::span<const double> values) override;
    void log_table(std::string_view name, const LogTable&) override;
    [[nodiscard]] std::string error() const override;

private:
    std::unique_ptr<RecordFile> file_;
};

/// An event file of TensorBoard (`tensorboard --logdir FOLDER`): scalars as such, in single precision; a summary as a
/// histogram of 30 buckets over its finite values; a table as text, in Markdown. One file a logger, never an old one;
/// every record in the system's hands when logged.
class TensorBoardLogger final : public Logger {
public:
    /// Makes a file `events.out.tfevents.TIME.HOST.PID.N` in `folder`, which is created. Throws std::system_error
    /// naming it.
    explicit TensorBoardLogger(const std::filesystem::path& folder);
    ~TensorBoardLogger() override;
    void log_scalars(std::span<const Scalar>, std::uint64_t step) override;
    void log_summary(std::string_view name, std::span<const double> values) override;
    void log_table(std::string_view name, const LogTable&) override;
    [[nodiscard]] std::string error() const override;
    [[nodiscard]] const std::filesystem::path& file() const noexcept;

private:
    std::unique_ptr<RecordFile> file_;
    std::uint64_t last_step_ = 0;   // what has no step of its own stands at the last one
};

}   // namespace drawpoint
