#include <drawpoint/pipeline/storage/array_file.hpp>

#include "support/temporary_folder.hpp"
#include "pipeline/storage/array_help.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include <fcntl.h>
#include <sys/stat.h>

BOOST_AUTO_TEST_SUITE(array_file)

using namespace drawpoint;

BOOST_AUTO_TEST_CASE(a_data_file_is_read_from_any_byte_on) {
    const test::TemporaryFolder folder;
    std::vector<std::byte> bytes;
    for (int i = 0; i < 100; ++i)
        bytes.push_back(static_cast<std::byte>(i));
    const DataFile file{folder.write("x", bytes)};
    BOOST_TEST(file.size() == 100u);
    std::vector<std::byte> part(10);
    file.read(90, part);
    BOOST_TEST((part.front() == std::byte{90} && part.back() == std::byte{99}));
}

BOOST_AUTO_TEST_CASE(a_file_that_became_shorter_is_refused_where_it_ends) {
    const test::TemporaryFolder folder;
    const auto path = folder.write("x", std::vector<std::byte>(100));
    const DataFile file{path};
    std::filesystem::resize_file(path, 95);
    std::vector<std::byte> part(10);
    BOOST_CHECK_EXCEPTION(file.read(90, part), ArrayFileError,
                          [&](const ArrayFileError& error) { return test::says(error.what(), path, 95, "shorter"); });
}

BOOST_AUTO_TEST_CASE(only_regular_files_are_opened_and_a_pipe_does_not_hold_the_thread) {
    const test::TemporaryFolder folder;
    const auto pipe = folder.path() / "pipe";
    BOOST_REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
    for (const auto& path : {pipe, folder.path(), folder.path() / "missing"})
        BOOST_CHECK_EXCEPTION(DataFile{path}, std::filesystem::filesystem_error,
                              [&](const std::filesystem::filesystem_error& error) { return error.path1() == path; });
}

BOOST_AUTO_TEST_CASE(a_file_is_open_as_long_as_a_copy_of_it) {
    const test::TemporaryFolder folder;
    const auto path = folder.write("x", std::vector<std::byte>(10));
    std::vector<std::byte> part(10);
    int descriptor = -1;
    {
        auto first = std::make_unique<DataFile>(path);
        const DataFile copy = *first;
        descriptor = copy.descriptor();
        first.reset();
        std::filesystem::remove(path);
        copy.read(0, part);
    }
    BOOST_TEST(::fcntl(descriptor, F_GETFD) == -1);
}

BOOST_AUTO_TEST_CASE(packed_data_that_is_longer_or_shorter_than_its_header_says_is_refused) {
    const test::TemporaryFolder folder;
    const auto write = [&](std::size_t values) {   // an idx file that claims 5 values, gzipped with `values` of them
        std::vector<std::byte> data(8 + values);
        data[2] = std::byte{8};
        data[3] = std::byte{1};
        data[7] = std::byte{5};
        return folder.write("x", data);
    };
    for (const std::size_t values : {4u, 5u, 6u}) {
        const auto plain = write(values);
        const auto packed = folder.path() / ("x" + std::to_string(values) + ".gz");
        BOOST_REQUIRE(std::system(("gzip -c '" + plain.string() + "' > '" + packed.string() + "'").c_str()) == 0);
        const std::string message = test::refusal_of(packed, ArrayFormat::idx);
        if (values == 5)
            BOOST_TEST(message.empty());
        else
            BOOST_TEST(test::says(message, packed, values == 4 ? 12 : 13, values == 4 ? "ends here" : "goes on"),
                       message);
    }
}

BOOST_AUTO_TEST_CASE(a_packed_file_that_is_replaced_is_read_as_it_was) {
    const test::TemporaryFolder folder;
    const auto packed = folder.path() / "x.gz";
    const auto pack = [&](std::byte value) {
        std::vector<std::byte> data(9, value);
        std::fill_n(data.begin(), 8, std::byte{0});
        data[2] = std::byte{8};
        data[3] = data[7] = std::byte{1};
        const auto plain = folder.write("x", data);
        std::filesystem::remove(packed);
        BOOST_REQUIRE(std::system(("gzip -c '" + plain.string() + "' > '" + packed.string() + "'").c_str()) == 0);
    };
    pack(std::byte{3});
    const ArrayFile file{packed, ArrayFormat::idx};
    pack(std::byte{4});
    std::byte value{};
    file.load(&value);
    BOOST_TEST((value == std::byte{3}));
}

BOOST_AUTO_TEST_CASE(a_machine_has_memory_available) {
    BOOST_TEST(available_memory() > 0u);
    BOOST_TEST(available_memory() < std::uint64_t{1} << 50);
}

BOOST_AUTO_TEST_SUITE_END()
