#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

#include <drawpoint/pipeline/loader/core/batch_slots.hpp>

#include <drawpoint/pipeline/loader/machine/detail/transfer_policy.hpp>

#include "pipeline/torch/device_calls.hpp"

namespace drawpoint {

/// Losses that a device computes, copied to host memory as it reaches them, so that nobody waits for it. One thread
/// uses it; it allocates only in the constructor. Two places for each buffer: its batch's loss, and that of its batch
/// before, which the device may still be at work on.
class LateLosses {
public:
    explicit LateLosses(std::size_t buffers);
    LateLosses(const LateLosses&) = delete;
    LateLosses& operator=(const LateLosses&) = delete;
    ~LateLosses();

    /// Copies the loss of the batch in the buffer, after the current stream's work so far. Returns where it will be
    /// until the batch after the next in this buffer; null if the device cannot write to host memory beside the loop.
    /// Throws DeviceError, and std::invalid_argument if it is not one number.
    [[nodiscard]] const float* keep(DeviceCalls&, std::size_t buffer, const at::Tensor& loss);
    /// A batch is now copied to the buffer, once the work on the one before is done.
    void issued(std::size_t buffer) noexcept;
    /// That copy has ended.
    void ended(std::size_t buffer) noexcept;
    /// The oldest loss that is there and was not returned before.
    [[nodiscard]] std::optional<double> next() noexcept;
    /// Never frees the memory: the device is broken.
    void leak() noexcept { block_ = {}; }

private:
    struct Buffer {
        std::size_t uses = 0;
        const float* kept = nullptr;      // of its last batch
        const float* awaited = nullptr;   // of the batch before the one that is being copied
    };
    static constexpr std::size_t most_there = 2 * TransferPolicy::most_buffers;

    SlotBlock block_{};
    std::vector<at::Tensor> places_;
    std::vector<Buffer> buffers_;
    std::array<float, most_there> there_{};   // a ring of losses that nobody has asked for
    std::size_t first_ = 0, size_ = 0;
};

}   // namespace drawpoint
