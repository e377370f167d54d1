// Every kind of damage gives an error that names the file and the position.
#include <cstdlib>

#include "pipeline/storage/tar_help.hpp"

namespace drawpoint {
namespace {

using test::check_refused;
using test::HandMadeTar;
using test::TemporaryFolder;

/// Two samples; their members' headers are at 0, 1536 (cls), 2560 and 4096 (cls); the archive ends at 5120.
HandMadeTar two_samples() {
    return HandMadeTar{}.sample("a", std::string(600, 'a'), 1).sample("b", std::string(600, 'b'), 2);
}

struct Written {
    TemporaryFolder folder;
    std::filesystem::path path;
    explicit Written(const std::string& bytes, const std::string& name = "shard.tar")
        : path{folder.write(name, test::bytes_of(bytes))} {}
};

std::string compressed(const std::string& tar, const std::string& program) {
    const Written plain{tar};
    BOOST_TEST_REQUIRE(
        std::system((program + " '" + plain.path.string() + "' > '" + plain.path.string() + ".out'").c_str()) == 0);
    const auto bytes = test::file_bytes(plain.path.string() + ".out");
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

BOOST_AUTO_TEST_SUITE(tar_damage)

BOOST_AUTO_TEST_CASE(an_archive_cut_anywhere_is_refused_at_the_place_of_the_cut) {
    const std::string whole = two_samples().ended();
    BOOST_TEST_REQUIRE(whole.size() == 5120u + 1024u);
    BOOST_TEST(TarShards{Written{whole}.path.string()}.size() == 2u);
    check_refused(Written{""}.path, 0, "not a tar archive");
    check_refused(Written{whole.substr(0, 511)}.path, 0, "not a tar archive");
    check_refused(Written{whole.substr(0, 1000)}.path, 0, "600 bytes where the file has 488 left");
    check_refused(Written{whole.substr(0, 1536)}.path, 1536, "ends too early");
    check_refused(Written{whole.substr(0, 2560)}.path, 2560, "no mark of its end");
    check_refused(Written{whole.substr(0, 4096 + 512)}.path, 4096, "left: cut short");
    check_refused(Written{whole.substr(0, 5120)}.path, 5120, "no mark of its end");
    for (std::size_t length = 0; length < 5120 + 512; length += 101)
        BOOST_CHECK_THROW(TarShards{Written{whole.substr(0, length)}.path.string()}, TarError);
}

BOOST_AUTO_TEST_CASE(a_header_with_a_wrong_checksum_is_refused_wherever_a_bit_flipped) {
    const std::string whole = two_samples().ended();
    for (const std::size_t at : {0u, 100u, 130u, 150u, 156u, 260u, 400u, 511u}) {
        std::string first = whole, third = whole;
        first[at] = static_cast<char>(first[at] ^ 0x10);
        third[2560 + at] = static_cast<char>(third[2560 + at] ^ 0x10);
        check_refused(Written{first}.path, 0, "checksum is wrong");
        check_refused(Written{third}.path, 2560, "checksum is wrong");
    }
}

BOOST_AUTO_TEST_CASE(garbage_is_no_archive) {
    const auto noise = test::noise(100'000, 3);
    check_refused(Written{std::string(reinterpret_cast<const char*>(noise.data()), noise.size())}.path, 0,
                  "not a tar archive");
    check_refused(Written{std::string(100'000, ' ')}.path, 0, "not a tar archive");
    check_refused(Written{std::string(10'240, '\0')}.path, 0, "holds no sample");
    const TemporaryFolder folder;
    BOOST_CHECK_THROW(TarShards{folder.path().string()}, std::invalid_argument);
    BOOST_CHECK_THROW(TarShards{"/dev/null"}, std::filesystem::filesystem_error);
}

BOOST_AUTO_TEST_CASE(zeros_within_an_archive_do_not_pass_for_its_end) {
    std::string whole = two_samples().ended();
    whole.replace(2560, 1536, 1536, '\0');
    check_refused(Written{whole}.path, 3072, "follows the archive's end");
}

BOOST_AUTO_TEST_CASE(absurd_sizes_take_no_memory) {
    for (const std::string_view size : {"77777777777", "00000004000"}) {
        std::string header = HandMadeTar::header("a.jpg", 0);
        header.replace(124, 11, size);
        HandMadeTar::seal(header);
        check_refused(Written{header + std::string(1024, '\0')}.path, 0, "cut short, or a broken header");
    }
    std::string header = HandMadeTar::header("a.jpg", 0);
    header.replace(124, 12, std::string(12, '\xff'));
    HandMadeTar::seal(header);
    check_refused(Written{header}.path, 0, "size is no number");
    header.replace(124, 12, "\x80\0\0\0\x7f\xff\xff\xff\xff\xff\xff\xff", 12);
    HandMadeTar::seal(header);
    check_refused(Written{header}.path, 0, "cut short, or a broken header");
    header.replace(124, 12, "\x80\0\0\1\0\0\0\0\0\0\0\0", 12);   // 2^64
    HandMadeTar::seal(header);
    check_refused(Written{header}.path, 0, "size is no number");
    header.replace(124, 12, "0000000001z\0", 12);
    HandMadeTar::seal(header);
    check_refused(Written{header}.path, 0, "size is no number");
    HandMadeTar pax;
    pax.add("pax", test::pax_record("size", "18446744073709551615"), 'x').sample("a", "image", 1);
    check_refused(Written{pax.ended()}.path, 1024, "cut short, or a broken header");
    // If compressed, the file's size does not limit the archive's.
    header = HandMadeTar::header("a.jpg", 0);
    header.replace(124, 11, "77777777777");
    HandMadeTar::seal(header);
    check_refused(Written{compressed(header + std::string(1024, '\0'), "gzip -c")}.path, 0, "too large");
    header.replace(124, 11, "02000000001");   // 256 MiB and a byte
    HandMadeTar::seal(header);
    check_refused(Written{compressed(header + std::string(1024, '\0'), "gzip -c")}.path, 0,
                  "an image file of 268435457 bytes");
}

BOOST_AUTO_TEST_CASE(broken_extended_headers_are_refused) {
    for (const std::string record :
         {"5 a=b\n", "99 path=x\n", "path=x\n", "10 path=xy", "8 pathx\n", "2 \n", "0 a=b\n"}) {
        HandMadeTar tar;
        check_refused(Written{tar.add("pax", record, 'x').sample("a", "image", 1).ended()}.path, 0, "broken record");
    }
    HandMadeTar size, zero, everything, alone, sparse, old_sparse, nameless;
    size.add("pax", test::pax_record("size", "5x"), 'x').sample("a", "image", 1);
    check_refused(Written{size.ended()}.path, 0, "broken size");
    zero.add("pax", test::pax_record("path", std::string("a\0b.jpg", 7)), 'x').sample("a", "image", 1);
    check_refused(Written{zero.ended()}.path, 1024, "with a zero in it");
    everything.add("pax", test::pax_record("path", "same.jpg"), 'g').sample("a", "image", 1);
    check_refused(Written{everything.ended()}.path, 0, "every member the same");
    HandMadeTar one_size;
    one_size.add("pax", test::pax_record("size", "5"), 'g').sample("a", "image", 1);
    check_refused(Written{one_size.ended()}.path, 0, "every member the same");
    alone.sample("a", "image", 1).add("long", std::string(200, 'n'), 'L');
    check_refused(Written{alone.ended()}.path, 3072, "no next");
    sparse.add("pax", test::pax_record("GNU.sparse.major", "1"), 'x').sample("a", "image", 1);
    check_refused(Written{sparse.ended()}.path, 0, "sparse");
    old_sparse.sample("a", "image", 1).add("b.jpg", "", 'S');
    check_refused(Written{old_sparse.ended()}.path, 2048, "sparse");
    nameless.add("", "nothing");
    check_refused(Written{nameless.ended()}.path, 0, "without a name");
    HandMadeTar long_name;
    check_refused(Written{long_name.add("long", std::string(100'000, 'n'), 'L').ended()}.path, 0, "too long");
}

BOOST_AUTO_TEST_CASE(links_and_devices_are_refused_by_name) {
    for (const char type : {'1', '2', '3', '6', 'V'}) {
        HandMadeTar tar;
        check_refused(Written{tar.sample("a", "image", 1).add("b.jpg", "", type).ended()}.path, 2048,
                      "member 'b.jpg' is ");
    }
}

BOOST_AUTO_TEST_CASE(a_sample_without_image_or_label_is_refused_by_name) {
    HandMadeTar no_label, no_image, twice, again, text, negative, json, json_text, json_negative, json_other;
    no_label.sample("a", "image", 1).add("b.jpg", "image").add("b.txt", "no label");
    check_refused(Written{no_label.ended()}.path, 2048, "member 'b.jpg': its sample has no label");
    no_image.sample("a", "image", 1).add("b.cls", "1");
    check_refused(Written{no_image.ended()}.path, 2048, "sample 'b' has no jpg, jpeg, png or webp");
    twice.sample("a", "image", 1).add("a.JPG", "image");
    check_refused(Written{twice.ended()}.path, 2048, "has this field already");
    again.sample("a", "image", 1).sample("b", "image", 1).sample("a", "image", 1);
    check_refused(Written{again.ended()}.path, 4096, "its key was there before, at byte 0");
    for (const std::string label : {"cat", "", "-1", "16777216", "1.5", "1 2"}) {
        HandMadeTar tar;
        check_refused(Written{tar.add("a.jpg", "image").add("a.cls", label).ended()}.path, 1024,
                      "the label must be a number");
    }
    HandMadeTar long_label;
    long_label.add("a.jpg", "image").add("a.cls", std::string(65, '1'));
    check_refused(Written{long_label.ended()}.path, 1024, "too long");
    check_refused(Written{json.add("a.jpg", "image").add("a.json", R"({"label": )").ended()}.path, 1024, "broken JSON");
    json_text.add("a.jpg", "image").add("a.json", R"({"label": "cat"})");
    check_refused(Written{json_text.ended()}.path, 1024, "\"label\" must be a number");
    json_negative.add("a.jpg", "image").add("a.json", R"({"label": -1})");
    check_refused(Written{json_negative.ended()}.path, 1024, "\"label\" must be a number");
    json_other.add("a.jpg", "image").add("a.json", R"([{"label": 1}])");
    check_refused(Written{json_other.ended()}.path, 0, "has no label");
    HandMadeTar nested;   // must not recurse deeply
    nested.add("a.jpg", "image").add("a.json", std::string(500'000, '['));
    check_refused(Written{nested.ended()}.path, 1024, "broken JSON");
}

BOOST_AUTO_TEST_CASE(the_largest_label_is_taken) {
    HandMadeTar tar;
    const Written written{tar.add("a.jpg", "image").add("a.cls", "16777215").ended()};
    BOOST_TEST(TarShards{written.path.string()}.label(0) == 16777215);
}

BOOST_AUTO_TEST_CASE(broken_compressed_shards_name_the_place_in_their_file) {
    HandMadeTar tar;
    for (int i = 0; i < 20; ++i) {
        const auto image = test::noise(5000, std::uint32_t(i));
        tar.sample("k" + std::to_string(i), {reinterpret_cast<const char*>(image.data()), image.size()}, i);
    }
    for (const std::string program : {"gzip -c", "zstd -q -c"}) {
        const std::string name = program[0] == 'g' ? "gzip" : "zstd", whole = compressed(tar.ended(), program);
        BOOST_TEST(TarShards{Written{whole}.path.string()}.size() == 20u);
        for (const std::size_t length : {std::size_t{12}, std::size_t{3000}, whole.size() / 2, whole.size() - 1}) {
            const Written cut{whole.substr(0, length)};
            check_refused(cut.path, length, "of the compressed file: it ends too early");
        }
        // A single bit is found by the checksum at least.
        std::string flipped = whole;
        flipped[flipped.size() / 3] = static_cast<char>(flipped[flipped.size() / 3] ^ 4);
        const Written broken{flipped};
        BOOST_CHECK_EXCEPTION(TarShards{broken.path.string()}, TarError, [&](const TarError& error) {
            BOOST_TEST_INFO(error.what());
            return error.file() == broken.path.string() && error.offset() <= flipped.size() &&
                   std::string_view{error.what()}.find("of the compressed file: broken " + name + " data") !=
                       std::string_view::npos;
        });
        const Written longer{whole + "garbage"};
        BOOST_CHECK_THROW(TarShards{longer.path.string()}, TarError);
        // Several frames, as parallel compressors write them, form one archive.
        const std::string plain = tar.ended();
        const Written frames{compressed(plain.substr(0, 30'001), program) + compressed(plain.substr(30'001), program)};
        BOOST_TEST(TarShards{frames.path.string()}.size() == 20u);
        // A truncated archive in a complete compressed file.
        check_refused(Written{compressed(plain.substr(0, 512 + 2000), program)}.path, 512 + 2000, "ends too early");
    }
}

BOOST_AUTO_TEST_CASE(random_damage_never_does_worse_than_an_error) {
    const std::string whole = two_samples().ended();
    std::uint32_t state = 7;
    const auto random = [&](std::size_t below) {
        state = state * 1664525u + 1013904223u;
        return static_cast<std::size_t>(state >> 8) % below;
    };
    const TemporaryFolder folder;
    std::size_t refused = 0, read = 0;
    for (int round = 0; round < 3000; ++round) {
        std::string bytes = whole;
        const std::size_t header = std::vector<std::size_t>{0, 1536, 2560, 4096}[random(4)];
        for (std::size_t flips = 1 + random(4); flips > 0; --flips)
            bytes[header + random(512)] = static_cast<char>(random(256));
        if (random(2) == 0) {   // with a correct checksum
            std::string block = bytes.substr(header, 512);
            HandMadeTar::seal(block);
            bytes.replace(header, 512, block);
        }
        const auto path = folder.write("shard.tar", test::bytes_of(bytes));
        try {
            const TarShards shards{path.string()};
            for (std::size_t i = 0; i < shards.size(); ++i)
                BOOST_TEST_REQUIRE(test::read_of(shards, i).size() == shards.bytes(i));
            ++read;
        } catch (const TarError& error) {
            BOOST_TEST_REQUIRE(error.offset() <= bytes.size() + 512);
            ++refused;
        }
    }
    BOOST_TEST(refused > 1000u);
    BOOST_TEST(read > 100u);
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
}   // namespace drawpoint
