#include "pipeline/storage/tar_files.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <stdexcept>

#include <drawpoint/pipeline/storage/tar_shards.hpp>

namespace drawpoint {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t most_shards = 100'000;

[[noreturn]] void refuse(const std::string& where, const std::string& why) {
    throw std::invalid_argument{where + ": " + why};
}

std::optional<std::uint32_t> number(std::string_view text) {
    std::uint32_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc{} && end == text.data() + text.size() ? std::optional{value} : std::nullopt;
}

/// What stands between two braces: "08..10" or "train,more".
std::vector<std::string> alternatives(std::string_view inside, const std::string& pattern) {
    std::vector<std::string> all;
    if (const std::size_t dots = inside.find(".."); dots != inside.npos) {
        const std::string_view first = inside.substr(0, dots), last = inside.substr(dots + 2);
        const auto from = number(first), to = number(last);
        if (!from || !to || *from > *to)
            refuse(pattern, "'{" + std::string{inside} + "}' must be a range of numbers such as {0000..0146}");
        if (*to - *from >= most_shards)
            refuse(pattern, "more than " + std::to_string(most_shards) + " shards");
        const bool padded = (first.size() > 1 && first.front() == '0') || (last.size() > 1 && last.front() == '0');
        const std::size_t width = padded ? std::max(first.size(), last.size()) : 0;
        for (std::uint64_t i = *from; i <= *to; ++i) {
            std::string text = std::to_string(i);
            if (text.size() < width)
                text.insert(0, width - text.size(), '0');
            all.push_back(std::move(text));
        }
        return all;
    }
    for (std::size_t begin = 0; begin <= inside.size();) {
        const std::size_t comma = std::min(inside.find(',', begin), inside.size());
        all.emplace_back(inside.substr(begin, comma - begin));
        begin = comma + 1;
    }
    return all;
}

}   // namespace

bool is_tar_name(std::string_view name) {
    if (name.starts_with('.'))
        return false;
    for (const std::string_view ending : {".tar", ".tar.gz", ".tgz", ".tar.zst"})
        if (name.ends_with(ending))
            return true;
    return false;
}

std::vector<std::string> expand_braces(const std::string& pattern) {
    std::vector<std::string> all{std::string{}};
    const std::string_view text = pattern;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t open = std::min(text.find('{', at), text.size());
        for (std::string& name : all)
            name.append(text.substr(at, open - at));
        if (open == text.size())
            break;
        const std::size_t close = text.find_first_of("{}", open + 1);
        if (close == text.npos || text[close] == '{')
            refuse(pattern, "a brace that is not closed, or in another");
        const auto parts = alternatives(text.substr(open + 1, close - open - 1), pattern);
        if (all.size() * parts.size() > most_shards)
            refuse(pattern, "more than " + std::to_string(most_shards) + " shards");
        std::vector<std::string> longer;
        for (const std::string& name : all)
            for (const std::string& part : parts)
                longer.push_back(name + part);
        all = std::move(longer);
        at = close + 1;
    }
    return all;
}

std::vector<std::string> tar_files(const std::string& where) {
    std::error_code error;
    if (fs::is_directory(where, error)) {
        std::vector<std::string> files;
        for (fs::directory_iterator it{where, error}; !error && it != fs::directory_iterator{}; it.increment(error))
            if (is_tar_name(it->path().filename().native()))
                files.push_back(it->path().native());
        if (error)
            refuse(where, "cannot list the folder: " + error.message());
        if (files.empty())
            refuse(where, "the folder holds no tar shards (.tar, .tar.gz, .tgz, .tar.zst)");
        std::ranges::sort(files);
        return files;
    }
    if (fs::exists(where, error) || where.find('{') == where.npos)
        return {where};
    return expand_braces(where);
}

bool names_tar_shards(const std::string& where) {
    std::error_code error;
    if (!fs::is_directory(where, error))
        return is_tar_name(fs::path{where}.filename().native()) ||
               (where.find('{') != where.npos && where.find(".tar") != where.npos);
    for (fs::directory_iterator it{where, error}; !error && it != fs::directory_iterator{}; it.increment(error))
        if (is_tar_name(it->path().filename().native()) && !it->is_directory(error))
            return true;
    return false;
}

}   // namespace drawpoint
