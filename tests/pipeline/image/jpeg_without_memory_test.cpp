#include <drawpoint/pipeline/image/jpeg.hpp>
#include "pipeline/image/encode.hpp"
#include "pipeline/image/jpeg_encoder.hpp"
#include "support/count_allocations.hpp"

#include <boost/test/unit_test.hpp>

#include <malloc.h>

#include <cstddef>
#include <cstdint>
#include <new>
#include <vector>

BOOST_AUTO_TEST_SUITE(jpeg_without_memory)

using namespace drawpoint;

namespace {

std::size_t bytes_in_use() {
    const auto info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

/// Lets each allocation of `work` fail, one after the other and many times each; returns the number of allocations.
template <class Work>
std::uint64_t fail_each_allocation(const Work& work) {
    constexpr int times = 32;
    test::count_this_thread(true);
    const std::uint64_t first = test::counted_allocations();
    work();
    const std::uint64_t count = test::counted_allocations() - first;
    test::count_this_thread(false);
    const auto fail = [&work](std::uint64_t number) {
        for (int time = 0; time < times; ++time) {
            test::fail_allocation_after(number);
            try {
                work();
            } catch (const std::bad_alloc&) {
            } catch (const ImageError&) {
            }
            test::fail_no_allocation();
        }
    };
    for (std::uint64_t number = 0; number < count; ++number) {
        fail(number);   // by then, the memory that malloc itself retains has stopped growing
        const std::size_t before = bytes_in_use();
        fail(number);
        const std::size_t after = bytes_in_use();
        BOOST_TEST(after < before + times * 16, "allocation " << number << ": " << before << " bytes, then " << after);
    }
    return count;
}

struct CountsAllocations {
    boost::test_tools::assertion_result operator()(boost::unit_test::test_unit_id) const {
        return test::counts_allocations();
    }
};

}   // namespace

BOOST_AUTO_TEST_CASE(a_decoder_that_cannot_be_made_keeps_nothing,
                     *boost::unit_test::precondition(CountsAllocations{})) {
    for (const JpegBackend backend : {JpegBackend::library, JpegBackend::own})
        BOOST_TEST(fail_each_allocation([backend] { JpegDecoder{backend}; }) > 3u);
}

BOOST_AUTO_TEST_CASE(a_file_that_finds_no_memory_keeps_none, *boost::unit_test::precondition(CountsAllocations{})) {
    const auto file = test::jpeg_file({64, 48}, {.progressive = true});
    std::vector<std::uint8_t> rgb(64 * 48 * 3);
    for (const JpegBackend backend : {JpegBackend::library, JpegBackend::own})
        BOOST_TEST(fail_each_allocation([&] {
                       JpegDecoder decoder{backend};
                       decoder.open(file);
                       decoder.decode_rgb({0, 0, 64, 48}, rgb.data());
                   }) > 10u);
}

BOOST_AUTO_TEST_CASE(a_picture_that_cannot_be_encoded_keeps_nothing,
                     *boost::unit_test::precondition(CountsAllocations{})) {
    const ImageSize size{200, 150};
    const auto pixels = test::picture(size, 3, 1);   // its file outgrows the library's initial buffer more than once
    BOOST_TEST(encode_jpeg({pixels.data(), size, 600}, 95).size() > 16384u);
    BOOST_TEST(fail_each_allocation([&] { encode_jpeg({pixels.data(), size, 600}, 95); }) > 5u);
}

BOOST_AUTO_TEST_SUITE_END()
