#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include <drawpoint/instrumentation/clock.hpp>
#include <drawpoint/instrumentation/ledger/records.hpp>
#include <drawpoint/instrumentation/recorder/detail/packed_samples.hpp>
#include <drawpoint/instrumentation/recorder/recorder_options.hpp>

#include "instrumentation/ledger/ledger_builder.hpp"
#include "instrumentation/recorder/ring_message.hpp"
#include "instrumentation/recorder/thread_rings.hpp"
#include "instrumentation/trace/trace_writer.hpp"

namespace drawpoint {

/// Rows that are too rare for a ring, or too large.
using RareRow = std::variant<PipelineRow, SettingRow, FailureRow, Fact, PackedSamples>;

/// Adds `more` to `into`.
inline void merge(Ring::Drops& into, const Ring::Drops& more) noexcept {
    if (more.count == 0)
        return;
    into.from_ns = into.count == 0 ? more.from_ns : std::min(into.from_ns, more.from_ns);
    into.to_ns = into.count == 0 ? more.to_ns : std::max(into.to_ns, more.to_ns);
    into.count += more.count;
}

/// Turns the rings' messages into rows of the live ledger and of the file, if there is one, within the recording's
/// limits: a file that reaches its limit is written anew, with its older steps folded. For the writer thread only. What
/// is not noexcept throws std::bad_alloc.
class MessageSink {
public:
    MessageSink(const RecorderOptions&, const AnyClock&, const StartTimes&);
    /// Begins the file, before the first message. Throws as TraceWriter.
    void open(const std::filesystem::path& file);

    /// Takes one message of a ring.
    void take(const std::byte* message);
    /// What the limits kept out since the last call.
    [[nodiscard]] Ring::Drops take_dropped() noexcept { return std::exchange(over_limit_, {}); }
    void add(const RareRow&, std::int64_t now_ns);
    void add(const HostRow&);
    void add(const Definitions&);
    /// Records that messages of a ring were lost.
    void add_dropped(std::uint32_t ring, const Ring::Drops&);

    void end_block_if_due();
    /// Ends the file.
    void close();
    /// When memory has run out: from here on messages are only counted, and the file ends as it is.
    void give_up() noexcept;

    /// How many stamps the messages had.
    [[nodiscard]] std::uint64_t events() const noexcept { return events_; }
    /// Null if there is no file, and after `give_up()`.
    [[nodiscard]] const TraceWriter* writer() const noexcept { return writer_.get(); }
    [[nodiscard]] Ledger ledger() const { return builder_.ledger(); }

private:
    void take_sample(const std::byte* message);
    void take_collate(const CollateSlice&);
    void take_operator_begin(const std::byte* message);
    void take_operator_end(const std::byte* message);
    template <class Row>
    void take_moment(const Row&, bool (LedgerBuilder::*)(const Row&), void (TraceWriter::*)(const Row&));
    void end_operators(std::uint32_t of_thread, std::size_t left, std::int64_t at_ns);
    [[nodiscard]] bool has_file() const noexcept { return writer_ && writer_->error().empty(); }
    [[nodiscard]] bool operators_full() const noexcept;
    void drop(std::int64_t at_ns) noexcept { merge(over_limit_, {1, at_ns, at_ns}); }
    void take_row(const std::byte* message);
    void keep_within_limit();
    void write_anew();

    /// Calls `to(builder)` and, while there is a file, `to(writer)`.
    template <class To>
    void both(To&& to) {
        to(builder_);
        if (writer_)
            to(*writer_);
    }

    std::filesystem::path path_;
    const StartTimes start_;
    const std::uint64_t limit_bytes_, operator_limit_bytes_;
    const AnyClock clock_;
    LedgerBuilder builder_;
    std::unique_ptr<TraceWriter> writer_;
    bool failed_ = false;                                             // the last time, to write the file anew
    std::uint64_t most_bytes_;                                        // of the file, without operators
    std::vector<std::vector<std::uint32_t>> open_operators_;          // tickets by thread, outermost first
    std::array<std::uint32_t, ThreadRings::most> threads_of_rings_;   // by ring: the last thread that began an operator
    std::uint64_t operator_memory_ = 0;                               // bytes
    Ring::Drops over_limit_;
    std::uint64_t events_ = 0;
    bool gave_up_ = false;
    // Scratch.
    std::array<SpanRow, max_step_spans> spans_{};
    std::array<StageRow, max_stages> stages_{};
};

}   // namespace drawpoint
