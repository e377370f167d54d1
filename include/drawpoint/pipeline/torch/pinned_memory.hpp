#pragma once

#include <drawpoint/pipeline/loader/core/batch_slots.hpp>

namespace drawpoint {

/// Page-locked host memory of the accelerator that LibTorch has, for `LoaderOptions::slot_memory`: a device reads it
/// while the loop's thread goes on. null, which stands for ordinary memory, if there is no device or if it needs no
/// such memory (mps). It belongs to the current device, which must be the one that batches are copied to. LibTorch's
/// allocator rounds a block up to a power of two.
[[nodiscard]] const SlotAllocator* pinned_memory();

}   // namespace drawpoint
