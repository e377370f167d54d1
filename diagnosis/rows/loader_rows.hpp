#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <drawpoint/instrumentation/ledger/ledger.hpp>

namespace drawpoint {

/// [from, to) of absolute nanoseconds.
struct TimeRange {
    std::int64_t from_ns = 0, to_ns = 0;
};

/// `begin_ns + ns`, or the last nanosecond there is; a length below 0 counts as none.
[[nodiscard]] std::int64_t end_ns(std::int64_t begin_ns, std::int64_t ns) noexcept;
/// `to_ns - from_ns`, 0 … the largest there is.
[[nodiscard]] std::int64_t length_ns(std::int64_t from_ns, std::int64_t to_ns) noexcept;
/// When the worker was through with it.
[[nodiscard]] std::int64_t end_ns(const Ledger&, const SampleRow&) noexcept;
[[nodiscard]] std::int64_t draw_end_ns(const StepRow&) noexcept;
[[nodiscard]] std::int64_t end_ns(const StepRow&) noexcept;

/// Which rows of a sorted ledger belong together: the batch a step drew, the samples of a batch, a loader's numbers at
/// some time, and its slots. The ledger outlives it.
class LoaderRows {
public:
    /// O(rows log rows).
    explicit LoaderRows(const Ledger&);

    /// Of `Ledger::batches`: the one that step of `Ledger::steps` drew, also if it failed; or `nothing`. By when it was
    /// taken: numbers repeat, in validation passes and in batches that are drawn from a cache.
    [[nodiscard]] std::uint32_t batch_of(std::size_t step) const noexcept { return batch_of_step_[step]; }
    /// Positions in `Ledger::samples`, by place in the batch.
    [[nodiscard]] std::span<const std::uint32_t> samples_of(std::size_t batch) const noexcept {
        return std::span{samples_}.subspan(samples_of_batch_[batch].first, samples_of_batch_[batch].count);
    }
    [[nodiscard]] std::uint32_t batch_of_sample(std::size_t sample) const noexcept { return batch_of_sample_[sample]; }
    /// Each of its samples has its record.
    [[nodiscard]] bool whole(std::size_t batch) const noexcept { return whole_[batch]; }
    /// When its slot was free again: the end of its step, else the latest moment known.
    [[nodiscard]] std::int64_t released_ns(std::size_t batch) const noexcept { return released_ns_[batch]; }

    /// The numbers in force; those of the pipeline's row where none were set since.
    [[nodiscard]] SettingRow setting_at(std::uint8_t pipeline, std::int64_t at_ns) const noexcept;

    /// The part of [from, to), at its end, in which a slot of the pipeline was free.
    [[nodiscard]] TimeRange slot_free(std::uint8_t pipeline, TimeRange) const noexcept;

private:
    void match_steps();
    void match_samples();
    void find_releases();

    const Ledger* ledger_;
    std::vector<std::uint32_t> batch_of_step_, samples_, batch_of_sample_;
    std::vector<Slice> samples_of_batch_;
    std::vector<bool> whole_;
    std::vector<std::int64_t> released_ns_;
    struct Slots {
        std::vector<std::int64_t> admitted_ns, released_ns;   // ascending
    };
    std::vector<Slots> slots_;   // by pipeline
};

}   // namespace drawpoint
