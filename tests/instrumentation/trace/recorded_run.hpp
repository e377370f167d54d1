#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <variant>
#include <vector>

#include <drawpoint/instrumentation/recorder/recorder.hpp>

#include "instrumentation/ledger/definitions.hpp"
#include "instrumentation/trace/trace_writer.hpp"

#include "support/temporary_folder.hpp"

/// The name of a file in a folder of its own, which the destructor removes.
class TemporaryFile {
public:
    explicit TemporaryFile(const std::string& name = "run.pftrace") : path_{folder_ / name} {}

    const std::filesystem::path& path() const noexcept { return path_; }

private:
    drawpoint::test::TemporaryFolder folder_;
    std::filesystem::path path_;
};

/// One row as a thread records it.
struct RunStep {
    drawpoint::StepRow row;
    std::vector<drawpoint::SpanRow> spans;
};
struct RunBatch {
    drawpoint::BatchRow row;
    std::vector<drawpoint::SampleRecord> samples;   ///< `row.worker` tells the worker
};
struct PassBegin {
    drawpoint::PassRow row;
};
struct PassEnd {
    drawpoint::PassRow row;
    std::vector<drawpoint::SpanRow> spans;
};
struct OperatorBegun {
    drawpoint::OperatorRow row;
};
struct OperatorEnded {
    std::uint32_t thread = 0;
    std::int64_t at_ns = 0;
    bool lost = false;
};
using RunRow = std::variant<RunBatch, RunStep, PassBegin, PassEnd, drawpoint::EndOfDataRow, drawpoint::FailureRow,
                            drawpoint::Fact, drawpoint::PipelineRow, drawpoint::SettingRow, drawpoint::OrderRow,
                            drawpoint::TransferRow, drawpoint::DeviceStepRow, drawpoint::Definitions, OperatorBegun,
                            OperatorEnded, drawpoint::AllocationRow, drawpoint::StackSampleRow>;

/// Everything that a run records, in the order of its loop.
using RecordedRun = std::vector<RunRow>;

struct RunShape {
    std::uint32_t epochs = 2, train_batches = 20, valid_batches = 4, batch_size = 8;
    bool odd_stamps = true;   ///< stamps before the start, gaps, batches with missing stamps
    bool end_passes = true;
};
/// A run with two workers in which everything occurs: failed samples, gaps, cancelled and failed steps, abandoned and
/// failed batches, a source of unknown length, facts set twice, failures, changed settings, orders, copies to a device
/// and steps there, measured stages and steps, operators of the calling thread with lost ends, allocations, samples of
/// another thread. The same seed gives the same run.
RecordedRun random_run(std::uint64_t seed, std::int64_t start_ns, const RunShape& = {});

/// The ledger of the run's rows.
drawpoint::Ledger ledger_of(const RecordedRun&, std::int64_t start_ns);

/// Records the run with a loop's thread and two workers' threads. A worker is at most one batch ahead of the loop.
/// `clock` must be the recorder's, and is moved to each operator's stamps; without it, operators are stamped by the
/// recorder's own clock.
void play(const RecordedRun&, drawpoint::Recorder&, drawpoint::ManualClock* clock = nullptr);

/// Writes the run's rows without threads, in blocks of `records_a_block` records.
void write(const RecordedRun&, drawpoint::TraceWriter&, std::size_t records_a_block);

/// Whether every row of `part` occurs in `whole`. A pass or operator that has not ended occurs if one of `whole` has
/// the same begin.
bool is_part_of(const drawpoint::Ledger& part, const drawpoint::Ledger& whole);

/// Number of rows, except for passes that are still open; operators count from their begin on.
std::size_t rows_of(const drawpoint::Ledger&);
