#include <drawpoint/pipeline/torch/tensors.hpp>

#include <memory>
#include <stdexcept>
#include <vector>

#include <ATen/ops/from_blob.h>

#include "pipeline/torch/device_core.hpp"
#include "pipeline/torch/scalar_types.hpp"

namespace drawpoint {
namespace {

/// The tensors over one slot's memory, for the most samples a batch in it has had.
struct SlotTensors {
    at::Tensor data, targets;
    std::int64_t samples = 0;
};

bool is_held(const at::Tensor& tensor) noexcept {
    // A copy of the tensor counts on the tensor, a view on its storage. One that was made a leaf of a graph is not ours
    // any more.
    return tensor.use_count() > 1 || tensor.storage().use_count() > 1 || tensor.requires_grad();
}

bool held(void* object) noexcept {
    const auto& tensors = *static_cast<const SlotTensors*>(object);
    return is_held(tensors.data) || is_held(tensors.targets);
}

void destroy(void* object) noexcept { delete static_cast<SlotTensors*>(object); }

at::Tensor over(SlotMemory& memory, void* begin, at::IntArrayRef shape, at::ScalarType type) {
    memory.retain();
    const auto release = [&memory](void*) { memory.release(); };
    return at::from_blob(begin, shape, release, at::TensorOptions{}.dtype(type));
}

const SlotTensors& tensors_of(Batch& batch) {
    SlotAttachment& attachment = batch.attachment();
    if (attachment.object != nullptr && attachment.held != held)
        throw std::logic_error{"data_of: something else is attached to the batch's slot"};
    const auto samples = static_cast<std::int64_t>(batch.size());
    auto* tensors = static_cast<SlotTensors*>(attachment.object);
    if (tensors != nullptr && tensors->samples >= samples)
        return *tensors;

    const SampleLayout& layout = batch.layout();
    std::vector<std::int64_t> shape{samples};
    shape.insert(shape.end(), layout.shape.begin(), layout.shape.begin() + layout.rank);
    SlotMemory& memory = batch.memory();
    auto made = std::make_unique<SlotTensors>();
    made->data = over(memory, memory.data(), shape, torch_type(layout.type));
    made->targets = over(memory, memory.targets(), samples, at::kLong);
    made->samples = samples;
    destroy(attachment.object);
    attachment = {made.release(), held, destroy};
    return *static_cast<SlotTensors*>(attachment.object);
}

}   // namespace

// Batches that are collated differ in shape, so their tensors are not kept for the next: the memory's references tell
// who still holds it.

at::Tensor data_of(Batch& batch) {
    const auto parts = batch.parts();
    return parts.empty() ? first_samples(tensors_of(batch).data, batch.size()) : tensor_of(parts.front());
}

at::Tensor targets_of(Batch& batch) {
    if (batch.parts().empty())
        return first_samples(tensors_of(batch).targets, batch.size());
    return over(batch.memory(), batch.memory().targets(), static_cast<std::int64_t>(batch.size()), at::kLong);
}

at::Tensor tensor_of(const BatchPart& part) {
    return over(part.memory(), part.data().data(), {part.shape().data(), part.shape().size()}, torch_type(part.type()));
}

at::Tensor part_of(const Batch& batch, std::string_view name) { return tensor_of(batch.part(name)); }

at::Tensor data_of(DeviceBatch& batch) {
    const at::Tensor& data = batch.core_->tensors(batch.buffer()).front();
    return batch.parts().empty() ? first_samples(data, batch.size()) : data;
}

at::Tensor targets_of(DeviceBatch& batch) {
    return first_samples(batch.core_->tensors(batch.buffer()).back(), batch.size());
}

at::Tensor part_of(DeviceBatch& batch, std::string_view name) {
    const BatchPart& part = batch.core_->host(batch.buffer()).part(name);
    return batch.core_->tensors(batch.buffer())[static_cast<std::size_t>(&part - batch.parts().data())];
}

bool keep_loss(DeviceBatch& batch, const at::Tensor& loss) { return batch.core_->keep_loss(batch.buffer(), loss); }

}   // namespace drawpoint
