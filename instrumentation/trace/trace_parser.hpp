#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <protozero/pbf_reader.hpp>

#include "instrumentation/ledger/ledger_builder.hpp"

namespace drawpoint {

/// Thrown for a part of the file that can't be read; says which and why.
struct TraceDamage {
    std::string what;
};

/// Builds a ledger from the packets of a recording.
class TraceParser {
public:
    /// `most_bytes`: as `LedgerBuilder`'s.
    explicit TraceParser(std::uint64_t most_bytes = 0) : most_bytes_{most_bytes} {}

    /// Reads one packet, given without its tag and length. Throws TraceDamage and protozero::exception.
    void packet(std::string_view content);
    [[nodiscard]] bool has_run() const noexcept { return builder_.has_value(); }
    /// Whether records name what they refer to so that reading can go on behind a damaged part.
    [[nodiscard]] bool can_skip() const noexcept { return minor_ >= 5; }
    /// The next `bytes` are damaged.
    void skip(std::uint64_t bytes);
    /// All packets up to a place were given, but for the damaged ones; the file has this many records up to there.
    void account_for(std::uint64_t records);
    /// The ledger; call it last.
    [[nodiscard]] Ledger take();
    /// A copy of it, as far as it came.
    [[nodiscard]] Ledger ledger() const { return builder_ ? builder_->ledger() : Ledger{}; }
    /// As `LedgerBuilder::rows()`.
    [[nodiscard]] const Ledger& rows() const noexcept;

private:
    void tell_lost();
    void event(protozero::pbf_reader, std::optional<std::uint64_t> timestamp);
    void run(protozero::pbf_reader);
    void sample(protozero::pbf_reader, std::int64_t time_ns);
    void batch(protozero::pbf_reader, std::int64_t time_ns);
    void step(protozero::pbf_reader, std::int64_t time_ns);
    void pass_begin(protozero::pbf_reader, std::int64_t time_ns);
    void pass(protozero::pbf_reader, std::int64_t time_ns);
    void fact(protozero::pbf_reader);
    void pipeline(protozero::pbf_reader);

    void read_packed(protozero::pbf_reader&, std::vector<std::uint64_t>& into);
    template <class Row, class Other>
    bool read_with_spans(protozero::pbf_reader&, Row&, std::int64_t time_ns, protozero::pbf_tag_type spans,
                         protozero::pbf_tag_type gaps, Other);
    void spans_from(std::size_t first, std::int64_t from_ns);

    const std::uint64_t most_bytes_;
    std::int64_t start_ns_ = 0;
    std::uint32_t minor_ = 0;
    std::uint64_t records_ = 0;                             // seen or accounted for
    std::int64_t last_ns_ = no_stamp;                       // of the last event
    std::optional<std::int64_t> gap_from_ns_, gap_to_ns_;   // around damaged parts that are not told yet
    std::uint64_t lost_records_ = 0;                        // in them
    std::optional<LedgerBuilder> builder_;
    std::vector<std::optional<Span>> spans_by_number_;
    std::vector<std::uint64_t> values_, gaps_, idle_;
    std::vector<SpanRow> spans_;
    std::vector<StageRow> stages_;
};

}   // namespace drawpoint
