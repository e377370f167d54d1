#pragma once

namespace drawpoint {

/// To be called in a loop that spins for another thread.
inline void spin_pause() noexcept {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

}   // namespace drawpoint
