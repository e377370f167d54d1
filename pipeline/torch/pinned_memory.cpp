#include <drawpoint/pipeline/torch/pinned_memory.hpp>

#include <memory>

#include <ATen/DeviceAccelerator.h>
#include <ATen/core/CachingHostAllocator.h>

#include <drawpoint/pipeline/loader/machine/detail/slot_bytes.hpp>

namespace drawpoint {
namespace {

at::HostAllocator* host_allocator() {
    const auto type = at::accelerator::getAccelerator();
    if (!type || at::accelerator::deviceCount() == 0)
        return nullptr;
    try {
        return at::getHostAllocator(*type);
    } catch (const c10::Error&) {   // of a LibTorch that throws where there is none
        return nullptr;
    }
}

SlotBlock allocate(std::size_t bytes) noexcept {
    try {
        // What the slots are copied from must not begin where the block does: LibTorch would find it, and call the
        // device when the block is freed, by whichever thread.
        auto block = std::make_unique<c10::DataPtr>(host_allocator()->allocate(memory_page + bytes));
        auto* const data = static_cast<std::byte*>(block->get());
        return data != nullptr ? SlotBlock{data + memory_page, block.release()} : SlotBlock{};
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
