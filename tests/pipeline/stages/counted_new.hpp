#pragma once

#include <cstddef>

/// Calls of operator new by this thread so far. This test program replaces the global operators to count them.
std::size_t calls_of_operator_new() noexcept;
