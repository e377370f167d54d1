#pragma once

#include <atomic>

namespace drawpoint {

/// What lock-free classes are made of. Tests put a model in its place that tries every interleaving of threads and
/// every value that a load may read (tests/model).
struct RealAtomics {
    template <class T>
    using atomic = std::atomic<T>;
    /// Memory that is not atomic.
    template <class T>
    using plain = T;
};

}   // namespace drawpoint
