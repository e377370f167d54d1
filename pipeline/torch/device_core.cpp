#include "pipeline/torch/device_core.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include <drawpoint/instrumentation/facts.hpp>
#include <drawpoint/instrumentation/ledger/copies.hpp>
#include <drawpoint/pipeline/loader/core/collate.hpp>
#include <drawpoint/pipeline/loader/machine/detail/slot_bytes.hpp>

#include "pipeline/torch/scalar_types.hpp"

namespace drawpoint {

DeviceCore::DeviceCore(const DataLoader& loader, c10::Device device, const DeviceOptions& options, std::size_t buffers,
                       std::uint64_t bytes, std::uint64_t values)
    : stage_{device, buffers, bytes, values},
      layout_{loader.layout()},
      places_(stage_.policy().buffers()),
      is_pinned_{loader.options().slot_memory != nullptr && loader.options().collate == nullptr},
      losses_{places_.size()} {
    counters_.buffers = places_.size();
    if (options.normalize)
        normalize_.emplace(stage_.calls(), *options.normalize, torch_type(options.type), options.channels_last);
}

DeviceCore::~DeviceCore() {
    stage_.end_copies([this](std::size_t buffer) { ended(buffer); });
    if (!stage_.end_work())
        losses_.leak();
}

DeviceCounters DeviceCore::counters() const noexcept {
    DeviceCounters counters = counters_;
    counters.buffer_bytes = stage_.buffer_bytes();
    return counters;
}

void DeviceCore::ended(std::size_t buffer) noexcept {
    if (!stage_.calls().has_failed())   // else nobody knows whether it has
        losses_.ended(buffer);
    if (!stage_.policy().is_taken(buffer))
        release_host(places_[buffer]);
}

void DeviceCore::release_host(Place& place) noexcept {
    if (!place.host)   // its batch was not drawn
        return;
    place.host.reset();
    --hosts_;
}

void DeviceCore::begin_timing(const void* pass, LoopTrack* track, std::uint16_t pipeline, std::uint32_t epoch) {
    track_ = nullptr;
    if (track == nullptr || track->recorder() == nullptr)
        return;
    check();
    if (!times_)
        times_.emplace(stage_.calls(), 2 * stage_.policy().buffers());   // the loop is ahead by that much at most
    Recorder& recorder = *track->recorder();
    const auto now_ns = [&recorder] { return recorder.now_ns(); };
    if (!times_->begin(stage_.current_stream(), now_ns, recorder.clock().is_manual()))
        return;
    recorder.set_fact(facts::device, stage_.device().str());
    is_described_ = false;
    track_ = track;
    timed_pass_ = pass;
    copy_ = {.epoch = epoch, .pipeline = pipeline};
}

/// Makes a call of the times, if the pass is timed. Its failure is told by the next draw.
template <class Call>
void DeviceCore::while_timing(Call call) noexcept {
    if (!is_timing())
        return;
    try {
        call(*times_);
    } catch (const DeviceError&) {
    }
}

void DeviceCore::record_steps() {
    while (const std::optional<DeviceStepRow> row = times_->done())
        track_->recorder()->push(*row);
}

void DeviceCore::record_copy(std::size_t buffer) {
    const c10::Event* const begun = stage_.begun(buffer);
    if (!is_timing() || begun == nullptr)
        return;
    TransferRow& row = places_[buffer].copy;
    std::tie(row.begin_ns, row.end_ns) = times_->times_of(*begun, stage_.copied(buffer));
    track_->recorder()->push(row);
}

void DeviceCore::drain(const void* pass) noexcept {
    if (pass != timed_pass_)
        return;
    while_timing([&](DeviceTimes& times) {
        track_->end_steps();   // a device's step is recorded after the loop's
        times.wait(stage_.current_stream());
        record_steps();
        reclaim();
    });
}

void DeviceCore::reclaim() {
    while (const std::optional<std::size_t> buffer = stage_.ended()) {
        ended(*buffer);
        record_copy(*buffer);
    }
}

bool DeviceCore::holds_all() const noexcept {
    const TransferPolicy& policy = stage_.policy();
    return policy.ahead() == 0 && !policy.may_issue() && !policy.copying();
}

void DeviceCore::lay_out(const SlotMemory& memory, std::size_t size, std::span<const BatchPart> arrays) {
    parts_.clear();
    const auto* const targets = reinterpret_cast<const std::byte*>(memory.targets());
    if (arrays.empty()) {   // samples and targets in one piece
        const auto end = static_cast<std::size_t>(targets - memory.data()) + size * sizeof(std::int64_t);
        parts_.push_back({memory.data(), end, 0});
        return;
    }
    std::size_t at = 0;
    for (const BatchPart& array : arrays) {
        parts_.push_back({array.data().data(), array.data().size(), at});
        at += round_up_to(array.data().size(), slot_line);
    }
    parts_.push_back({targets, size * sizeof(std::int64_t), at});
}

void DeviceCore::issue(const SlotMemory& memory, std::size_t number, std::size_t size,
                       std::span<const BatchPart> arrays) {
    lay_out(memory, size, arrays);
    std::uint64_t bytes = 0;
    for (const TransferPart& part : parts_)
        bytes += part.bytes;
    const bool is_timed = is_timing() && times_->times_copies();
    if (is_timed) {
        TransferRow& copy = places_[stage_.policy().next()].copy = copy_;
        copy.batch = static_cast<std::uint32_t>(number);
        copy.bytes = bytes;
        copy.issue_ns = track_->recorder()->now_ns();
    }
    losses_.issued(stage_.issue(parts_, is_timed));
    ++counters_.batches_copied;
    counters_.bytes_copied += bytes;
}

/// Says how batches are copied there: those that are trained on, as another loader's may be copied otherwise.
void DeviceCore::describe(Recorder& recorder) {
    recorder.set_fact(facts::device_buffers, std::to_string(counters_.buffers));
    const Copies copies = !stage_.overlaps() ? Copies::in_order : is_pinned_ ? Copies::apart : Copies::pageable;
    recorder.set_fact(facts::device_copies, to_string(copies));
    is_described_ = true;
}

void DeviceCore::await_next(const SlotMemory& memory, std::size_t size) {
    const std::size_t buffer = stage_.policy().drawn_next();
    if (is_timing()) {
        record_steps();
        const c10::Stream stream = stage_.current_stream();
        const StepRow& step = track_->step();
        if (!is_described_ && step.phase == Phase::train)
            describe(*track_->recorder());
        times_->queue(stream, step.step, step.epoch, step.phase, buffer);
        stage_.await_next();
        times_->arrive(stream);
    } else {
        stage_.await_next();
    }
    if (!normalize_)
        return;
    const std::vector<at::Tensor>& of = tensors(buffer, memory, size, {});
    normalize_->run(stage_.calls(), first_samples(of[1], size), first_samples(of[0], size));
}

void DeviceCore::prepare(const ReadyBatch& batch) {
    if (ahead() == 0)
        issue(*batch.memory, batch.number, batch.size, batch.parts);
    await_next(*batch.memory, batch.size);
}

void DeviceCore::prepare(const Batch& batch) {
    if (ahead() == 0)
        issue(batch.memory(), batch.number(), batch.size(), batch.parts());
    await_next(batch.memory(), batch.size());
}

DeviceBatch DeviceCore::draw(Batch drawn, std::int64_t waited_ns, std::int64_t transferred_ns) noexcept {
    const std::size_t buffer = stage_.draw();
    Place& place = places_[buffer];
    place.stamps = drawn.draw_stamps();
    place.stamps.waited_ns = waited_ns;
    place.stamps.transferred_ns = transferred_ns;
    place.host.emplace(std::move(drawn));
    ++hosts_;
    return DeviceBatch{shared_from_this(), buffer};
}

void DeviceCore::issue_ahead(const DataLoader::Pass& pass) noexcept {
    try {
        while (stage_.policy().may_issue()) {
            const std::optional<ReadyBatch> ready = pass.peek(stage_.policy().ahead());
            if (!ready)
                return;
            issue(*ready->memory, ready->number, ready->size, ready->parts);
            ++counters_.batches_ahead;
        }
    } catch (const std::exception&) {
        // Its own draw tries again, or tells the failure.
    }
}

void DeviceCore::abandon() noexcept {
    if (stage_.policy().ahead() == 0)
        return;
    stage_.end_copies([this](std::size_t copied) { ended(copied); });
    stage_.abandon();
}

bool DeviceCore::is_held(std::size_t buffer) const noexcept {
    const std::vector<at::Tensor>& tensors = places_[buffer].tensors;
    return std::ranges::any_of(tensors, [&tensors](const at::Tensor& tensor) {
        // A view counts on the storage, which the buffer and its tensors share.
        const auto ours = std::ranges::count_if(
            tensors, [&](const at::Tensor& other) { return other.storage().is_alias_of(tensor.storage()); });
        return tensor.use_count() > 1 || tensor.requires_grad() ||
               tensor.storage().use_count() > static_cast<std::size_t>(ours) + 1;
    });
}

bool DeviceCore::keep_loss(std::size_t buffer, const at::Tensor& loss) {
    const float* const place = losses_.keep(stage_.calls(), buffer, loss);
    if (place != nullptr && is_timing())
        times_->keep_loss(buffer, place);
    return place != nullptr;
}

void DeviceCore::end_forward(std::size_t buffer) noexcept {
    while_timing([&](DeviceTimes& times) { times.end_forward(stage_.current_stream(), buffer); });
}

void DeviceCore::end_work(std::size_t buffer) noexcept {
    while_timing([&](DeviceTimes& times) { times.end(stage_.current_stream(), buffer); });
}

void DeviceCore::give_back(std::size_t buffer) noexcept {
    end_work(buffer);
    stage_.give_back(buffer);
    Place& place = places_[buffer];
    const bool collated = !place.host->parts().empty();
    if (is_held(buffer)) {
        stage_.leave(buffer);
        place.tensors.clear();
        ++counters_.buffers_replaced;
    } else if (collated) {
        place.tensors.clear();
    }
    if (!stage_.policy().is_copied_to(buffer))
        release_host(place);
}

const std::vector<at::Tensor>& DeviceCore::tensors(std::size_t buffer, const SlotMemory& memory, std::size_t size,
                                                   std::span<const BatchPart> arrays) {
    Place& place = places_[buffer];
    const auto samples = static_cast<std::int64_t>(size);
    if (!place.tensors.empty() && place.samples >= samples)
        return place.tensors;
    place.tensors.clear();
    lay_out(memory, size, arrays);
    const at::Tensor& bytes = stage_.bytes(buffer);
    if (arrays.empty()) {
        std::vector<std::int64_t> shape{samples};
        shape.insert(shape.end(), layout_.shape.begin(), layout_.shape.begin() + layout_.rank);
        if (normalize_)
            place.tensors.push_back(normalize_->over(stage_.beside(buffer), shape));
        place.tensors.push_back(over_bytes(bytes, 0, shape, torch_type(layout_.type)));
        const std::size_t at = parts_.front().bytes - size * sizeof(std::int64_t);
        place.tensors.push_back(over_bytes(bytes, at, samples, at::kLong));
    } else {
        for (std::size_t i = 0; i < arrays.size(); ++i)
            place.tensors.push_back(over_bytes(bytes, parts_[i].at,
                                               {arrays[i].shape().data(), arrays[i].shape().size()},
                                               torch_type(arrays[i].type())));
        place.tensors.push_back(over_bytes(bytes, parts_.back().at, samples, at::kLong));
    }
    place.samples = samples;
    return place.tensors;
}

}   // namespace drawpoint
