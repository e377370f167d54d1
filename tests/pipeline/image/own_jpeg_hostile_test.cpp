#include <drawpoint/pipeline/rng.hpp>
#include "pipeline/image/own_jpeg_files.hpp"
#include "pipeline/image/own_jpeg_law.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <vector>

BOOST_AUTO_TEST_SUITE(own_jpeg_hostile)

using namespace drawpoint;
using namespace drawpoint::test;
using Verdict = OwnJpegLaw::Verdict;

namespace {

std::size_t header_bytes(const std::vector<std::byte>& file) {
    OwnJpegDecoder decoder;
    return decoder.open(file) ? file.size() - decoder.scan().size() : 0;
}

}   // namespace

BOOST_AUTO_TEST_CASE(a_file_cut_anywhere_is_given_up_or_the_librarys) {
    OwnJpegLaw law;
    for (const unsigned restart : {0u, 2u}) {
        const auto whole = own_jpeg_file({33, 29}, {.restart_interval = restart}, 1);
        const CropBox all{0, 0, 33, 29};
        BOOST_REQUIRE((law.check(whole, all) == Verdict::equal));
        for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
            const std::span<const std::byte> cut{whole.data(), bytes};
            const Verdict verdict = law.check(cut, all);
            BOOST_REQUIRE_MESSAGE(verdict == Verdict::refused || verdict == Verdict::gave_up,
                                  bytes << " bytes: " << law.fault());
        }
        // The rest is replaced by an end marker.
        for (std::size_t bytes = header_bytes(whole); bytes + 2 < whole.size(); ++bytes) {
            std::vector<std::byte> cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(bytes));
            cut.insert(cut.end(), {std::byte{0xFF}, std::byte{0xD9}});
            const Verdict verdict = law.check(cut, all);
            BOOST_REQUIRE_MESSAGE(verdict != Verdict::broken, bytes << " bytes: " << law.fault());
        }
    }
}

BOOST_AUTO_TEST_CASE(any_header_byte_of_any_value_keeps_the_law) {
    for (const int components : {1, 3}) {
        const auto whole = own_jpeg_file({17, 9}, {.components = components, .quality = 50, .restart_interval = 1}, 2);
        OwnJpegLaw law;
        std::vector<std::byte> file = whole;
        std::size_t equal = 0;
        for (std::size_t at = 0; at < header_bytes(whole); ++at) {
            for (std::size_t value = 0; value < 256; value += at % 3 + 1) {
                file[at] = static_cast<std::byte>(value);
                const Verdict verdict = law.check(file);
                BOOST_REQUIRE_MESSAGE(verdict != Verdict::broken,
                                      "byte " << at << " is " << value << ": " << law.fault());
                equal += verdict == Verdict::equal;
            }
            file[at] = whole[at];
        }
        BOOST_TEST(equal > 1000u);
    }
}

BOOST_AUTO_TEST_CASE(any_flipped_bit_of_the_data_keeps_the_law) {
    for (const Codes codes : {Codes::standard, Codes::flat, Codes::longest, Codes::padded}) {
        const auto whole = own_jpeg_file({40, 35}, {.quality = 60, .codes = codes}, 3);
        OwnJpegLaw law;
        std::vector<std::byte> file = whole;
        std::size_t verdicts[4] = {};
        for (std::size_t at = header_bytes(whole); at < whole.size(); ++at)
            for (unsigned bit = 0; bit < 8; ++bit) {
                file[at] ^= static_cast<std::byte>(1u << bit);
                const Verdict verdict = law.check(file, {0, 0, 40, 35});
                ++verdicts[static_cast<std::size_t>(verdict)];
                BOOST_REQUIRE_MESSAGE(verdict != Verdict::broken,
                                      "bit " << bit << " of byte " << at << ": " << law.fault());
                file[at] = whole[at];
            }
        BOOST_TEST(verdicts[static_cast<std::size_t>(Verdict::gave_up)] > 0u);
        BOOST_TEST(verdicts[static_cast<std::size_t>(Verdict::equal)] > 0u);
    }
}

BOOST_AUTO_TEST_CASE(noise_in_place_of_the_data_keeps_the_law) {
    OwnJpegLaw law;
    for (std::uint64_t i = 0; i < 20'000; ++i) {
        CounterRng random{4, 0, i};
        static const auto whole = own_jpeg_file({24, 24}, {}, 4);
        static const std::size_t header = header_bytes(whole);
        std::vector<std::byte> file = whole;
        std::generate(file.begin() + static_cast<std::ptrdiff_t>(header), file.end() - 2, [&random, i] {
            const auto byte = static_cast<std::uint8_t>(random.next_u32());
            return std::byte{byte == 0xFF && i % 4 != 0 ? std::uint8_t{0xFE} : byte};
        });
        const Verdict verdict = law.check(file);
        BOOST_REQUIRE_MESSAGE(verdict != Verdict::broken, i << ": " << law.fault());
    }
}

BOOST_AUTO_TEST_CASE(a_large_image_in_a_small_file_is_refused_before_memory_is_taken) {
    auto file = own_jpeg_file({16, 16}, {}, 5);
    for (std::size_t i = 0; i + 8 < file.size(); ++i)
        if (file[i] == std::byte{0xFF} && file[i + 1] == std::byte{0xC0}) {
            file[i + 5] = file[i + 7] = std::byte{0x27};   // 10,000 x 10,000
            file[i + 6] = file[i + 8] = std::byte{0x10};
            break;
        }
    OwnJpegDecoder decoder;
    BOOST_TEST(!decoder.open(file));
}

BOOST_AUTO_TEST_SUITE_END()
