#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include <drawpoint/pipeline/torch/device_loader.hpp>
#include <drawpoint/instrumentation/recorder/loop_track.hpp>
#include "pipeline/torch/device_normalize.hpp"
#include "pipeline/torch/device_stage.hpp"
#include "pipeline/torch/device_times.hpp"
#include "pipeline/torch/late_losses.hpp"

namespace drawpoint {

/// Shared by a DeviceLoader, its passes and its batches: the stage, and the batches whose copies are in its buffers.
class DeviceCore : public std::enable_shared_from_this<DeviceCore> {
public:
    /// `bytes`: of a batch. `values`: of its normalised form, 0: `options` do not ask for it.
    DeviceCore(const DataLoader&, c10::Device, const DeviceOptions& options, std::size_t buffers, std::uint64_t bytes,
               std::uint64_t values);
    ~DeviceCore();

    [[nodiscard]] const DeviceStage& stage() const noexcept { return stage_; }
    [[nodiscard]] DeviceCounters counters() const noexcept;
    void count_wait() noexcept { ++counters_.waits; }

    void check() { stage_.check(); }
    /// The pass `pass` begins. With a track that records, its steps and copies are timed until end_timing(), and
    /// recorded there: waits until the device has done its work. Throws DeviceError.
    void begin_timing(const void* pass, LoopTrack* track, std::uint16_t pipeline, std::uint32_t epoch);
    /// If this pass is timed: waits until the device has done all its work, and records its steps.
    void drain(const void* pass) noexcept;
    void end_timing(const void* pass) noexcept {
        if (pass == timed_pass_)
            track_ = nullptr;
    }
    [[nodiscard]] bool is_timing() const noexcept { return track_ != nullptr; }

    /// Takes up copies that have ended. Throws DeviceError.
    void reclaim();
    /// Whether the loader's next batch has a buffer: its copy is issued, or there is a free one to copy to.
    [[nodiscard]] bool has_buffer() const noexcept {
        return stage_.policy().ahead() > 0 || stage_.policy().may_issue();
    }
    /// Whether the loader, if it has `slots` slots, can make a batch while it lacks those that are out or copied from.
    /// If the user alone holds them all, that is for the loader to say.
    [[nodiscard]] bool leaves_slots(std::size_t slots) const noexcept {
        return hosts_ < slots || !stage_.policy().copying();
    }
    [[nodiscard]] std::size_t ahead() const noexcept { return stage_.policy().ahead(); }
    /// Whether the user holds every buffer, so that waiting will not free one.
    [[nodiscard]] bool holds_all() const noexcept;
    /// Issues the copy of this batch, unless copies of batches are ahead: then it is the first of these. The current
    /// stream waits for it. has_buffer() must hold. Throws DeviceError.
    void prepare(const ReadyBatch& batch);
    void prepare(const Batch& batch);
    /// The batch that is prepared. Stamps: see DrawStamps.
    [[nodiscard]] DeviceBatch draw(Batch drawn, std::int64_t waited_ns, std::int64_t transferred_ns) noexcept;
    void drew(const DeviceBatch& batch, std::int64_t now_ns) noexcept {
        places_[batch.buffer()].stamps.taken_ns = now_ns;
    }
    [[nodiscard]] bool keep_loss(std::size_t buffer, const at::Tensor& loss);
    [[nodiscard]] std::optional<double> next_loss() noexcept { return losses_.next(); }
    /// Issues copies of batches that are ready.
    void issue_ahead(const DataLoader::Pass&) noexcept;
    /// The pass ends: waits for the copies of batches that it has not drawn.
    void abandon() noexcept;
    /// The step that uses the buffer has given the device the work up to its loss.
    void end_forward(std::size_t buffer) noexcept;
    /// The step that uses the buffer has given the device all its work.
    void end_work(std::size_t buffer) noexcept;
    void give_back(std::size_t buffer) noexcept;

    // Of a buffer whose batch is out:
    [[nodiscard]] const Batch& host(std::size_t buffer) const noexcept { return *places_[buffer].host; }
    [[nodiscard]] DrawStamps stamps(std::size_t buffer) const noexcept { return places_[buffer].stamps; }
    /// The samples, or each array of a collated batch; last the targets. With normalisation: the values, the levels
    /// that they are made of, the targets. For as many samples as the batch, or more.
    [[nodiscard]] const std::vector<at::Tensor>& tensors(std::size_t buffer) {
        const Batch& host = *places_[buffer].host;
        return tensors(buffer, host.memory(), host.size(), host.parts());
    }

private:
    /// A buffer's batch, from its draw until it is back and its copy has ended.
    struct Place {
        std::optional<Batch> host;
        DrawStamps stamps;
        std::vector<at::Tensor> tensors;   // see tensors(); empty: not made yet
        std::int64_t samples = 0;          // that these have
        TransferRow copy;                  // of its timed copy that is under way
    };

    void issue(const SlotMemory&, std::size_t number, std::size_t size, std::span<const BatchPart> arrays);
    const std::vector<at::Tensor>& tensors(std::size_t buffer, const SlotMemory&, std::size_t size,
                                           std::span<const BatchPart> arrays);
    /// The current stream waits for the batch that is drawn next, and normalises it.
    void await_next(const SlotMemory&, std::size_t size);
    void describe(Recorder&);
    void record_steps();
    void record_copy(std::size_t buffer);
    template <class Call>
    void while_timing(Call) noexcept;
    void lay_out(const SlotMemory&, std::size_t size, std::span<const BatchPart> arrays);
    void ended(std::size_t buffer) noexcept;
    void release_host(Place&) noexcept;
    /// Whether somebody else holds one of the buffer's tensors, a view of it, or a graph from it.
    [[nodiscard]] bool is_held(std::size_t buffer) const noexcept;

    DeviceStage stage_;
    SampleLayout layout_;
    std::optional<DeviceNormalize> normalize_;
    std::vector<Place> places_;
    std::vector<TransferPart> parts_;   // of the copy that is being issued
    std::size_t hosts_ = 0;             // places that have a batch
    bool is_pinned_;                    // what is copied from
    LateLosses losses_;
    std::optional<DeviceTimes> times_;
    LoopTrack* track_ = nullptr;   // of the pass, if it is timed
    bool is_described_ = false;    // in its recording
    const void* timed_pass_ = nullptr;
    TransferRow copy_;   // what the pass's copies have in common
    DeviceCounters counters_{};
};

}   // namespace drawpoint
