#pragma once

#include <cstdint>
#include <utility>

#include "pipeline/loader/threads/prefetch_core.hpp"

namespace drawpoint {

/// Stores the handler of a suspended next() in the core, where only the loop's thread uses it.
class Park {
public:
    explicit Park(PrefetchCore* core) noexcept : core_{core} {}
    template <class Handler>
    void operator()(Handler&& handler) const {
        core_->park(std::forward<Handler>(handler));
    }

private:
    PrefetchCore* core_;
};

/// A draw that must_wait() has announced. Keeps the core alive, whatever becomes of pass and loader, and takes the
/// announcement back if the draw never suspends.
class Announced {
public:
    explicit Announced(PrefetchCore* core) noexcept : core_{core}, draw_{core->suspensions()} { core_->retain(); }
    Announced(const Announced&) = delete;
    Announced& operator=(const Announced&) = delete;
    ~Announced() {
        core_->withdraw_unless_parked(draw_);
        core_->release();
    }

private:
    PrefetchCore* core_;
    std::uint64_t draw_;
};

}   // namespace drawpoint
