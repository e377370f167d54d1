#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include <drawpoint/instrumentation/recorder/recorder.hpp>
#include <drawpoint/instrumentation/sampling/symbols.hpp>

namespace drawpoint {

/// Converts stacks of addresses to the recorder's stacks. Each address is looked up once, and so is each pair of caller
/// and callee; the tables are bounded and cleared when they are full. For the sampler's thread only.
class StackTable {
public:
    explicit StackTable(Recorder& recorder) : recorder_{&recorder} { steps_.resize(1u << 12); }

    /// `addresses` are innermost first, all but the first return addresses. `nothing` if the recorder has no room.
    [[nodiscard]] std::uint32_t stack_of(std::span<const std::uint64_t> addresses, bool in_kernel);

private:
    /// Maps a stack and the next address inwards to the resulting stack.
    struct Step {
        std::uint64_t address = 0;              // doubled, plus one for the innermost
        std::uint32_t from = 0, to = nothing;   // `to` is nothing in a free entry
    };

    [[nodiscard]] std::uint32_t step(std::uint32_t from, std::uint64_t address, bool innermost);
    [[nodiscard]] Step& place_of(std::uint32_t from, std::uint64_t key) noexcept;
    void grow();
    const std::vector<std::uint32_t>& frames_of(std::uint64_t address);
    [[nodiscard]] std::uint32_t add(const Frame&);

    Recorder* recorder_;
    Symbols symbols_;
    std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> frames_;   // outermost first; empty: not code
    std::vector<Step> steps_;                                                // open addressing, a power of two
    std::size_t used_ = 0;
};

}   // namespace drawpoint
