#pragma once

#include <algorithm>
#include <array>
#include <string>

namespace golden {

/// Whether a recorded text of `g5_torch_schedule` comes from the profiler that needs LibTorch, which tests/torch
/// replays.
inline bool is_of_torch_profiler(const std::string& id) {
    static constexpr std::array beginnings{"activities ",
                                           "use_cuda ",
                                           "default activities",
                                           "key_averages ",
                                           "export_chrome_trace ",
                                           "toggle_collection_dynamic ",
                                           "export_memory_timeline ",
                                           "export_stacks ",
                                           "table sort_by=",
                                           "tensorboard_trace_handler "};
    return std::ranges::any_of(beginnings, [&](const char* beginning) { return id.starts_with(beginning); });
}

}   // namespace golden
