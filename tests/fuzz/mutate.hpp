#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

#include <drawpoint/pipeline/rng.hpp>

namespace drawpoint::test {

using File = std::vector<std::byte>;

/// A number below `limit`.
inline std::size_t below(CounterRng& random, std::size_t limit) {
    return static_cast<std::size_t>(random.uniform() * static_cast<double>(limit));
}

/// Makes one to three small changes from the byte `begin` on.
inline void mutate(File& file, std::size_t begin, CounterRng& random) {
    for (std::size_t changes = 1 + below(random, 3); changes != 0 && file.size() > begin + 2; --changes) {
        const std::size_t at = begin + below(random, file.size() - begin),
                          count = 1 + below(random, std::min<std::size_t>(8, file.size() - at));
        const auto from = file.begin() + static_cast<std::ptrdiff_t>(at);
        const auto to = from + static_cast<std::ptrdiff_t>(count);
        constexpr std::array<std::byte, 6> telling = {std::byte{0xFF}, std::byte{0},    std::byte{0xD9},
                                                      std::byte{0xD0}, std::byte{0xFE}, std::byte{0x7F}};
        switch (below(random, 7)) {
        case 0:
        case 1: *from ^= static_cast<std::byte>(1u << below(random, 8)); break;
        case 2: *from = static_cast<std::byte>(below(random, 256)); break;
        case 3: *from = telling[below(random, telling.size())]; break;
        case 4: file.erase(from, to); break;
        case 5: {
            const File again(from, to);
            file.insert(from, again.begin(), again.end());
            break;
        }
        default: std::reverse(from, to); break;
        }
    }
}

}   // namespace drawpoint::test
