#include "pipeline/image/pixel_kernels.hpp"

namespace drawpoint {

#if defined(__x86_64__) && defined(__GNUC__)

// Constants of the files for one instruction set each, whose functions must not be called before the check.
extern const PixelKernels avx2_table, avx512_table;

const PixelKernels* avx2_kernels() noexcept { return __builtin_cpu_supports("avx2") ? &avx2_table : nullptr; }

const PixelKernels* avx512_kernels() noexcept {
    return avx2_kernels() != nullptr && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                   __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vbmi") &&
                   __builtin_cpu_supports("avx512vnni")
               ? &avx512_table
               : nullptr;
}

#else

const PixelKernels* avx2_kernels() noexcept { return nullptr; }
const PixelKernels* avx512_kernels() noexcept { return nullptr; }

#endif

const PixelKernels& best_kernels() noexcept {
    const PixelKernels* kernels = avx512_kernels();
    if (kernels == nullptr)
        kernels = avx2_kernels();
    return kernels != nullptr ? *kernels : portable_kernels();
}

std::byte* PackedWeights::bytes(std::size_t count) { return memory_.get(count); }

void PackedWeights::reserve(std::uint32_t outputs, std::uint32_t taps) {
    // For 16 outputs: 64 bytes a pair of taps, and a head of 128 or up to three pairs more.
    memory_.get((std::size_t{outputs} + 15) / 16 * (192 + (std::size_t{taps} + 1) / 2 * 64));
}

}   // namespace drawpoint
