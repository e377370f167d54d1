#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include <drawpoint/loop/loggers/logger.hpp>

namespace drawpoint {

class RecordFile;

/// Logs scalars as CSV lines `step,name,value`, in the shortest form that reads back exactly ("nan", "inf"). Summaries
/// go to `FILE.summary.csv` (`name,index,value`) and tables to `FILE.NAME.csv` in the same folder, where FILE lacks its
/// ".csv"; characters of a name that file names cannot contain become "_". Each record is passed to the system when it
/// is logged, so it survives a killed process.
class CsvLogger final : public Logger {
public:
    /// Truncates `file`, or continues it (`append`, for a resumed run). Creates its folder. Throws std::system_error
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

/// Logs one JSON object per line, with `time_s` in seconds since 1970:
/// `{"step":12,"time_s":…,"scalars":{"throughput/step":1645.5}}`,
/// `{"time_s":…,"summary":"fit/duration","values":[…]}`,
/// `{"time_s":…,"table":"profile_report","columns":[…],"rows":[[…]]}`,
/// `{"time_s":…,"settings":{"num-workers":"2"}}`, `{"time_s":…,"text":"verdict","markdown":"…"}`.
/// Values that are not finite become null; bytes that are not UTF-8 are replaced. If the process is killed, all records
/// are in the file except perhaps part of the last.
class JsonLinesLogger final : public Logger {
public:
    /// As `CsvLogger`.
    explicit JsonLinesLogger(std::filesystem::path file, bool append = false);
    ~JsonLinesLogger() override;
    void log_scalars(std::span<const Scalar>, std::uint64_t step) override;
    void log_summary(std::string_view name, std::span<const double> values) override;
    void log_table(std::string_view name, const LogTable&) override;
    void log_text(std::string_view name, std::string_view markdown) override;
    void log_settings(std::span<const LogSetting>, std::span<const std::string_view> metrics) override;
    [[nodiscard]] std::string error() const override;

private:
    std::unique_ptr<RecordFile> file_;
};

/// Scalars shown in one chart.
struct ScalarChart {
    std::string_view title;
    std::vector<std::string_view> names;
};

/// Writes an event file for TensorBoard (`tensorboard --logdir FOLDER`): scalars in single precision, a summary as a
/// histogram of 30 buckets over its finite values, a table and a text as Markdown, settings as hyperparameters of the
/// run, which the folder's name is. Each logger makes a new file. Every record is passed to the system when it is
/// logged.
class TensorBoardLogger final : public Logger {
public:
    /// Makes a file `events.out.tfevents.TIME.HOST.PID.N` in `folder`, creating the folder if necessary. Throws
    /// std::system_error naming it.
    explicit TensorBoardLogger(const std::filesystem::path& folder);
    ~TensorBoardLogger() override;
    void log_scalars(std::span<const Scalar>, std::uint64_t step) override;
    void log_summary(std::string_view name, std::span<const double> values) override;
    void log_table(std::string_view name, const LogTable&) override;
    void log_text(std::string_view name, std::string_view markdown) override;
    void log_settings(std::span<const LogSetting>, std::span<const std::string_view> metrics) override;
    /// Charts of several scalars each, for TensorBoard's page of custom scalars.
    void log_charts(std::string_view category, std::span<const ScalarChart>);
    void finish() override;
    [[nodiscard]] std::string error() const override;
    [[nodiscard]] const std::filesystem::path& file() const noexcept;

private:
    std::unique_ptr<RecordFile> file_;
    std::uint64_t last_step_ = 0;   // used for records without a step of their own
    bool has_settings_ = false;

    void write_hparams(std::string_view name, std::string_view content);
};

}   // namespace drawpoint
