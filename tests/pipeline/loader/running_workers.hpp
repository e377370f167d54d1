#pragma once

#include <chrono>
#include <cstdint>
#include <thread>

#include <drawpoint/pipeline/loader/data_loader.hpp>

namespace drawpoint::test {

/// Waits until `wanted` workers are running, for at most a minute, since they come and go as they are scheduled.
inline bool comes_to(DataLoader& loader, std::uint64_t wanted) {
    const auto latest = std::chrono::steady_clock::now() + std::chrono::minutes{1};
    while (loader.counters().workers_running != wanted && std::chrono::steady_clock::now() < latest)
        std::this_thread::yield();
    return loader.counters().workers_running == wanted;
}

}   // namespace drawpoint::test
