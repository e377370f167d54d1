#include <drawpoint/pipeline/storage/cifar_file.hpp>

#include "support/temporary_folder.hpp"

#include <boost/test/unit_test.hpp>

#include <stdexcept>
#include <string>

BOOST_AUTO_TEST_SUITE(cifar_file)

using namespace drawpoint;

namespace {

std::string refusal(const std::filesystem::path& folder, bool train) {
    try {
        (void)find_cifar10(folder, train);
    } catch (const std::invalid_argument& error) {
        return error.what();
    }
    return {};
}

}   // namespace

BOOST_AUTO_TEST_CASE(the_files_are_found_in_the_folder_or_in_the_archive_s_own) {
    const test::TemporaryFolder folder;
    for (const char* name : {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin",
                             "data_batch_5.bin", "test_batch.bin"})
        folder.write(std::string{"cifar-10-batches-bin/"} + name, {});
    folder.write("cifar-100-binary/train.bin", {});
    folder.write("cifar-100-binary/test.bin", {});
    const auto ten = folder.path() / "cifar-10-batches-bin", hundred = folder.path() / "cifar-100-binary";
    for (const auto& place : {folder.path(), ten}) {
        const CifarFiles train = find_cifar10(place, true), test = find_cifar10(place, false);
        BOOST_REQUIRE(train.paths.size() == 5u);
        for (std::size_t i = 0; i < 5; ++i)
            BOOST_TEST(train.paths[i] == ten / ("data_batch_" + std::to_string(i + 1) + ".bin"));
        BOOST_TEST((train.label_at == 0u && train.pixels_at == 1u && train.classes == 10));
        BOOST_REQUIRE(test.paths.size() == 1u);
        BOOST_TEST(test.paths[0] == ten / "test_batch.bin");
    }
    const CifarFiles fine = find_cifar100(folder.path(), true, false), coarse = find_cifar100(hundred, false, true);
    BOOST_TEST(fine.paths.at(0) == hundred / "train.bin");
    BOOST_TEST(coarse.paths.at(0) == hundred / "test.bin");
    BOOST_TEST((fine.label_at == 1u && fine.pixels_at == 2u && fine.classes == 100));
    BOOST_TEST((coarse.label_at == 0u && coarse.pixels_at == 2u && coarse.classes == 20));
}

BOOST_AUTO_TEST_CASE(what_is_missing_is_named_and_the_pickled_version_is_told_apart) {
    const test::TemporaryFolder folder;
    BOOST_TEST(refusal(folder.path(), false) ==
               folder.path().string() + ": no file test_batch.bin in it or in cifar-10-batches-bin");
    folder.write("cifar-10-batches-py/data_batch_1", {});
    BOOST_TEST(refusal(folder.path(), true).find("cifar-10-batches-py is the version for Python") != std::string::npos);
    folder.write("data_batch_1.bin", {});
    BOOST_TEST(refusal(folder.path(), true) == folder.path().string() + ": no file data_batch_2.bin");
}

BOOST_AUTO_TEST_SUITE_END()
