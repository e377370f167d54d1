#include "trace_parser.hpp"

#include <algorithm>
#include <type_traits>

#include <drawpoint/instrumentation/ledger/records.hpp>

#include "instrumentation/trace/trace_columns.hpp"
#include "instrumentation/trace/trace_fields.hpp"
#include "instrumentation/trace/trace_folded_reader.hpp"
#include "instrumentation/trace/trace_keys.hpp"
#include "instrumentation/trace/trace_operators_reader.hpp"
#include <drawpoint/instrumentation/detail/wrapping.hpp>

namespace drawpoint {
namespace {
namespace f = trace_fields;
using protozero::pbf_reader;

/// The sum of `a` and a field's value, modulo 2^64.
std::int64_t sum(std::int64_t a, std::uint64_t b) noexcept { return wrapping_sum(a, static_cast<std::int64_t>(b)); }

void check(bool all_named) {
    if (!all_named)
        throw TraceDamage{"a record names what the file does not hold"};
}

void check_totals(bool added) {
    if (!added)
        throw TraceDamage{"totals of one thing twice, or of too many"};
}

void check_stages(std::string_view of, std::size_t count) {
    if (count > max_stages)
        throw TraceDamage{std::string{of} + " of " + std::to_string(count) + " stages; there are at most " +
                          std::to_string(max_stages)};
}

}   // namespace

void TraceParser::packet(std::string_view content) {
    pbf_reader packet{content.data(), content.size()};
    std::optional<std::uint64_t> timestamp;
    std::optional<pbf_reader> track_event;
    while (packet.next())
        switch (packet.tag_and_type()) {
        case varint_key(f::packet::timestamp): timestamp = packet.get_uint64(); break;
        case bytes_key(f::packet::event): track_event = packet.get_message(); break;
        case bytes_key(f::packet::definitions):
            if (!builder_)
                throw TraceDamage{"record before the run's"};
            check(read_definitions(packet.get_message(), *builder_));
            ++records_;
            break;
        default: packet.skip();
        }
    if (track_event)
        event(*track_event, timestamp);
}

void TraceParser::event(pbf_reader event, std::optional<std::uint64_t> timestamp) {
    while (event.next()) {
        const std::uint32_t key = event.tag_and_type();
        if (event.tag() < f::record::sample || !event.has_wire_type(protozero::pbf_wire_type::length_delimited)) {
            event.skip();
            continue;
        }
        if (!timestamp)
            throw TraceDamage{"event without timestamp"};
        if (key == bytes_key(f::record::run)) {
            run(event.get_message());
            ++records_;
            continue;
        }
        if (!builder_)
            throw TraceDamage{"record before the run's"};
        const std::int64_t time_ns = sum(start_ns_, *timestamp);
        if (gap_from_ns_ && !gap_to_ns_)
            gap_to_ns_ = time_ns;
        last_ns_ = std::max(last_ns_, time_ns);
        // Reads a record that has only its row's columns.
        const auto add = [&]<class Said, class Row>(Said (LedgerBuilder::*add_row)(Row)) {
            std::remove_cvref_t<Row> row;
            pbf_reader record = event.get_message();
            if (!read_columns(record, row, {start_ns_, time_ns}))
                return;
            if constexpr (std::is_same_v<Said, bool>)
                check(((*builder_).*add_row)(row));
            else
                ((*builder_).*add_row)(row);
        };
        switch (key) {
        case bytes_key(f::record::sample): sample(event.get_message(), time_ns); break;
        case bytes_key(f::record::batch): batch(event.get_message(), time_ns); break;
        case bytes_key(f::record::step): step(event.get_message(), time_ns); break;
        case bytes_key(f::record::pass_begin): pass_begin(event.get_message(), time_ns); break;
        case bytes_key(f::record::pass): pass(event.get_message(), time_ns); break;
        case bytes_key(f::record::dropped): add(&LedgerBuilder::dropped); break;
        case bytes_key(f::record::thinning): add(&LedgerBuilder::thinning); break;
        case bytes_key(f::record::failure): add(&LedgerBuilder::failure); break;
        case bytes_key(f::record::end_of_data): add(&LedgerBuilder::end_of_data); break;
        case bytes_key(f::record::fact): fact(event.get_message()); break;
        case bytes_key(f::record::pipeline): pipeline(event.get_message()); break;
        case bytes_key(f::record::setting): add(&LedgerBuilder::setting); break;
        case bytes_key(f::record::order): add(&LedgerBuilder::order); break;
        case bytes_key(f::record::transfer): add(&LedgerBuilder::transfer); break;
        case bytes_key(f::record::device_step): add(&LedgerBuilder::device_step); break;
        case bytes_key(f::record::host): add(&LedgerBuilder::host); break;
        case bytes_key(f::record::folded):
            check_totals(builder_->folded(read_folded(event.get_message(), start_ns_)));
            break;
        case bytes_key(f::record::operator_begin): add(&LedgerBuilder::operator_begin); break;
        case bytes_key(f::record::operator_end):
            check(read_operator_end(event.get_message(), time_ns, *builder_));
            break;
        case bytes_key(f::record::allocation): add(&LedgerBuilder::allocation); break;
        case bytes_key(f::record::stack_sample): add(&LedgerBuilder::stack_sample); break;
        default: event.skip();
        }
        ++records_;
    }
}

void TraceParser::skip(std::uint64_t bytes) {
    builder_->gap(bytes);
    if (!gap_from_ns_)
        gap_from_ns_ = last_ns_;
}

void TraceParser::account_for(std::uint64_t records) {
    lost_records_ += gap_from_ns_ && records > records_ ? records - records_ : 0;
    records_ = std::max(records_, records);
    if (gap_to_ns_)
        tell_lost();
}

void TraceParser::tell_lost() {
    if (lost_records_ != 0)
        builder_->dropped({.records = lost_records_,
                           .from_ns = *gap_from_ns_,
                           .to_ns = std::max(*gap_from_ns_, gap_to_ns_.value_or(last_ns_)),
                           .ring = damaged_part});
    lost_records_ = 0;
    gap_from_ns_.reset();
    gap_to_ns_.reset();
}

Ledger TraceParser::take() {
    if (!builder_)
        return {};
    if (gap_from_ns_) {   // at the end of the file, nobody knows how many are missing
        lost_records_ = std::max<std::uint64_t>(lost_records_, 1);
        tell_lost();
    }
    return std::move(*builder_).ledger();
}

const Ledger& TraceParser::rows() const noexcept {
    static const Ledger none;
    return builder_ ? builder_->rows() : none;
}

void TraceParser::read_packed(pbf_reader& from, std::vector<std::uint64_t>& into) {
    for (const std::uint64_t value : from.get_packed_uint64())
        into.push_back(value);
}

void TraceParser::run(pbf_reader run) {
    if (builder_)
        throw TraceDamage{"a second run"};
    std::uint32_t format = 0;
    while (run.next())
        switch (run.tag_and_type()) {
        case varint_key(f::run::format): format = run.get_uint32(); break;
        case varint_key(f::run::minor): minor_ = run.get_uint32(); break;
        case varint_key(f::run::start_ns): start_ns_ = run.get_int64(); break;
        case bytes_key(f::run::spans): {
            const std::string name = run.get_string();
            std::optional<Span>& span = spans_by_number_.emplace_back();
            for (std::size_t i = 0; i < span_count; ++i)
                if (name_of(static_cast<Span>(i)) == name)
                    span = static_cast<Span>(i);
            break;
        }
        default: run.skip();
        }
    if (format != f::format)
        throw TraceDamage{"format " + std::to_string(format) + "; this program reads format " +
                          std::to_string(f::format)};
    builder_.emplace(start_ns_, std::size_t{0}, most_bytes_);
    last_ns_ = start_ns_;
}

void TraceParser::sample(pbf_reader record, std::int64_t packet_ns) {
    SampleRow row;
    std::optional<std::uint64_t> other_cpu;
    values_.clear();
    gaps_.clear();
    idle_.clear();
    RecordTimes times{start_ns_, packet_ns};
    const bool known = read_columns(record, row, times, [&](std::uint32_t key, pbf_reader& from) {
        switch (key) {
        case bytes_key(f::sample::stage_ns): read_packed(from, values_); return true;
        case bytes_key(f::sample::gap_ns): read_packed(from, gaps_); return true;
        case bytes_key(f::sample::stage_idle_ns): read_packed(from, idle_); return true;
        case varint_key(f::sample::cpu_ns): row.cpu_ns = from.get_int64(); return true;
        case varint_key(f::sample::other_cpu_ns): other_cpu = from.get_uint64(); return true;
        default: return false;
        }
    });
    check_stages("a sample", values_.size());
    if (row.samples == 0)
        throw TraceDamage{"a record of 0 samples"};
    if (!known)
        return;
    std::int64_t time_ns = row.begin_ns;
    stages_.clear();
    for (std::size_t i = 0; i < values_.size(); ++i) {
        const std::int64_t begin_ns = sum(time_ns, i < gaps_.size() ? gaps_[i] : 0);
        StageRow& stage = stages_.emplace_back(StageRow{begin_ns, static_cast<std::int64_t>(values_[i])});
        time_ns = sum(begin_ns, values_[i]);
        if (i >= idle_.size() || idle_[i] == 0)
            continue;
        stage.cpu_ns = sum(stage.ns, (idle_[i] > std::uint64_t{1} << 63 ? 0u : 1u) - idle_[i]);
        if (other_cpu)
            *other_cpu += static_cast<std::uint64_t>(stage.cpu_ns);
    }
    if (other_cpu)
        row.cpu_ns = static_cast<std::int64_t>(*other_cpu);
    builder_->sample(row, stages_);
}

void TraceParser::batch(pbf_reader record, std::int64_t packet_ns) {
    BatchRow row;
    bool never_admitted = false;
    values_.clear();
    RecordTimes times{start_ns_, packet_ns};
    const bool known = read_columns(record, row, times, [&](std::uint32_t key, pbf_reader& from) {
        switch (key) {
        case bytes_key(f::batch::stamps): read_packed(from, values_); return true;
        case varint_key(f::batch::never_admitted): never_admitted = from.get_bool(); return true;
        default: return false;
        }
    });
    if (!known)
        return;
    if (never_admitted)
        row.admitted_ns = no_stamp;
    std::size_t i = 0;
    const auto place = [&]<class T, class Kind>(const schema::Column<BatchRow, T, Kind>& column) {
        if constexpr (std::is_same_v<Kind, schema::Stamp>) {
            const std::uint64_t since = i < values_.size() ? values_[i++] : 0;
            if (since != 0)
                row.*column.member = sum(times.record_ns, since - (static_cast<std::int64_t>(since) < 0 ? 0 : 1));
        }
    };
    schema::walk<BatchRow>([&](const auto&... columns) { (place(columns), ...); });
    builder_->batch(row);
}

/// Fills `spans_` from the pairs in `values_`, starting at `first`.
void TraceParser::spans_from(std::size_t first, std::int64_t from_ns) {
    spans_.clear();
    for (std::size_t i = first, n = 0; i + 1 < values_.size(); i += 2, ++n) {
        const std::int64_t begin_ns = sum(from_ns, n < gaps_.size() ? gaps_[n] : 0);
        from_ns = sum(begin_ns, values_[i + 1]);
        if (values_[i] < spans_by_number_.size() && spans_by_number_[values_[i]])
            spans_.push_back({*spans_by_number_[values_[i]], begin_ns, static_cast<std::int64_t>(values_[i + 1])});
    }
}

/// Reads a row, and its spans into `values_` and `gaps_`.
template <class Row, class Other>
bool TraceParser::read_with_spans(pbf_reader& record, Row& row, std::int64_t packet_ns, f::Tag spans, f::Tag gaps,
                                  Other other) {
    values_.clear();
    gaps_.clear();
    RecordTimes times{start_ns_, packet_ns};
    return read_columns(record, row, times, [&](std::uint32_t key, pbf_reader& from) {
        if (key == bytes_key(spans))
            read_packed(from, values_);
        else if (key == bytes_key(gaps))
            read_packed(from, gaps_);
        else
            return other(key, from);
        return true;
    });
}

void TraceParser::step(pbf_reader record, std::int64_t packet_ns) {
    StepRow row;
    const bool known = read_with_spans(record, row, packet_ns, f::step::spans, f::step::gap_ns, no_other_field);
    if (values_.size() < 2)
        throw TraceDamage{"step without times"};
    if (!known)
        return;
    row.draw_ns = static_cast<std::int64_t>(values_[0]);
    row.batch_ns = static_cast<std::int64_t>(values_[1]);
    spans_from(2, row.draw_begin_ns);
    builder_->step(row, spans_);
}

void TraceParser::pass_begin(pbf_reader record, std::int64_t packet_ns) {
    PassRow row;
    const bool known = read_columns(record, row, {start_ns_, packet_ns});
    row.begin_ns = row.end_ns;   // the record's time
    if (known)
        builder_->pass_begin(row);
}

void TraceParser::pass(pbf_reader record, std::int64_t packet_ns) {
    PassRow row;
    std::uint64_t ns = 0;
    const bool known = read_with_spans(record, row, packet_ns, f::pass::spans, f::pass::gap_ns,
                                       [&](std::uint32_t key, pbf_reader& from) {
                                           if (key != varint_key(f::pass::ns))
                                               return false;
                                           ns = from.get_uint64();
                                           return true;
                                       });
    row.begin_ns = sum(row.end_ns, -ns);
    spans_from(0, row.begin_ns);
    if (known)
        builder_->pass(row, spans_);
}

void TraceParser::fact(pbf_reader record) {
    std::string key, value;
    while (record.next())
        switch (record.tag_and_type()) {
        case bytes_key(f::fact::key): key = record.get_string(); break;
        case bytes_key(f::fact::value): value = record.get_string(); break;
        default: record.skip();
        }
    builder_->fact(key, value);
}

void TraceParser::pipeline(pbf_reader record) {
    PipelineRow row;
    std::uint32_t number = 0;
    RecordTimes times;
    (void)read_columns(record, row, times, [&](std::uint32_t key, pbf_reader& from) {   // has no unknown enumerators
        if (key != varint_key(f::pipeline::number))
            return false;
        number = from.get_uint32();
        return true;
    });
    check_stages("a loader", row.stages.size());
    if (can_skip())
        check(builder_->pipeline(row, number));
    else
        builder_->pipeline(row);
}

}   // namespace drawpoint
