#pragma once

#include <boost/test/unit_test.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <drawpoint/pipeline/storage/file_reader.hpp>
#include <drawpoint/pipeline/storage/tar_pack.hpp>
#include <drawpoint/pipeline/storage/tar_shards.hpp>
#include "support/temporary_folder.hpp"

namespace drawpoint::test {

using Bytes = std::vector<std::byte>;

inline Bytes bytes_of(std::string_view text) {
    const auto bytes = std::as_bytes(std::span{text});
    return {bytes.begin(), bytes.end()};
}

inline Bytes file_bytes(const std::filesystem::path& path) {
    Bytes contents;
    read_file(path.c_str(), contents);
    return contents;
}

/// Pseudo-random bytes that depend on `number` and hardly compress.
inline Bytes noise(std::size_t count, std::uint32_t number) {
    Bytes bytes(count);
    std::uint32_t state = number * 2654435761u + 1;
    for (std::byte& byte : bytes)
        byte = static_cast<std::byte>((state = state * 1664525u + 1013904223u) >> 24);
    return bytes;
}

/// Writes a folder of `classes` classes with `each` files that have names of images and sizes of 100 … 100 + 37 ×
/// number bytes.
inline void write_classes_of_noise(const TemporaryFolder& folder, const std::string& root, std::uint32_t classes,
                                   std::uint32_t each, std::size_t size = 100) {
    for (std::uint32_t number = 0; number < classes * each; ++number)
        folder.write(root + "/class" + std::to_string(number / each) + "/image." + std::to_string(1000 + number) +
                         ".JPG",
                     noise(size + 37 * (number % 50), number));
}

/// The numbers 0 … n - 1.
inline std::vector<std::uint64_t> in_order(std::size_t n) {
    std::vector<std::uint64_t> order(n);
    for (std::size_t i = 0; i < n; ++i)
        order[i] = i;
    return order;
}

inline Bytes read_of(const TarShards& shards, std::size_t index) {
    Bytes contents;
    shards.read(index, contents);
    return contents;
}

/// "LENGTH KEY=VALUE\n"; the length includes itself and must have two digits.
inline std::string pax_record(const std::string& key, const std::string& value) {
    return std::to_string(key.size() + value.size() + 5) + ' ' + key + '=' + value + '\n';
}

/// An archive built by hand, correct or not.
struct HandMadeTar {
    std::string bytes;

    static std::string padded(std::string text) {
        text.resize((text.size() + 511) / 512 * 512);
        return text;
    }
    static void seal(std::string& header) {
        header.replace(148, 8, "        ");
        unsigned sum = 0;
        for (const char c : header)
            sum += static_cast<unsigned char>(c);
        char text[16];
        std::snprintf(text, sizeof text, "%06o", sum);
        header.replace(148, 7, std::string_view{text, 7});
    }
    static std::string header(std::string_view name, std::size_t size, char type = '0') {
        std::string block(512, '\0');
        block.replace(0, name.size(), name);
        char text[16];
        std::snprintf(text, sizeof text, "%011zo", size);
        block.replace(124, 11, text, 11);
        block[156] = type;
        block.replace(257, 8, std::string_view{"ustar\00000", 8});
        seal(block);
        return block;
    }
    HandMadeTar& add(std::string_view name, std::string_view contents, char type = '0') {
        bytes += header(name, contents.size(), type) + padded(std::string{contents});
        return *this;
    }
    HandMadeTar& sample(const std::string& key, const std::string& image, int label) {
        return add(key + ".jpg", image).add(key + ".cls", std::to_string(label));
    }
    [[nodiscard]] std::string ended() const { return bytes + std::string(1024, '\0'); }
};

/// Checks that opening `path` fails with an error that names it and the offset, and contains `words`.
inline void check_refused(const std::filesystem::path& path, std::uint64_t offset, const std::string& words) {
    BOOST_CHECK_EXCEPTION(TarShards{path.string()}, TarError, [&](const TarError& error) {
        BOOST_TEST_INFO(error.what());
        return error.file() == path.string() && error.offset() == offset &&
               std::string_view{error.what()}.starts_with(path.string() + ": byte " + std::to_string(offset) + ": ") &&
               std::string_view{error.what()}.find(words) != std::string_view::npos;
    });
}

}   // namespace drawpoint::test
