#include "instrumentation/sampling/stack_table.hpp"

#include <algorithm>

namespace drawpoint {
namespace {

constexpr std::size_t most_steps = 1u << 20, most_addresses = 1u << 18;

}   // namespace

std::uint32_t StackTable::stack_of(std::span<const std::uint64_t> addresses, bool in_kernel) {
    std::uint32_t stack = nothing;
    for (std::size_t i = addresses.size(); i-- > 0;)
        stack = step(stack, addresses[i], i == 0);
    if (addresses.empty() || in_kernel)
        stack = recorder_->add_stack({stack, add({.function = addresses.empty() ? "[unknown]" : "[kernel]"})});
    return stack;
}

std::uint32_t StackTable::step(std::uint32_t from, std::uint64_t address, bool innermost) {
    const std::uint64_t key = address << 1 | (innermost ? 1u : 0u);
    if (const Step& known = place_of(from, key); known.to != nothing)
        return known.to;
    const std::vector<std::uint32_t>& frames = frames_of(innermost || address == 0 ? address : address - 1);
    // The callers of an address that is not code cannot be trusted: all of them become one root, "[unknown]".
    std::uint32_t to = frames.empty() ? recorder_->add_stack({nothing, add({.function = "[unknown]"})}) : from;
    for (const std::uint32_t frame : frames)
        to = recorder_->add_stack({to, frame});
    if (to == nothing)
        return to;
    if (2 * (used_ + 1) > steps_.size())
        grow();
    place_of(from, key) = {key, from, to};
    ++used_;
    return to;
}

StackTable::Step& StackTable::place_of(std::uint32_t from, std::uint64_t key) noexcept {
    std::uint64_t hash = (key ^ std::uint64_t{from} << 40) * 0x9e37'79b9'7f4a'7c15u;
    hash ^= hash >> 29;
    for (std::size_t at = hash & (steps_.size() - 1);; at = (at + 1) & (steps_.size() - 1)) {
        Step& step = steps_[at];
        if (step.to == nothing || (step.address == key && step.from == from))
            return step;
    }
}

void StackTable::grow() {
    std::vector<Step> before(steps_.size() < most_steps ? 2 * steps_.size() : steps_.size());
    before.swap(steps_);
    used_ = 0;
    if (before.size() == steps_.size())   // the size limit is reached: start again with an empty table
        return;
    for (const Step& step : before) {
        if (step.to != nothing) {
            place_of(step.from, step.address) = step;
            ++used_;
        }
    }
}

const std::vector<std::uint32_t>& StackTable::frames_of(std::uint64_t address) {
    if (frames_.size() >= most_addresses)
        frames_.clear();
    const auto [place, fresh] = frames_.try_emplace(address);
    if (fresh) {
        for (const Frame& frame : symbols_.frames_of(address)) {
            if (!frame.file.empty())
                place->second.push_back(add(frame));
        }
        std::reverse(place->second.begin(), place->second.end());
    }
    return place->second;
}

std::uint32_t StackTable::add(const Frame& frame) {
    return recorder_->add_frame({recorder_->add_name(frame.function),
                                 frame.file.empty() ? nothing : recorder_->add_name(frame.file), frame.first_line});
}

}   // namespace drawpoint
