#pragma once

#include <string_view>

#include <ATen/core/Tensor.h>

#include <drawpoint/pipeline/loader/batch_slots.hpp>
#include <drawpoint/pipeline/loader/collate.hpp>

namespace drawpoint {

/// The batch's samples as a tensor of shape size() × layout, over the batch's own memory: nothing is copied. Made once
/// per memory and used again by later batches in it; only a batch of another size gets a view. A tensor (or view, or
/// graph) kept beyond the batch stays valid and unchanged: the slot then leaves the memory to it and takes new
/// (`slots_replaced`). Between giving a batch back and drawing, no tensor of it may be taken from the batch. From the
/// thread that uses the batch. Of a collated batch: the first part.
[[nodiscard]] at::Tensor data_of(Batch&);

/// The batch's targets as an int64 tensor of shape size(). As data_of().
[[nodiscard]] at::Tensor targets_of(Batch&);

/// An array of a collated batch as a tensor over its memory, of its shape and type: nothing is copied. Made anew by
/// each call. Kept beyond the batch it stays valid and unchanged: the slot leaves this array's memory to it.
[[nodiscard]] at::Tensor tensor_of(const BatchPart&);

/// `tensor_of(batch.part(name))`, e.g. of "lengths" or "mask". Throws as Batch::part().
[[nodiscard]] at::Tensor part_of(const Batch&, std::string_view name);

}   // namespace drawpoint
