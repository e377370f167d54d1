#include <drawpoint/instrumentation/report/detail/output_file.hpp>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <system_error>

#include <fmt/format.h>

namespace drawpoint {

namespace fs = std::filesystem;

namespace {

std::runtime_error failure(const std::string& file) {
    return std::runtime_error{fmt::format("{}: {}", file, std::generic_category().message(errno))};
}

}   // namespace

bool same_file(const std::string& a, const std::string& b) {
    std::error_code unknown;
    return !a.empty() && !b.empty() &&
           (fs::weakly_canonical(fs::absolute(a, unknown), unknown) ==
                fs::weakly_canonical(fs::absolute(b, unknown), unknown) ||
            fs::equivalent(a, b, unknown));
}

void check_output_file(const std::string& file) {
    std::error_code unknown;
    const fs::file_status before = fs::status(file, unknown);
    if (fs::exists(before) && !fs::is_regular_file(before) && !fs::is_directory(before))
        return;
    errno = 0;
    if (!std::ofstream{file, std::ios::app})
        throw failure(file);
    if (!fs::exists(before))
        fs::remove(file, unknown);
}

void write_output_file(const std::string& file, std::string_view text) {
    errno = 0;
    std::ofstream stream{file, std::ios::binary};
    stream << text << std::flush;
    if (!stream)
        throw failure(file);
}

}   // namespace drawpoint
