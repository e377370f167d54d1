#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <vector>

#include <drawpoint/pipeline/cache/sample_cache.hpp>

namespace drawpoint::test {

inline constexpr std::uint64_t header = 64, entry = 64;

inline std::uint64_t round_up(std::uint64_t bytes) { return (bytes + 63) / 64 * 64; }
inline std::uint64_t index_bytes(std::size_t samples) { return round_up(header + 8 * samples); }

inline std::vector<std::byte> contents(std::uint64_t index, std::size_t bytes) {
    std::vector<std::byte> data(bytes);
    for (std::size_t i = 0; i < bytes; ++i)
        data[i] = static_cast<std::byte>(index * 131 + i * 7);
    return data;
}

inline bool keep(SampleCache& cache, std::uint64_t index, std::size_t bytes) {
    SampleCache::Worker worker;
    SampleCache::Place place = cache.reserve(index, bytes, worker);
    if (!place)
        return false;
    std::ranges::copy(contents(index, bytes), place.data().begin());
    place.keep(static_cast<std::int64_t>(index) - 5, {1, static_cast<std::uint32_t>(index), 3, 4});
    return true;
}

inline bool is_what_was_kept(const SampleCache::Held& held, std::uint64_t index, std::size_t bytes) {
    return std::ranges::equal(held.data, contents(index, bytes)) &&
           held.target == static_cast<std::int64_t>(index) - 5 && held.shape[1] == index;
}

inline bool holds_what_was_kept(SampleCache& cache, std::uint64_t index, std::size_t bytes) {
    SampleCache::Worker worker;
    const auto held = cache.find(index, worker);
    return held && is_what_was_kept(*held, index, bytes);
}

inline bool finds(SampleCache& cache, std::uint64_t index) {
    SampleCache::Worker worker;
    return cache.find(index, worker).has_value();
}

template <class F>
std::string refusal(F f) {
    try {
        f();
    } catch (const std::exception& error) {
        return error.what();
    }
    return "accepted";
}

}   // namespace drawpoint::test
