#pragma once

#include <cstdint>
#include <string_view>
#include <utility>

#include <drawpoint/instrumentation/ledger/ledger.hpp>
#include "instrumentation/export/text_stream.hpp"
#include <drawpoint/instrumentation/detail/wrapping.hpp>

namespace drawpoint {

/// Nanoseconds as microseconds with three decimals.
struct Microseconds {
    std::int64_t ns;
};

}   // namespace drawpoint

template <>
struct fmt::formatter<drawpoint::Microseconds> : fmt::formatter<std::string_view> {
    auto format(drawpoint::Microseconds time, fmt::format_context& context) const {
        const auto magnitude =
            time.ns < 0 ? 0 - static_cast<std::uint64_t>(time.ns) : static_cast<std::uint64_t>(time.ns);
        return fmt::format_to(context.out(), "{}{}.{:03}", time.ns < 0 ? "-" : "", magnitude / 1000, magnitude % 1000);
    }
};

namespace drawpoint {

[[nodiscard]] constexpr bool on_a_device(OperatorKind kind) noexcept {
    return kind == OperatorKind::kernel || kind == OperatorKind::memcpy || kind == OperatorKind::memset;
}

/// Keeps what a stream of Chrome trace events needs: the separators between events, and the base of their times.
class ChromeEvents {
public:
    ChromeEvents(const Ledger& ledger, TextStream& out) noexcept : start_ns_{ledger.start_ns}, out_{&out} {}

    /// The separator before the next event.
    std::string_view next() { return std::exchange(first_, false) ? "\n    " : ",\n    "; }

    [[nodiscard]] Microseconds time(std::int64_t at_ns) const noexcept {
        return {static_cast<std::int64_t>(wrapping_difference(at_ns, start_ns_))};
    }
    [[nodiscard]] static Microseconds length(std::int64_t begin_ns, std::int64_t end_ns) noexcept {
        return {static_cast<std::int64_t>(wrapping_difference(end_ns, begin_ns))};
    }

    void meta(std::string_view name, std::string_view pid, std::uint64_t tid, std::string_view args) {
        out_->print(R"({}{{"ph": "M", "name": "{}", "ts": 0.000, "pid": {}, "tid": {}, "args": {{{}}}}})", next(), name,
                    pid, tid, args);
    }

    void flow(std::string_view end, std::string_view category, std::uint64_t id, std::int64_t pid, std::uint64_t tid,
              std::int64_t at_ns) {
        out_->print(R"({}{{"ph": "{}", "id": {}, "pid": {}, "tid": {}, "ts": {}, "cat": "{}", "name": "{}"{}}})",
                    next(), end, id, pid, tid, time(at_ns), category, category, end == "f" ? R"(, "bp": "e")" : "");
    }

private:
    std::int64_t start_ns_;
    TextStream* out_;
    bool first_ = true;
};

}   // namespace drawpoint
