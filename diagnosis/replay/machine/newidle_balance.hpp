#pragma once

#include <cstdint>
#include <random>

namespace drawpoint {

/// Whether a core that falls idle looks for a thread on other cores: at random, the more often the more often it has
/// found one lately (the kernel's newidle balancing, from 6.18 on).
class NewidleBalance {
public:
    /// `find` looks for a thread; true: it found one. It is called or not.
    template <class Find>
    void fell_idle(std::minstd_rand& dice, Find find) {
        const std::uint32_t weight = 1 + ratio_;
        if (dice() % all <= weight && find())
            found_ += (all + weight / 2) / weight;
        if (++times_ < all)
            return;
        ratio_ = found_;
        times_ /= 2;
        found_ /= 2;
    }

private:
    static constexpr std::uint32_t all = 1024;
    std::uint32_t times_ = all / 2, found_ = all / 4, ratio_ = all / 2;   // as the kernel begins
};

}   // namespace drawpoint
