#include <drawpoint/pipeline/storage/file_reader.hpp>

#include "support/temporary_folder.hpp"

#include <boost/test/unit_test.hpp>

#include <filesystem>
#include <string>
#include <vector>

#include <sys/stat.h>
#include <unistd.h>

BOOST_AUTO_TEST_SUITE(file_reader)

namespace {

using drawpoint::read_file;
using drawpoint::test::TemporaryFolder;

std::string refusal(const std::filesystem::path& path) {
    std::vector<std::byte> contents;
    try {
        read_file(path.c_str(), contents);
    } catch (const std::filesystem::filesystem_error& error) {
        return error.what();
    }
    return {};
}

std::vector<std::byte> bytes(std::size_t count) {
    std::vector<std::byte> contents;
    for (std::size_t i = 0; i < count; ++i)
        contents.push_back(static_cast<std::byte>(i * 31 >> 3));
    return contents;
}

}   // namespace

BOOST_AUTO_TEST_CASE(a_file_is_read_whole_whatever_its_size) {
    const TemporaryFolder folder;
    std::vector<std::byte> contents(17);
    for (const std::size_t size : {0u, 1u, 4096u, 1000003u}) {
        const auto path = folder.write("file", bytes(size));
        read_file(path.c_str(), contents);
        BOOST_TEST((contents == bytes(size)));
    }
}

BOOST_AUTO_TEST_CASE(memory_is_kept_from_file_to_file) {
    const TemporaryFolder folder;
    const auto large = folder.write("large", bytes(300000)), small = folder.write("small", bytes(10));
    std::vector<std::byte> contents;
    read_file(large.c_str(), contents);
    const auto* memory = contents.data();
    read_file(small.c_str(), contents);
    read_file(large.c_str(), contents);
    BOOST_TEST(contents.data() == memory);
    BOOST_TEST((contents == bytes(300000)));
}

BOOST_AUTO_TEST_CASE(what_is_not_a_regular_file_is_refused_by_name_and_never_waited_for) {
    const TemporaryFolder folder;
    const auto pipe = folder.path() / "pipe.jpg";
    BOOST_REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
    std::filesystem::create_symlink("loop", folder.path() / "loop");
    for (const auto& path :
         {pipe, folder.path(), folder.path() / "missing", folder.path() / "loop", std::filesystem::path("/dev/null")}) {
        const std::string message = refusal(path);
        BOOST_TEST(message.find(path.string()) != std::string::npos, message);
    }
}

BOOST_AUTO_TEST_CASE(a_file_one_may_not_read_is_refused_by_name) {
    const TemporaryFolder folder;
    const auto path = folder.write("secret", bytes(10));
    std::filesystem::permissions(path, std::filesystem::perms::none);
    if (::access(path.c_str(), R_OK) == 0) {
        BOOST_TEST_MESSAGE("this user may read everything: nothing to see here");
        BOOST_TEST(refusal(path).empty());
    } else {
        BOOST_TEST(refusal(path).find(path.string()) != std::string::npos);
    }
}

BOOST_AUTO_TEST_SUITE_END()
