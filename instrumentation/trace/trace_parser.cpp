#include "trace_parser.hpp"

#include <array>

#include <drawpoint/instrumentation/recorder/records.hpp>

#include "instrumentation/host/host_columns.hpp"
#include "instrumentation/trace/trace_fields.hpp"
#include "instrumentation/trace/trace_keys.hpp"
#include "instrumentation/trace/trace_operators_reader.hpp"
#include "instrumentation/wrapping.hpp"

namespace drawpoint {
namespace {

namespace f = trace_fields;
using protozero::pbf_reader;

/// `a` and a field's number, modulo 2^64.
std::int64_t sum(std::int64_t a, std::uint64_t b) noexcept { return wrapping_sum(a, static_cast<std::int64_t>(b)); }

void check(bool all_named) {
    if (!all_named)
        throw TraceDamage{"a record names what the file does not hold"};
}

void check_stages(std::string_view of, std::size_t count) {
    if (count > max_stages)
        throw TraceDamage{std::string{of} + " of " + std::to_string(count) + " stages; there are at most " +
                          std::to_string(max_stages)};
}

/// A field's number as an enumerator; one of a later version leaves `known` false.
template <class E>
E enumerator(pbf_reader& from, E last, bool& known) {
    const std::uint64_t value = from.get_uint64();
    if (value > static_cast<std::uint64_t>(last)) {
        known = false;
        return last;
    }
    return static_cast<E>(value);
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
            continue;
        }
        if (!builder_)
            throw TraceDamage{"record before the run's"};
        const std::int64_t time_ns = sum(start_ns_, *timestamp);
        switch (key) {
        case bytes_key(f::record::sample): sample(event.get_message(), time_ns); break;
        case bytes_key(f::record::batch): batch(event.get_message(), time_ns); break;
        case bytes_key(f::record::step): step(event.get_message(), time_ns); break;
        case bytes_key(f::record::pass_begin): pass_begin(event.get_message(), time_ns); break;
        case bytes_key(f::record::pass): pass(event.get_message(), time_ns); break;
        case bytes_key(f::record::dropped): dropped(event.get_message()); break;
        case bytes_key(f::record::thinning): thinning(event.get_message(), time_ns); break;
        case bytes_key(f::record::failure): failure(event.get_message()); break;
        case bytes_key(f::record::end_of_data): end_of_data(event.get_message(), time_ns); break;
        case bytes_key(f::record::fact): fact(event.get_message()); break;
        case bytes_key(f::record::pipeline): pipeline(event.get_message()); break;
        case bytes_key(f::record::setting): setting(event.get_message(), time_ns); break;
        case bytes_key(f::record::host): host(event.get_message(), time_ns); break;
        case bytes_key(f::record::operator_begin):
            check(read_operator_begin(event.get_message(), time_ns, *builder_));
            break;
        case bytes_key(f::record::operator_end):
            check(read_operator_end(event.get_message(), time_ns, *builder_));
            break;
        case bytes_key(f::record::allocation): check(read_allocation(event.get_message(), time_ns, *builder_)); break;
        case bytes_key(f::record::stack_sample):
            check(read_stack_sample(event.get_message(), time_ns, *builder_));
            break;
        default: event.skip();
        }
    }
}

void TraceParser::read_packed(pbf_reader& from, std::vector<std::uint64_t>& into) {
    for (const std::uint64_t value : from.get_packed_uint64())
        into.push_back(value);
}

void TraceParser::run(pbf_reader run) {
    std::uint32_t format = 0;
    while (run.next())
        switch (run.tag_and_type()) {
        case varint_key(f::run::format): format = run.get_uint32(); break;
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
    if (builder_)
        throw TraceDamage{"a second run"};
    builder_.emplace(start_ns_);
}

void TraceParser::sample(pbf_reader record, std::int64_t time_ns) {
    SampleRow row;
    std::optional<std::uint64_t> read_begin, read_end;   // before the time
    std::optional<std::uint64_t> other_cpu;
    bool known = true;
    values_.clear();
    gaps_.clear();
    idle_.clear();
    while (record.next())
        switch (record.tag_and_type()) {
        case varint_key(f::sample::index): row.index = record.get_uint64(); break;
        case varint_key(f::sample::epoch): row.epoch = record.get_uint32(); break;
        case varint_key(f::sample::batch): row.batch = record.get_uint32(); break;
        case varint_key(f::sample::slot): row.slot = record.get_uint32(); break;
        case varint_key(f::sample::bytes): row.bytes = record.get_uint64(); break;
        case varint_key(f::sample::cpu_ns): row.cpu_ns = record.get_int64(); break;
        case varint_key(f::sample::run_queue_ns): row.run_queue_ns = record.get_int64(); break;
        case varint_key(f::sample::status): row.status = enumerator(record, SampleStatus::failed, known); break;
        case varint_key(f::sample::pipeline): row.pipeline = static_cast<std::uint8_t>(record.get_uint32()); break;
        case varint_key(f::sample::worker): row.worker = static_cast<std::uint16_t>(record.get_uint32()); break;
        case varint_key(f::sample::samples): row.samples = record.get_uint32(); break;
        case varint_key(f::sample::read_begin_ns): read_begin = record.get_uint64(); break;
        case varint_key(f::sample::read_end_ns): read_end = record.get_uint64(); break;
        case varint_key(f::sample::read_cpu_ns): row.read_cpu_ns = record.get_int64(); break;
        case varint_key(f::sample::read_run_queue_ns): row.read_run_queue_ns = record.get_int64(); break;
        case bytes_key(f::sample::stage_ns): read_packed(record, values_); break;
        case bytes_key(f::sample::gap_ns): read_packed(record, gaps_); break;
        case bytes_key(f::sample::stage_idle_ns): read_packed(record, idle_); break;
        case varint_key(f::sample::other_cpu_ns): other_cpu = record.get_uint64(); break;
        case varint_key(f::early_ns): time_ns = sum(time_ns, -record.get_uint64()); break;
        default: record.skip();
        }
    check_stages("a sample", values_.size());
    if (row.samples == 0)
        throw TraceDamage{"a record of 0 samples"};
    if (!known)
        return;
    row.begin_ns = time_ns;
    if (read_begin)
        row.read_begin_ns = sum(time_ns, -*read_begin);
    if (read_end)
        row.read_end_ns = sum(time_ns, -*read_end);
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

void TraceParser::batch(pbf_reader record, std::int64_t time_ns) {
    BatchRow row;
    bool known = true, never_admitted = false;
    values_.clear();
    while (record.next())
        switch (record.tag_and_type()) {
        case varint_key(f::batch::epoch): row.epoch = record.get_uint32(); break;
        case varint_key(f::batch::batch): row.batch = record.get_uint32(); break;
        case varint_key(f::batch::size): row.size = record.get_uint32(); break;
        case bytes_key(f::batch::stamps): read_packed(record, values_); break;
        case varint_key(f::batch::slot): row.slot = record.get_uint32(); break;
        case varint_key(f::batch::pipeline): row.pipeline = static_cast<std::uint8_t>(record.get_uint32()); break;
        case varint_key(f::batch::status): row.status = enumerator(record, BatchStatus::failed, known); break;
        case varint_key(f::batch::bytes): row.bytes = record.get_uint64(); break;
        case varint_key(f::batch::ready_batches): row.ready_batches = record.get_uint32(); break;
        case varint_key(f::batch::never_admitted): never_admitted = record.get_bool(); break;
        case varint_key(f::batch::collate_worker):
            row.collate_worker = static_cast<std::uint16_t>(record.get_uint32());
            break;
        case varint_key(f::early_ns): time_ns = sum(time_ns, -record.get_uint64()); break;
        default: record.skip();
        }
    if (!known)
        return;
    row.admitted_ns = never_admitted ? no_stamp : time_ns;
    const std::array<std::int64_t*, 8> stamps{&row.first_claim_ns, &row.last_done_ns,      &row.collate_begin_ns,
                                              &row.collate_end_ns, &row.transfer_issue_ns, &row.transfer_done_ns,
                                              &row.offered_ns,     &row.taken_ns};
    for (std::size_t i = 0; i < stamps.size() && i < values_.size(); ++i)
        if (values_[i] != 0) {
            const bool negative = static_cast<std::int64_t>(values_[i]) < 0;
            *stamps[i] = sum(time_ns, values_[i] - (negative ? 0 : 1));
        }
    builder_->batch(row);
}

/// Fills `spans_` from the pairs in `values_`, from `first` on.
void TraceParser::spans_from(std::size_t first, std::int64_t from_ns) {
    spans_.clear();
    for (std::size_t i = first, n = 0; i + 1 < values_.size(); i += 2, ++n) {
        const std::int64_t begin_ns = sum(from_ns, n < gaps_.size() ? gaps_[n] : 0);
        from_ns = sum(begin_ns, values_[i + 1]);
        if (values_[i] < spans_by_number_.size() && spans_by_number_[values_[i]])
            spans_.push_back({*spans_by_number_[values_[i]], begin_ns, static_cast<std::int64_t>(values_[i + 1])});
    }
}

void TraceParser::step(pbf_reader record, std::int64_t time_ns) {
    StepRow row;
    bool known = true;
    values_.clear();
    gaps_.clear();
    constexpr auto loss = protozero::tag_and_type(f::step::loss, protozero::pbf_wire_type::fixed64);
    while (record.next())
        switch (record.tag_and_type()) {
        case varint_key(f::step::epoch): row.epoch = record.get_uint32(); break;
        case varint_key(f::step::batch): row.batch = record.get_uint32(); break;
        case varint_key(f::step::phase): row.phase = enumerator(record, Phase::valid, known); break;
        case varint_key(f::step::step): row.step = record.get_uint32(); break;
        case varint_key(f::step::status): row.status = enumerator(record, StepStatus::failed, known); break;
        case bytes_key(f::step::spans): read_packed(record, values_); break;
        case varint_key(f::step::size): row.size = record.get_uint32(); break;
        case loss: row.loss = record.get_double(); break;
        case bytes_key(f::step::gap_ns): read_packed(record, gaps_); break;
        case varint_key(f::step::cpu_ns): row.cpu_ns = record.get_int64(); break;
        case varint_key(f::step::run_queue_ns): row.run_queue_ns = record.get_int64(); break;
        case varint_key(f::step::between_run_queue_ns): row.between_run_queue_ns = record.get_int64(); break;
        case varint_key(f::early_ns): time_ns = sum(time_ns, -record.get_uint64()); break;
        default: record.skip();
        }
    if (values_.size() < 2)
        throw TraceDamage{"step without times"};
    if (!known)
        return;
    row.draw_begin_ns = time_ns;
    row.draw_ns = static_cast<std::int64_t>(values_[0]);
    row.batch_ns = static_cast<std::int64_t>(values_[1]);
    spans_from(2, time_ns);
    builder_->step(row, spans_);
}

void TraceParser::pass_begin(pbf_reader record, std::int64_t time_ns) {
    PassRow row;
    bool known = true;
    while (record.next())
        switch (record.tag_and_type()) {
        case varint_key(f::pass::kind): row.kind = enumerator(record, PassKind::valid, known); break;
        case varint_key(f::pass::epoch): row.epoch = record.get_uint32(); break;
        case varint_key(f::early_ns): time_ns = sum(time_ns, -record.get_uint64()); break;
        default: record.skip();
        }
    row.begin_ns = time_ns;
    if (known)
        builder_->pass_begin(row);
}

void TraceParser::pass(pbf_reader record, std::int64_t time_ns) {
    PassRow row;
    bool known = true;
    std::uint64_t ns = 0;
    values_.clear();
    gaps_.clear();
    while (record.next())
        switch (record.tag_and_type()) {
        case varint_key(f::pass::kind): row.kind = enumerator(record, PassKind::valid, known); break;
        case varint_key(f::pass::epoch): row.epoch = record.get_uint32(); break;
        case varint_key(f::pass::ns): ns = record.get_uint64(); break;
        case bytes_key(f::pass::spans): read_packed(record, values_); break;
        case bytes_key(f::pass::gap_ns): read_packed(record, gaps_); break;
        case varint_key(f::early_ns): time_ns = sum(time_ns, -record.get_uint64()); break;
        default: record.skip();
        }
    row.end_ns = time_ns;
    row.begin_ns = sum(time_ns, -ns);
    spans_from(0, row.begin_ns);
    if (known)
        builder_->pass(row, spans_);
}

void TraceParser::dropped(pbf_reader record) {
    DroppedRow row{.from_ns = start_ns_, .to_ns = start_ns_};
    while (record.next())
        switch (record.tag_and_type()) {
        case varint_key(f::dropped::records): row.records = record.get_uint64(); break;
        case varint_key(f::dropped::from_ns): row.from_ns = sum(start_ns_, record.get_uint64()); break;
        case varint_key(f::dropped::to_ns): row.to_ns = sum(start_ns_, record.get_uint64()); break;
        case varint_key(f::dropped::ring): row.ring = record.get_uint32(); break;
        default: record.skip();
        }
    builder_->dropped(row);
}

void TraceParser::thinning(pbf_reader record, std::int64_t time_ns) {
    ThinningRow row;
    while (record.next())
        switch (record.tag_and_type()) {
        case varint_key(f::thinning::slices_every): row.slices_every = record.get_uint32(); break;
        case varint_key(f::thinning::samples_every): row.samples_every = record.get_uint32(); break;
        case varint_key(f::early_ns): time_ns = sum(time_ns, -record.get_uint64()); break;
        default: record.skip();
        }
    row.at_ns = time_ns;
    builder_->thinning(row);
}

void TraceParser::failure(pbf_reader record) {
    FailureRow row;
    while (record.next())
        switch (record.tag_and_type()) {
        case varint_key(f::failure::index): row.index = record.get_uint64(); break;
        case varint_key(f::failure::epoch): row.epoch = record.get_uint32(); break;
        case varint_key(f::failure::batch): row.batch = record.get_uint32(); break;
        case varint_key(f::failure::pipeline): row.pipeline = static_cast<std::uint8_t>(record.get_uint32()); break;
        case bytes_key(f::failure::stage): row.stage = record.get_string(); break;
        case bytes_key(f::failure::path): row.path = record.get_string(); break;
        case bytes_key(f::failure::message): row.message = record.get_string(); break;
        default: record.skip();
        }
    builder_->failure(row);
}

void TraceParser::end_of_data(pbf_reader record, std::int64_t time_ns) {
    EndOfDataRow row;
    bool known = true;
    while (record.next())
        switch (record.tag_and_type()) {
        case varint_key(f::end_of_data::epoch): row.epoch = record.get_uint32(); break;
        case varint_key(f::end_of_data::phase): row.phase = enumerator(record, Phase::valid, known); break;
        case varint_key(f::end_of_data::ns): row.ns = record.get_int64(); break;
        case varint_key(f::early_ns): time_ns = sum(time_ns, -record.get_uint64()); break;
        default: record.skip();
        }
    row.begin_ns = time_ns;
    if (known)
        builder_->end_of_data(row);
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
    while (record.next())
        switch (record.tag_and_type()) {
        case bytes_key(f::pipeline::name): row.name = record.get_string(); break;
        case bytes_key(f::pipeline::stages): row.stages.push_back(record.get_string()); break;
        case varint_key(f::pipeline::batch_size): row.batch_size = record.get_uint32(); break;
        case varint_key(f::pipeline::num_workers): row.num_workers = record.get_uint32(); break;
        case varint_key(f::pipeline::prefetch_depth): row.prefetch_depth = record.get_uint32(); break;
        case varint_key(f::pipeline::max_overtakes): row.max_overtakes = record.get_uint32(); break;
        case varint_key(f::pipeline::read_concurrency): row.read_concurrency = record.get_uint32(); break;
        case varint_key(f::pipeline::memory_budget): row.memory_budget = record.get_uint64(); break;
        default: record.skip();
        }
    check_stages("a loader", row.stages.size());
    builder_->pipeline(row);
}

void TraceParser::setting(pbf_reader record, std::int64_t time_ns) {
    SettingRow row;
    while (record.next())
        switch (record.tag_and_type()) {
        case varint_key(f::setting::pipeline): row.pipeline = static_cast<std::uint8_t>(record.get_uint32()); break;
        case varint_key(f::setting::num_workers): row.num_workers = record.get_uint32(); break;
        case varint_key(f::setting::prefetch_depth): row.prefetch_depth = record.get_uint32(); break;
        case varint_key(f::setting::max_overtakes): row.max_overtakes = record.get_uint32(); break;
        case varint_key(f::setting::memory_budget): row.memory_budget = record.get_uint64(); break;
        case varint_key(f::setting::read_concurrency): row.read_concurrency = record.get_uint32(); break;
        case varint_key(f::early_ns): time_ns = sum(time_ns, -record.get_uint64()); break;
        default: record.skip();
        }
    row.at_ns = time_ns;
    builder_->setting(row);
}

void TraceParser::host(pbf_reader record, std::int64_t time_ns) {
    HostRow row;
    while (record.next()) {
        if (record.tag_and_type() == varint_key(f::early_ns))
            time_ns = sum(time_ns, -record.get_uint64());
        else if (record.tag() <= host_columns.size() && record.has_wire_type(protozero::pbf_wire_type::varint))
            row.*host_columns[record.tag() - 1].value = record.get_int64();
        else
            record.skip();
    }
    row.at_ns = time_ns;
    builder_->host(row);
}

}   // namespace drawpoint
