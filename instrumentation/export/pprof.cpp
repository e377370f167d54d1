#include <drawpoint/instrumentation/export/pprof.hpp>

#include <zlib.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <ostream>
#include <stdexcept>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include <protozero/pbf_writer.hpp>

#include <drawpoint/instrumentation/ledger/attribution.hpp>
#include <drawpoint/instrumentation/facts.hpp>

namespace drawpoint {
namespace {

// Field numbers of pprof's profile.proto.
namespace profile {
enum : protozero::pbf_tag_type {
    sample_type = 1,
    sample = 2,
    mapping = 3,
    location = 4,
    function = 5,
    string_table = 6,
    time_nanos = 9,
    duration_nanos = 10,
    period_type = 11,
    period = 12,
    comment = 13,
    default_sample_type = 14
};
}
namespace value_type {
enum : protozero::pbf_tag_type { type = 1, unit = 2 };
}
namespace sample {
enum : protozero::pbf_tag_type { location_id = 1, value = 2, label = 3 };
}
namespace label {
enum : protozero::pbf_tag_type { key = 1, str = 2 };
}
namespace mapping {
enum : protozero::pbf_tag_type { id = 1, filename = 5, has_functions = 7, has_filenames = 8, has_line_numbers = 9 };
}
namespace location {
enum : protozero::pbf_tag_type { id = 1, mapping_id = 2, line = 4 };
}
namespace line {
enum : protozero::pbf_tag_type { function_id = 1, number = 2 };
}
namespace function {
enum : protozero::pbf_tag_type { id = 1, name = 2, system_name = 3, filename = 4, start_line = 5 };
}

/// The profile's string table; its first string must be empty.
class Strings {
public:
    Strings() { position_of(""); }
    std::int64_t position_of(std::string_view text) {
        const auto [at, fresh] = positions_.try_emplace(std::string{text}, static_cast<std::int64_t>(order_.size()));
        if (fresh)
            order_.push_back(&at->first);
        return at->second;
    }
    void write(protozero::pbf_writer& to) const {
        for (const std::string* text : order_)
            to.add_string(profile::string_table, *text);
    }

private:
    std::unordered_map<std::string, std::int64_t> positions_;
    std::vector<const std::string*> order_;
};

template <class Fill>
void add_message(protozero::pbf_writer& to, protozero::pbf_tag_type tag, Fill&& fill) {
    protozero::pbf_writer inner{to, tag};
    fill(inner);
}

void add_value_type(protozero::pbf_writer& to, protozero::pbf_tag_type tag, Strings& strings, std::string_view type,
                    std::string_view unit) {
    add_message(to, tag, [&](protozero::pbf_writer& inner) {
        inner.add_int64(value_type::type, strings.position_of(type));
        inner.add_int64(value_type::unit, strings.position_of(unit));
    });
}

std::int64_t number_of(std::optional<std::string_view> text) {
    std::int64_t number = 0;
    if (text)
        std::from_chars(text->data(), text->data() + text->size(), number);
    return number;
}

/// Writes each used frame as a location and a function. Their id is the frame's position plus one, as 0 is not an id.
void add_frames(protozero::pbf_writer& to, Strings& strings, const Ledger& ledger, const std::vector<bool>& used) {
    const auto text = [&](std::uint32_t name) {
        return strings.position_of(name < ledger.names.size() ? std::string_view{ledger.names[name]} : "");
    };
    for (std::size_t i = 0; i < ledger.frames.size(); ++i) {
        if (!used[i])
            continue;
        const FrameRow& frame = ledger.frames[i];
        const std::uint64_t id = i + 1;
        add_message(to, profile::location, [&](protozero::pbf_writer& inner) {
            inner.add_uint64(location::id, id);
            inner.add_uint64(location::mapping_id, 1);
            add_message(inner, location::line, [&](protozero::pbf_writer& place) {
                place.add_uint64(line::function_id, id);
                place.add_int64(line::number, frame.line);
            });
        });
        add_message(to, profile::function, [&](protozero::pbf_writer& inner) {
            inner.add_uint64(function::id, id);
            inner.add_int64(function::name, text(frame.function));
            inner.add_int64(function::system_name, text(frame.function));
            inner.add_int64(function::filename, text(frame.file));
            inner.add_int64(function::start_line, frame.line);
        });
    }
}

/// Totals of the samples with equal thread, action and stack.
struct Sum {
    std::int64_t count = 0, ns = 0;
};

struct Sums {
    std::map<std::tuple<std::uint32_t, std::string, std::uint32_t>, Sum> by_key;   // thread, action, stack
    std::int64_t first_ns = 0, last_ns = 0;                                        // times of the samples
};

Sums sum_samples(const Ledger& ledger, const Attribution& attribution, std::string_view wanted) {
    Sums sums;
    for (const StackSampleRow& row : ledger.stack_samples) {
        std::string action = attribution.action_of(attribution.at(row.thread, row.at_ns));
        if (!wanted.empty() && action != wanted)
            continue;
        sums.first_ns = sums.by_key.empty() ? row.at_ns : std::min(sums.first_ns, row.at_ns);
        sums.last_ns = sums.by_key.empty() ? row.at_ns : std::max(sums.last_ns, row.at_ns);
        Sum& sum = sums.by_key[{row.thread, std::move(action), row.stack}];
        ++sum.count;
        sum.ns += row.weight_ns;
    }
    return sums;
}

/// Writes the samples and marks the frames of their stacks as used.
void add_samples(protozero::pbf_writer& to, Strings& strings, const Ledger& ledger, const Attribution& attribution,
                 const Sums& sums, std::vector<bool>& used) {
    std::vector<std::uint64_t> places;
    for (const auto& [key, sum] : sums.by_key) {
        const auto& [thread, action, stack] = key;
        places.clear();
        for (std::uint32_t at = stack; at < ledger.stacks.size(); at = ledger.stacks[at].parent) {
            const std::uint32_t frame = ledger.stacks[at].frame;
            if (frame >= used.size())
                continue;
            used[frame] = true;
            places.push_back(frame + std::uint64_t{1});
        }
        add_message(to, profile::sample, [&](protozero::pbf_writer& inner) {
            inner.add_packed_uint64(sample::location_id, places.begin(), places.end());
            const std::int64_t values[]{sum.count, sum.ns};
            inner.add_packed_int64(sample::value, std::begin(values), std::end(values));
            const auto add_label = [&](std::string_view name, std::string_view text) {
                add_message(inner, sample::label, [&](protozero::pbf_writer& pair) {
                    pair.add_int64(label::key, strings.position_of(name));
                    pair.add_int64(label::str, strings.position_of(text));
                });
            };
            add_label("thread", attribution.thread_name(thread));
            if (!action.empty())
                add_label("action", action);
        });
    }
}

/// Writes the only mapping: all frames belong to the process.
void add_mapping(protozero::pbf_writer& to, Strings& strings, const Ledger& ledger) {
    add_message(to, profile::mapping, [&](protozero::pbf_writer& inner) {
        inner.add_uint64(mapping::id, 1);
        inner.add_int64(mapping::filename, strings.position_of(ledger.fact(facts::process_name).value_or("")));
        inner.add_bool(mapping::has_functions, true);
        inner.add_bool(mapping::has_filenames, true);
        inner.add_bool(mapping::has_line_numbers, true);
    });
}

/// Compresses piece by piece: zlib takes at most 4 GB at once.
void write_gzipped(std::string_view bytes, std::ostream& out) {
    struct Deflater : z_stream {
        Deflater() : z_stream{} {
            if (deflateInit2(this, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
                throw std::runtime_error{"pprof: zlib has no memory"};
        }
        Deflater(const Deflater&) = delete;
        Deflater& operator=(const Deflater&) = delete;
        ~Deflater() { deflateEnd(this); }
    } stream;
    std::array<char, 1u << 16> packed;
    for (int result = Z_OK; result != Z_STREAM_END && out;) {
        if (stream.avail_in == 0) {
            const std::string_view piece = bytes.substr(0, packed.size());
            stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(piece.data()));
            stream.avail_in = static_cast<uInt>(piece.size());
            bytes.remove_prefix(piece.size());
        }
        stream.next_out = reinterpret_cast<Bytef*>(packed.data());
        stream.avail_out = static_cast<uInt>(packed.size());
        result = deflate(&stream, bytes.empty() ? Z_FINISH : Z_NO_FLUSH);
        if (result != Z_OK && result != Z_STREAM_END)
            throw std::runtime_error{"pprof: zlib failed"};
        out.write(packed.data(), static_cast<std::streamsize>(packed.size() - stream.avail_out));
    }
}

}   // namespace

void write_pprof(const Ledger& ledger, std::ostream& out, std::string_view wanted) {
    const Attribution attribution{ledger};
    const Sums sums = sum_samples(ledger, attribution, wanted);

    std::string bytes;
    protozero::pbf_writer to{bytes};
    Strings strings;
    add_value_type(to, profile::sample_type, strings, "samples", "count");
    add_value_type(to, profile::sample_type, strings, "cpu", "nanoseconds");
    std::vector<bool> used(ledger.frames.size());
    add_samples(to, strings, ledger, attribution, sums, used);
    add_mapping(to, strings, ledger);
    add_frames(to, strings, ledger, used);
    if (const auto offset = ledger.fact(facts::unix_offset_ns))
        to.add_int64(profile::time_nanos, sums.first_ns + number_of(offset));
    to.add_int64(profile::duration_nanos, sums.last_ns - sums.first_ns);
    add_value_type(to, profile::period_type, strings, "cpu", "nanoseconds");
    if (const std::int64_t rate_hz = number_of(ledger.fact(facts::sampling_rate_asked_hz)); rate_hz > 0)
        to.add_int64(profile::period, 1'000'000'000 / rate_hz);
    if (const auto command = ledger.fact(facts::command))
        to.add_int64(profile::comment, strings.position_of(*command));
    to.add_int64(profile::default_sample_type, strings.position_of("cpu"));
    strings.write(to);

    write_gzipped(bytes, out);
    out.flush();
    if (!out)
        throw std::runtime_error{"pprof: the profile could not be written"};
}

}   // namespace drawpoint
