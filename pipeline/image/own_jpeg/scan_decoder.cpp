#include "pipeline/image/own_jpeg/scan_loop.hpp"

namespace drawpoint::own_jpeg {

bool decode_mcus_portable(ScanState& state, std::uint32_t row, Range columns) noexcept {
    return decode_mcus<PortableIdct>(state, row, columns);
}

#if defined(DRAWPOINT_OWN_JPEG_AVX2)
__attribute__((target("avx2,bmi,bmi2"))) bool decode_mcus_avx2(ScanState& state, std::uint32_t row,
                                                               Range columns) noexcept {
    return decode_mcus<Avx2Idct>(state, row, columns);
}
#endif

}   // namespace drawpoint::own_jpeg
