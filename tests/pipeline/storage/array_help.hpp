#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include <drawpoint/pipeline/storage/array_file.hpp>
#include <drawpoint/pipeline/storage/file_reader.hpp>

namespace drawpoint::test {

/// A file that make_array_fixtures.py has made.
inline std::filesystem::path array_fixture(const std::string& name) {
    return DRAWPOINT_TEST_DIR "/pipeline/storage/arrays/" + name;
}

inline std::vector<std::byte> contents_of(const std::filesystem::path& path) {
    std::vector<std::byte> contents;
    read_file(path.c_str(), contents);
    return contents;
}

/// The error of opening and loading the file; empty if there is none.
inline std::string refusal_of(const std::filesystem::path& path, ArrayFormat format) {
    try {
        const ArrayFile file{path, format};
        std::vector<std::byte> values(file.header().bytes);
        file.load(values.data());
    } catch (const ArrayFileError& error) {
        return error.what();
    }
    return {};
}

/// Whether `message` names the file, the byte and the reason.
inline bool says(const std::string& message, const std::filesystem::path& path, std::size_t byte,
                 const std::string& why) {
    return message.starts_with(path.string() + ": byte " + std::to_string(byte) + ": ") &&
           message.find(why) != std::string::npos;
}

}   // namespace drawpoint::test
