#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

#include <drawpoint/instrumentation/clock.hpp>
#include <drawpoint/loop/callback.hpp>

namespace drawpoint::cli {

/// Says on stderr how a fit gets on: a bar that redraws itself on a terminal, else a line every 5 s. Each shows the place,
/// samples/s and the draw's share since the last one.
class Progress final : public Callback {
public:
    Progress(const AnyClock& clock, bool terminal, bool colour, std::FILE* to = stderr) noexcept;

    [[nodiscard]] std::string_view name() const noexcept override { return "Progress"; }
    [[nodiscard]] EventSet events() const noexcept override;
    void on(Event event, LoopState& state) override;

    /// Removes the bar, so that something else can be printed.
    void clear();

private:
    void show(const LoopState& state, std::int64_t now_ns);

    AnyClock clock_;
    bool terminal_, colour_, shown_ = false;
    std::FILE* to_;
    std::int64_t begin_ns_, shown_ns_, draw_begin_ns_ = 0, draw_ns_ = 0;
    std::uint64_t samples_ = 0;
};

}   // namespace drawpoint::cli
