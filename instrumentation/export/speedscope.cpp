#include <drawpoint/instrumentation/export/speedscope.hpp>

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <drawpoint/instrumentation/export/chrome.hpp>
#include <drawpoint/instrumentation/facts.hpp>
#include "instrumentation/export/text_stream.hpp"
#include "instrumentation/export/tracks.hpp"
#include <drawpoint/instrumentation/detail/wrapping.hpp>

namespace drawpoint {
namespace {

class Speedscope {
public:
    Speedscope(const Ledger& ledger, std::ostream& out) : ledger_{ledger}, out_{out} {}

    void write() {
        const auto version = ledger_.fact(facts::version), command = ledger_.fact(facts::command);
        out_.put("{\"$schema\": \"https://www.speedscope.app/file-format-schema.json\",\n");
        out_.print(" \"exporter\": {},\n", json_string(version ? fmt::format("drawpoint@{}", *version) : "drawpoint"));
        out_.print(" \"name\": {},\n", json_string(command.value_or("drawpoint")));
        out_.put(" \"activeProfileIndex\": 0,\n \"profiles\": [");
        for_each_track(ledger_, [this](const Track& track) { profile(track); });
        out_.put("],\n \"shared\": {\"frames\": [");
        for (std::size_t i = 0; i < frames_.size(); ++i)
            out_.print("{}{{\"name\": {}}}", i == 0 ? "\n" : ",\n", json_string(frames_[i]));
        out_.put("]}}\n");
        out_.flush();
    }

private:
    void profile(const Track& track) {
        std::int64_t end_ns = track.slices.front().end_ns;
        for (const TrackSlice& slice : track.slices)
            end_ns = std::max(end_ns, slice.end_ns);
        out_.print("{}{{\"type\": \"evented\", \"name\": {}, \"unit\": \"nanoseconds\", \"startValue\": {}, "
                   "\"endValue\": {}, \"events\": [",
                   first_profile_ ? "\n" : ",\n", json_string(track.name), since_start(track.slices.front().begin_ns),
                   since_start(end_ns));
        first_profile_ = false;
        first_event_ = true;
        std::vector<const TrackSlice*> open;
        const auto close = [&] {
            event('C', *open.back(), open.back()->end_ns);
            open.pop_back();
        };
        for (const TrackSlice& slice : track.slices) {
            while (!open.empty() && open.back()->end_ns <= slice.begin_ns)
                close();
            event('O', slice, slice.begin_ns);
            open.push_back(&slice);
        }
        while (!open.empty())
            close();
        out_.put("]}");
    }

    void event(char type, const TrackSlice& slice, std::int64_t at_ns) {
        const auto [frame, is_new] = numbers_.try_emplace(slice.name, frames_.size());
        if (is_new)
            frames_.push_back(slice.name);
        out_.print("{}{{\"type\": \"{}\", \"frame\": {}, \"at\": {}}}", first_event_ ? "\n" : ",\n", type,
                   frame->second, since_start(at_ns));
        first_event_ = false;
    }

    [[nodiscard]] std::int64_t since_start(std::int64_t at_ns) const noexcept {
        return static_cast<std::int64_t>(wrapping_difference(at_ns, ledger_.start_ns));
    }

    const Ledger& ledger_;
    TextStream out_;
    std::unordered_map<std::string_view, std::size_t> numbers_;   // index in frames_
    std::vector<std::string_view> frames_;
    bool first_profile_ = true, first_event_ = true;
};

}   // namespace

void write_speedscope(const Ledger& ledger, std::ostream& out) { Speedscope{ledger, out}.write(); }

}   // namespace drawpoint
