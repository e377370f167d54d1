#include "torch/fake_accelerator/timeline.hpp"

#include <algorithm>
#include <vector>

#include <c10/util/Exception.h>

namespace drawpoint::fake_accelerator {

Timeline& timeline() noexcept {
    static Timeline& one = *new Timeline;   // outlives every tensor
    return one;
}

void Timeline::reset(const Settings& to) {
    settle(end());
    const Counters before = counters;
    settings = to;
    counters = {
        .device_blocks = before.device_blocks, .device_bytes = before.device_bytes, .host_blocks = before.host_blocks};
    now_ = 0;
    engine_free_ = {};
    calls_ = 0;
    streams_.clear();
}

std::int64_t Timeline::now_ns() {
    if (settings.clock)
        now_ = std::max(now_, settings.clock());
    return now_;
}

void Timeline::call(std::uint64_t Counters::* kind, std::int64_t ns) {
    if (settings.fails_after >= 0 && calls_ >= static_cast<std::uint64_t>(settings.fails_after)) {
        effects_.clear();   // a broken device does nothing more
        throw c10::AcceleratorError{{__func__, __FILE__, __LINE__}, 1, "the fake accelerator is broken"};
    }
    ++calls_;
    ++counters.calls;
    ++(counters.*kind);
    advance_to(now_ns() + ns);
}

void Timeline::advance_to(std::int64_t ns) {
    if (ns > now_ns() && settings.on_advance)
        settings.on_advance(ns - now_);
    now_ = std::max(now_, ns);
    settle(now_ns());
}

void Timeline::wait_until(std::int64_t ns) {
    if (ns > now_ns())
        ++counters.host_waits;
    advance_to(ns);
}

void Timeline::settle(std::int64_t ns) {
    while (!effects_.empty() && effects_.begin()->first.first <= ns) {
        const std::function<void()> effect = std::move(effects_.begin()->second);
        effects_.erase(effects_.begin());
        effect();
    }
}

std::pair<std::int64_t, std::int64_t> Timeline::enqueue(std::int64_t stream, std::int64_t ns, Work work) {
    Stream& s = streams_[stream];
    std::erase_if(s.ends, [this](std::int64_t end) { return end <= now_; });
    if (s.ends.size() >= settings.launch_queue)
        wait_until(s.ends.front());
    std::int64_t begin = std::max(now_, s.tail);
    std::int64_t& engine_free = engine_free_[static_cast<std::size_t>(work)];
    if (work != Work::kernel)
        begin = std::max(begin, engine_free);
    const std::int64_t end = begin + ns;
    engine_free = end;

    s.tail = end;
    s.ends.push_back(end);
    if (work == Work::kernel && settings.on_work)
        settings.on_work(stream, begin, end, false);
    return {begin, end};
}

std::int64_t Timeline::tail(std::int64_t stream) { return std::max(now_, streams_[stream].tail); }

void Timeline::hold(std::int64_t stream, std::int64_t until_ns) {
    std::int64_t& tail = streams_[stream].tail;
    if (const std::int64_t from_ns = std::max(tail, now_); until_ns > from_ns && settings.on_work)
        settings.on_work(stream, from_ns, until_ns, true);
    tail = std::max(tail, until_ns);
}

std::int64_t Timeline::end() const noexcept {
    std::int64_t end = now_;
    for (const auto& [number, stream] : streams_)
        end = std::max(end, stream.tail);
    return end;
}

void reset(const Settings& settings) {
    timeline().reset(settings);
    register_host_allocator(!settings.one_stream);
}
Settings& settings() noexcept { return timeline().settings; }
Counters counters() noexcept { return timeline().counters; }
std::int64_t now_ns() { return timeline().now_ns(); }
void advance(std::int64_t ns) { timeline().advance_to(timeline().now_ns() + ns); }
std::int64_t stream_end_ns() { return timeline().tail(current_stream()); }
void synchronize() { timeline().wait_until(timeline().end()); }
void synchronize_stream() { timeline().wait_until(stream_end_ns()); }

void kernel(std::int64_t ns, std::function<void(bool at_end)> look) {
    Timeline& line = timeline();
    line.call(&Counters::kernels);
    const auto [begin, end] = line.enqueue(current_stream(), ns, Timeline::Work::kernel);
    if (!look)
        return;
    line.at(begin, [look] { look(false); });
    line.at(end, [look = std::move(look)] { look(true); });
}

}   // namespace drawpoint::fake_accelerator
