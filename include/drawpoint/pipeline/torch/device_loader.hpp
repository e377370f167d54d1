#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <drawpoint/pipeline/errors.hpp>
#include <drawpoint/pipeline/image/resize.hpp>
#include <drawpoint/pipeline/loader/core/batch_slots.hpp>
#include <drawpoint/pipeline/loader/data_loader.hpp>

namespace at {
class Tensor;
}

namespace drawpoint {

class DevicePass;   // what a pass needs while its draw is suspended; pipeline/torch/device_loader.cpp
class DeviceCore;   // shared by a DeviceLoader, its passes and its batches; pipeline/torch/device_core.hpp

/// Options of a DeviceLoader.
struct DeviceOptions {
    /// "cuda", "cuda:1", "xpu" or "mps"; without a number the current device of that type; empty: the current device of
    /// the accelerator that LibTorch has.
    std::string device{};
    /// P: batches that are copied ahead of the draw, 0 … 55; the device holds P + 1 buffers. Only batches that are
    /// ready are copied ahead, so the loader's prefetch_depth should be at least P. With 0 no copy overlaps with a
    /// step.
    std::size_t device_prefetch = 2;
    /// Most bytes of device memory for the buffers, 0: no limit. Fewer buffers are made to fit it, at least one. Not
    /// with a loader that collates: its batches differ in size, and buffers grow as they need.
    std::uint64_t memory_budget = 0;
    /// Normalises there: (value / 255 - mean) / deviation, as a part of the step. For uint8 images of three channels (a
    /// recipe that ends in `to_uint8`), which take a quarter of the copy's time; not with a loader that collates.
    std::optional<ChannelNormalization> normalize{};
    /// With `normalize`, what data_of() gives: float32, bfloat16 or float16, and whether the channels of a pixel lie
    /// side by side (LibTorch's channels_last), its shape staying samples × 3 × height × width.
    ScalarType type = ScalarType::float32;
    bool channels_last = false;
};

/// The full name of the device that `name` means (`DeviceOptions::device`), e.g. "cuda:0". Throws std::invalid_argument
/// for a name that means none, and DeviceError if there is no such device.
[[nodiscard]] std::string find_device(const std::string& name);

/// What a DeviceLoader uses and has done.
struct DeviceCounters {
    std::size_t buffers = 0;              ///< device_prefetch + 1, or as many as fit
    std::uint64_t buffer_bytes = 0;       ///< of one of them, on the device, its normalised values included
    std::uint64_t batches_copied = 0;     ///< copies issued
    std::uint64_t bytes_copied = 0;       ///< by them
    std::uint64_t batches_ahead = 0;      ///< of these, issued before their batch was drawn
    std::uint64_t buffers_replaced = 0;   ///< because somebody still held a tensor of the batch when it came back
    std::uint64_t waits = 0;              ///< draws that waited for the device to finish with a buffer
};

/// A batch on the device, on loan from a DeviceLoader: it occupies one of its buffers, and a slot of the DataLoader,
/// until it is destroyed or reset(). Tensors: data_of() and targets_of() in pipeline/torch/tensors.hpp. Move-only. All
/// calls on the loop's thread, reset() and destruction included. May outlive its pass and its loader.
class DeviceBatch {
public:
    DeviceBatch(DeviceBatch&& other) noexcept;
    DeviceBatch& operator=(DeviceBatch&& other) noexcept;
    ~DeviceBatch();

    // As those of Batch; the layout is that of the host's samples, before they are normalised.
    [[nodiscard]] std::size_t size() const noexcept;
    [[nodiscard]] std::size_t epoch() const noexcept;
    [[nodiscard]] std::size_t number() const noexcept;
    [[nodiscard]] const SampleLayout& layout() const noexcept;
    [[nodiscard]] std::span<const std::uint64_t> indices() const noexcept;
    [[nodiscard]] std::span<const std::int64_t> targets() const noexcept;   ///< in host memory
    [[nodiscard]] std::span<const BatchPart> parts() const noexcept;        ///< in host memory
    [[nodiscard]] DrawStamps draw_stamps() const noexcept;

    /// Which of the buffers, 0 … device_prefetch. A buffer keeps its address unless it is replaced (`DeviceCounters`)
    /// or grows, so a program can capture one graph for each buffer.
    [[nodiscard]] std::size_t buffer() const noexcept { return buffer_; }

    /// The step has given the device the work up to its loss. In a timed pass (`EpochOptions::track`) that is recorded,
    /// so that the recording shows whether the loop waits for the device later in the step. fit() calls it.
    void end_forward() noexcept;
    /// The step has given the device all its work. In a timed pass its end is recorded now, else this does nothing.
    /// fit() calls it after zero_grad(); without it, a step ends as its batch is given back.
    void end_work() noexcept;

    /// The oldest loss that keep_loss() (pipeline/torch/tensors.hpp) kept, of this or an earlier batch, if the device
    /// has computed it and it was not returned before: known once a later batch has been copied to the same
    /// buffer.
    [[nodiscard]] std::optional<double> next_loss() noexcept;

    /// Gives the batch back. The device may still be at work on it: the buffer is copied to only after the work that
    /// the current stream has been given so far. Work on another stream must be waited for by the current one first.
    /// Not during the capture of a graph.
    void reset() noexcept;

private:
    friend class DeviceCore;
    friend at::Tensor data_of(DeviceBatch&);
    friend at::Tensor targets_of(DeviceBatch&);
    friend at::Tensor part_of(DeviceBatch&, std::string_view);
    friend bool keep_loss(DeviceBatch&, const at::Tensor&);
    DeviceBatch(std::shared_ptr<DeviceCore> core, std::size_t buffer) noexcept;
    std::shared_ptr<DeviceCore> core_;   // null: given back
    std::size_t buffer_;
};

/// Draws from a DataLoader and copies each batch to a device: samples and targets go there as they are, on a stream of
/// their own and up to P batches ahead, while the device computes and the loop's thread goes on. next() returns once
/// the copy is issued; the current stream waits for it. Nothing else is changed: the passes, their order, errors,
/// positions and recordings are those of the DataLoader. Only the loop's thread uses the device. If the device is
/// behind by as many steps as there are buffers, next() waits for it.
///
/// For copies that do not hold up the loop's thread, the DataLoader needs memory that the device can read:
/// `LoaderOptions::slot_memory = pinned_memory()`. What a loader collates is not in such memory. The DataLoader must
/// outlive it.
class DeviceLoader {
public:
    using Batch = DeviceBatch;

    /// A pass over an epoch. Destroying it waits for copies of batches that are not drawn.
    class Pass {
    public:
        using Batch = DeviceBatch;
        Pass(Pass&&) noexcept;
        Pass& operator=(Pass&&) noexcept;
        ~Pass();

        [[nodiscard]] std::optional<std::size_t> size() const noexcept;   ///< as DataLoader::Pass
        [[nodiscard]] std::size_t drawn() const noexcept;                 ///< as DataLoader::Pass
        /// Draws the next batch; after the last one nullopt. As DataLoader::Pass::next(), cancelling and errors
        /// included; the stall_timeout does not cover waiting for the device. Throws std::logic_error while all buffers
        /// are held, or another draw waits; DeviceError during the capture of a graph (LibTorch 2.12 and newer), if
        /// there is no memory for a larger batch (the next draw tries again), and once a call of the device has failed.
        [[nodiscard]] Awaitable<std::optional<DeviceBatch>> next();
        /// If the pass is timed (`EpochOptions::track`): ends the track's last step, waits until the device has done
        /// all its work, and records its steps. Blocks the thread meanwhile. fit() calls it; else the last are missing.
        void drain() noexcept;

    private:
        friend class DeviceLoader;
        explicit Pass(std::shared_ptr<DevicePass> pass) noexcept;
        std::shared_ptr<DevicePass> pass_;   // null: moved from
    };

    /// Allocates the buffers; if memory does not suffice for all, fewer of them. Throws std::invalid_argument for a
    /// device_prefetch out of range, a device that is none, a memory_budget less than one buffer, samples that
    /// cannot be normalised, or are already, and a type that values cannot have, or of values that are not normalised;
    /// DeviceError if there is no such device, or not enough memory for one
    /// buffer.
    explicit DeviceLoader(DataLoader&, const DeviceOptions& = {});
    DeviceLoader(DataLoader&&, const DeviceOptions& = {}) = delete;
    ~DeviceLoader();
    DeviceLoader(const DeviceLoader&) = delete;
    DeviceLoader& operator=(const DeviceLoader&) = delete;

    /// As DataLoader::epoch(). With `EpochOptions::track` the pass is timed, until another begins: waits until the
    /// device has done its work, and throws DeviceError if that fails, or during the capture of a graph.
    [[nodiscard]] Pass epoch(std::size_t e, EpochOptions = {});
    [[nodiscard]] std::string device() const;   ///< its name with its number, e.g. "cuda:0"
    [[nodiscard]] DeviceCounters counters() const noexcept;
    [[nodiscard]] DataLoader& host() const noexcept { return *host_; }

private:
    DataLoader* host_;
    std::shared_ptr<DeviceCore> core_;
};

}   // namespace drawpoint
