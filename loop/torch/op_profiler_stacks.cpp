#include "op_profiler_stacks.hpp"

#include <algorithm>

#include <execinfo.h>

#include <drawpoint/instrumentation/sampling/symbols.hpp>

namespace drawpoint::detail {

namespace {
constexpr std::size_t observer_frames = 16;   // most frames between an operator's caller and this code
}

struct CallStacks::Symboliser {
    Symbols symbols;
};

CallStacks::CallStacks() : addresses_(observer_frames) {}
CallStacks::~CallStacks() = default;

void CallStacks::prepare() {
    void* one = nullptr;
    (void)::backtrace(&one, 1);
}

std::uint32_t CallStacks::here(Recorder& recorder, std::uint32_t max_frames) {
    addresses_.resize(max_frames + observer_frames);
    const int count = ::backtrace(addresses_.data(), static_cast<int>(addresses_.size()));
    addresses_.resize(static_cast<std::size_t>(std::max(count, 0)));
    const std::string_view key{reinterpret_cast<const char*>(addresses_.data()), addresses_.size() * sizeof(void*)};
    if (const auto found = stacks_.find(key); found != stacks_.end())
        return found->second;
    return stacks_.emplace(key, stack_of(recorder, max_frames)).first->second;
}

std::uint32_t CallStacks::stack_of(Recorder& recorder, std::uint32_t max_frames) {
    std::vector<std::uint32_t> frames;   // innermost first
    for (std::size_t i = 0; i < addresses_.size(); ++i) {
        const Place& place = place_of(recorder, reinterpret_cast<std::uint64_t>(addresses_[i]));
        if (place.observer && i < observer_frames)
            frames.clear();
        else
            frames.insert(frames.end(), place.frames.begin(), place.frames.end());
    }
    frames.resize(std::min<std::size_t>(frames.size(), max_frames));
    std::uint32_t stack = nothing;
    for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame)
        stack = recorder.add_stack({.parent = stack, .frame = *frame});
    return stack;
}

const CallStacks::Place& CallStacks::place_of(Recorder& recorder, std::uint64_t return_address) {
    const auto [at, is_new] = places_.try_emplace(return_address);
    if (!is_new)
        return at->second;
    if (!symboliser_)
        symboliser_ = std::make_unique<Symboliser>();
    Place& place = at->second;
    for (const Frame& frame : symboliser_->symbols.frames_of(return_address - 1)) {
        const std::string_view function = frame.function;
        place.observer = place.observer || function.find("RecordFunction") != function.npos ||
                         function.find("CallStacks::here") != function.npos ||
                         function.find("OpState::begin") != function.npos;
        place.frames.push_back(recorder.add_frame({.function = recorder.add_name(function),
                                                   .file = frame.file.empty() ? nothing : recorder.add_name(frame.file),
                                                   .line = frame.line}));
    }
    return at->second;
}

}   // namespace drawpoint::detail
