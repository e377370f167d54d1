#include "cli/result_files.hpp"

#include <array>
#include <cerrno>
#include <exception>
#include <fstream>
#include <string_view>
#include <system_error>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/program.hpp"

namespace drawpoint::cli {

bool holds_results(const std::string& file) {
    std::array<char, 4096> room{};
    std::ifstream stream{file, std::ios::binary};
    if (!stream)
        throw Failure{fmt::format("{}: {}", file, std::generic_category().message(errno))};
    stream.read(room.data(), room.size());
    const std::string_view head{room.data(), static_cast<std::size_t>(stream.gcount())};
    const auto holds = [&](std::string_view word) { return head.find(word) != head.npos; };
    return holds("\"drawpoint.experiment/1\"") || (holds("\"context\"") && holds("\"num_cpus\"")) ||
           (holds("\"benchmarks\"") && holds("\"real_time\""));   // with its members sorted by name
}

bench::Results read_results(const std::string& file) {
    try {
        std::ifstream stream{file, std::ios::binary};
        return bench::results_in(file, nlohmann::json::parse(stream));
    } catch (const std::exception& error) {
        throw Failure{fmt::format("{}: {}", file, error.what())};
    }
}

}   // namespace drawpoint::cli
