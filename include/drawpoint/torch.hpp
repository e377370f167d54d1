#pragma once

// What needs LibTorch: a learner and models, data sets of its, tensors over batches, its profiler.

#include <drawpoint/loop/torch/learner.hpp>
#include <drawpoint/loop/torch/model.hpp>
#include <drawpoint/loop/torch/op_profiler.hpp>
#include <drawpoint/loop/torch/pytorch_profiler.hpp>
#include <drawpoint/loop/torch/torch_profiler.hpp>
#include <drawpoint/pipeline/torch/dataset.hpp>
#include <drawpoint/pipeline/torch/device_loader.hpp>
#include <drawpoint/pipeline/torch/pinned_memory.hpp>
#include <drawpoint/pipeline/torch/tensors.hpp>
#include <drawpoint/pipeline/torch/worker_threads.hpp>
