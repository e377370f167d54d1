#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <drawpoint/instrumentation/recorder/recorder.hpp>
#include <drawpoint/pipeline/loader/collate.hpp>
#include <drawpoint/pipeline/loader/sample_source.hpp>

#include "pipeline/loader/threads/claim_use.hpp"
#include "pipeline/loader/loader_core.hpp"
#include "pipeline/loader/reading/read_ahead.hpp"
#include "pipeline/loader/threads/sample_usage.hpp"

namespace drawpoint {

/// What one worker thread needs to make samples.
struct SampleWorker {
    std::unique_ptr<WorkerScratch> scratch;
    WorkerTrack track;
    SampleTask task;
    SampleRun run;
    SampleRecord record;
    WorkerReads reads;
    SampleUsage usage;
    ReadTimes read;   // of the sample, if it was read ahead
    std::uint64_t claims = 0;
    std::uint64_t samples = 0, ns = 0;   // of the claims timed since they were last reported
    ClaimUse use;
};

/// Makes the samples of a claim: all that happens between the claim and the countdown. One per loader, shared by its workers.
class SampleMaker {
public:
    /// `reads`: through which samples' bytes are read; null: the source reads for itself.
    SampleMaker(const SampleSource&, ReadAhead* reads, Recorder*, const AnyClock&, std::uint8_t pipeline,
                std::uint64_t seed, const Collate* collate);

    [[nodiscard]] std::unique_ptr<SampleWorker> make_worker() const;
    /// Samples [first, first + count) of the batch in slot number `slot`, claimed at `begin_ns` (`no_stamp`: the clock was not asked); stops
    /// early when `stopping`. Failures are noted in the slot, under `mutex`. Returns when the last sample was done, or
    /// `no_stamp` where nobody asked the clock.
    [[nodiscard]] std::int64_t make(SampleWorker&, Slot&, std::uint32_t slot, std::uint32_t first, std::uint32_t count,
                                    std::int64_t begin_ns, const std::atomic<bool>& stopping,
                                    std::mutex& mutex) const noexcept;
    /// Makes the batch of a slot's samples unless one failed or is missing, and lets go of memory that they do not need.
    /// `begin_ns`: now, or `no_stamp`. What it throws is noted as a failure of the batch's first sample.
    void collate(SampleWorker&, Slot&, std::int64_t begin_ns, const std::atomic<bool>& stopping,
                 std::mutex& mutex) const noexcept;

private:
    void make_batch(SampleWorker&, Slot&, std::int64_t begin_ns, std::mutex& mutex) const noexcept;
    struct Failed {
        std::uint64_t index;
        std::uint32_t stage_count;   // begun
        const char* where;           // null: in the last of those
    };
    [[nodiscard]] std::int64_t make_run(SampleWorker&, Slot&, std::uint32_t first, std::uint32_t count,
                                        std::int64_t begin_ns, std::mutex&) const noexcept;
    void check(std::uint64_t index) const;   // throws std::out_of_range
    void note_failure(Slot&, const Failed&, std::exception_ptr, std::mutex&) const noexcept;
    [[nodiscard]] bool records(const SampleWorker& worker, const Slot& s) const noexcept {
        return recorder_ && s.detail.samples && worker.track;
    }
    /// Real threads' times say nothing about a clock that is moved by hand.
    [[nodiscard]] bool measures(const SampleWorker& worker, const Slot& s) const noexcept {
        return records(worker, s) && !clock_.is_manual();
    }
    /// What every row of a batch's samples says.
    [[nodiscard]] SampleRow row_of(const Slot&, std::uint32_t at, bool complete) const noexcept;

    void fill(SampleWorker&, std::uint32_t slot, std::uint32_t at, std::int64_t taken_up_ns) const;
    /// Fills the sample's buffer in the slot. Throws where the source leaves a shape that varies unsaid.
    void fill_buffer(SampleWorker&, Slot&, std::uint32_t slot, std::uint32_t at, std::int64_t taken_up_ns) const;
    /// Fills from bytes read here, ahead or by the source; all the time until they are there is of the first stage.
    void read_and_fill(SampleWorker&, std::uint32_t slot, std::uint32_t at, std::int64_t taken_up_ns) const;

    const SampleSource* source_;
    ReadAhead* reads_;
    const Collate* collate_;   // null: samples are made in the batch
    bool fills_runs_;
    std::size_t source_size_, sample_bytes_;
    SampleLayout layout_;
    std::vector<std::string> stages_;
    Recorder* recorder_;   // null: nothing is recorded
    AnyClock clock_;
    std::uint8_t pipeline_;
    std::uint64_t seed_;
};

}   // namespace drawpoint
