#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <drawpoint/instrumentation/ledger/ledger.hpp>

#include "instrumentation/ledger/definitions.hpp"

namespace drawpoint {

/// Builds a ledger from rows in the order of a recording. The live recorder and the reader of its file make the same
/// calls, so their ledgers are equal; of rows that a file no longer has, it calls folded(). One thread at a time.
class LedgerBuilder {
public:
    /// `most_steps`, `most_bytes`: as `RecorderOptions::ledger_steps` and `ledger_bytes`; 0: any number.
    explicit LedgerBuilder(std::int64_t start_ns = 0, std::size_t most_steps = 0, std::uint64_t most_bytes = 0)
        : most_steps_{most_steps}, most_bytes_{most_bytes} {
        ledger_.start_ns = start_ns;
    }

    void sample(SampleRow, std::span<const StageRow>);
    void batch(const BatchRow&);
    void step(StepRow, std::span<const SpanRow>);
    void pass_begin(const PassRow&);
    void pass(PassRow, std::span<const SpanRow>);
    void end_of_data(const EndOfDataRow&);
    void pipeline(const PipelineRow& row) { ledger_.pipelines.push_back(row); }
    /// The same, if rows may be missing: it is the `number`-th. False, and not added, if that can't be.
    bool pipeline(const PipelineRow& row, std::uint32_t number);
    void failure(const FailureRow& row) { ledger_.failures.push_back(row); }
    void setting(const SettingRow& row) { ledger_.settings.push_back(row); }
    void order(const OrderRow& row) { ledger_.orders.push_back(row); }
    void transfer(const TransferRow& row) { ledger_.transfers.push_back(row); }
    /// Also gives the loss to the step.
    void device_step(const DeviceStepRow&);
    /// If steps are folded, beyond 4096 rows every other one of the older half is dropped.
    void host(const HostRow&);
    void fact(std::string_view key, std::string_view value) { ledger_.set_fact(key, value); }
    void dropped(const DroppedRow& row) { ledger_.dropped.push_back(row); }
    void thinning(const ThinningRow& row) { ledger_.thinnings.push_back(row); }
    /// Adds totals of rows that will not come. False if they repeat an action, stage or worker, or are too many.
    bool folded(const Folded&);

    // These return false, and do not add the row, if it refers to something that has not come: readers need not check.
    bool definitions(const Definitions&);
    /// Opens an operator on its thread.
    bool operator_begin(OperatorRow);
    /// Ends the thread's innermost open operator. `lost`: its own end was lost, and an operator around it closes it.
    bool operator_end(std::uint32_t thread, std::int64_t at_ns, bool lost);
    bool allocation(const AllocationRow&);
    bool stack_sample(const StackSampleRow&);

    /// What came so far, sorted. A pass that has not ended ends with the last row in it; an operator that has not ended
    /// lasts until the latest time in all rows except samples, batches and the host's.
    [[nodiscard]] Ledger ledger() const&;
    [[nodiscard]] Ledger ledger() &&;   ///< without a copy; call it last

    /// Rows in `bytes` of a damaged file will not come: operators that are open end here, and what later rows refer to
    /// is called "(lost)" if it did not come.
    void gap(std::uint64_t bytes);

    /// Folds the oldest steps, with their batches and samples, so that the rows that can be folded take about `bytes`.
    void fold_to(std::uint64_t bytes);
    /// The rows that came so far and are not folded, as they came, without passes that have not ended.
    [[nodiscard]] const Ledger& rows() const noexcept { return ledger_; }
    [[nodiscard]] const std::vector<PassRow>& open_passes() const noexcept { return open_; }
    /// By thread, outermost first: positions in `rows().operators`.
    [[nodiscard]] const std::vector<std::vector<std::size_t>>& open_operators() const noexcept {
        return open_operators_;
    }

private:
    Slice add(std::span<const SpanRow>);
    template <class Row>
    bool reach(std::vector<Row>&, std::size_t size, const Row& lost);
    bool has_names(std::size_t size);
    bool has_threads(std::size_t size);
    bool has_frames(std::size_t size);
    bool has_stacks(std::size_t size);
    void leave(std::vector<PassRow>::iterator from);
    void close_operators(Ledger&) const;
    static void name_lost(Ledger&);
    void complete(Ledger&) const;
    void reached(std::int64_t ns) noexcept;
    [[nodiscard]] std::size_t foldable() const noexcept;
    [[nodiscard]] std::uint64_t foldable_bytes() const noexcept;
    [[nodiscard]] bool is_full() const noexcept;
    void fold_to_rows(std::size_t keep);
    [[nodiscard]] bool folds() const noexcept { return most_steps_ != 0 || most_bytes_ != 0; }

    const std::size_t most_steps_;
    const std::uint64_t most_bytes_;
    Ledger ledger_;
    std::vector<PassRow> open_;   // outermost first
    ThreadPositions thread_positions_;
    std::vector<std::vector<std::size_t>> open_operators_;   // by thread, outermost first
    std::int64_t last_ns_ = no_stamp;
    std::uint64_t lost_bytes_ = 0, lost_rows_ = 0;   // of damaged parts; rows made up for them
    std::size_t kept_ = 0;                           // of foldable() after the last fold
    std::uint64_t kept_bytes_ = 0;                   // of foldable_bytes()
};

}   // namespace drawpoint
