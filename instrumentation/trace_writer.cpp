#include <instrumentation/trace_writer.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <functional>
#include <random>
#include <system_error>

#include <protozero/pbf_writer.hpp>
#include <protozero/varint.hpp>

#include <instrumentation/trace_block.hpp>
#include <instrumentation/trace_descriptor.hpp>
#include <instrumentation/trace_fields.hpp>
#include <instrumentation/trace_put.hpp>
#include <instrumentation/wrapping.hpp>

namespace drawpoint {
namespace {

namespace f = trace_fields;
using protozero::pbf_writer;

constexpr std::size_t block_bytes = 64u << 10;
constexpr std::chrono::milliseconds block_time{800};   // with the writer's pauses, a kill loses at most a second
constexpr std::size_t most_flows = 4096;
constexpr std::uint64_t ended_flow_bytes = 10;
// What keeps a sample of four stages within 200 bytes and a step with its batch within 600: the longest are shown.
constexpr std::size_t most_stage_slices = 3, most_inner_slices = 7;
constexpr std::size_t step_bytes = 600, step_frame_bytes = 150,
                      slice_bytes = 34;   // frame: step, draw, batch, without record

enum WorkerName : std::uint32_t { name_sample = 1, name_stage };
enum LaneName : std::uint32_t { name_in_flight = 1, name_batch };
enum InstantName : std::uint32_t { name_run = 1, name_fact, name_pipeline, name_failure, name_dropped, name_thinned };
/// The number of `name` in `names`, where it is added if need be.
std::uint32_t number_of(std::vector<std::string>& names, std::string_view name) {
    const auto at = std::find(names.begin(), names.end(), name);
    const auto number = static_cast<std::uint32_t>(at - names.begin()) + 1;
    if (at == names.end())
        names.emplace_back(name);
    return number;
}

std::vector<std::string> all_loop_names() {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < span_count; ++i)
        number_of(names, name_of(static_cast<Span>(i)));
    for (std::size_t i = 0; i < action_count; ++i)
        number_of(names, name_of(static_cast<Action>(i)));
    for (const StepStatus status : {StepStatus::cancelled, StepStatus::failed})
        number_of(names, name_of(status));
    return names;
}

/// `values`, unless all are 0.
std::span<const std::uint64_t> unless_zero(std::span<const std::uint64_t> values) {
    return std::all_of(values.begin(), values.end(), [](std::uint64_t v) { return v == 0; })
               ? std::span<const std::uint64_t>{}
               : values;
}

}   // namespace

TraceWriter::TraceWriter(const std::filesystem::path& path, const StartTimes& start)
    : path_{path},
      start_ns_{start.start_ns},
      loop_names_{all_loop_names()},
      lane_names_{"in flight", "batch"},
      instant_names_{"run", "fact", "pipeline", "failure", "records dropped", "thinned"},
      worker_names_{"sample", "stage"} {
    fd_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd_ < 0)
        throw std::system_error(errno, std::generic_category(), path.string());
    std::random_device random;
    const auto random_bits = [&](unsigned bits) {
        return ((std::uint64_t{random()} << 32) | random()) & ((std::uint64_t{1} << bits) - 1);
    };
    uuid_base_ = random_bits(47) << 16;
    flow_base_ = random_bits(20) << 44;

    // First block: the clocks, the records' declaration, the tracks.
    std::string clocks;
    for (const auto& [id, ns] : std::array<std::pair<std::uint32_t, std::uint64_t>, 4>{
             {{f::relative_clock, 0}, {3, start.monotonic_ns}, {6, start.boottime_ns}, {1, start.realtime_ns}}}) {
        pbf_writer snapshot{clocks};
        pbf_writer clock{snapshot, 1};
        clock.add_uint32(1, id);
        clock.add_uint64(2, ns);
    }
    for (const auto& [tag, content] :
         {std::pair{f::packet::clock_snapshot, clocks}, std::pair{f::packet::extensions, std::string{}}}) {
        packet_.clear();
        pbf_writer packet{packet_};
        packet.add_uint32(f::packet::sequence, 1);
        if (tag == f::packet::clock_snapshot)
            packet.add_message(tag, content);
        else
            pbf_writer{packet, tag}.add_message(1, reinterpret_cast<const char*>(trace_descriptor),
                                                sizeof trace_descriptor);
        pbf_writer{block_}.add_message(f::trace_packet, packet_);
    }
    process_ = new_track("drawpoint", 0);
    loop_ = new_sequence(new_track("loop", rank_loop), loop_names_);
    ready_batches_ = new_sequence(new_track("ready_batches", rank_ready_batches, 2), no_names_);
    ready_bytes_ = new_sequence(new_track("ready_bytes", rank_ready_bytes, 3), no_names_);
    instants_ = new_sequence(loop_.track, instant_names_);
    write_run();
    end_block();
}

TraceWriter::~TraceWriter() {
    if (fd_ >= 0)
        ::close(fd_);
}

void TraceWriter::write_run() {
    record_.clear();
    pbf_writer record{record_};
    record.add_uint32(f::run::format, f::format);
    put(record, f::run::minor, f::minor);
    record.add_int64(f::run::start_ns, start_ns_);
    for (std::size_t i = 0; i < span_count; ++i) {
        const std::string_view name = name_of(static_cast<Span>(i));
        record.add_string(f::run::spans, name.data(), name.size());
    }
    instant(name_run, {}, f::record::run);
}

// ---- packets ----

std::int64_t TraceWriter::relative(std::int64_t stamp_ns) const noexcept {
    return static_cast<std::int64_t>(wrapping_difference(stamp_ns, start_ns_));
}

TraceWriter::Place TraceWriter::place(Sequence& sequence, std::int64_t stamp_ns) noexcept {
    const std::int64_t exact = relative(stamp_ns);
    sequence.last_ns = std::max(sequence.last_ns, exact);
    return {static_cast<std::uint64_t>(sequence.last_ns), wrapping_difference(sequence.last_ns, exact)};
}

std::uint64_t TraceWriter::new_track(std::string_view name, int rank, int counter_unit) {
    const std::uint64_t uuid = uuid_base_ + ++next_uuid_;
    packet_.clear();
    {
        pbf_writer packet{packet_};
        packet.add_uint32(f::packet::sequence, 1);
        pbf_writer track{packet, f::packet::track};
        track.add_uint64(1, uuid);
        if (process_ == 0) {
            pbf_writer process{track, 3};
            process.add_int32(1, static_cast<std::int32_t>(::getpid()));
            process.add_string(6, name.data(), name.size());
        } else {
            track.add_string(2, name.data(), name.size());
            track.add_uint64(5, process_);
            if (counter_unit != 0)
                pbf_writer{track, 8}.add_enum(3, counter_unit);
            track.add_int32(12, rank);
        }
        if (process_ == 0)
            track.add_enum(11, 3);   // children stand in the order of their ranks
    }
    pbf_writer{block_}.add_message(f::trace_packet, packet_);
    return uuid;
}

TraceWriter::Sequence TraceWriter::new_sequence(std::uint64_t track, const std::vector<std::string>& names) noexcept {
    return {.id = next_sequence_++, .track = track, .names = &names};
}

void TraceWriter::open(Sequence& sequence) {
    if (sequence.opened && sequence.names_written == sequence.names->size())
        return;
    packet_.clear();
    {
        pbf_writer packet{packet_};
        packet.add_uint32(f::packet::sequence, sequence.id);
        packet.add_uint32(f::packet::flags, f::packet::cleared);
        if (!sequence.opened)
            packet.add_bool(f::packet::first_on_sequence, true);
        {
            pbf_writer defaults{packet, f::packet::defaults};
            defaults.add_uint32(f::packet::clock, f::relative_clock);
            pbf_writer{defaults, f::packet::event}.add_uint64(f::event::track, sequence.track);
        }
        pbf_writer interned{packet, f::packet::interned};
        std::uint64_t number = 0;
        for (const std::string& name : *sequence.names) {
            pbf_writer entry{interned, 2};
            entry.add_uint64(1, ++number);
            entry.add_string(2, name);
        }
    }
    pbf_writer{block_}.add_message(f::trace_packet, packet_);
    sequence.opened = true;
    sequence.names_written = sequence.names->size();
}

// Begins and ends without a record are most of a file's packets: all lengths are below 128, so they are composed by
// hand, byte for byte what pbf_writer makes.
void TraceWriter::bare(Sequence& sequence, std::uint8_t type, std::uint32_t name, std::int64_t stamp_ns) {
    constexpr auto key = [](f::Tag tag, protozero::pbf_wire_type wire) {
        return static_cast<char>(protozero::tag_and_type(tag, wire));
    };
    using enum protozero::pbf_wire_type;
    std::array<char, 48> bytes;
    char* at = bytes.data() + 2;
    *at++ = key(f::packet::timestamp, varint);
    at += protozero::add_varint_to_buffer(at, place(sequence, stamp_ns).timestamp_ns);
    *at++ = key(f::packet::sequence, varint);
    at += protozero::add_varint_to_buffer(at, sequence.id);
    if (name != 0) {
        *at++ = key(f::packet::flags, varint);
        *at++ = static_cast<char>(f::packet::needs_names);
    }
    *at++ = key(f::packet::event, length_delimited);
    char* const length = at++;
    *at++ = key(f::event::type, varint);
    *at++ = static_cast<char>(type);
    if (name != 0) {
        *at++ = key(f::event::name, varint);
        at += protozero::add_varint_to_buffer(at, name);
    }
    *length = static_cast<char>(at - length - 1);
    bytes[0] = key(f::trace_packet, length_delimited);
    bytes[1] = static_cast<char>(at - bytes.data() - 2);
    block_.append(bytes.data(), at);
}

/// An event with `record_` (unless its tag is 0) and the flows in `flows_` and `ended_flows_`.
void TraceWriter::event(Sequence& sequence, std::uint8_t type, std::uint32_t name, Place at, std::uint32_t record_tag) {
    event_.clear();
    pbf_writer event{event_};
    event.add_uint32(f::event::type, type);
    put(event, f::event::name, name);
    for (const std::uint64_t flow : flows_)
        event.add_fixed64(f::event::flows, flow);
    for (const std::uint64_t flow : ended_flows_)
        event.add_fixed64(f::event::ended_flows, flow);
    flows_.clear();
    ended_flows_.clear();
    if (record_tag != 0) {
        event.add_message(record_tag, record_);
        ++records_;
    }
    add_event(sequence, at, name != 0);
}

/// A packet of the event in `event_`.
void TraceWriter::add_event(const Sequence& sequence, Place at, bool needs_names) {
    packet_.clear();
    pbf_writer packet{packet_};
    packet.add_uint64(f::packet::timestamp, at.timestamp_ns);
    packet.add_uint32(f::packet::sequence, sequence.id);
    if (needs_names)
        packet.add_uint32(f::packet::flags, f::packet::needs_names);
    packet.add_message(f::packet::event, event_);
    pbf_writer{block_}.add_message(f::trace_packet, packet_);
}

void TraceWriter::instant(std::uint32_t name, Place at, std::uint32_t record_tag) {
    open(instants_);
    event(instants_, f::event::instant, name, at, record_tag);
    end_record();
}

void TraceWriter::counter(Sequence& sequence, std::int64_t stamp_ns, std::uint64_t value,
                          std::optional<std::uint64_t>& last) {
    if (last == value)
        return;
    last = value;
    open(sequence);
    event_.clear();
    pbf_writer event{event_};
    event.add_uint32(f::event::type, f::event::counter);
    event.add_int64(f::event::counter_value, static_cast<std::int64_t>(value));
    add_event(sequence, place(sequence, stamp_ns), false);
}

TraceWriter::Sequence& TraceWriter::worker(std::uint16_t number) {
    if (workers_.size() <= number)
        workers_.resize(number + 1u);
    std::optional<Sequence>& sequence = workers_[number];
    if (!sequence)
        sequence = new_sequence(new_track("worker " + std::to_string(number), rank_workers + number), worker_names_);
    return *sequence;
}

TraceWriter::Sequence& TraceWriter::lane(std::uint8_t pipeline, std::uint32_t slot) {
    const auto [at, added] = lanes_.try_emplace({pipeline, slot});
    if (added)
        at->second = new_sequence(new_track("batches", rank_batches), lane_names_);
    return at->second;
}

template <class Value>
void TraceWriter::bound(std::map<BatchKey, Value>& flows) {
    while (flows.size() > most_flows)
        flows.erase(flows.begin());
}

// ---- rows ----

void TraceWriter::sample(const SampleRow& row, std::span<const StageRow> stages, bool slices) {
    if (fd_ < 0)
        return;
    Sequence& sequence = worker(row.worker);
    open(sequence);
    const std::size_t before = block_.size();
    const Place at = place(sequence, row.begin_ns);

    values_.clear();
    gaps_.clear();
    std::int64_t reached_ns = row.begin_ns;
    for (const StageRow& stage : stages) {
        gaps_.push_back(wrapping_difference(stage.begin_ns, reached_ns));
        values_.push_back(static_cast<std::uint64_t>(stage.ns));
        reached_ns = wrapping_sum(stage.begin_ns, stage.ns);
    }
    record_.clear();
    pbf_writer record{record_};
    put(record, f::sample::index, row.index);
    put(record, f::sample::epoch, row.epoch);
    put(record, f::sample::batch, row.batch);
    put(record, f::sample::slot, row.slot);
    put(record, f::sample::bytes, row.bytes);
    if (row.cpu_ns)
        record.add_uint64(f::sample::cpu_ns, static_cast<std::uint64_t>(*row.cpu_ns));
    if (row.run_queue_ns)
        record.add_uint64(f::sample::run_queue_ns, static_cast<std::uint64_t>(*row.run_queue_ns));
    put(record, f::sample::status, row.status);
    put(record, f::sample::pipeline, row.pipeline);
    put(record, f::sample::worker, row.worker);
    put(record, f::sample::stage_ns, values_);
    put(record, f::sample::gap_ns, unless_zero(gaps_));
    if (row.samples != 1)
        record.add_uint32(f::sample::samples, row.samples);
    if (row.read_begin_ns != no_stamp)
        record.add_uint64(f::sample::read_begin_ns, wrapping_difference(row.begin_ns, row.read_begin_ns));
    if (row.read_end_ns != no_stamp)
        record.add_uint64(f::sample::read_end_ns, wrapping_difference(row.begin_ns, row.read_end_ns));
    put(record, f::early_ns, at.early_ns);

    if (slices) {
        const std::uint64_t flow = flow_base_ | next_flow_++;
        flows_.push_back(flow);
        sample_flows_[{row.pipeline, row.epoch, row.batch}].push_back({flow, at.timestamp_ns});
        bound(sample_flows_);
    }
    event(sequence, f::event::slice_begin, name_sample, at, f::record::sample);
    if (slices) {
        std::vector<std::uint64_t>& lengths = values_;
        std::sort(lengths.begin(), lengths.end(), std::greater{});
        const std::uint64_t shortest =
            lengths.size() > most_stage_slices ? std::max(lengths[most_stage_slices - 1], std::uint64_t{1}) : 1;
        std::size_t shown = 0;
        for (std::size_t i = 0; i < stages.size(); ++i) {
            if (static_cast<std::uint64_t>(stages[i].ns) < shortest || shown == most_stage_slices)
                continue;
            ++shown;
            const bool named = row.pipeline < stage_names_.size() && i < stage_names_[row.pipeline].size();
            bare(sequence, f::event::slice_begin, named ? stage_names_[row.pipeline][i] : +name_stage,
                 stages[i].begin_ns);
            bare(sequence, f::event::slice_end, 0, wrapping_sum(stages[i].begin_ns, stages[i].ns));
        }
    }
    bare(sequence, f::event::slice_end, 0, reached_ns);
    detail_bytes_ += block_.size() - before + (slices ? ended_flow_bytes : 0);
    end_record();
}

void TraceWriter::batch(const BatchRow& row, bool slices) {
    if (fd_ < 0)
        return;
    Sequence& sequence = lane(row.pipeline, row.slot);
    open(sequence);
    const std::size_t before = block_.size();
    std::size_t flow_bytes = 0;
    const bool admitted = row.admitted_ns != no_stamp;
    const std::int64_t base_ns = admitted ? row.admitted_ns : start_ns_;
    const Place at = place(sequence, base_ns);
    values_.clear();
    std::int64_t end_ns = base_ns;
    for (const std::int64_t stamp : {row.first_claim_ns, row.last_done_ns, row.collate_begin_ns, row.collate_end_ns,
                                     row.transfer_issue_ns, row.transfer_done_ns, row.offered_ns, row.taken_ns}) {
        const std::uint64_t since = wrapping_difference(stamp, base_ns);
        values_.push_back(stamp == no_stamp ? 0 : since + (static_cast<std::int64_t>(since) >= 0 ? 1 : 0));
        end_ns = std::max(end_ns, stamp);
    }
    record_.clear();
    pbf_writer record{record_};
    put(record, f::batch::epoch, row.epoch);
    put(record, f::batch::batch, row.batch);
    put(record, f::batch::size, row.size);
    put(record, f::batch::stamps, values_);
    put(record, f::batch::slot, row.slot);
    put(record, f::batch::pipeline, row.pipeline);
    put(record, f::batch::status, row.status);
    put(record, f::batch::bytes, row.bytes);
    put(record, f::batch::ready_batches, row.ready_batches);
    if (!admitted)
        record.add_bool(f::batch::never_admitted, true);
    put(record, f::early_ns, at.early_ns);
    event(sequence, f::event::slice_begin, name_in_flight, at, f::record::batch);

    const auto samples = sample_flows_.find({row.pipeline, row.epoch, row.batch});
    if (slices && row.offered_ns != no_stamp && row.status != BatchStatus::abandoned) {
        const Place offered = place(sequence, row.offered_ns);
        if (samples != sample_flows_.end())
            for (const Flow& flow : samples->second)
                if (flow.timestamp_ns <= offered.timestamp_ns)   // a reader loses a flow that ends before it begins
                    ended_flows_.push_back(flow.id);
        if (row.status == BatchStatus::taken) {
            const std::uint64_t flow = flow_base_ | next_flow_++;
            flows_.push_back(flow);
            batch_flows_[{0, row.epoch, row.batch}] = {flow, offered.timestamp_ns};
            bound(batch_flows_);
        }
        flow_bytes = ended_flows_.size() * ended_flow_bytes;
        event(sequence, f::event::instant, name_batch, offered, 0);
    }
    if (samples != sample_flows_.end())
        sample_flows_.erase(samples);
    bare(sequence, f::event::slice_end, 0, row.taken_ns != no_stamp ? row.taken_ns : end_ns);
    if (row.taken_ns != no_stamp) {
        counter(ready_batches_, row.taken_ns, row.ready_batches, last_ready_batches_);
        // A loader's batches are about equal, and only this one's bytes are known.
        counter(ready_bytes_, row.taken_ns, row.ready_batches * row.bytes, last_ready_bytes_);
    }
    batch_bytes_ = block_.size() - before - flow_bytes;
    end_record();
}

/// Adds pieces to `record_`, and the gaps between them where there is one.
void TraceWriter::add_spans(std::uint32_t spans_tag, std::uint32_t gaps_tag, std::int64_t from_ns,
                            std::span<const SpanRow> spans) {
    gaps_.clear();
    for (const SpanRow& piece : spans) {
        gaps_.push_back(wrapping_difference(piece.begin_ns, from_ns));
        values_.push_back(static_cast<std::uint64_t>(piece.span));
        values_.push_back(static_cast<std::uint64_t>(piece.ns));
        from_ns = wrapping_sum(piece.begin_ns, piece.ns);
    }
    pbf_writer record{record_};
    put(record, spans_tag, values_);
    put(record, gaps_tag, unless_zero(gaps_));
}

void TraceWriter::step(const StepRow& row, std::span<const SpanRow> spans) {
    if (fd_ < 0)
        return;
    open(loop_);
    const Place at = place(loop_, row.draw_begin_ns);
    record_.clear();
    pbf_writer record{record_};
    put(record, f::step::epoch, row.epoch);
    put(record, f::step::batch, row.batch);
    put(record, f::step::phase, row.phase);
    put(record, f::step::step, row.step);
    put(record, f::step::status, row.status);
    put(record, f::step::size, row.size);
    if (row.loss)
        record.add_double(f::step::loss, *row.loss);
    put(record, f::early_ns, at.early_ns);
    values_ = {static_cast<std::uint64_t>(row.draw_ns), static_cast<std::uint64_t>(row.batch_ns)};
    add_spans(f::step::spans, f::step::gap_ns, row.draw_begin_ns, spans);

    const auto name = [&](auto what) { return number_of(loop_names_, name_of(what)); };
    const std::int64_t draw_end_ns = wrapping_sum(row.draw_begin_ns, row.draw_ns),
                       end_ns = wrapping_sum(draw_end_ns, row.batch_ns);
    find_step_slices(row, spans, inner_);
    const std::size_t taken = std::exchange(batch_bytes_, 0) + step_frame_bytes + record_.size();
    keep_longest(inner_, std::min(most_inner_slices, taken < step_bytes ? (step_bytes - taken) / slice_bytes : 0));
    event(loop_, f::event::slice_begin, name(Action::step), at, f::record::step);
    bare(loop_, f::event::slice_begin, name(Action::draw), row.draw_begin_ns);
    inner_slices(StepSlice::Where::draw);
    bare(loop_, f::event::slice_end, 0, draw_end_ns);
    if (row.size != 0 || row.batch_ns != 0) {
        const Place batch_at = place(loop_, draw_end_ns);
        const auto flow = batch_flows_.find({0, row.epoch, row.batch});
        if (flow != batch_flows_.end()) {
            if (flow->second.timestamp_ns <= batch_at.timestamp_ns)
                ended_flows_.push_back(flow->second.id);
            batch_flows_.erase(flow);
        }
        event(loop_, f::event::slice_begin, name(Action::batch), batch_at, 0);
        inner_slices(StepSlice::Where::batch);
        bare(loop_, f::event::slice_end, 0, end_ns);
    }
    if (row.status != StepStatus::complete)
        bare(loop_, f::event::instant, name(row.status), end_ns);
    bare(loop_, f::event::slice_end, 0, end_ns);
    inner_slices(StepSlice::Where::after);
    end_record();
}

void TraceWriter::inner_slices(StepSlice::Where where) {
    for (const StepSlice& slice : inner_)
        if (slice.where == where) {
            bare(loop_, f::event::slice_begin, number_of(loop_names_, slice.name), slice.begin_ns);
            bare(loop_, f::event::slice_end, 0, slice.end_ns);
        }
}

void TraceWriter::pass_begin(const PassRow& row) {
    if (fd_ < 0)
        return;
    open(loop_);
    const Place at = place(loop_, row.begin_ns);
    record_.clear();
    pbf_writer record{record_};
    put(record, f::pass::kind, row.kind);
    put(record, f::pass::epoch, row.epoch);
    put(record, f::early_ns, at.early_ns);
    event(loop_, f::event::slice_begin, number_of(loop_names_, name_of(row.kind)), at, f::record::pass_begin);
    open_passes_.push_back(row);
    end_record();
}

void TraceWriter::pass(const PassRow& row, std::span<const SpanRow> spans) {
    if (fd_ < 0)
        return;
    open(loop_);
    // A begin or an end may have been dropped: the slices must nest all the same.
    const auto opened = std::find_if(open_passes_.rbegin(), open_passes_.rend(), [&](const PassRow& open) {
        return open.kind == row.kind && open.epoch == row.epoch && open.begin_ns == row.begin_ns;
    });
    const bool is_open = opened != open_passes_.rend();
    if (is_open) {
        for (auto inner = open_passes_.rbegin(); inner != opened; ++inner)
            bare(loop_, f::event::slice_end, 0, row.end_ns);
        open_passes_.erase(std::next(opened).base(), open_passes_.end());
    }
    const Place at = place(loop_, row.end_ns);
    record_.clear();
    values_.clear();
    add_spans(f::pass::spans, f::pass::gap_ns, row.begin_ns, spans);
    pbf_writer record{record_};
    put(record, f::pass::kind, row.kind);
    put(record, f::pass::epoch, row.epoch);
    put(record, f::pass::ns, wrapping_difference(row.end_ns, row.begin_ns));
    put(record, f::early_ns, at.early_ns);
    if (is_open)
        event(loop_, f::event::slice_end, 0, at, f::record::pass);
    else
        event(loop_, f::event::instant, number_of(loop_names_, name_of(row.kind)), at, f::record::pass);
    end_record();
}

void TraceWriter::end_of_data(const EndOfDataRow& row) {
    if (fd_ < 0)
        return;
    open(loop_);
    const Place at = place(loop_, row.begin_ns);
    record_.clear();
    pbf_writer record{record_};
    put(record, f::end_of_data::epoch, row.epoch);
    put(record, f::end_of_data::phase, row.phase);
    put(record, f::end_of_data::ns, static_cast<std::uint64_t>(row.ns));
    put(record, f::early_ns, at.early_ns);
    event(loop_, f::event::slice_begin, number_of(loop_names_, name_of(Action::end_of_data)), at,
          f::record::end_of_data);
    bare(loop_, f::event::slice_end, 0, wrapping_sum(row.begin_ns, row.ns));
    end_record();
}

void TraceWriter::dropped(const DroppedRow& row) {
    if (fd_ < 0)
        return;
    record_.clear();
    pbf_writer record{record_};
    put(record, f::dropped::records, row.records);
    record.add_int64(f::dropped::from_ns, relative(row.from_ns));
    record.add_int64(f::dropped::to_ns, relative(row.to_ns));
    put(record, f::dropped::ring, row.ring);
    dropped_ += row.records;
    instant(name_dropped, place(instants_, row.to_ns), f::record::dropped);
}

void TraceWriter::thinning(const ThinningRow& row) {
    if (fd_ < 0)
        return;
    const Place at = place(instants_, row.at_ns);
    record_.clear();
    pbf_writer record{record_};
    put(record, f::thinning::slices_every, row.slices_every);
    put(record, f::thinning::samples_every, row.samples_every);
    put(record, f::early_ns, at.early_ns);
    instant(name_thinned, at, f::record::thinning);
}

void TraceWriter::pipeline(const PipelineRow& row, std::int64_t now_ns) {
    if (fd_ < 0)
        return;
    std::vector<std::uint32_t> numbers;
    record_.clear();
    pbf_writer record{record_};
    record.add_string(f::pipeline::name, row.name);
    for (const std::string& stage : row.stages) {
        record.add_string(f::pipeline::stages, stage);
        numbers.push_back(number_of(worker_names_, stage.empty() ? "stage" : stage));
    }
    stage_names_.push_back(std::move(numbers));
    put(record, f::pipeline::batch_size, row.batch_size);
    put(record, f::pipeline::num_workers, row.num_workers);
    put(record, f::pipeline::prefetch_depth, row.prefetch_depth);
    put(record, f::pipeline::max_overtakes, row.max_overtakes);
    instant(name_pipeline, place(instants_, now_ns), f::record::pipeline);
}

void TraceWriter::failure(const FailureRow& row, std::int64_t now_ns) {
    if (fd_ < 0)
        return;
    record_.clear();
    pbf_writer record{record_};
    put(record, f::failure::index, row.index);
    put(record, f::failure::epoch, row.epoch);
    put(record, f::failure::batch, row.batch);
    put(record, f::failure::pipeline, row.pipeline);
    record.add_string(f::failure::stage, row.stage);
    record.add_string(f::failure::path, row.path);
    record.add_string(f::failure::message, row.message);
    instant(name_failure, place(instants_, now_ns), f::record::failure);
}

void TraceWriter::fact(std::string_view key, std::string_view value, std::int64_t now_ns) {
    if (fd_ < 0)
        return;
    record_.clear();
    pbf_writer record{record_};
    record.add_string(f::fact::key, key.data(), key.size());
    record.add_string(f::fact::value, value.data(), value.size());
    instant(name_fact, place(instants_, now_ns), f::record::fact);
}

// ---- blocks ----

void TraceWriter::end_record() {
    if (block_.size() >= block_bytes)
        end_block();
}

void TraceWriter::end_block_if_due(std::chrono::steady_clock::time_point now) {
    if (block_.empty())
        return;
    if (!block_begin_)
        block_begin_ = now;
    else if (now - *block_begin_ >= block_time)
        end_block();
}

void TraceWriter::end_block() {
    BlockHeader header{.offset = file_bytes_, .records = records_, .dropped = dropped_, .bytes = block_.size()};
    header.crc32 = header.checksum(block_);
    block_.insert(0, header.encoded());
    write_all(block_);
    block_.clear();
    block_begin_.reset();
}

void TraceWriter::write_all(std::string_view bytes) {
    while (fd_ >= 0 && !bytes.empty()) {
        const ssize_t written = ::write(fd_, bytes.data(), bytes.size());
        if (written >= 0) {
            file_bytes_ += static_cast<std::uint64_t>(written);
            bytes.remove_prefix(static_cast<std::size_t>(written));
        } else if (errno != EINTR) {
            error_ = path_.string() + ": " + std::generic_category().message(errno);
            ::close(fd_);
            fd_ = -1;
        }
    }
}

void TraceWriter::close() {
    if (fd_ < 0)
        return;
    for (; !open_passes_.empty(); open_passes_.pop_back())
        bare(loop_, f::event::slice_end, 0, wrapping_sum(start_ns_, loop_.last_ns));
    end_operator_slices();
    if (!block_.empty())
        end_block();
    if (fd_ >= 0 && ::close(fd_) != 0)
        error_ = path_.string() + ": " + std::generic_category().message(errno);
    fd_ = -1;
}

}   // namespace drawpoint
