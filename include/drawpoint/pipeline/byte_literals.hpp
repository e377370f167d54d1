#pragma once

#include <cstdint>

namespace drawpoint {

/// Sizes in bytes, e.g. `2_GiB`. Part of namespace drawpoint; `using namespace drawpoint::byte_literals` imports them
/// alone.
inline namespace byte_literals {

consteval std::uint64_t operator""_KiB(unsigned long long n) { return n << 10; }
consteval std::uint64_t operator""_MiB(unsigned long long n) { return n << 20; }
consteval std::uint64_t operator""_GiB(unsigned long long n) { return n << 30; }

}   // namespace byte_literals
}   // namespace drawpoint
