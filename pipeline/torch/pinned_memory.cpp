#include <drawpoint/pipeline/torch/pinned_memory.hpp>

#include <memory>

#include <ATen/DeviceAccelerator.h>
#include <ATen/core/CachingHostAllocator.h>

namespace drawpoint {
namespace {

at::HostAllocator* host_allocator() {
    const auto type = at::accelerator::getAccelerator();
    return type && at::accelerator::deviceCount() > 0 ? at::getHostAllocator(*type) : nullptr;
}

SlotBlock allocate(std::size_t bytes) noexcept {
    try {
        auto block = std::make_unique<c10::DataPtr>(host_allocator()->allocate(bytes));
        auto* const data = static_cast<std::byte*>(block->get());
        return {data, data != nullptr ? block.release() : nullptr};
    } catch (const std::exception&) {
        return {};
    }
}

void free(SlotBlock block) noexcept { delete static_cast<c10::DataPtr*>(block.owner); }

}   // namespace

const SlotAllocator* pinned_memory() {
    static constexpr SlotAllocator pinned{allocate, free};
    return host_allocator() != nullptr ? &pinned : nullptr;
}

}   // namespace drawpoint
