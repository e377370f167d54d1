#include <drawpoint/pipeline/storage/array_file.hpp>

#include <drawpoint/pipeline/rng.hpp>
#include "support/temporary_folder.hpp"
#include "pipeline/storage/array_help.hpp"

#include <boost/test/unit_test.hpp>

#include <map>
#include <string>

BOOST_AUTO_TEST_SUITE(npy_file)

using namespace drawpoint;
using test::array_fixture;
using test::refusal_of;
using test::says;
using Shape = std::vector<std::uint64_t>;

namespace {

std::string refused(const std::filesystem::path& path) { return refusal_of(path, ArrayFormat::npy); }

// Writes a version 1.0 file with this header, followed by `bytes` bytes.
std::filesystem::path write(const test::TemporaryFolder& folder, const std::string& header, std::size_t bytes) {
    std::string text{"\x93NUMPY\1\0", 8};
    text += static_cast<char>(header.size() & 0xFF);
    text += static_cast<char>(header.size() >> 8);
    text += header + std::string(bytes, 'x');
    const auto* begin = reinterpret_cast<const std::byte*>(text.data());
    return folder.write("x.npy", {begin, begin + text.size()});
}

}   // namespace

BOOST_AUTO_TEST_CASE(every_type_a_sample_can_have_is_known) {
    const std::map<std::string, ArrayType> types{
        {"b1", ArrayType::boolean}, {"u1", ArrayType::uint8},   {"i1", ArrayType::int8},
        {"i2", ArrayType::int16},   {"i4", ArrayType::int32},   {"i8", ArrayType::int64},
        {"f2", ArrayType::float16}, {"f4", ArrayType::float32}, {"f8", ArrayType::float64}};
    for (const auto& [name, type] : types) {
        const ArrayFile file{array_fixture(name + ".npy"), ArrayFormat::npy};
        BOOST_TEST((file.header().type == type));
        BOOST_TEST(!file.header().big_endian);
        BOOST_TEST((file.header().shape == Shape{3, 2, 2}));
        BOOST_TEST(file.header().bytes == 12 * size_of(type));
        BOOST_TEST(file.header().offset + file.header().bytes == file.file().size());
    }
    for (const char* name : {"big_i2.npy", "big_f4.npy", "big_f8.npy"})
        BOOST_TEST((ArrayFile{array_fixture(name), ArrayFormat::npy}.header().big_endian));
    BOOST_TEST((ArrayFile{array_fixture("line.npy"), ArrayFormat::npy}.header().shape == Shape{5}));
}

BOOST_AUTO_TEST_CASE(versions_2_and_3_and_packed_files_hold_the_values_of_version_1) {
    const ArrayFile plain{array_fixture("f4.npy"), ArrayFormat::npy};
    std::vector<std::byte> a(plain.header().bytes), b(a.size());
    plain.load(a.data());
    for (const char* name : {"version2.npy", "version3.npy", "packed.npy.gz"}) {
        const ArrayFile other{array_fixture(name), ArrayFormat::npy};
        BOOST_TEST_REQUIRE(other.header().bytes == a.size());
        other.load(b.data());
        BOOST_TEST((a == b));
    }
}

BOOST_AUTO_TEST_CASE(a_type_that_libtorch_lacks_is_refused_by_name) {
    const std::map<std::string, std::string> words{
        {"u2", "'u2' (unsigned"}, {"u4", "'u4' (unsigned"}, {"u8", "'u8' (unsigned"},
        {"c8", "'c8' (complex)"}, {"U3", "'U3' (text)"},    {"S3", "'S3' (text)"},
        {"M8", "(dates)"},        {"fields", "structured"}, {"objects", "pickled"}};
    for (const auto& [name, expected] : words) {
        const auto path = array_fixture("refused_" + name + ".npy");
        const std::string message = refused(path);
        BOOST_TEST(message.starts_with(path.string() + ": byte "));
        BOOST_TEST(message.find(expected) != std::string::npos, message);
    }
}

BOOST_AUTO_TEST_CASE(what_is_no_rows_in_c_order_is_refused) {
    BOOST_TEST(refused(array_fixture("refused_fortran.npy")).find("Fortran order") != std::string::npos);
    BOOST_TEST(refused(array_fixture("refused_single.npy")).find("a single value, not rows") != std::string::npos);
    BOOST_TEST(refused(array_fixture("refused_empty.npy")).find("the array is empty") != std::string::npos);
    BOOST_TEST(says(refused(array_fixture("refused.npz")), array_fixture("refused.npz"), 0, ".npz archive"));
    BOOST_TEST(says(refused(array_fixture("i2-idx")), array_fixture("i2-idx"), 0, "not a .npy file"));
    const test::TemporaryFolder folder;
    BOOST_TEST(refused(write(folder, "{'descr': '<f4', 'fortran_order': True, 'shape': (3,)}", 12)).empty());
}

BOOST_AUTO_TEST_CASE(a_header_may_be_written_in_any_way_that_python_reads) {
    const test::TemporaryFolder folder;
    for (const char* header : {"{'descr': '|u1', 'fortran_order': False, 'shape': (3, 4), }\n",
                               "{\"shape\":(3,4),\"fortran_order\":False,\"descr\":\"u1\"}",
                               "{ 'shape' : ( 3L, 4L ) , 'descr' : '=u1' , 'fortran_order' : False }   \n"}) {
        const ArrayFile file{write(folder, header, 12), ArrayFormat::npy};
        BOOST_TEST((file.header().shape == Shape{3, 4}));
    }
}

BOOST_AUTO_TEST_CASE(a_damaged_header_is_refused_where_it_is_damaged) {
    const test::TemporaryFolder folder;
    const auto x = folder.path() / "x.npy";
    const std::string order = "'fortran_order': False, ", type = "{'descr': '|u1', ";
    const auto says_of = [&](const std::string& header, std::size_t byte, const std::string& why) {
        const std::string message = refused(write(folder, header, 12));
        BOOST_TEST(says(message, x, byte, why), message);
    };
    says_of("nothing", 10, "'{' should stand here");
    says_of(type + order + "'shape': (3, x)}", 64, "a size of the shape");
    says_of(type + order + "'shape': (3 4)}", 63, "')' should stand here");
    says_of(type + order + "'shape': (3, 99999999999999999999)}", 64, "a size of the shape");
    says_of(type + order + "'shape': (3, 9999999999999999999)}", 61, "more than 2^63 bytes");
    says_of(type + order + "'shape': (-3,)}", 61, "a size of the shape");
    says_of(type + "'fortran_order': None, 'shape': (3,)}", 44, "True or False");
    says_of(type + order + "'shape': (3,)} more", 66, "more follows");
    says_of(type + order + "'shapes': (3,)}", 51, "'shapes' should not stand here");
    says_of(type + type.substr(1) + "'shape': (3,)}", 27, "'descr' should not stand here");
    says_of(type + order + "}", 52, "lacks descr, fortran_order or shape");
    says_of(type + order + "'shape': (3,", 63, "a size of the shape");
    says_of("{'descr': '|u1", 21, "without end");
}

BOOST_AUTO_TEST_CASE(a_prologue_that_lies_is_refused_where_it_does) {
    const test::TemporaryFolder folder;
    const auto good = test::contents_of(array_fixture("f4.npy"));
    const auto x = folder.path() / "x.npy";
    const auto with = [&](std::size_t at, int value) {
        auto file = good;
        file[at] = static_cast<std::byte>(value);
        return refused(folder.write("x.npy", file));
    };
    BOOST_TEST(says(with(1, 'X'), x, 0, "not a .npy file"));
    BOOST_TEST(says(with(6, 4), x, 6, "version 4.0"));
    BOOST_TEST(says(with(7, 1), x, 6, "version 1.1"));
    auto second = test::contents_of(array_fixture("version2.npy"));
    second[10] = std::byte{1};
    BOOST_TEST(says(refused(folder.write("x.npy", second)), x, 8, "longer than the"));
    BOOST_TEST(says(with(9, 0x02), x, good.size(), "ends within its header"));
    auto later = good;
    later.resize(later.size() + 5);
    BOOST_TEST(refused(folder.write("x.npy", later)).empty());   // numpy reads such a file, too
}

BOOST_AUTO_TEST_CASE(a_file_cut_anywhere_is_refused) {
    const test::TemporaryFolder folder;
    for (const char* name : {"f4.npy", "version3.npy", "packed.npy.gz"}) {
        const auto good = test::contents_of(array_fixture(name));
        for (std::size_t bytes = 0; bytes < good.size(); ++bytes) {
            const auto path = folder.write("cut", {good.begin(), good.begin() + static_cast<std::ptrdiff_t>(bytes)});
            BOOST_TEST_REQUIRE(!refused(path).empty(), name << " with " << bytes << " bytes");
        }
    }
}

BOOST_AUTO_TEST_CASE(damaged_headers_never_crash) {
    const test::TemporaryFolder folder;
    const auto good = test::contents_of(array_fixture("i8.npy"));
    std::size_t refusals = 0;
    for (std::uint64_t trial = 0; trial < 3000; ++trial) {
        CounterRng random{23, 0, trial};
        auto file = good;
        for (std::uint32_t changes = 1 + random.next_u32() % 3; changes > 0; --changes)
            file[6 + random.next_u32() % 74] = static_cast<std::byte>(random.next_u32() & 0x7F);
        const std::string message = refused(folder.write("x.npy", file));
        refusals += !message.empty();
        BOOST_TEST_REQUIRE(message.find('\n') == std::string::npos);
    }
    BOOST_TEST(refusals > 2000u);
}

BOOST_AUTO_TEST_SUITE_END()
