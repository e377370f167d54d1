#pragma once

#include <string_view>

#include <ATen/core/Tensor.h>

#include <drawpoint/pipeline/loader/core/batch_slots.hpp>
#include <drawpoint/pipeline/loader/core/collate.hpp>
#include <drawpoint/pipeline/torch/device_loader.hpp>

namespace drawpoint {

/// The batch's samples as a tensor of shape size() × layout over the batch's own memory: nothing is copied. The tensor
/// is made once per slot memory and reused by later batches; only a batch of another size gets a view of it. A tensor
/// (or a view or graph of it) that is kept beyond the batch stays valid and unchanged: the slot then leaves it the
/// memory and allocates another (`slots_replaced`). So does requires_grad_(): later batches do not inherit it. But do
/// not change the tensor's shape in place (resize_(), unsqueeze_()): later batches would get it so. Take no tensor from
/// a batch that has been given back. Call it from the thread that uses the batch. Of a collated batch
/// (`LoaderOptions::collate`) this is a new tensor of the first array, as tensor_of().
[[nodiscard]] at::Tensor data_of(Batch&);

/// The batch's targets as an int64 tensor of shape size(). As data_of().
[[nodiscard]] at::Tensor targets_of(Batch&);

/// An array of a collated batch as a tensor over its memory, with its shape and type: nothing is copied. Each call
/// makes a new tensor. One that is kept beyond the batch stays valid and unchanged: the slot leaves it this array's
/// memory.
[[nodiscard]] at::Tensor tensor_of(const BatchPart&);

/// `tensor_of(batch.part(name))`, e.g. of "lengths" or "mask". Throws as Batch::part().
[[nodiscard]] at::Tensor part_of(const Batch&, std::string_view name);

/// The samples of a batch on a device, as a tensor of shape size() × layout over its buffer: nothing is copied; with
/// `DeviceOptions::normalize` the normalised ones, of `DeviceOptions::type`. As data_of(Batch&): made once for each
/// buffer; one that is kept beyond the batch stays valid and unchanged (`DeviceCounters::buffers_replaced`).
[[nodiscard]] at::Tensor data_of(DeviceBatch&);

/// Its targets, int64, of shape size(), on the device.
[[nodiscard]] at::Tensor targets_of(DeviceBatch&);

/// Its array of this name, on the device. Throws as Batch::part().
[[nodiscard]] at::Tensor part_of(DeviceBatch&, std::string_view name);

/// Copies the loss of this batch, one number on the device, to host memory, where `DeviceBatch::next_loss()` finds it
/// once the device has computed it, as float32; a timed step records it. No thread waits. False, and nothing is copied,
/// if the device cannot write to host memory beside the loop (`pinned_memory()` is null). Throws DeviceError, and
/// std::invalid_argument if it is not one number.
[[nodiscard]] bool keep_loss(DeviceBatch&, const at::Tensor& loss);

}   // namespace drawpoint
