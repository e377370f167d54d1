#include <drawpoint/loop/profilers/profiler.hpp>

#include <cerrno>
#include <cstring>
#include <iostream>
#include <system_error>

namespace drawpoint {

std::string profile_file_name(std::string_view stage, std::string_view filename, std::optional<int> local_rank,
                              std::string_view action, std::string_view extension) {
    std::string name;
    const auto add = [&name](std::string_view part) {
        if (!part.empty())
            name += (name.empty() ? "" : "-") + std::string{part};
    };
    add(stage);
    add(filename);
    if (local_rank)
        add(std::to_string(*local_rank));
    add(action);

    std::string safe;
    for (const char c : name) {
        const char kept = std::strchr("\\/:*?\"<>|\n\r\t", c) ? '_' : c;
        if (kept != '_' || safe.empty() || safe.back() != '_')
            safe += kept;
    }
    const std::size_t first = safe.find_first_not_of(' ');
    safe = first == safe.npos ? "" : safe.substr(first, safe.find_last_not_of(' ') - first + 1);
    return (safe.empty() ? "profile" : safe) + std::string{extension};
}

ProfiledAction::~ProfiledAction() {
    try {
        profiler_->stop(action_);
    } catch (...) {   // it was stopped by hand; a destructor must not throw
    }
}

std::ostream& Profiler::output() const noexcept { return output_ ? *output_ : std::cout; }

std::string Profiler::file_name(std::string_view action, std::string_view extension) const {
    return profile_file_name(stage_, files_.filename, local_rank_, action, extension);
}

void Profiler::describe() {
    const auto report = [this] {
        const std::string text = summary();
        if (text.empty())
            return;
        if (files_.filename.empty() || files_.dirpath.empty()) {
            if (local_rank() == 0)
                output() << text << std::flush;
            return;
        }
        const std::filesystem::path path = files_.dirpath / file_name();
        errno = 0;
        if (!file_.is_open()) {
            // throws filesystem_error, which is a std::system_error that names the folder
            std::filesystem::create_directories(files_.dirpath);
            file_.open(path, std::ios::app | std::ios::binary);
        }
        file_ << text << std::flush;
        if (!file_)
            throw std::system_error{errno != 0 ? errno : EIO, std::generic_category(), path.string()};
    };
    try {
        report();
    } catch (...) {
        teardown(stage_);
        file_.clear();
        throw;
    }
    teardown(stage_);
    file_.clear();
}

void Profiler::setup(std::string_view stage, int local_rank, const std::filesystem::path& log_dir) {
    stage_ = stage;
    local_rank_ = local_rank;
    if (files_.dirpath.empty())
        files_.dirpath = log_dir;
}

void Profiler::teardown(std::string_view) {
    if (file_.is_open())
        file_.close();
}

}   // namespace drawpoint
