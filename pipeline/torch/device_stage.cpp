#include "pipeline/torch/device_stage.hpp"

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <thread>

#include <ATen/DeviceAccelerator.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/StreamGuard.h>

namespace drawpoint {
namespace {

const c10::impl::DeviceGuardImplInterface& calls_of(c10::Device device) {
    return *c10::impl::getDeviceGuardImpl(device.type());
}

std::string first_line(const std::exception& error) {
    const auto* const of_torch = dynamic_cast<const c10::Error*>(&error);
    const std::string text = of_torch != nullptr ? of_torch->what_without_backtrace() : error.what();
    return text.substr(0, text.find('\n'));
}

}   // namespace

c10::Device device_named(const std::string& name) {
    std::optional<c10::Device> asked;
    try {
        if (!name.empty())
            asked.emplace(name);
    } catch (const c10::Error&) {
    }
    const bool is_cut = asked && asked->has_index() && asked->str() != name;   // c10 keeps 8 bits of a number
    if (!name.empty() && (!asked || is_cut || asked->is_cpu() || !at::accelerator::isAccelerator(asked->type())))
        throw std::invalid_argument{"device must be an accelerator, e.g. cuda, cuda:1, xpu or mps, got '" + name + "'"};
    const std::optional<c10::DeviceType> there_is = at::accelerator::getAccelerator();
    if (!there_is)
        throw DeviceError{"device: there is no " + (name.empty() ? "accelerator" : name) +
                          ": this LibTorch is built for the CPU alone"};
    const std::string type = c10::DeviceTypeName(*there_is, true);
    if (asked && asked->type() != *there_is)
        throw DeviceError{"device: there is no " + name + ": this LibTorch is built for " + type};
    const c10::DeviceIndex count = at::accelerator::deviceCount();
    if (count == 0)
        throw DeviceError{"device: there is no " + (name.empty() ? type : name) +
                          ": LibTorch finds no device of type " + type};
    if (asked && asked->index() >= count)
        throw DeviceError{"device: there is no " + name + ": there are " + std::to_string(count) + " devices of type " +
                          type + ", numbered from 0"};
    if (asked && asked->has_index())
        return *asked;
    return {*there_is, at::accelerator::getDeviceIndex()};
}

DeviceStage::DeviceStage(c10::Device device, std::size_t buffers, std::uint64_t bytes)
    : device_{device},
      bytes_{bytes},
      copies_{call("new stream", [&] { return calls_of(device).getNewStream(device, -1); })},
      policy_{1} {
    const c10::DeviceGuard guard{device};
    for (std::size_t i = 0; i < buffers; ++i) {
        Buffer buffer{device.type()};
        try {
            allocate(buffer, bytes);
        } catch (const c10::OutOfMemoryError& error) {
            if (i == 0)
                throw DeviceError{device.str() + ": a buffer of " + std::to_string(bytes) +
                                  " bytes cannot be allocated: " + first_line(error)};
            break;
        }
        buffers_.push_back(std::move(buffer));
    }
    policy_ = TransferPolicy{buffers_.size()};
}

DeviceStage::~DeviceStage() {
    end_copies([](std::size_t) {});
}

void DeviceStage::fail(const char* what, const std::exception& error) noexcept {
    if (!failure_)
        failure_ = device_.str() + ": " + what + " failed: " + first_line(error);
}

void DeviceStage::allocate(Buffer& buffer, std::uint64_t bytes) {
    const c10::DeviceGuard guard{device_};
    buffer.bytes = call("allocation", [&] {
        return at::empty({static_cast<std::int64_t>(bytes)}, at::TensorOptions{}.dtype(at::kByte).device(device_));
    });
    // A caching allocator gives memory that earlier work of the current stream may still use.
    call("event record", [&] { buffer.consumed.record(current_stream()); });
}

c10::Stream DeviceStage::current_stream() const { return calls_of(device_).getStream(device_); }

void DeviceStage::check() {
    const auto captures = [](const auto& calls, c10::Stream stream) {
        if constexpr (requires { calls.isStreamCapturing(stream); })   // not in LibTorch 2.11
            return calls.isStreamCapturing(stream);
        else
            return false;
    };
    if (call("capture query", [&] { return captures(calls_of(device_), current_stream()); }))
        throw DeviceError{device_.str() + ": next() during the capture of a graph: draw before it begins"};
}

void DeviceStage::make_room(Buffer& buffer, std::uint64_t bytes) {
    const bool has_memory = buffer.bytes.defined() && buffer.bytes.numel() > 0;
    if (has_memory && static_cast<std::uint64_t>(buffer.bytes.numel()) >= bytes)
        return;
    if (has_memory)   // `copies_` waits for the work on the old memory, which may be that of several streams
        call("record of memory",
             [&] { calls_of(device_).recordDataPtrOnStream(buffer.bytes.storage().data_ptr(), copies_); });
    buffer.bytes.reset();
    const std::uint64_t wanted = bytes <= bytes_ ? bytes_ : bytes + bytes / 4;
    try {
        allocate(buffer, wanted);
    } catch (const c10::OutOfMemoryError& error) {
        std::uint64_t held = 0;
        for (const Buffer& other : buffers_)
            held += other.bytes.defined() ? other.bytes.nbytes() : 0;
        throw DeviceError{device_.str() + ": a buffer of " + std::to_string(wanted) +
                          " bytes for a batch cannot be allocated beside the " + std::to_string(held) +
                          " of the others: " + first_line(error)};
    }
    call("event wait", [&] { buffer.consumed.block(copies_); });
    bytes_ = std::max(bytes_, wanted);
}

const at::Tensor& DeviceStage::source(const TransferPart& part) {
    const auto is_same = [&part](const at::Tensor& known) {
        return known.const_data_ptr() == part.data && static_cast<std::size_t>(known.numel()) == part.bytes;
    };
    if (const auto known = std::ranges::find_if(sources_, is_same); known != sources_.end())
        return *known;
    if (sources_.size() >= 2 * TransferPolicy::most_buffers)   // of memory that the loader has replaced
        sources_.clear();
    sources_.push_back(at::from_blob(const_cast<std::byte*>(part.data), {static_cast<std::int64_t>(part.bytes)},
                                     at::TensorOptions{}.dtype(at::kByte)));
    return sources_.back();
}

void DeviceStage::issue(std::span<const TransferPart> parts) {
    std::uint64_t bytes = 0;
    for (const TransferPart& part : parts)
        bytes = std::max<std::uint64_t>(bytes, part.at + part.bytes);
    call("event wait", [&] { buffers_[policy_.next()].consumed.block(copies_); });
    Buffer& buffer = buffers_[policy_.next()];
    make_room(buffer, bytes);
    (void)policy_.issue();
    call("copy", [&] {
        const c10::StreamGuard on{copies_};
        for (const TransferPart& part : parts) {
            const at::Tensor& from = source(part);
            const bool is_whole = part.at == 0 && from.numel() == buffer.bytes.numel();
            const at::Tensor to =
                is_whole ? buffer.bytes : buffer.bytes.narrow(0, static_cast<std::int64_t>(part.at), from.numel());
            to.copy_(from, true);
        }
    });
    call("event record", [&] { buffer.copied.record(copies_); });
}

void DeviceStage::await_next() {
    call("event wait", [&] { buffers_[policy_.drawn_next()].copied.block(current_stream()); });
}

void DeviceStage::give_back(std::size_t buffer) noexcept {
    try {
        call("event record", [&] { buffers_[buffer].consumed.record(current_stream()); });
    } catch (const DeviceError&) {
        // The next call that may throw tells it.
    }
    policy_.give_back(buffer);
}

std::optional<std::size_t> DeviceStage::ended() {
    const std::optional<std::size_t> buffer = policy_.copying();
    if (!buffer || !call("event query", [&] { return buffers_[*buffer].copied.query(); }))
        return std::nullopt;
    policy_.copied();
    return buffer;
}

std::optional<std::size_t> DeviceStage::wait_for_copy() noexcept {
    try {
        while (policy_.copying()) {
            if (const std::optional<std::size_t> buffer = ended())
                return buffer;
            std::this_thread::sleep_for(std::chrono::microseconds{20});
        }
        return std::nullopt;
    } catch (const std::exception&) {
        try {
            copies_.synchronize();   // a device that is broken reads no more, but only a call has failed
        } catch (const std::exception&) {
        }
    }
    const std::optional<std::size_t> buffer = policy_.copying();
    if (buffer)
        policy_.copied();
    return buffer;
}

}   // namespace drawpoint
