#pragma once

#include <string_view>

#include <drawpoint/instrumentation/recorder/recorder.hpp>

namespace drawpoint {

/// A region of the calling thread's time, from construction to destruction, named in the recording (`user_annotation`).
/// Regions of a thread nest; one that spans a `co_await` must resume on the thread it began on. The recorder outlives it.
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

/// Opens a region called `name`: `const auto region = profile_region(recorder, "augment");`. Looks the name up each time (about
/// 100 ns); in a hot place keep `recorder.add_name(name)` and make a `Region` of that. Any thread.
[[nodiscard]] inline Region profile_region(Recorder& recorder, std::string_view name) noexcept {
    return Region{recorder, recorder.add_name(name)};
}

}   // namespace drawpoint
