#include <drawpoint/instrumentation/trace.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <string_view>
#include <system_error>
#include <vector>

#include <protozero/pbf_reader.hpp>

#include <instrumentation/ledger_builder.hpp>
#include <instrumentation/trace_block.hpp>
#include <instrumentation/trace_fields.hpp>
#include <instrumentation/trace_operators.hpp>
#include <instrumentation/wrapping.hpp>

namespace drawpoint {
namespace {

namespace f = trace_fields;
using protozero::pbf_reader;

constexpr std::size_t most_packet_bytes = 16u << 20, most_block_bytes = 64u << 20;

constexpr std::uint32_t varint(f::Tag tag) noexcept {
    return protozero::tag_and_type(tag, protozero::pbf_wire_type::varint);
}
constexpr std::uint32_t bytes(f::Tag tag) noexcept {
    return protozero::tag_and_type(tag, protozero::pbf_wire_type::length_delimited);
}

/// `a` and a field's number, modulo 2^64.
std::int64_t sum(std::int64_t a, std::uint64_t b) noexcept { return wrapping_sum(a, static_cast<std::int64_t>(b)); }

/// A place in the file that can't be read, and why.
struct Damage {
    std::string what;
};

void check(bool all_named) {
    if (!all_named)
        throw Damage{"a record names what the file does not hold"};
}

std::string read_file(const std::filesystem::path& path) {
    const auto fail = [&](int code) { throw std::system_error(code, std::generic_category(), path.string()); };
    struct File {
        int fd;
        ~File() { ::close(fd); }
    };
    const File file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
    if (file.fd < 0)
        fail(errno);
    struct stat status{};
    if (::fstat(file.fd, &status) != 0)
        fail(errno);
    if (S_ISDIR(status.st_mode))
        fail(EISDIR);
    if (!S_ISREG(status.st_mode))
        throw TraceError(path.string() + ": not a recording (not a regular file)");
    std::string content(static_cast<std::size_t>(status.st_size), '\0');
    std::size_t got = 0;
    while (got < content.size()) {
        const ssize_t n = ::read(file.fd, content.data() + got, content.size() - got);
        if (n < 0 && errno != EINTR)
            fail(errno);
        if (n == 0)
            break;
        got += n > 0 ? static_cast<std::size_t>(n) : 0;
    }
    content.resize(got);
    return content;
}

class Parser {
public:
    /// One packet, without its tag and length. Throws Damage and protozero::exception.
    void packet(std::string_view content);
    [[nodiscard]] bool has_run() const noexcept { return builder_.has_value(); }
    [[nodiscard]] Ledger ledger() const { return builder_ ? builder_->ledger() : Ledger{}; }

private:
    void event(pbf_reader, std::optional<std::uint64_t> timestamp);
    void run(pbf_reader);
    void sample(pbf_reader, std::int64_t time_ns);
    void batch(pbf_reader, std::int64_t time_ns);
    void step(pbf_reader, std::int64_t time_ns);
    void pass_begin(pbf_reader, std::int64_t time_ns);
    void pass(pbf_reader, std::int64_t time_ns);
    void dropped(pbf_reader);
    void thinning(pbf_reader, std::int64_t time_ns);
    void failure(pbf_reader);
    void end_of_data(pbf_reader, std::int64_t time_ns);
    void fact(pbf_reader);
    void pipeline(pbf_reader);

    void read_packed(pbf_reader&, std::vector<std::uint64_t>& into);
    void spans_from(std::size_t first, std::int64_t from_ns);

    std::int64_t start_ns_ = 0;
    std::optional<LedgerBuilder> builder_;
    std::vector<std::optional<Span>> spans_by_number_;
    std::vector<std::uint64_t> values_, gaps_;
    std::vector<SpanRow> spans_;
    std::vector<StageRow> stages_;
};

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

void Parser::packet(std::string_view content) {
    pbf_reader packet{content.data(), content.size()};
    std::optional<std::uint64_t> timestamp;
    std::optional<pbf_reader> track_event;
    while (packet.next())
        switch (packet.tag_and_type()) {
        case varint(f::packet::timestamp): timestamp = packet.get_uint64(); break;
        case bytes(f::packet::event): track_event = packet.get_message(); break;
        case bytes(f::packet::definitions):
            if (!builder_)
                throw Damage{"record before the run's"};
            check(read_definitions(packet.get_message(), *builder_));
            break;
        default: packet.skip();
        }
    if (track_event)
        event(*track_event, timestamp);
}

void Parser::event(pbf_reader event, std::optional<std::uint64_t> timestamp) {
    while (event.next()) {
        const std::uint32_t key = event.tag_and_type();
        if (event.tag() < f::record::sample || !event.has_wire_type(protozero::pbf_wire_type::length_delimited)) {
            event.skip();
            continue;
        }
        if (!timestamp)
            throw Damage{"event without timestamp"};
        if (key == bytes(f::record::run)) {
            run(event.get_message());
            continue;
        }
        if (!builder_)
            throw Damage{"record before the run's"};
        const std::int64_t time_ns = sum(start_ns_, *timestamp);
        switch (key) {
        case bytes(f::record::sample): sample(event.get_message(), time_ns); break;
        case bytes(f::record::batch): batch(event.get_message(), time_ns); break;
        case bytes(f::record::step): step(event.get_message(), time_ns); break;
        case bytes(f::record::pass_begin): pass_begin(event.get_message(), time_ns); break;
        case bytes(f::record::pass): pass(event.get_message(), time_ns); break;
        case bytes(f::record::dropped): dropped(event.get_message()); break;
        case bytes(f::record::thinning): thinning(event.get_message(), time_ns); break;
        case bytes(f::record::failure): failure(event.get_message()); break;
        case bytes(f::record::end_of_data): end_of_data(event.get_message(), time_ns); break;
        case bytes(f::record::fact): fact(event.get_message()); break;
        case bytes(f::record::pipeline): pipeline(event.get_message()); break;
        case bytes(f::record::operator_begin):
            check(read_operator_begin(event.get_message(), time_ns, *builder_));
            break;
        case bytes(f::record::operator_end): check(read_operator_end(event.get_message(), time_ns, *builder_)); break;
        case bytes(f::record::allocation): check(read_allocation(event.get_message(), time_ns, *builder_)); break;
        case bytes(f::record::stack_sample): check(read_stack_sample(event.get_message(), time_ns, *builder_)); break;
        default: event.skip();
        }
    }
}

void Parser::read_packed(pbf_reader& from, std::vector<std::uint64_t>& into) {
    for (const std::uint64_t value : from.get_packed_uint64())
        into.push_back(value);
}

void Parser::run(pbf_reader run) {
    std::uint32_t format = 0;
    while (run.next())
        switch (run.tag_and_type()) {
        case varint(f::run::format): format = run.get_uint32(); break;
        case varint(f::run::start_ns): start_ns_ = run.get_int64(); break;
        case bytes(f::run::spans): {
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
        throw Damage{"format " + std::to_string(format) + "; this program reads format " + std::to_string(f::format)};
    if (builder_)
        throw Damage{"a second run"};
    builder_.emplace(start_ns_);
}

void Parser::sample(pbf_reader record, std::int64_t time_ns) {
    SampleRow row;
    std::optional<std::uint64_t> read_begin, read_end;   // before the time
    bool known = true;
    values_.clear();
    gaps_.clear();
    while (record.next())
        switch (record.tag_and_type()) {
        case varint(f::sample::index): row.index = record.get_uint64(); break;
        case varint(f::sample::epoch): row.epoch = record.get_uint32(); break;
        case varint(f::sample::batch): row.batch = record.get_uint32(); break;
        case varint(f::sample::slot): row.slot = record.get_uint32(); break;
        case varint(f::sample::bytes): row.bytes = record.get_uint64(); break;
        case varint(f::sample::cpu_ns): row.cpu_ns = record.get_int64(); break;
        case varint(f::sample::run_queue_ns): row.run_queue_ns = record.get_int64(); break;
        case varint(f::sample::status): row.status = enumerator(record, SampleStatus::failed, known); break;
        case varint(f::sample::pipeline): row.pipeline = static_cast<std::uint8_t>(record.get_uint32()); break;
        case varint(f::sample::worker): row.worker = static_cast<std::uint16_t>(record.get_uint32()); break;
        case varint(f::sample::samples): row.samples = record.get_uint32(); break;
        case varint(f::sample::read_begin_ns): read_begin = record.get_uint64(); break;
        case varint(f::sample::read_end_ns): read_end = record.get_uint64(); break;
        case bytes(f::sample::stage_ns): read_packed(record, values_); break;
        case bytes(f::sample::gap_ns): read_packed(record, gaps_); break;
        case varint(f::early_ns): time_ns = sum(time_ns, -record.get_uint64()); break;
        default: record.skip();
        }
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
        stages_.push_back({begin_ns, static_cast<std::int64_t>(values_[i])});
        time_ns = sum(begin_ns, values_[i]);
    }
    builder_->sample(row, stages_);
}

void Parser::batch(pbf_reader record, std::int64_t time_ns) {
    BatchRow row;
    bool known = true, never_admitted = false;
    values_.clear();
    while (record.next())
        switch (record.tag_and_type()) {
        case varint(f::batch::epoch): row.epoch = record.get_uint32(); break;
        case varint(f::batch::batch): row.batch = record.get_uint32(); break;
        case varint(f::batch::size): row.size = record.get_uint32(); break;
        case bytes(f::batch::stamps): read_packed(record, values_); break;
        case varint(f::batch::slot): row.slot = record.get_uint32(); break;
        case varint(f::batch::pipeline): row.pipeline = static_cast<std::uint8_t>(record.get_uint32()); break;
        case varint(f::batch::status): row.status = enumerator(record, BatchStatus::failed, known); break;
        case varint(f::batch::bytes): row.bytes = record.get_uint64(); break;
        case varint(f::batch::ready_batches): row.ready_batches = record.get_uint32(); break;
        case varint(f::batch::never_admitted): never_admitted = record.get_bool(); break;
        case varint(f::early_ns): time_ns = sum(time_ns, -record.get_uint64()); break;
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
void Parser::spans_from(std::size_t first, std::int64_t from_ns) {
    spans_.clear();
    for (std::size_t i = first, n = 0; i + 1 < values_.size(); i += 2, ++n) {
        const std::int64_t begin_ns = sum(from_ns, n < gaps_.size() ? gaps_[n] : 0);
        from_ns = sum(begin_ns, values_[i + 1]);
        if (values_[i] < spans_by_number_.size() && spans_by_number_[values_[i]])
            spans_.push_back({*spans_by_number_[values_[i]], begin_ns, static_cast<std::int64_t>(values_[i + 1])});
    }
}

void Parser::step(pbf_reader record, std::int64_t time_ns) {
    StepRow row;
    bool known = true;
    values_.clear();
    gaps_.clear();
    constexpr auto loss = protozero::tag_and_type(f::step::loss, protozero::pbf_wire_type::fixed64);
    while (record.next())
        switch (record.tag_and_type()) {
        case varint(f::step::epoch): row.epoch = record.get_uint32(); break;
        case varint(f::step::batch): row.batch = record.get_uint32(); break;
        case varint(f::step::phase): row.phase = enumerator(record, Phase::valid, known); break;
        case varint(f::step::step): row.step = record.get_uint32(); break;
        case varint(f::step::status): row.status = enumerator(record, StepStatus::failed, known); break;
        case bytes(f::step::spans): read_packed(record, values_); break;
        case varint(f::step::size): row.size = record.get_uint32(); break;
        case loss: row.loss = record.get_double(); break;
        case bytes(f::step::gap_ns): read_packed(record, gaps_); break;
        case varint(f::early_ns): time_ns = sum(time_ns, -record.get_uint64()); break;
        default: record.skip();
        }
    if (values_.size() < 2)
        throw Damage{"step without times"};
    if (!known)
        return;
    row.draw_begin_ns = time_ns;
    row.draw_ns = static_cast<std::int64_t>(values_[0]);
    row.batch_ns = static_cast<std::int64_t>(values_[1]);
    spans_from(2, time_ns);
    builder_->step(row, spans_);
}

void Parser::pass_begin(pbf_reader record, std::int64_t time_ns) {
    PassRow row;
    bool known = true;
    while (record.next())
        switch (record.tag_and_type()) {
        case varint(f::pass::kind): row.kind = enumerator(record, PassKind::valid, known); break;
        case varint(f::pass::epoch): row.epoch = record.get_uint32(); break;
        case varint(f::early_ns): time_ns = sum(time_ns, -record.get_uint64()); break;
        default: record.skip();
        }
    row.begin_ns = time_ns;
    if (known)
        builder_->pass_begin(row);
}

void Parser::pass(pbf_reader record, std::int64_t time_ns) {
    PassRow row;
    bool known = true;
    std::uint64_t ns = 0;
    values_.clear();
    gaps_.clear();
    while (record.next())
        switch (record.tag_and_type()) {
        case varint(f::pass::kind): row.kind = enumerator(record, PassKind::valid, known); break;
        case varint(f::pass::epoch): row.epoch = record.get_uint32(); break;
        case varint(f::pass::ns): ns = record.get_uint64(); break;
        case bytes(f::pass::spans): read_packed(record, values_); break;
        case bytes(f::pass::gap_ns): read_packed(record, gaps_); break;
        case varint(f::early_ns): time_ns = sum(time_ns, -record.get_uint64()); break;
        default: record.skip();
        }
    row.end_ns = time_ns;
    row.begin_ns = sum(time_ns, -ns);
    spans_from(0, row.begin_ns);
    if (known)
        builder_->pass(row, spans_);
}

void Parser::dropped(pbf_reader record) {
    DroppedRow row{.from_ns = start_ns_, .to_ns = start_ns_};
    while (record.next())
        switch (record.tag_and_type()) {
        case varint(f::dropped::records): row.records = record.get_uint64(); break;
        case varint(f::dropped::from_ns): row.from_ns = sum(start_ns_, record.get_uint64()); break;
        case varint(f::dropped::to_ns): row.to_ns = sum(start_ns_, record.get_uint64()); break;
        case varint(f::dropped::ring): row.ring = record.get_uint32(); break;
        default: record.skip();
        }
    builder_->dropped(row);
}

void Parser::thinning(pbf_reader record, std::int64_t time_ns) {
    ThinningRow row;
    while (record.next())
        switch (record.tag_and_type()) {
        case varint(f::thinning::slices_every): row.slices_every = record.get_uint32(); break;
        case varint(f::thinning::samples_every): row.samples_every = record.get_uint32(); break;
        case varint(f::early_ns): time_ns = sum(time_ns, -record.get_uint64()); break;
        default: record.skip();
        }
    row.at_ns = time_ns;
    builder_->thinning(row);
}

void Parser::failure(pbf_reader record) {
    FailureRow row;
    while (record.next())
        switch (record.tag_and_type()) {
        case varint(f::failure::index): row.index = record.get_uint64(); break;
        case varint(f::failure::epoch): row.epoch = record.get_uint32(); break;
        case varint(f::failure::batch): row.batch = record.get_uint32(); break;
        case varint(f::failure::pipeline): row.pipeline = static_cast<std::uint8_t>(record.get_uint32()); break;
        case bytes(f::failure::stage): row.stage = record.get_string(); break;
        case bytes(f::failure::path): row.path = record.get_string(); break;
        case bytes(f::failure::message): row.message = record.get_string(); break;
        default: record.skip();
        }
    builder_->failure(row);
}

void Parser::end_of_data(pbf_reader record, std::int64_t time_ns) {
    EndOfDataRow row;
    bool known = true;
    while (record.next())
        switch (record.tag_and_type()) {
        case varint(f::end_of_data::epoch): row.epoch = record.get_uint32(); break;
        case varint(f::end_of_data::phase): row.phase = enumerator(record, Phase::valid, known); break;
        case varint(f::end_of_data::ns): row.ns = record.get_int64(); break;
        case varint(f::early_ns): time_ns = sum(time_ns, -record.get_uint64()); break;
        default: record.skip();
        }
    row.begin_ns = time_ns;
    if (known)
        builder_->end_of_data(row);
}

void Parser::fact(pbf_reader record) {
    std::string key, value;
    while (record.next())
        switch (record.tag_and_type()) {
        case bytes(f::fact::key): key = record.get_string(); break;
        case bytes(f::fact::value): value = record.get_string(); break;
        default: record.skip();
        }
    builder_->fact(key, value);
}

void Parser::pipeline(pbf_reader record) {
    PipelineRow row;
    while (record.next())
        switch (record.tag_and_type()) {
        case bytes(f::pipeline::name): row.name = record.get_string(); break;
        case bytes(f::pipeline::stages): row.stages.push_back(record.get_string()); break;
        case varint(f::pipeline::batch_size): row.batch_size = record.get_uint32(); break;
        case varint(f::pipeline::num_workers): row.num_workers = record.get_uint32(); break;
        case varint(f::pipeline::prefetch_depth): row.prefetch_depth = record.get_uint32(); break;
        case varint(f::pipeline::max_overtakes): row.max_overtakes = record.get_uint32(); break;
        default: record.skip();
        }
    builder_->pipeline(row);
}

/// Parses a block's whole packets. Returns where the first one not whole begins: the content's size, or a cut.
std::size_t parse_packets(Parser& parser, std::string_view content, std::size_t block_at) {
    std::size_t at = 0;
    while (at < content.size()) {
        const auto place = [&] { return "byte " + std::to_string(block_at + at) + ": "; };
        try {
            if (content[at] != static_cast<char>(bytes(f::trace_packet)))
                throw Damage{"no packet here"};
            const char* next = content.data() + at + 1;
            const char* const end = content.data() + content.size();
            std::uint64_t length = 0;
            try {
                length = protozero::decode_varint(&next, end);
            } catch (const protozero::end_of_buffer_exception&) {
                return at;
            }
            if (length > most_packet_bytes)
                throw Damage{"a packet of " + std::to_string(length) + " bytes"};
            if (length > static_cast<std::uint64_t>(end - next))
                return at;
            parser.packet({next, static_cast<std::size_t>(length)});
            at = static_cast<std::size_t>(next - content.data()) + static_cast<std::size_t>(length);
        } catch (const Damage& damage) {
            throw Damage{place() + damage.what};
        } catch (const protozero::exception& error) {
            throw Damage{place() + error.what()};
        }
    }
    return at;
}

/// Parses blocks until the end, a cut (returned as what to say) or damage (thrown).
std::string parse_blocks(Parser& parser, std::string_view content) {
    for (std::size_t at = 0; at < content.size();) {
        const auto damaged_to = [&](std::size_t end) {
            return Damage{"bytes " + std::to_string(at) + " to " + std::to_string(end) + " are damaged (checksum)"};
        };
        const ParsedHeader parsed = parse_header(content.substr(at, max_header_bytes), at);
        if (parsed.state == ParsedHeader::State::wrong)
            throw at == 0 ? Damage{"byte 0: no block header here"}
                          : damaged_to(std::min(at + max_header_bytes, content.size()));
        const std::size_t begin = at + parsed.length;
        if (parsed.state == ParsedHeader::State::cut)
            return "cut at byte " + std::to_string(content.size());
        if (parsed.header.bytes > most_block_bytes)
            throw Damage{"byte " + std::to_string(at) + ": a block of " + std::to_string(parsed.header.bytes) +
                         " bytes"};
        const std::string_view packets = content.substr(begin, parsed.header.bytes);
        // The end of a cut block can't be verified; its header is, and what came before the cut was written as one.
        if (packets.size() < parsed.header.bytes) {
            (void)parse_packets(parser, packets, begin);
            return "cut at byte " + std::to_string(content.size());
        }
        if (parsed.header.checksum(packets) != parsed.header.crc32)
            throw damaged_to(begin + packets.size());
        if (parse_packets(parser, packets, begin) != packets.size())
            throw Damage{"bytes " + std::to_string(begin) + " to " + std::to_string(begin + packets.size()) +
                         ": the last packet does not end with the block"};
        at = begin + packets.size();
    }
    return content.empty() ? "cut at byte 0" : "";
}

}   // namespace

ReadTrace read_trace(const std::filesystem::path& path) {
    const std::string content = read_file(path);
    Parser parser;
    ReadTrace read;
    std::string place;
    try {
        place = parse_blocks(parser, content);
    } catch (const Damage& damage) {
        if (!parser.has_run()) {
            const bool ours = parse_header(std::string_view{content}.substr(0, max_header_bytes), 0).state ==
                              ParsedHeader::State::whole;
            throw TraceError(path.string() + ": " + (ours ? "" : "not a recording, or damaged: ") + damage.what);
        }
        place = damage.what;
        read.damaged = true;
    }
    if (!place.empty())
        read.warning = path.string() + ": " + place;
    read.ledger = parser.ledger();
    return read;
}

}   // namespace drawpoint
