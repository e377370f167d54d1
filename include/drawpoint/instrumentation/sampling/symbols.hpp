#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace drawpoint {

/// A place in the code, from debug information.
struct Frame {
    std::string function;     ///< demangled; "[unknown]", without a file, outside every module
    std::string file;         ///< source file; without debug information the module's name ("libc.so.6"); else empty
    std::uint32_t line = 0;   ///< of the address; 0: unknown
    std::uint32_t first_line = 0;   ///< of the function's declaration; 0: unknown
    bool inlined = false;           ///< inlined into the next frame outwards
    bool operator==(const Frame&) const = default;
};

/// Maps addresses in this process's code to functions and lines. A module's symbols are read at the first look-up in it
/// (about 10 ms per 100,000 symbols), and so are a compilation unit's functions; later look-ups take a few
/// microseconds. Modules loaded later are found. One thread at a time. Results are not cached per address; callers do
/// that. Never downloads debug information.
class Symbols {
public:
    Symbols();
    ~Symbols();
    Symbols(const Symbols&) = delete;
    Symbols& operator=(const Symbols&) = delete;

    /// The function at `address` and those it was inlined into, innermost first; at least one. For a return address
    /// pass the address minus one, since it points after its call.
    [[nodiscard]] std::vector<Frame> frames_of(std::uint64_t address);
    /// The innermost function at `address`: the first of frames_of().
    [[nodiscard]] Frame frame_of(std::uint64_t address) { return frames_of(address).front(); }

    /// "libdw" (functions, inlined ones, files and lines) or "dladdr" (exported functions only).
    [[nodiscard]] static std::string_view library() noexcept;

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}   // namespace drawpoint
