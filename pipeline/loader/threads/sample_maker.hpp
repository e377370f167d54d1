#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <drawpoint/instrumentation/recorder/recorder.hpp>
#include <drawpoint/pipeline/loader/core/collate.hpp>
#include <drawpoint/pipeline/loader/core/loader_options.hpp>
#include <drawpoint/pipeline/loader/core/sample_source.hpp>

#include "pipeline/loader/threads/claim_use.hpp"
#include "pipeline/loader/core/loader_core.hpp"
#include "pipeline/loader/reading/read_ahead.hpp"
#include "pipeline/loader/threads/collate_use.hpp"
#include "pipeline/loader/threads/sample_usage.hpp"
#include "pipeline/loader/threads/stall_watch.hpp"

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
    CollateUse collate_use;
    ReadTimes read;   // of the current sample, if it was read ahead
    std::uint64_t claims = 0;
    std::uint64_t samples = 0, ns = 0;   // of claims timed since the last report to the machine
    ClaimUse use;
    WorkerActivity* activity = nullptr;   // null: nobody watches
    void is(WorkerActivity::What what, std::uint64_t number = 0) const noexcept {
        if (activity != nullptr)
            activity->is(what, number);
    }
};

/// Makes the samples of a claim: everything between the claim and the countdown of `Slot::remaining`. One for each
/// loader, shared by its workers; const calls are thread-safe, each with its own SampleWorker.
class SampleMaker {
public:
    /// `reads`: reads the samples' bytes; null: the source reads for itself.
    SampleMaker(const SampleSource&, ReadAhead* reads, Recorder*, const AnyClock&, std::uint16_t pipeline,
                const LoaderOptions&);

    [[nodiscard]] std::unique_ptr<SampleWorker> make_worker() const;
    [[nodiscard]] const SampleSource& source() const noexcept { return *source_; }
    /// Makes samples [first, first + count) of the batch in slot number `slot`, claimed at `begin_ns` (`no_stamp`: the
    /// clock was not read). Ends early once `stopping` is true. Failures are noted in the slot, under `mutex`. Returns
    /// when the last sample was done, or `no_stamp` if begin_ns is.
    [[nodiscard]] std::int64_t make(SampleWorker&, Slot&, std::uint32_t slot, std::uint32_t first, std::uint32_t count,
                                    std::int64_t begin_ns, const std::atomic<bool>& stopping,
                                    std::mutex& mutex) const noexcept;
    /// Skips or substitutes the failed samples of a batch of which all samples are done (`LoaderOptions::on_error`).
    void settle_failures(Slot&) const noexcept;
    /// Collates a slot's samples into its batch, unless one is missing or none is kept, and frees memory that the
    /// samples' buffers do not need. `begin_ns`: now, or `no_stamp`. An exception is noted as a failure of the batch's
    /// first sample.
    void collate(SampleWorker&, Slot&, std::int64_t begin_ns, const std::atomic<bool>& stopping,
                 std::mutex& mutex) const noexcept;

private:
    static constexpr const char* in_collate = "collate";   // a failure's Failed::where; its text, not its address
    void make_batch(SampleWorker&, Slot&, std::uint32_t samples, std::int64_t begin_ns,
                    std::mutex& mutex) const noexcept;
    struct Failed {
        std::uint32_t at;   // as in SampleFailure
        std::uint64_t index;
        std::uint32_t stage_count;   // stages begun
        const char* where;           // null: in the last stage begun
    };
    [[nodiscard]] std::int64_t make_run(SampleWorker&, Slot&, std::uint32_t first, std::uint32_t count,
                                        std::int64_t begin_ns, const std::atomic<bool>& stopping,
                                        std::mutex&) const noexcept;
    /// Fills samples [first, end) by one call or, if that fails, one by one. False: some failed.
    [[nodiscard]] bool fill_runs(SampleWorker&, Slot&, std::uint32_t first, std::uint32_t end,
                                 const std::atomic<bool>& stopping, std::mutex&) const noexcept;
    /// By one call. False: it failed, which is noted if it was for one sample.
    [[nodiscard]] bool fill_run(SampleWorker&, Slot&, std::uint32_t first, std::uint32_t end,
                                std::mutex&) const noexcept;
    void move_sample(Slot&, std::uint32_t from, std::uint32_t to) const noexcept;
    void copy_sample(Slot&, std::uint32_t from, std::uint32_t to) const;   // throws std::bad_alloc
    void check(std::uint64_t index) const {   // in line, as a call for each tiny sample is seen in a batch's time
        if (index >= source_size_) [[unlikely]]
            throw_out_of_range(index);
    }
    [[noreturn]] void throw_out_of_range(std::uint64_t index) const;
    void note_failure(Slot&, const Failed&, std::exception_ptr, std::mutex&) const noexcept;
    [[nodiscard]] bool records(const SampleWorker& worker) const noexcept { return recorder_ && worker.track; }
    /// Threads' CPU times mean nothing on a clock that is moved by hand.
    [[nodiscard]] bool measures(const SampleWorker& worker) const noexcept {
        return records(worker) && !clock_.is_manual();
    }
    /// A sample's row, without its measurements.
    [[nodiscard]] SampleRow row_of(const Slot&, std::uint32_t at, bool complete) const noexcept;

    void fill(SampleWorker&, std::uint32_t slot, std::uint32_t at, std::int64_t taken_up_ns) const;
    /// Fills the sample's buffer in the slot. Throws std::logic_error if the source did not set a shape that varies.
    void fill_buffer(SampleWorker&, Slot&, std::uint32_t slot, std::uint32_t at, std::int64_t taken_up_ns) const;
    /// Fills from bytes that were read ahead, or are read here or by the source. The time until they are there counts
    /// into the first stage.
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
    std::uint16_t pipeline_;
    std::uint64_t seed_;
    OnError on_error_;
};

}   // namespace drawpoint
