#pragma once

#include <string_view>

#include <drawpoint/instrumentation/recorder/recorder.hpp>

namespace drawpoint {

/// A named region of the calling thread's time, from construction to destruction, recorded as a `user_annotation`.
/// Costs about 25 ns. The regions of a thread must nest. A coroutine may suspend inside one if it resumes on the same
/// thread; the region then includes all that the thread does meanwhile, and ends what began inside it. A region
/// destroyed on another thread does not end. The recorder must outlive the region.
class Region {
public:
    /// `name`: from `recorder.add_name()`. A region that cannot be recorded (full ring, no memory for its name) is left
    /// out and counted as dropped.
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
/// time, under a lock (about 100 ns); in hot code call `recorder.add_name(name)` once and make each `Region` with its
/// result. Any thread.
[[nodiscard]] inline Region profile_region(Recorder& recorder, std::string_view name) noexcept {
    return Region{recorder, recorder.add_name(name)};
}

}   // namespace drawpoint
