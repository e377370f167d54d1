#pragma once

#include <ATen/core/Tensor.h>

#include <drawpoint/pipeline/batch_slots.hpp>

namespace drawpoint {

/// The batch's samples as a tensor of shape size() × layout, over the batch's own memory: nothing is copied. Made once
/// per memory and used again by later batches in it; only a batch of another size gets a view. A tensor (or view, or
/// graph) kept beyond the batch stays valid and unchanged: the slot then leaves the memory to it and takes new
/// (`slots_replaced`). Between giving a batch back and drawing, no tensor of it may be taken from the batch. From the
/// thread that uses the batch.
[[nodiscard]] at::Tensor data_of(Batch&);

/// The batch's targets as an int64 tensor of shape size(). As data_of().
[[nodiscard]] at::Tensor targets_of(Batch&);

}   // namespace drawpoint
