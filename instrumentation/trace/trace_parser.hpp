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
    /// Reads one packet, given without its tag and length. Throws TraceDamage and protozero::exception.
    void packet(std::string_view content);
    [[nodiscard]] bool has_run() const noexcept { return builder_.has_value(); }
    [[nodiscard]] Ledger ledger() const { return builder_ ? builder_->ledger() : Ledger{}; }

private:
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

    std::int64_t start_ns_ = 0;
    std::optional<LedgerBuilder> builder_;
    std::vector<std::optional<Span>> spans_by_number_;
    std::vector<std::uint64_t> values_, gaps_, idle_;
    std::vector<SpanRow> spans_;
    std::vector<StageRow> stages_;
};

}   // namespace drawpoint
