#include "pipeline/image/own_jpeg/block_reader.hpp"

namespace drawpoint::own_jpeg {

int read_block_carefully(BitReader& reader, BlockCoding& coding, std::int16_t* block) noexcept {
    reader.refill();
    const Symbol difference = coding.dc->find(reader.bits);
    if (difference.length == 0)
        return broken_block;
    reader.drop(difference.length);
    coding.prediction += difference.value;
    if (block != nullptr) {
        if (static_cast<std::uint32_t>(coding.prediction) + coding.dc_limit > 2 * coding.dc_limit)
            return broken_block;
        block[0] = static_cast<std::int16_t>(coding.prediction);
    }
    std::uint32_t k = 1;
    while (k < 64) {
        reader.refill();
        const Symbol symbol = coding.ac->find(reader.bits);
        if (symbol.length == 0)
            return broken_block;
        reader.drop(symbol.length);
        if (symbol.run == end_of_block)
            break;
        k += symbol.run;
        if (k > 63)
            return broken_block;
        if (block != nullptr) {
            const std::int32_t dequantised = symbol.value * coding.quantization[k];
            if (dequantised != static_cast<std::int16_t>(dequantised))
                return broken_block;
            block[zigzag_places[k]] = static_cast<std::int16_t>(symbol.value);
        }
        ++k;
    }
    return static_cast<int>(k) - 1;
}

}   // namespace drawpoint::own_jpeg
