#include <drawpoint/diagnosis/verdict/words.hpp>

#include <algorithm>

namespace drawpoint {
namespace {

constexpr std::array<std::string_view, 22> verdicts{
    "compute-bound",  "balanced",     "copy",         "delivery", "warm-up",    "read-latency",
    "read-bandwidth", "decode",       "transform",    "collate",  "workers",    "oversubscription",
    "prefetch-depth", "memory",       "order",        "sampler",  "stragglers", "bursty-consumer",
    "launch-bound",   "synchronised", "interference", "undecided"};
static_assert(verdicts.size() == static_cast<std::size_t>(Verdict::undecided) + 1);

constexpr bool each_lever_has_its_own_place() {
    for (std::size_t i = 0; i < levers.size(); ++i)
        if (static_cast<std::size_t>(levers[i].lever) != i)
            return false;
    return true;
}
static_assert(each_lever_has_its_own_place());

}   // namespace

std::string_view to_string(Verdict verdict) noexcept { return verdicts[static_cast<std::size_t>(verdict)]; }

std::optional<Verdict> verdict_of(std::string_view word) noexcept {
    const auto found = std::ranges::find(verdicts, word);
    if (found == verdicts.end())
        return std::nullopt;
    return static_cast<Verdict>(found - verdicts.begin());
}

std::optional<Lever> lever_of(std::string_view key) noexcept {
    const auto found = std::ranges::find_if(levers, [key](const LeverWords& words) {
        return words.lever == Lever::stage ? key.size() > words.key.size() && key.starts_with(words.key)
                                           : key == words.key;
    });
    if (found == levers.end())
        return std::nullopt;
    return found->lever;
}

}   // namespace drawpoint
