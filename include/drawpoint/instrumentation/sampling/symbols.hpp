#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace drawpoint {

/// A place in the code, as debug information knows it.
struct Frame {
    std::string function;     ///< demangled; "[unknown]", and no file, outside every module
    std::string file;         ///< the source file; without debug information the module's ("libc.so.6"); else empty
    std::uint32_t line = 0;   ///< of the address; 0: not known
    std::uint32_t first_line = 0;   ///< where the function is declared; 0: not known
    bool inlined = false;           ///< has no code of its own: it stands inside the next frame out
    bool operator==(const Frame&) const = default;
};

/// Says where in this process's code an address lies. A module's symbols are read when its first address is asked for
/// (some 10 ms per 100,000 symbols), a compilation unit's functions likewise; then an address costs some microseconds.
/// Modules loaded later are found. One thread at a time. Keeps nothing per address: callers do. Never downloads debug
/// information.
class Symbols {
public:
    Symbols();
    ~Symbols();
    Symbols(const Symbols&) = delete;
    Symbols& operator=(const Symbols&) = delete;

    /// The function at `address` and those it was inlined into, innermost first; at least one. A return address stands
    /// behind its call: hand in one less.
    [[nodiscard]] std::vector<Frame> frames_of(std::uint64_t address);
    /// The innermost of them.
    [[nodiscard]] Frame frame_of(std::uint64_t address) { return frames_of(address).front(); }

    /// "libdw" (functions, inlined ones, files and lines) or "dladdr" (exported functions only).
    [[nodiscard]] static std::string_view library() noexcept;

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}   // namespace drawpoint
