#pragma once

#include <chrono>
#include <cstdint>
#include <thread>

namespace drawpoint::bench {

/// Makes an item of the straggler workload: sleeps, and returns the value of its four floats.
inline float make_straggler(std::uint64_t index) {
    std::this_thread::sleep_for(index % 100 == 37 ? std::chrono::microseconds{20'000} : std::chrono::microseconds{200});
    return static_cast<float>(index);
}

}   // namespace drawpoint::bench
