// What LibTorch asks a backend for: streams and events, memory, hooks, a generator.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/CachingHostAllocator.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/Allocator.h>
#include <c10/core/DeviceType.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/util/Exception.h>

#include "torch/fake_accelerator/timeline.hpp"

namespace drawpoint::fake_accelerator {
namespace {

using c10::Device;
using c10::DeviceIndex;
using c10::DeviceType;
using c10::Stream;
constexpr DeviceType type = DeviceType::PrivateUse1;

DeviceIndex current_device = 0;
std::map<DeviceIndex, c10::StreamId> current_streams;

struct FakeEvent {
    std::int64_t at_ns = 0;
};

void record_on_stream(const void* memory, c10::StreamId stream);

class Guard final : public c10::impl::DeviceGuardImplInterface {
public:
    DeviceType type() const override { return DeviceType::PrivateUse1; }
    Device exchangeDevice(Device to) const override {
        const Device before = getDevice();
        current_device = to.index();
        return before;
    }
    Device getDevice() const override { return {DeviceType::PrivateUse1, current_device}; }
    void setDevice(Device to) const override { current_device = to.index(); }
    void uncheckedSetDevice(Device to) const noexcept override { current_device = to.index(); }
    Stream getStream(Device of) const override {
        const DeviceIndex index = of.has_index() ? of.index() : current_device;
        return Stream{Stream::UNSAFE, Device{DeviceType::PrivateUse1, index}, current_streams[index]};
    }
    Stream getDefaultStream(Device of) const override { return Stream{Stream::DEFAULT, of}; }
    Stream getNewStream(Device of, int) const override {
        timeline().call(&Counters::streams);
        return Stream{Stream::UNSAFE, of, timeline().new_stream()};
    }
    Stream exchangeStream(Stream to) const override {
        const Stream before = getStream(to.device());
        current_streams[to.device_index()] = to.id();
        return before;
    }
    void record(void** event, const Stream& stream, DeviceIndex, c10::EventFlag) const override {
        timeline().call(&Counters::records);
        if (*event == nullptr)
            *event = new FakeEvent;
        static_cast<FakeEvent*>(*event)->at_ns = timeline().tail(stream.id());
    }
    void block(void* event, const Stream& stream) const override {
        timeline().call(&Counters::waits);
        if (event != nullptr)
            timeline().hold(stream.id(), static_cast<FakeEvent*>(event)->at_ns);
    }
    bool queryEvent(void* event) const override {
        timeline().call(&Counters::queries, timeline().settings.query_ns);
        const bool done = event == nullptr || static_cast<FakeEvent*>(event)->at_ns <= timeline().now_ns();
        if (!done)
            timeline().advance_to(timeline().now_ns() + timeline().settings.nap_ns);
        return done;
    }
    void synchronizeEvent(void* event) const override {
        timeline().call(&Counters::synchronises);
        if (event != nullptr)
            timeline().wait_until(static_cast<FakeEvent*>(event)->at_ns);
    }
    void destroyEvent(void* event, DeviceIndex) const noexcept override { delete static_cast<FakeEvent*>(event); }
    double elapsedTime(void* from, void* to, DeviceIndex) const override {
        timeline().call(&Counters::elapsed);
        const auto is_done = [](void* event) { return static_cast<FakeEvent*>(event)->at_ns <= timeline().now_ns(); };
        TORCH_CHECK(is_done(from) && is_done(to), "an event is not done");
        const std::int64_t tick = timeline().settings.tick_ns;
        const auto stamp = [tick](void* event) { return static_cast<FakeEvent*>(event)->at_ns / tick * tick; };
        return static_cast<double>(stamp(to) - stamp(from)) / 1e6;
    }
    DeviceIndex deviceCount() const noexcept override { return static_cast<DeviceIndex>(timeline().settings.devices); }
    bool queryStream(const Stream& stream) const override {
        timeline().call(&Counters::queries, timeline().settings.query_ns);
        return timeline().tail(stream.id()) <= timeline().now_ns();
    }
    void synchronizeStream(const Stream& stream) const override {
        timeline().call(&Counters::synchronises);
        timeline().wait_until(timeline().tail(stream.id()));
    }
    void synchronizeDevice(DeviceIndex) const override {
        timeline().call(&Counters::synchronises);
        timeline().wait_until(timeline().end());
    }
    bool isStreamCapturing(const Stream&) const override {
        timeline().call(&Counters::captures);
        return timeline().settings.is_capturing;
    }
    void recordDataPtrOnStream(const c10::DataPtr& memory, const Stream& stream) const override {
        timeline().call(&Counters::records);
        record_on_stream(memory.get(), stream.id());
    }
};

/// A block of device memory. As a caching allocator does, a freed one is given at once to the next allocation on its
/// stream, whatever that stream still does with it; other streams must be recorded on it.
struct Block {
    std::byte* memory;
    std::size_t bytes;
    c10::StreamId stream;
    std::int64_t free_ns = 0;   // when the streams recorded on it have done their work
};
std::multimap<std::size_t, Block*> free_blocks;   // by size
std::map<const void*, Block*> used_blocks;        // by address

std::size_t rounded(std::size_t bytes) { return (bytes + 127) / 128 * 128; }

void free_device_block(void* context) {
    auto* const block = static_cast<Block*>(context);
    timeline().counters.device_bytes -= block->bytes;
    --timeline().counters.device_blocks;
    used_blocks.erase(block->memory);
    free_blocks.emplace(rounded(block->bytes), block);
}

Block* cached_block(std::size_t bytes) {
    const auto [begin, end] = free_blocks.equal_range(rounded(bytes));
    for (auto it = end; it != begin;) {   // the one freed last is most likely still in use
        --it;
        Block* const block = it->second;
        if (block->stream != current_stream() || block->free_ns > timeline().now_ns())
            continue;
        free_blocks.erase(it);
        *block = {block->memory, bytes, block->stream};
        return block;
    }
    return new Block{static_cast<std::byte*>(std::aligned_alloc(128, rounded(bytes))), bytes, current_stream()};
}

void record_on_stream(const void* memory, c10::StreamId stream) {
    Block& block = *used_blocks.at(memory);
    block.free_ns = std::max(block.free_ns, timeline().tail(stream));
}

class DeviceAllocator final : public c10::Allocator {
public:
    c10::DataPtr allocate(std::size_t bytes) override {
        const Device device{type, current_device};
        if (bytes == 0)
            return {nullptr, device};
        Timeline& line = timeline();
        TORCH_CHECK_WITH(OutOfMemoryError, line.counters.device_bytes + bytes <= line.settings.capacity,
                         "the fake accelerator is out of memory: ", line.counters.device_bytes, " of ",
                         line.settings.capacity, " bytes are allocated, ", bytes, " asked for");
        Block* const block = cached_block(bytes);
        used_blocks[block->memory] = block;
        line.counters.device_bytes += bytes;
        ++line.counters.device_blocks;
        ++line.counters.device_allocations;
        return {block->memory, block, free_device_block, device};
    }
    c10::DeleterFnPtr raw_deleter() const override { return nullptr; }
    void copy_data(void* to, const void* from, std::size_t bytes) const override { std::memcpy(to, from, bytes); }
};

std::mutex host_mutex;   // memory is freed by any thread
std::map<const std::byte*, std::size_t> host_blocks;

void free_host_block(void* memory) {
    const std::scoped_lock lock{host_mutex};
    host_blocks.erase(static_cast<std::byte*>(memory));
    --timeline().counters.host_blocks;
    std::free(memory);
}

class PinnedAllocator final : public at::HostAllocator {
public:
    c10::DataPtr allocate(std::size_t bytes) override {
        if (bytes == 0)
            return {};
        void* const memory = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
        const std::scoped_lock lock{host_mutex};
        host_blocks[static_cast<std::byte*>(memory)] = bytes;
        ++timeline().counters.host_blocks;
        return {memory, memory, free_host_block, c10::DeviceType::CPU};
    }
    c10::DeleterFnPtr raw_deleter() const override { return free_host_block; }
    void copy_data(void* to, const void* from, std::size_t bytes) const override { std::memcpy(to, from, bytes); }
    bool record_event(void*, void*, Stream) override { return true; }
    void empty_cache() override {}
    at::HostStats get_stats() override { return {}; }
    void reset_accumulated_stats() override {}
    void reset_peak_stats() override {}
};

PinnedAllocator& pinned_allocator() {
    static PinnedAllocator& one = *new PinnedAllocator;
    return one;
}

class Hooks final : public at::PrivateUse1HooksInterface {
public:
    bool isBuilt() const override { return true; }
    bool isAvailable() const override { return timeline().settings.devices > 0; }
    bool hasPrimaryContext(DeviceIndex) const override { return true; }
    DeviceIndex deviceCount() const override { return static_cast<DeviceIndex>(timeline().settings.devices); }
    DeviceIndex getCurrentDevice() const override { return current_device; }
    void setCurrentDevice(DeviceIndex index) const override { current_device = index; }
    DeviceIndex exchangeDevice(DeviceIndex index) const override { return std::exchange(current_device, index); }
    DeviceIndex maybeExchangeDevice(DeviceIndex index) const override { return exchangeDevice(index); }
    const at::Generator& getDefaultGenerator(DeviceIndex) const override {
        static const at::Generator one = at::detail::createCPUGenerator();
        return one;
    }
    bool isPinnedPtr(const void* data) const override { return is_pinned(data); }
    at::Allocator* getPinnedMemoryAllocator() const override {
        return timeline().settings.one_stream ? nullptr : &pinned_allocator();
    }
};

C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard)

const bool is_registered = [] {
    static DeviceAllocator& device_allocator = *new DeviceAllocator;
    c10::SetAllocator(type, &device_allocator);
    register_host_allocator(true);
    at::RegisterPrivateUse1HooksInterface(new Hooks);
    c10::register_privateuse1_backend("fake");
    return true;
}();

}   // namespace

void register_host_allocator(bool is_there) { at::setHostAllocator(type, is_there ? &pinned_allocator() : nullptr); }

bool is_pinned(const void* data) {
    const std::scoped_lock lock{host_mutex};
    auto after = host_blocks.upper_bound(static_cast<const std::byte*>(data));
    if (after == host_blocks.begin())
        return false;
    const auto& [begin, bytes] = *std::prev(after);
    return static_cast<const std::byte*>(data) < begin + bytes;
}

std::int64_t current_stream() noexcept { return current_streams[current_device]; }

}   // namespace drawpoint::fake_accelerator
