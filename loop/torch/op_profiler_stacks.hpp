#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <drawpoint/instrumentation/recorder/recorder.hpp>

namespace drawpoint::detail {

/// Call stacks of one thread, unwound from debug information (LibTorch has no frame pointers), in the recorder's
/// columns. A stack seen before costs its unwinding and one look-up.
class CallStacks {
public:
    CallStacks();
    CallStacks(const CallStacks&) = delete;
    CallStacks& operator=(const CallStacks&) = delete;
    ~CallStacks();

    /// Index in `Ledger::stacks` of the stack of the operator that is beginning: its innermost `max_frames` frames,
    /// without those of the observer. `nothing` if it cannot be unwound.
    std::uint32_t here(Recorder&, std::uint32_t max_frames);

    /// Loads what the unwinder needs now, because the first unwinding would allocate.
    static void prepare();

private:
    struct Place {
        std::vector<std::uint32_t> frames;   // at this address, inlined ones included, innermost first
        bool observer = false;               // code of LibTorch's or our observer, not of the program
    };
    const Place& place_of(Recorder&, std::uint64_t return_address);
    std::uint32_t stack_of(Recorder&, std::uint32_t max_frames);

    struct Symboliser;
    struct Hash {
        using is_transparent = void;
        std::size_t operator()(std::string_view bytes) const noexcept { return std::hash<std::string_view>{}(bytes); }
    };
    std::unique_ptr<Symboliser> symboliser_;
    std::vector<void*> addresses_;   // innermost first
    std::unordered_map<std::uint64_t, Place> places_;
    std::unordered_map<std::string, std::uint32_t, Hash, std::equal_to<>> stacks_;
};

}   // namespace drawpoint::detail
