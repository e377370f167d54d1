#pragma once

#include <cstddef>

/// Calls of operator new on this thread so far.
std::size_t allocations() noexcept;
