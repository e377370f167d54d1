// The libFuzzer target for our JPEG decoder. Built with DRAWPOINT_FUZZ=ON.
#include "pipeline/image/own_jpeg_law.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace {

// Where the compressed data begins; `size` if there is no scan header.
std::size_t scan_begin(const std::uint8_t* data, std::size_t size) {
    for (std::size_t i = 0; i + 14 < size; ++i)
        if (data[i] == 0xFF && data[i + 1] == 0xDA)
            return std::min<std::size_t>(size, i + 2 + data[i + 3]);
    return size;
}

}   // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    // A decoder keeps its Huffman tables while successive files have the same ones. With 32 decoders, chosen by the
    // header, most tables are kept throughout a corpus.
    static std::array<drawpoint::test::OwnJpegLaw, 32> laws;
    std::uint32_t header = 0;
    for (std::size_t i = 0, end = scan_begin(data, size); i < end; ++i)
        header = header * 31 + data[i];
    drawpoint::test::OwnJpegLaw& law = laws[header % laws.size()];
    if (law.check({reinterpret_cast<const std::byte*>(data), size}) == drawpoint::test::OwnJpegLaw::Verdict::broken) {
        std::fprintf(stderr, "%s\n", law.fault().c_str());
        std::abort();
    }
    return 0;
}

// The decoder refuses nearly every change of a header at once, so most changes go to what follows it.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
    const std::size_t begin = scan_begin(data, size);
    if (seed % 8 == 0 || begin >= size || begin >= max_size)
        return LLVMFuzzerMutate(data, size, max_size);
    return begin + LLVMFuzzerMutate(data + begin, size - begin, max_size - begin);
}
