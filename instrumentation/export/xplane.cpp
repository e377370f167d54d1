#include <drawpoint/instrumentation/export/xplane.hpp>

#include <charconv>
#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>
#include <unordered_map>

#include <protozero/pbf_writer.hpp>

#include <drawpoint/instrumentation/facts.hpp>
#include <drawpoint/instrumentation/text/printable.hpp>
#include "instrumentation/export/tracks.hpp"
#include <drawpoint/instrumentation/detail/wrapping.hpp>

// Field numbers are those of XProf's xplane.proto.
namespace drawpoint {
namespace {

using protozero::pbf_writer;
using Kind = TrackSlice::Kind;

namespace plane {
enum : protozero::pbf_tag_type { name = 2, lines = 3, event_metadata = 4, stat_metadata = 5 };
}
namespace line {
enum : protozero::pbf_tag_type { id = 1, name = 2, timestamp_ns = 3, events = 4 };
}
namespace event {
enum : protozero::pbf_tag_type { metadata_id = 1, offset_ps = 2, duration_ps = 3, stats = 4 };
}
namespace stat {
enum : protozero::pbf_tag_type { metadata_id = 1, int64_value = 4, str_value = 5 };
}
enum StatName : std::int64_t { root = 1, step_num = 2, stage_name = 3 };

class XPlane {
public:
    explicit XPlane(const Ledger& ledger) : ledger_{ledger}, plane_{bytes_} {
        if (const auto text = ledger.fact(facts::unix_offset_ns))
            std::from_chars(text->data(), text->data() + text->size(), unix_offset_ns_);
    }

    void write(std::ostream& out) {
        plane_.add_string(plane::name, "/host:CPU");
        for_each_track(ledger_, [this](const Track& track) {
            const Kind first = track.slices.front().kind;
            if (track.device < 0 && first != Kind::device_step && first != Kind::copy)
                add_line(track);
        });
        for (const auto& [name, id] : names_)
            add_metadata(plane::event_metadata, id, printable(name));
        add_metadata(plane::stat_metadata, root, "_r");
        add_metadata(plane::stat_metadata, step_num, "step_num");
        add_metadata(plane::stat_metadata, stage_name, "_ipl_stage_name");
        std::string space;
        pbf_writer{space}.add_message(1, bytes_);
        out.write(space.data(), static_cast<std::streamsize>(space.size()));
        out.flush();
    }

private:
    void add_metadata(protozero::pbf_tag_type map, std::int64_t id, std::string_view name) {
        pbf_writer entry{plane_, map};
        entry.add_int64(1, id);
        pbf_writer value{entry, 2};
        value.add_int64(1, id);
        value.add_string(2, name.data(), name.size());
    }

    void add_line(const Track& track) {
        const std::int64_t begin_ns = track.slices.front().begin_ns;
        pbf_writer to{plane_, plane::lines};
        to.add_int64(line::id, static_cast<std::int64_t>(track.tid));
        to.add_string(line::name, printable(track.name));
        to.add_int64(line::timestamp_ns, wrapping_sum(begin_ns, unix_offset_ns_));
        for (const TrackSlice& slice : track.slices)
            add_event(to, slice, begin_ns);
    }

    void add_event(pbf_writer& to, const TrackSlice& slice, std::int64_t base_ns) {
        const bool is_step = slice.kind == Kind::step || slice.name.starts_with("ProfilerStep#");
        const bool is_draw = slice.kind == Kind::draw || slice.name.starts_with("enumerate(DataLoader)#");
        pbf_writer one{to, line::events};
        one.add_int64(event::metadata_id, id_of(slice.name));
        one.add_int64(event::offset_ps, picoseconds(base_ns, slice.begin_ns));
        one.add_int64(event::duration_ps, picoseconds(slice.begin_ns, slice.end_ns));
        if (is_step) {
            add_stat(one, root, 1);
            add_stat(one, step_num, step_of(slice));
        }
        if (is_draw) {
            pbf_writer value{one, event::stats};
            value.add_int64(stat::metadata_id, stage_name);
            value.add_string(stat::str_value, "draw");
        }
    }

    static std::int64_t picoseconds(std::int64_t from_ns, std::int64_t to_ns) noexcept {
        return static_cast<std::int64_t>(wrapping_difference(to_ns, from_ns) * 1000);
    }

    static void add_stat(pbf_writer& to, StatName name, std::int64_t number) {
        pbf_writer value{to, event::stats};
        value.add_int64(stat::metadata_id, name);
        value.add_int64(stat::int64_value, number);
    }

    [[nodiscard]] std::int64_t step_of(const TrackSlice& slice) const {
        if (slice.kind == Kind::step)
            return ledger_.steps[slice.row].step;
        std::int64_t number = 0;
        const std::string_view text = slice.name.substr(slice.name.find('#') + 1);
        std::from_chars(text.data(), text.data() + text.size(), number);
        return number;
    }

    std::int64_t id_of(std::string_view name) {
        return names_.try_emplace(std::string{name}, static_cast<std::int64_t>(names_.size()) + 1).first->second;
    }

    const Ledger& ledger_;
    std::string bytes_;
    pbf_writer plane_;
    std::unordered_map<std::string, std::int64_t> names_;
    std::int64_t unix_offset_ns_ = 0;
};

}   // namespace

void write_xplane(const Ledger& ledger, std::ostream& out) { XPlane{ledger}.write(out); }

}   // namespace drawpoint
