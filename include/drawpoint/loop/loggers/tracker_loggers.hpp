#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include <drawpoint/loop/loggers/logger.hpp>

namespace drawpoint {

class RecordFile;

/// Writes an offline run of Weights & Biases: `FOLDER/offline-run-TIME-ID/run-ID.wandb`, which `wandb sync` sends.
/// Scalars are its history and, as they were last, its summary; settings its config; summaries histograms; tables and
/// texts files of the run. Steps must not decrease. A run whose logger is destroyed before `finish()` has failed.
class WandbLogger final : public Logger {
public:
    /// `folder`: by W&B's convention `wandb`, in the current folder. Throws std::system_error naming what could not be
    /// made.
    explicit WandbLogger(const std::filesystem::path& folder, std::string_view project = "drawpoint");
    ~WandbLogger() override;
    void log_scalars(std::span<const Scalar>, std::uint64_t step) override;
    void log_summary(std::string_view name, std::span<const double> values) override;
    void log_table(std::string_view name, const LogTable&) override;
    void log_text(std::string_view name, std::string_view markdown) override;
    void log_settings(std::span<const LogSetting>, std::span<const std::string_view> metrics) override;
    void finish() override;
    [[nodiscard]] std::string error() const override;
    /// The run's file, `run-ID.wandb`.
    [[nodiscard]] const std::filesystem::path& file() const noexcept;

private:
    void begin();   // writes the run's record before the first other one
    void write(std::uint32_t field, std::string_view message);
    void add_file(const std::string& name, std::string_view content);

    std::filesystem::path folder_;
    std::string id_, project_;
    std::unique_ptr<RecordFile> file_;
    std::uint64_t records_ = 0, bytes_ = 0, last_step_ = 0;
    double start_s_ = 0;
    bool has_begun_ = false, is_over_ = false;
    std::map<std::string, double, std::less<>> last_;   // of each scalar
    std::string file_error_;
};

/// Writes a run into a file store of MLflow: `FOLDER/0/RUN/`, which `mlflow ui --backend-store-uri FOLDER` shows
/// (MLflow 3.7 and later ask for `MLFLOW_ALLOW_FILE_STORE=true`). Scalars are metrics, settings parameters; summaries,
/// tables and texts artifacts. A run whose logger is destroyed before `finish()` has failed.
class MlflowLogger final : public Logger {
public:
    /// `folder`: by MLflow's convention `mlruns`, in the current folder. Throws std::system_error naming what could not
    /// be made.
    explicit MlflowLogger(const std::filesystem::path& folder, std::string_view run_name = "drawpoint");
    ~MlflowLogger() override;
    void log_scalars(std::span<const Scalar>, std::uint64_t step) override;
    void log_summary(std::string_view name, std::span<const double> values) override;
    void log_table(std::string_view name, const LogTable&) override;
    void log_text(std::string_view name, std::string_view markdown) override;
    void log_settings(std::span<const LogSetting>, std::span<const std::string_view> metrics) override;
    void finish() override;
    [[nodiscard]] std::string error() const override;
    /// The run's folder.
    [[nodiscard]] const std::filesystem::path& folder() const noexcept { return run_; }

private:
    void write_file(const std::filesystem::path& name, std::string_view content);
    void write_meta(int status);
    [[nodiscard]] std::int64_t now_ms() const noexcept;

    std::filesystem::path root_, run_;
    std::string name_, error_;
    std::int64_t start_ms_ = 0, end_ms_ = 0;
    bool is_over_ = false;
    std::map<std::string, std::unique_ptr<RecordFile>, std::less<>> metrics_;
};

}   // namespace drawpoint
