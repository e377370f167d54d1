#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <drawpoint/instrumentation/ledger/ledger.hpp>
#include <drawpoint/pipeline/loader/machine/loader_setting.hpp>

namespace drawpoint {

/// [from, to) in absolute nanoseconds.
struct TimeRange {
    std::int64_t from_ns = 0, to_ns = 0;
};

/// `begin_ns + ns`, or the largest value on overflow; a negative length counts as 0.
[[nodiscard]] std::int64_t end_ns(std::int64_t begin_ns, std::int64_t ns) noexcept;
/// `to_ns - from_ns`, clamped to 0 … the largest value.
[[nodiscard]] std::int64_t length_ns(std::int64_t from_ns, std::int64_t to_ns) noexcept;
/// When the worker was done with the sample.
[[nodiscard]] std::int64_t end_ns(const Ledger&, const SampleRow&) noexcept;
[[nodiscard]] std::int64_t draw_end_ns(const StepRow&) noexcept;
[[nodiscard]] std::int64_t end_ns(const StepRow&) noexcept;

/// Which rows of a sorted ledger belong together: the batch a step drew, the samples of a batch, a loader's setting at
/// some time, and its slots. The ledger must outlive it.
class LoaderRows {
public:
    /// O(rows log rows).
    explicit LoaderRows(const Ledger&);

    /// The batch that a step drew, even if it failed, as an index into `Ledger::batches`; or `nothing`. Matched by the
    /// time at which the batch was taken, because batch numbers repeat: in validation passes, and in batches drawn from
    /// a cache.
    [[nodiscard]] std::uint32_t batch_of(std::size_t step) const noexcept { return batch_of_step_[step]; }
    /// Indices into `Ledger::samples`, by place in the batch.
    [[nodiscard]] std::span<const std::uint32_t> samples_of(std::size_t batch) const noexcept {
        return std::span{samples_}.subspan(samples_of_batch_[batch].first, samples_of_batch_[batch].count);
    }
    [[nodiscard]] std::uint32_t batch_of_sample(std::size_t sample) const noexcept { return batch_of_sample_[sample]; }
    /// Whether all samples of the batch are recorded.
    [[nodiscard]] bool whole(std::size_t batch) const noexcept { return whole_[batch]; }
    /// When its slot was free again: at the end of the step that drew it, else the latest time known of it.
    [[nodiscard]] std::int64_t released_ns(std::size_t batch) const noexcept { return released_ns_[batch]; }

    /// Indices into `Ledger::orders`, by the time of their begin.
    [[nodiscard]] std::span<const std::uint32_t> orders_of(std::uint16_t pipeline, std::uint32_t epoch) const noexcept;

    /// The setting in force at that time: the pipeline's own until it is first changed.
    [[nodiscard]] LoaderSetting setting_at(std::uint16_t pipeline, std::int64_t at_ns) const noexcept;

    /// The range from the time on at which the pipeline had a free slot; empty, at its end, if it had none.
    [[nodiscard]] TimeRange slot_free(std::uint16_t pipeline, TimeRange) const noexcept;

private:
    void match_steps();
    void match_samples();
    void find_releases();
    void sort_orders();

    const Ledger* ledger_;
    std::vector<std::uint32_t> batch_of_step_, samples_, batch_of_sample_;
    std::vector<Slice> samples_of_batch_;
    std::vector<std::uint32_t> orders_;   // by loader, epoch and begin
    std::vector<bool> whole_;
    std::vector<std::int64_t> released_ns_;
    struct Slots {
        std::vector<std::int64_t> admitted_ns, released_ns;   // ascending
    };
    std::vector<Slots> slots_;   // by pipeline
};

}   // namespace drawpoint
