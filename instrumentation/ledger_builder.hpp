#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <drawpoint/instrumentation/ledger.hpp>

namespace drawpoint {

/// Makes a ledger of rows in the order of a recording. The live recorder and the reader of its file feed it the same
/// calls, so what they make is equal. One thread at a time.
class LedgerBuilder {
public:
    explicit LedgerBuilder(std::int64_t start_ns = 0) { ledger_.start_ns = start_ns; }

    void sample(SampleRow, std::span<const StageRow>);
    void batch(const BatchRow& row) { ledger_.batches.push_back(row); }
    void step(StepRow, std::span<const SpanRow>);
    void pass_begin(const PassRow&);
    void pass(PassRow, std::span<const SpanRow>);
    void end_of_data(const EndOfDataRow&);
    void pipeline(const PipelineRow& row) { ledger_.pipelines.push_back(row); }
    void failure(const FailureRow& row) { ledger_.failures.push_back(row); }
    void fact(std::string_view key, std::string_view value) { ledger_.set_fact(key, value); }
    void dropped(const DroppedRow& row) { ledger_.dropped.push_back(row); }
    void thinning(const ThinningRow& row) { ledger_.thinnings.push_back(row); }

    /// What came so far, sorted. A pass that has not ended ends where the last of what it holds did.
    [[nodiscard]] Ledger ledger() const;
    [[nodiscard]] std::uint32_t thinned_to() const noexcept { return ledger_.thinned_to(); }

private:
    Slice add(std::span<const SpanRow>);
    void reached(std::int64_t ns) noexcept;

    Ledger ledger_;
    std::vector<PassRow> open_;   // outermost first
};

}   // namespace drawpoint
