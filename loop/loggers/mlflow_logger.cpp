#include <drawpoint/loop/loggers/tracker_loggers.hpp>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "loop/loggers/record_file.hpp"

namespace drawpoint {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr int running = 1, finished = 3, failed = 4, killed = 5;   // MLflow's numbers

std::string random_id() {
    std::random_device random;
    std::string id;
    for (int i = 0; i < 4; ++i)
        id += fmt::format("{:08x}", random());
    return id;
}

/// A text as a scalar of YAML that nothing can break.
std::string yaml_text(std::string_view text) {
    return Json(std::string{text}).dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// The address of a file, with what addresses reserve escaped.
std::string address_of(const fs::path& path) {
    std::string address = "file://";
    for (const char c : path.string())
        address += std::string_view{"%#? "}.find(c) == std::string_view::npos
                       ? std::string(1, c)
                       : fmt::format("%{:02X}", static_cast<unsigned char>(c));
    return address;
}

/// A key as MLflow allows it, with letters, digits, "_", "-", ".", " " and "/", as a path that stays in its folder.
std::string key_of(std::string_view name) {
    std::string key{name};
    for (char& c : key)
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
              c == '.' || c == ' ' || c == '/'))
            c = '_';
    for (std::size_t at = 0; at <= key.size();) {   // no part may be empty, "." or ".."
        const std::size_t end = std::min(key.find('/', at), key.size());
        if (key.find_first_not_of('.', at) >= end) {
            key.replace(at, end - at, "_");
            at += 2;
        } else {
            at = end + 1;
        }
    }
    return key;
}

/// At most so many bytes, of whole characters of UTF-8.
std::string_view shortened(std::string_view text, std::size_t bytes) {
    if (text.size() <= bytes)
        return text;
    while (bytes > 0 && (static_cast<unsigned char>(text[bytes]) & 0xC0) == 0x80)
        --bytes;
    return text.substr(0, bytes);
}

std::string user_name() {
    const char* const user = std::getenv("USER");
    return user && *user ? user : "unknown";
}

}   // namespace

MlflowLogger::MlflowLogger(const fs::path& folder, std::string_view run_name)
    : root_{fs::absolute(folder)}, name_{run_name} {
    const fs::path experiment = root_ / "0";
    const std::string id = random_id();
    run_ = experiment / id;
    fs::create_directories(run_ / "artifacts");
    for (const char* const part : {"metrics", "params", "tags"})
        fs::create_directories(run_ / part);
    if (const fs::path meta = experiment / "meta.yaml"; !fs::exists(meta)) {
        const std::int64_t now = now_ms();
        RecordFile{meta, RecordFile::Mode::anew}.write(
            fmt::format("artifact_location: {}\ncreation_time: {}\nexperiment_id: '0'\nlast_update_time: {}\n"
                        "lifecycle_stage: active\nname: Default\n",
                        yaml_text(address_of(experiment)), now, now));
    }
}

MlflowLogger::~MlflowLogger() {
    if (is_over_)
        return;
    end_ = RunEnd::failed;
    try {
        finish();
    } catch (...) {   // no memory: the run is left as it was
    }
}

std::int64_t MlflowLogger::now_ms() const noexcept {
    return static_cast<std::int64_t>(time_s_.value_or(wall_time_s()) * 1e3);
}

void MlflowLogger::write_file(const fs::path& name, std::string_view content) {
    try {
        RecordFile file{run_ / name, RecordFile::Mode::anew};
        file.write(content);
        if (error_.empty())
            error_ = file.error();
    } catch (const std::system_error& failed_to) {
        if (error_.empty())
            error_ = failed_to.what();
    }
}

void MlflowLogger::write_meta(int status) {
    if (start_ms_ == 0)
        start_ms_ = now_ms();
    const std::string id = run_.filename().string();
    write_file("meta.yaml",
               fmt::format("artifact_uri: {}\nend_time: {}\nentry_point_name: ''\nexperiment_id: '0'\nlifecycle_stage: "
                           "active\nrun_id: {}\nrun_name: {}\nrun_uuid: {}\nsource_name: ''\nsource_type: 4\n"
                           "source_version: ''\nstart_time: {}\nstatus: {}\ntags: []\nuser_id: {}\n",
                           yaml_text(address_of(run_ / "artifacts")),
                           status == running ? "null" : fmt::format("{}", end_ms_), yaml_text(id), yaml_text(name_),
                           yaml_text(id), start_ms_, status, yaml_text(user_name())));
}

void MlflowLogger::log_settings(std::span<const LogSetting> settings, std::span<const std::string_view>) {
    write_meta(running);
    write_file("tags/mlflow.runName", name_);
    write_file("tags/mlflow.source.name", "drawpoint");
    write_file("tags/mlflow.source.type", "LOCAL");
    write_file("tags/mlflow.user", user_name());
    constexpr std::size_t longest = 6000;   // which MLflow allows
    for (const LogSetting& setting : settings)
        write_file(fs::path{"params"} / key_of(setting.name), shortened(setting.value, longest));
}

void MlflowLogger::log_scalars(std::span<const Scalar> scalars, std::uint64_t step) {
    if (start_ms_ == 0)
        write_meta(running);
    for (const Scalar& scalar : scalars) {
        auto found = metrics_.find(scalar.name);
        if (found == metrics_.end()) {
            std::unique_ptr<RecordFile> file;
            try {
                file = std::make_unique<RecordFile>(run_ / "metrics" / key_of(scalar.name), RecordFile::Mode::anew);
            } catch (const std::system_error& failed_to) {
                if (error_.empty())
                    error_ = failed_to.what();
            }
            found = metrics_.emplace(scalar.name, std::move(file)).first;
        }
        if (found->second)
            found->second->write(fmt::format("{} {} {}\n", now_ms(), scalar.value, step));
    }
}

void MlflowLogger::log_summary(std::string_view name, std::span<const double> values) {
    std::string text = "value\n";
    for (const double value : values)
        text += fmt::format("{}\n", value);
    write_file(fs::path{"artifacts"} / (key_of(name) + ".csv"), text);
}

void MlflowLogger::log_table(std::string_view name, const LogTable& table) {
    const Json content{{"columns", table.titles}, {"data", table.rows}};
    write_file(fs::path{"artifacts"} / (key_of(name) + ".json"),
               content.dump(-1, ' ', false, Json::error_handler_t::replace));
}

void MlflowLogger::log_text(std::string_view name, std::string_view markdown) {
    write_file(fs::path{"artifacts"} / (key_of(name) + ".md"), markdown);
}

void MlflowLogger::finish() {
    if (std::exchange(is_over_, true))
        return;
    for (const auto& [name, file] : metrics_)
        if (file && error_.empty())
            error_ = file->error();
    metrics_.clear();
    end_ms_ = now_ms();
    write_meta(end_ == RunEnd::finished ? finished : end_ == RunEnd::failed ? failed : killed);
}

std::string MlflowLogger::error() const {
    for (const auto& [name, file] : metrics_)
        if (file && !file->error().empty())
            return file->error();
    return error_;
}

}   // namespace drawpoint
