#include "pipeline/torch/device_stage.hpp"

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <utility>

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

DeviceStage::DeviceStage(c10::Device device, std::size_t buffers, std::uint64_t bytes, std::uint64_t beside)
    : calls_{device},
      bytes_{bytes},
      beside_{beside},
      copies_{calls_("new stream", [&] { return calls_of(device).getNewStream(device, -1); })},
      policy_{1} {
    const c10::DeviceGuard guard{device};
    for (std::size_t i = 0; i < buffers; ++i) {
        Buffer buffer{device.type()};
        try {
            allocate(buffer, bytes);
        } catch (const c10::OutOfMemoryError& error) {
            if (i == 0)
                throw DeviceError{device.str() + ": a buffer of " + std::to_string(buffer_bytes()) +
                                  " bytes cannot be allocated: " + DeviceCalls::message_of(error)};
            break;
        }
        buffers_.push_back(std::move(buffer));
    }
    policy_ = TransferPolicy{buffers_.size()};
}

DeviceStage::~DeviceStage() {
    end_copies([](std::size_t) {});
}

void DeviceStage::allocate(Buffer& buffer, std::uint64_t bytes) {
    const c10::DeviceGuard guard{device()};
    const auto memory = [this](std::uint64_t of) {
        return calls_("allocation", [&] {
            return at::empty({static_cast<std::int64_t>(of)}, at::TensorOptions{}.dtype(at::kByte).device(device()));
        });
    };
    at::Tensor beside = beside_ != 0 ? memory(beside_) : at::Tensor{};
    buffer.bytes = memory(bytes);
    buffer.beside = std::move(beside);
    // A caching allocator gives memory that earlier work of the current stream may still use.
    calls_("event record", [&] { buffer.consumed.record(current_stream()); });
}

c10::Stream DeviceStage::current_stream() {
    return calls_("stream query", [&] { return calls_of(device()).getStream(device()); });
}

void DeviceStage::check() {
    const auto captures = [](const auto& calls, c10::Stream stream) {
        if constexpr (requires { calls.isStreamCapturing(stream); })   // not in LibTorch 2.11
            return calls.isStreamCapturing(stream);
        else
            return false;
    };
    if (calls_("capture query", [&] { return captures(calls_of(device()), current_stream()); }))
        throw DeviceError{device().str() + ": next() during the capture of a graph: draw before it begins"};
}

void DeviceStage::make_room(Buffer& buffer, std::uint64_t bytes) {
    const bool has_memory = buffer.bytes.defined() && buffer.bytes.numel() > 0;
    if (has_memory && static_cast<std::uint64_t>(buffer.bytes.numel()) >= bytes)
        return;
    if (has_memory)   // `copies_` waits for the work on the old memory, which may be that of several streams
        calls_("record of memory",
               [&] { calls_of(device()).recordDataPtrOnStream(buffer.bytes.storage().data_ptr(), copies_); });
    buffer.bytes.reset();
    const std::uint64_t wanted = bytes <= bytes_ ? bytes_ : bytes + bytes / 4;
    try {
        allocate(buffer, wanted);
    } catch (const c10::OutOfMemoryError& error) {
        std::uint64_t held = 0;
        for (const Buffer& other : buffers_)
            held += other.bytes.defined() ? other.bytes.nbytes() + beside_ : 0;
        throw DeviceError{device().str() + ": a buffer of " + std::to_string(wanted + beside_) +
                          " bytes for a batch cannot be allocated beside the " + std::to_string(held) +
                          " of the others: " + DeviceCalls::message_of(error)};
    }
    calls_("event wait", [&] { buffer.consumed.block(copies_); });
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

std::size_t DeviceStage::issue(std::span<const TransferPart> parts, bool is_timed) {
    std::uint64_t bytes = 0;
    for (const TransferPart& part : parts)
        bytes = std::max<std::uint64_t>(bytes, part.at + part.bytes);
    calls_("event wait", [&] { buffers_[policy_.next()].consumed.block(copies_); });
    Buffer& buffer = buffers_[policy_.next()];
    make_room(buffer, bytes);
    const std::size_t issued = policy_.issue();
    buffer.is_timed = is_timed;
    if (is_timed)
        calls_("event record", [&] { buffer.begun.record(copies_); });
    calls_("copy", [&] {
        const c10::StreamGuard on{copies_};
        for (const TransferPart& part : parts) {
            const at::Tensor& from = source(part);
            const bool is_whole = part.at == 0 && from.numel() == buffer.bytes.numel();
            const at::Tensor to =
                is_whole ? buffer.bytes : buffer.bytes.narrow(0, static_cast<std::int64_t>(part.at), from.numel());
            to.copy_(from, true);
        }
    });
    calls_("event record", [&] { buffer.copied.record(copies_); });
    return issued;
}

void DeviceStage::await_next() {
    calls_("event wait", [&] { buffers_[policy_.drawn_next()].copied.block(current_stream()); });
}

void DeviceStage::give_back(std::size_t buffer) noexcept {
    try {
        calls_("event record", [&] { buffers_[buffer].consumed.record(current_stream()); });
    } catch (const DeviceError&) {
        // The next call that may throw tells it.
    }
    policy_.give_back(buffer);
}

std::optional<std::size_t> DeviceStage::ended() {
    const std::optional<std::size_t> buffer = policy_.copying();
    if (!buffer || !calls_("event query", [&] { return buffers_[*buffer].copied.query(); }))
        return std::nullopt;
    policy_.copied();
    return buffer;
}

bool DeviceStage::end_work() noexcept {
    try {
        for (const Buffer& buffer : buffers_)
            while (!calls_("event query", [&] { return buffer.consumed.query(); }))
                std::this_thread::sleep_for(std::chrono::microseconds{20});
        return true;
    } catch (const DeviceError&) {
        return false;
    }
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
