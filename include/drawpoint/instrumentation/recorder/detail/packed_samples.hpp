#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <drawpoint/instrumentation/ledger/records.hpp>

namespace drawpoint {

/// Samples of one batch, as the process that made them packs them, so that they travel with the batch.
struct PackedSamples {
    std::uint16_t pipeline = 0, worker = 0;
    std::uint32_t epoch = 0, batch = 0;
    std::vector<std::byte> bytes;   ///< by pack()
};

namespace detail {

/// What is packed of a sample before its stages.
struct PackedSample {
    std::uint64_t index = 0;
    std::int64_t begin_ns = 0;
    std::int64_t cpu_ns = no_stamp, run_queue_ns = no_stamp;
    std::uint32_t samples = 1;
    std::uint8_t stages = 0;
    SampleStatus status{};
    std::uint16_t unused = 0;
};
static_assert(sizeof(PackedSample) == 40);

}   // namespace detail

/// Appends a sample. Of its row, what `PackedSamples` says of all samples, and its place in the batch, are left out.
inline void pack(std::vector<std::byte>& bytes, const SampleRecord& sample) {
    const std::size_t stages = std::min<std::size_t>(sample.stage_count, max_stages), at = bytes.size();
    const detail::PackedSample head{.index = sample.row.index,
                                    .begin_ns = sample.row.begin_ns,
                                    .cpu_ns = sample.row.cpu_ns.value_or(no_stamp),
                                    .run_queue_ns = sample.row.run_queue_ns.value_or(no_stamp),
                                    .samples = sample.row.samples,
                                    .stages = static_cast<std::uint8_t>(stages),
                                    .status = sample.row.status};
    bytes.resize(at + sizeof head + stages * sizeof(StageRow));
    std::memcpy(&bytes[at], &head, sizeof head);
    if (stages != 0)
        std::memcpy(&bytes[at + sizeof head], sample.stages.data(), stages * sizeof(StageRow));
}

/// Calls `take(const SampleRecord&)` for each sample, in the order in which they were packed. Stops where the bytes are
/// not what pack() writes.
template <class Take>
void unpack(const PackedSamples& packed, Take&& take) {
    SampleRecord sample;
    sample.row = {.epoch = packed.epoch, .batch = packed.batch, .worker = packed.worker, .pipeline = packed.pipeline};
    for (std::span<const std::byte> left{packed.bytes}; left.size() >= sizeof(detail::PackedSample);) {
        detail::PackedSample head;
        std::memcpy(&head, left.data(), sizeof head);
        left = left.subspan(sizeof head);
        const std::size_t stages_bytes = head.stages * sizeof(StageRow);
        if (head.stages > max_stages || left.size() < stages_bytes || head.samples == 0 ||
            head.status > SampleStatus::failed)
            return;
        sample.row.index = head.index;
        sample.row.samples = head.samples;
        sample.row.status = head.status;
        sample.row.begin_ns = head.begin_ns;
        sample.row.cpu_ns = head.cpu_ns != no_stamp ? std::optional{head.cpu_ns} : std::nullopt;
        sample.row.run_queue_ns = head.run_queue_ns != no_stamp ? std::optional{head.run_queue_ns} : std::nullopt;
        sample.stage_count = head.stages;
        if (stages_bytes != 0)
            std::memcpy(sample.stages.data(), left.data(), stages_bytes);
        left = left.subspan(stages_bytes);
        take(std::as_const(sample));
        sample.row.slot += head.samples;
    }
}

}   // namespace drawpoint
