#include <drawpoint/pipeline/storage/idx_file.hpp>

#include "support/temporary_folder.hpp"
#include "pipeline/storage/array_help.hpp"

#include <boost/test/unit_test.hpp>

#include <map>
#include <stdexcept>

BOOST_AUTO_TEST_SUITE(idx_file)

using namespace drawpoint;
using test::array_fixture;
using test::refusal_of;
using test::says;
using Shape = std::vector<std::uint64_t>;

BOOST_AUTO_TEST_CASE(every_type_of_idx_is_known_and_big_endian) {
    const std::map<std::string, ArrayType> types{{"u1", ArrayType::uint8},   {"i1", ArrayType::int8},
                                                 {"i2", ArrayType::int16},   {"i4", ArrayType::int32},
                                                 {"f4", ArrayType::float32}, {"f8", ArrayType::float64}};
    for (const auto& [name, type] : types) {
        const ArrayFile file{array_fixture(name + "-idx"), ArrayFormat::idx};
        BOOST_TEST((file.header().type == type));
        BOOST_TEST(file.header().big_endian);
        BOOST_TEST((file.header().shape == Shape{3, 2, 2}));
        BOOST_TEST(file.header().offset == 16u);
        BOOST_TEST(file.header().bytes == 12 * size_of(type));
        BOOST_TEST(!file.packed());
    }
}

BOOST_AUTO_TEST_CASE(a_packed_file_holds_the_values_of_the_plain_one) {
    const ArrayFile plain{array_fixture("i2-idx"), ArrayFormat::idx},
        packed{array_fixture("packed-idx.gz"), ArrayFormat::idx};
    BOOST_TEST(packed.packed());
    BOOST_TEST((packed.header().shape == plain.header().shape));
    std::vector<std::byte> a(plain.header().bytes), b(a.size());
    plain.load(a.data());
    packed.load(b.data());
    BOOST_TEST((a == b));
    BOOST_TEST((a[1] == std::byte{0xFD} && a[0] == std::byte{0xFF}));   // -3
}

BOOST_AUTO_TEST_CASE(a_header_that_lies_is_refused_where_it_does) {
    const test::TemporaryFolder folder;
    const auto good = test::contents_of(array_fixture("i2-idx"));
    const auto with = [&](std::size_t at, int value) {
        auto file = good;
        file[at] = static_cast<std::byte>(value);
        return folder.write("x", file);
    };
    const auto refused = [](const std::filesystem::path& path) { return refusal_of(path, ArrayFormat::idx); };
    const auto x = folder.path() / "x";
    BOOST_TEST(refused(folder.write("x", good)).empty());
    BOOST_TEST(says(refused(with(0, 1)), x, 0, "begins with 0x01 0x00"));
    BOOST_TEST(says(refused(with(2, 0x0A)), x, 2, "type 0x0a does not exist"));
    BOOST_TEST(says(refused(with(3, 0)), x, 3, "a single value"));
    BOOST_TEST(says(refused(with(3, 20)), x, good.size(), "sizes of its 20 dimensions"));
    BOOST_TEST(says(refused(with(7, 0)), x, 4, "empty"));
    BOOST_TEST(says(refused(with(7, 4)), x, good.size(), "32 bytes from byte 16 on, 24 bytes are there"));
    BOOST_TEST(says(refused(with(7, 2)), x, 32, "8 bytes follow"));
    auto huge = good;
    for (const std::size_t at : {4u, 5u, 6u, 7u, 8u, 9u, 10u, 11u})
        huge[at] = std::byte{0xFF};
    BOOST_TEST(says(refused(folder.write("x", huge)), x, 4, "more than 2^63 bytes"));
}

BOOST_AUTO_TEST_CASE(a_file_cut_anywhere_is_refused) {
    const test::TemporaryFolder folder;
    for (const char* name : {"i2-idx", "packed-idx.gz"}) {
        const auto good = test::contents_of(array_fixture(name));
        for (std::size_t bytes = 0; bytes < good.size(); ++bytes) {
            const auto path = folder.write("cut", {good.begin(), good.begin() + static_cast<std::ptrdiff_t>(bytes)});
            BOOST_TEST_REQUIRE(!refusal_of(path, ArrayFormat::idx).empty(), name << " with " << bytes << " bytes");
        }
    }
}

BOOST_AUTO_TEST_CASE(a_flipped_bit_of_a_packed_file_is_refused_or_changes_no_value) {
    const test::TemporaryFolder folder;
    const auto good = test::contents_of(array_fixture("packed-idx.gz"));
    const ArrayFile plain{array_fixture("i2-idx"), ArrayFormat::idx};
    std::vector<std::byte> expected(plain.header().bytes), values(expected.size());
    plain.load(expected.data());
    std::size_t refused = 0;
    for (std::size_t bit = 0; bit < 8 * good.size(); ++bit) {
        auto damaged = good;
        damaged[bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
        const auto path = folder.write("x.gz", damaged);
        if (!refusal_of(path, ArrayFormat::idx).empty()) {
            ++refused;
            continue;
        }
        ArrayFile{path, ArrayFormat::idx}.load(values.data());
        BOOST_TEST_REQUIRE((values == expected), "bit " << bit);
    }
    BOOST_TEST(refused > 6 * (good.size() - 10));   // some bits of gzip's header have no meaning
}

BOOST_AUTO_TEST_CASE(torchvision_s_folders_are_found_and_what_is_missing_is_named) {
    const auto root = array_fixture("");
    const auto raw = array_fixture("MNIST/raw");
    for (const auto& folder : {root, array_fixture("MNIST"), raw}) {
        const IdxPair train = find_mnist(folder, true), test = find_mnist(folder, false);
        BOOST_TEST(std::filesystem::equivalent(train.images, raw / "train-images-idx3-ubyte.gz"));
        BOOST_TEST(std::filesystem::equivalent(train.labels, raw / "train-labels-idx1-ubyte.gz"));
        BOOST_TEST(std::filesystem::equivalent(test.images, raw / "t10k-images-idx3-ubyte"));
        BOOST_TEST(std::filesystem::equivalent(test.labels, raw / "t10k-labels-idx1-ubyte"));
    }
    const test::TemporaryFolder folder;
    const auto missing = [&](const std::string& words) {
        return [&, words](const std::invalid_argument& error) {
            return std::string{error.what()}.starts_with(folder.path().string()) &&
                   std::string{error.what()}.find(words) != std::string::npos;
        };
    };
    BOOST_CHECK_EXCEPTION((void)find_mnist(folder.path(), true), std::invalid_argument,
                          missing("train-images-idx3-ubyte"));
    folder.write("raw/train-images-idx3-ubyte", {});
    BOOST_CHECK_EXCEPTION((void)find_mnist(folder.path(), true), std::invalid_argument,
                          missing("train-labels-idx1-ubyte"));
}

BOOST_AUTO_TEST_SUITE_END()
