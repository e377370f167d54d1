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

/// A file name in a folder of its own that goes when this does.
class TemporaryFile {
public:
    explicit TemporaryFile(const std::string& name = "run.pftrace") : path_{folder_ / name} {}

    const std::filesystem::path& path() const noexcept { return path_; }

private:
    drawpoint::test::TemporaryFolder folder_;
    std::filesystem::path path_;
};

/// One row as some thread hands it over.
struct RunStep {
    drawpoint::StepRow row;
    std::vector<drawpoint::SpanRow> spans;
};
struct RunBatch {
    drawpoint::BatchRow row;
    std::vector<drawpoint::SampleRecord> samples;   ///< `row.worker` says whose
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
                            drawpoint::Fact, drawpoint::PipelineRow, drawpoint::SettingRow, drawpoint::Definitions,
                            OperatorBegun, OperatorEnded, drawpoint::AllocationRow, drawpoint::StackSampleRow>;

/// Everything a run records, in the order of its loop.
using RecordedRun = std::vector<RunRow>;

struct RunShape {
    std::uint32_t epochs = 2, train_batches = 20, valid_batches = 4, batch_size = 8;
    bool odd_stamps = true;   ///< stamps before the start, gaps, batches that lack stamps
    bool end_passes = true;
};
/// A run with two workers and all that can happen in one: failed samples, gaps, cancelled and failed steps, abandoned
/// and failed batches, a source of unknown length, facts set twice, failures, settings changed, measured stages and steps, operators of the calling thread with lost
/// ends, allocations, samples of another thread. The same seed makes the same run.
RecordedRun random_run(std::uint64_t seed, std::int64_t start_ns, const RunShape& = {});

/// What the run's rows are as a ledger.
drawpoint::Ledger ledger_of(const RecordedRun&, std::int64_t start_ns);

/// Records the run with a loop's thread and two workers' threads. A worker is at most one batch ahead of the loop. `clock`,
/// the recorder's, is moved to each operator's stamps; without one they are what its clock says.
void play(const RecordedRun&, drawpoint::Recorder&, drawpoint::ManualClock* clock = nullptr);

/// Writes the run's rows without threads, in blocks of `records_a_block` records.
void write(const RecordedRun&, drawpoint::TraceWriter&, std::size_t records_a_block);

/// Whether every row of `part` stands in `whole`. A pass or operator that has not ended counts where `whole`'s began at its
/// begin.
bool is_part_of(const drawpoint::Ledger& part, const drawpoint::Ledger& whole);

/// All rows but those of passes still open; operators from their begin on.
std::size_t rows_of(const drawpoint::Ledger&);
