#include <drawpoint/pipeline/rng.hpp>
#include "pipeline/image/jpeg_output.hpp"
#include "pipeline/image/own_jpeg_law.hpp"
#include "pipeline/image/own_jpeg/idct.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <vector>

BOOST_AUTO_TEST_SUITE(own_jpeg_idct)

using namespace drawpoint;
using namespace drawpoint::own_jpeg;
using namespace drawpoint::test;
using Verdict = OwnJpegLaw::Verdict;

namespace {

using Block = std::array<int, 64>;   // row-major

int between(CounterRng& random, int low, int high) {
    return low + static_cast<int>(random.uniform() * (high - low + 1));
}

// A gray JPEG file, one block high, with these coefficients.
std::vector<std::byte> file_of(const std::vector<Block>& blocks, const std::array<unsigned, 64>& quantization) {
    JpegOutput output{{static_cast<std::uint32_t>(blocks.size() * 8), 8}, 1};
    jpeg_compress_struct& info = output.info;
    jpeg_add_quant_table(&info, 0, quantization.data(), 100, TRUE);
    info.optimize_coding = TRUE;
    jvirt_barray_ptr rows = info.mem->request_virt_barray(reinterpret_cast<j_common_ptr>(&info), JPOOL_IMAGE, TRUE,
                                                          static_cast<JDIMENSION>(blocks.size()), 1, 1);
    jpeg_write_coefficients(&info, &rows);
    JBLOCKARRAY row = info.mem->access_virt_barray(reinterpret_cast<j_common_ptr>(&info), rows, 0, 1, TRUE);
    for (std::size_t b = 0; b < blocks.size(); ++b)
        for (std::size_t i = 0; i < 64; ++i)
            row[0][b][i] = static_cast<JCOEF>(blocks[b][i]);
    return output.finish();
}

std::array<unsigned, 64> all(unsigned value) {
    std::array<unsigned, 64> quantization;
    quantization.fill(value);
    return quantization;
}

// The number of files for which the planes equal the library's; our decoder gave the others up.
int equal_files(const std::array<unsigned, 64>& quantization, int files,
                const std::function<void(Block&, CounterRng&)>& fill) {
    OwnJpegLaw law;
    int equal = 0;
    for (int i = 0; i < files; ++i) {
        CounterRng random{9, 0, static_cast<std::uint64_t>(i)};
        std::vector<Block> blocks(4);
        for (Block& block : blocks) {
            block.fill(0);
            fill(block, random);
        }
        const auto file = file_of(blocks, quantization);
        const Verdict verdict = law.check(file, {0, 0, static_cast<std::uint32_t>(blocks.size() * 8), 8});
        BOOST_REQUIRE_MESSAGE(verdict == Verdict::equal || verdict == Verdict::gave_up, law.fault());
        equal += verdict == Verdict::equal;
    }
    return equal;
}

}   // namespace

BOOST_AUTO_TEST_CASE(every_mean_that_a_photograph_can_have_is_the_librarys) {
    OwnJpegLaw law;
    std::vector<Block> blocks;
    for (int mean = -1024; mean <= 1024; ++mean) {
        blocks.emplace_back();
        blocks.back().fill(0);
        blocks.back()[0] = mean;
    }
    const auto file = file_of(blocks, all(1));
    const auto verdict = law.check(file, {0, 0, static_cast<std::uint32_t>(blocks.size() * 8), 8});
    BOOST_TEST((verdict == Verdict::equal), law.fault());
}

BOOST_AUTO_TEST_CASE(every_single_coefficient_is_the_librarys) {
    OwnJpegLaw law;
    for (const int value : {1, -1, 2, 37, -100, 400, -700, 1023}) {
        std::vector<Block> blocks;
        for (std::size_t i = 0; i < 64; ++i) {
            blocks.emplace_back();
            blocks.back().fill(0);
            blocks.back()[i] = value;
        }
        const auto verdict = law.check(file_of(blocks, all(1)), {0, 0, 512, 8});
        BOOST_TEST((verdict == Verdict::equal), value << ' ' << law.fault());
    }
}

BOOST_AUTO_TEST_CASE(random_blocks_of_any_density_are_the_librarys) {
    for (const int density : {1, 4, 10, 32, 64}) {
        const int equal = equal_files(all(3), 400, [density](Block& block, CounterRng& random) {
            block[0] = between(random, -300, 300);
            for (int i = 0; i < density; ++i)
                block[static_cast<std::size_t>(between(random, 0, 63))] = between(random, -12, 12);
        });
        BOOST_TEST(equal == 400, "density " << density);
    }
}

BOOST_AUTO_TEST_CASE(low_frequencies_alone_are_the_librarys) {
    const int equal = equal_files(all(7), 500, [](Block& block, CounterRng& random) {
        block[0] = between(random, -100, 100);
        for (std::size_t r = 0; r < 4; ++r)
            for (std::size_t c = 0; c + r < 4; ++c)
                block[r * 8 + c] += between(random, -9, 9);
    });
    BOOST_TEST(equal == 500);
}

BOOST_AUTO_TEST_CASE(wild_coefficients_are_the_librarys_or_given_up) {
    for (const unsigned quantization : {1u, 2u, 16u, 64u, 255u})
        for (const int most : {60, 300, 1023}) {
            const int equal = equal_files(all(quantization), 150, [most](Block& block, CounterRng& random) {
                for (int i = between(random, 0, 64); i > 0; --i)
                    block[static_cast<std::size_t>(between(random, 0, 63))] = between(random, -most, most);
            });
            if (quantization * static_cast<unsigned>(most) > 200'000)
                BOOST_TEST(equal < 150);   // our decoder must have given some up
        }
}

BOOST_AUTO_TEST_CASE(checkerboards_and_full_swings_are_the_librarys) {
    const auto wave = [](std::size_t place, std::size_t frequency) {
        return std::cos(static_cast<double>((2 * place + 1) * frequency) * 3.14159265358979 / 16);
    };
    const int equal = equal_files(all(1), 200, [wave](Block& block, CounterRng& random) {
        // Black and white noise has the largest possible energy of an image.
        std::array<double, 64> pixels;
        for (double& pixel : pixels)
            pixel = random.uniform() < 0.5 ? -128 : 127;
        for (std::size_t v = 0; v < 8; ++v)
            for (std::size_t u = 0; u < 8; ++u) {
                double sum = 0;
                for (std::size_t y = 0; y < 8; ++y)
                    for (std::size_t x = 0; x < 8; ++x)
                        sum += pixels[y * 8 + x] * wave(x, u) * wave(y, v);
                block[v * 8 + u] =
                    static_cast<int>(std::lround(sum / 4 * (u == 0 ? 0.70710678 : 1) * (v == 0 ? 0.70710678 : 1)));
            }
    });
    BOOST_TEST(equal == 200);
}

#if defined(DRAWPOINT_OWN_JPEG_AVX2)
BOOST_AUTO_TEST_CASE(avx2_makes_the_samples_of_the_portable_code_and_leaves_zeros) {
    if (!__builtin_cpu_supports("avx2"))
        return;
    for (std::uint64_t i = 0; i < 20'000; ++i) {
        CounterRng random{11, 0, i};
        CoefficientPair coefficients{};
        QuantizationPair quantization;
        for (std::int16_t& value : quantization.values)
            value = static_cast<std::int16_t>(between(random, 1, i % 2 == 0 ? 255 : 16));
        const int highest = i % 3 == 0 ? 0 : i % 3 == 1 ? 9 : 63;
        for (std::size_t k = 0; k <= static_cast<std::size_t>(highest); ++k)
            for (std::size_t half = 0; half < 2; ++half) {
                const std::size_t place = zigzag_places[k] + 8 * half;
                const int most = 32767 / quantization.values[place];
                coefficients.values[place] =
                    static_cast<std::int16_t>(i % 5 == 0 ? between(random, -most, most) : between(random, -20, 20));
            }
        CoefficientPair again = coefficients;
        std::array<std::uint8_t, 128> portable{}, avx2{};
        const int most =
            PortableIdct::pair(coefficients, quantization, highest, {portable.data(), 16}, {portable.data() + 8, 16});
        const int most_too = Avx2Idct::pair(again, quantization, highest, {avx2.data(), 16}, {avx2.data() + 8, 16});
        BOOST_REQUIRE(portable == avx2);
        BOOST_REQUIRE(most == most_too);
        BOOST_REQUIRE(std::all_of(again.values, again.values + 128, [](std::int16_t value) { return value == 0; }));
        BOOST_REQUIRE(
            std::all_of(coefficients.values, coefficients.values + 128, [](std::int16_t value) { return value == 0; }));
    }
}
#endif

BOOST_AUTO_TEST_SUITE_END()
