#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>

#include <drawpoint/pipeline/loader/machine/detail/transfer_policy.hpp>

#include "pipeline/torch/device_calls.hpp"

namespace drawpoint {

/// Bytes in host memory, and where they go in a buffer.
struct TransferPart {
    const std::byte* data;
    std::size_t bytes, at;
};

/// The device `name` means, with its number: see DeviceOptions::device. Throws std::invalid_argument, DeviceError.
[[nodiscard]] c10::Device device_named(const std::string& name);

/// Buffers on a device and the copies to them: carries out what a TransferPolicy decides. Needs nothing but LibTorch's
/// c10 and ATen. One thread uses it; nothing here waits, but for end_copies(). After a call of the device has failed
/// no further call is made: every function that throws then throws the same DeviceError.
class DeviceStage {
public:
    /// Allocates up to `buffers` buffers of `bytes` bytes, each with `beside` bytes that are not copied to, fewer if
    /// memory does not suffice. Throws DeviceError if it does not suffice for one.
    DeviceStage(c10::Device, std::size_t buffers, std::uint64_t bytes, std::uint64_t beside = 0);
    DeviceStage(const DeviceStage&) = delete;
    DeviceStage& operator=(const DeviceStage&) = delete;
    ~DeviceStage();

    [[nodiscard]] c10::Device device() const noexcept { return calls_.device(); }
    [[nodiscard]] DeviceCalls& calls() noexcept { return calls_; }
    /// The one that computes. Throws DeviceError.
    [[nodiscard]] c10::Stream current_stream();
    [[nodiscard]] const TransferPolicy& policy() const noexcept { return policy_; }
    /// Bytes of the largest buffer, and beside it.
    [[nodiscard]] std::uint64_t buffer_bytes() const noexcept { return bytes_ + beside_; }

    /// Throws DeviceError if the current stream captures a graph, or a call has failed before.
    void check();
    /// Issues the copy of a batch to the buffer that has been free the longest. The copy begins when the device has
    /// done the work that give_back() saw. `policy().may_issue()` must hold. Host memory must stay as it is until
    /// ended() has named the buffer. `is_timed`: records when it begins. Returns the buffer. Throws DeviceError.
    std::size_t issue(std::span<const TransferPart> parts, bool is_timed = false);
    /// Makes the current stream wait for the copy of the next batch. Throws DeviceError.
    void await_next();
    /// The buffer of that batch: draws it.
    [[nodiscard]] std::size_t draw() noexcept { return policy_.draw(); }
    /// The batch in this buffer is used no more, after what the current stream has been given so far.
    void give_back(std::size_t buffer) noexcept;
    /// The batches whose copies are issued will not be drawn.
    void abandon() noexcept {
        while (policy_.ahead() > 0)
            policy_.give_back(policy_.draw());
    }
    /// The buffer of the oldest copy, if it has ended since the last call. Throws DeviceError.
    [[nodiscard]] std::optional<std::size_t> ended();
    /// Waits until all copies have ended, and calls `tell(buffer)` for each; if the device fails, as if they had
    /// ended.
    template <class Tell>
    void end_copies(Tell tell) noexcept {
        while (const std::optional<std::size_t> buffer = wait_for_copy())
            tell(*buffer);
    }

    /// Waits until the device has done the work on all batches that were given back. False: the device is broken.
    [[nodiscard]] bool end_work() noexcept;
    /// Whether copies have a stream of their own.
    [[nodiscard]] bool overlaps() { return copies_ != current_stream(); }

    /// Of the last copy to the buffer, if it was timed: its begin and end.
    [[nodiscard]] const c10::Event* begun(std::size_t buffer) const noexcept {
        return buffers_[buffer].is_timed ? &buffers_[buffer].begun : nullptr;
    }
    [[nodiscard]] const c10::Event& copied(std::size_t buffer) const noexcept { return buffers_[buffer].copied; }

    /// The buffer's bytes, and those beside it: tensors of uint8.
    [[nodiscard]] const at::Tensor& bytes(std::size_t buffer) const noexcept { return buffers_[buffer].bytes; }
    [[nodiscard]] const at::Tensor& beside(std::size_t buffer) const noexcept { return buffers_[buffer].beside; }
    /// Leaves the buffer's memory to those who still hold it; the next copy allocates another.
    void leave(std::size_t buffer) noexcept {
        buffers_[buffer].bytes.reset();
        buffers_[buffer].beside.reset();
    }

private:
    struct Buffer {
        explicit Buffer(c10::DeviceType type)
            : begun{type, c10::EventFlag::BACKEND_DEFAULT},
              copied{type, c10::EventFlag::BACKEND_DEFAULT},
              consumed{type} {}
        at::Tensor bytes, beside;
        c10::Event begun, copied;   // of the last copy to it; begun: if it is timed
        c10::Event consumed;        // of the last work on it
        bool is_timed = false;
    };

    void allocate(Buffer&, std::uint64_t bytes);
    void make_room(Buffer&, std::uint64_t bytes);
    [[nodiscard]] const at::Tensor& source(const TransferPart&);
    [[nodiscard]] std::optional<std::size_t> wait_for_copy() noexcept;

    DeviceCalls calls_;
    std::uint64_t bytes_, beside_;
    c10::Stream copies_;
    std::vector<Buffer> buffers_;
    TransferPolicy policy_;
    std::vector<at::Tensor> sources_;   // over host memory that was copied from
};

}   // namespace drawpoint
