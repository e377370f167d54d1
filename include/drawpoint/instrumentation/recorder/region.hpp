#pragma once

#include <string_view>

#include <drawpoint/instrumentation/recorder/recorder.hpp>

namespace drawpoint {

/// A named region of the calling thread's time, from construction to destruction, recorded as a `user_annotation`.
/// Regions of a thread nest; a coroutine must not resume on another thread inside one. The recorder must outlive it.
class Region {
public:
    Region(Recorder& recorder, std::uint32_t name) noexcept
        : recorder_{&recorder}, ticket_{recorder.begin_operator({.name = name})} {}
    Region(const Region&) = delete;
    Region& operator=(const Region&) = delete;
    ~Region() { recorder_->end_operator(ticket_); }

private:
    Recorder* recorder_;
    std::uint32_t ticket_;
};

/// Opens a region called `name`: `const auto region = profile_region(recorder, "augment");`. Looks the name up each
/// time (about 100 ns); in hot code keep `recorder.add_name(name)` and make a `Region` with it. Any thread.
[[nodiscard]] inline Region profile_region(Recorder& recorder, std::string_view name) noexcept {
    return Region{recorder, recorder.add_name(name)};
}

}   // namespace drawpoint
