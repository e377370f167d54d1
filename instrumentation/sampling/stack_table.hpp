#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include <drawpoint/instrumentation/recorder/recorder.hpp>
#include <drawpoint/instrumentation/sampling/symbols.hpp>

namespace drawpoint {

/// Turns stacks of addresses into the recorder's stacks. Each address is looked up once, each caller with each callee
/// once; what is remembered is bounded and forgotten when it grows beyond that. Of the sampler's thread.
class StackTable {
public:
    explicit StackTable(Recorder& recorder) : recorder_{&recorder} { steps_.resize(1u << 12); }

    /// `addresses` innermost first; return addresses but the first. `nothing` when the recorder has no room.
    [[nodiscard]] std::uint32_t stack_of(std::span<const std::uint64_t> addresses, bool in_kernel);

private:
    /// A stack and the address it goes on with → the stack that makes.
    struct Step {
        std::uint64_t address = 0;              // doubled, plus one for the innermost
        std::uint32_t from = 0, to = nothing;   // to nothing: free
    };

    [[nodiscard]] std::uint32_t step(std::uint32_t from, std::uint64_t address, bool innermost);
    [[nodiscard]] Step& place_of(std::uint32_t from, std::uint64_t key) noexcept;
    void grow();
    const std::vector<std::uint32_t>& frames_of(std::uint64_t address);
    [[nodiscard]] std::uint32_t add(const Frame&);

    Recorder* recorder_;
    Symbols symbols_;
    std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> frames_;   // outermost first; none: not code
    std::vector<Step> steps_;                                                // open addressing, a power of two
    std::size_t used_ = 0;
};

}   // namespace drawpoint
