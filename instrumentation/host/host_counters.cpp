#include <drawpoint/instrumentation/host/detail/host_counters.hpp>

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <thread>

#include <fcntl.h>
#include "instrumentation/host/cgroup.hpp"
#include "instrumentation/host/core_mask.hpp"
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

namespace drawpoint {
namespace {

namespace fs = std::filesystem;

/// Cuts a line off the front of `text`.
std::string_view take_line(std::string_view& text) noexcept {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    return line;
}

/// Cuts leading blanks and a number off the front of `text`.
std::optional<std::uint64_t> take_number(std::string_view& text) noexcept {
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    const auto length = static_cast<std::size_t>(end - text.data());
    const bool ended = length == text.size() || text[length] == ' ';
    if (error != std::errc{} || !ended)
        return std::nullopt;
    text.remove_prefix(length);
    return number;
}

/// a × unit + b; nullopt if it does not fit into int64.
std::optional<std::uint64_t> add(std::uint64_t b, std::uint64_t a, std::uint64_t unit) noexcept {
    std::uint64_t sum = 0;
    if (__builtin_mul_overflow(a, unit, &sum) || __builtin_add_overflow(sum, b, &sum) ||
        sum > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
        return std::nullopt;
    return sum;
}

std::int64_t stamp(std::optional<std::uint64_t> value) noexcept {
    return value ? static_cast<std::int64_t>(*value) : no_stamp;
}

/// The number that follows `key` at the start of a line, up to the line's end or a blank.
std::optional<std::uint64_t> number_after(std::string_view text, std::string_view key) noexcept {
    while (!text.empty()) {
        std::string_view line = take_line(text);
        if (line.starts_with(key)) {
            line.remove_prefix(key.size());
            return take_number(line);
        }
    }
    return std::nullopt;
}

/// Reads the total of "some avg10=0.00 avg60=0.00 avg300=0.00 total=123", which is in microseconds.
std::int64_t pressure_ns(std::string_view text) noexcept {
    while (!text.empty()) {
        const std::string_view line = take_line(text);
        const std::size_t at = line.find(" total=");
        if (!line.starts_with("some ") || at == line.npos)
            continue;
        std::string_view number = line.substr(at + 7);
        const auto us = take_number(number);
        return us ? stamp(add(0, *us, 1000)) : no_stamp;
    }
    return no_stamp;
}

}   // namespace

HostCounters::File::File(const fs::path& path) noexcept
    : descriptor_{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)} {}

HostCounters::File::~File() {
    if (descriptor_ >= 0)
        ::close(descriptor_);
}

std::string_view HostCounters::File::read(std::span<char> room) const noexcept {
    std::size_t done = 0;
    while (descriptor_ >= 0 && done < room.size()) {
        const ::ssize_t more = ::pread(descriptor_, room.data() + done, room.size() - done, static_cast<::off_t>(done));
        if (more <= 0)
            break;
        done += static_cast<std::size_t>(more);
    }
    return {room.data(), done};
}

HostCounters::HostCounters() : HostCounters{"/"} {}

HostCounters::HostCounters(const fs::path& root) : HostCounters{root, affinity_mask()} {}

HostCounters::HostCounters(const fs::path& root, std::vector<std::uint32_t> cores)
    : cores_{std::move(cores)},
      stat_{root / "proc/stat"},
      statm_{root / "proc/self/statm"},
      pressure_{File{root / "proc/pressure/cpu"}, File{root / "proc/pressure/io"}, File{root / "proc/pressure/memory"}},
      tick_ns_{1'000'000'000u / static_cast<std::uint64_t>(std::max(::sysconf(_SC_CLK_TCK), 1L))},
      // A core's line has at most 10 numbers of 20 digits. Nothing from the line of interrupts on is needed.
      room_((1 + static_cast<std::size_t>(std::max(::sysconf(_SC_NPROCESSORS_CONF), 64L))) * 256) {
    std::ranges::sort(cores_);
    std::vector<fs::path> places = cgroup_files(root, "", "cpu.stat");
    throttled_key_ = "throttled_usec ";
    throttled_unit_ns_ = 1000;
    const auto counts = [&](const fs::path& place) {
        return number_after(File{place}.read(room_), throttled_key_).has_value();
    };
    if (std::ranges::none_of(places, counts)) {   // if version 1 has the controller, version 2's files lack the key
        places = cgroup_files(root, "cpu", "cpu.stat");
        throttled_key_ = "throttled_time ";
        throttled_unit_ns_ = 1;
    }
    for (const fs::path& place : places)
        if (counts(place))   // a root cgroup has no quota
            throttled_.emplace_back(place);
}

void HostCounters::read_cores(HostRow& row) noexcept {
    std::string_view text = stat_.read(room_);
    if (text.size() == room_.size())
        text = text.substr(0, text.rfind('\n') + 1);   // drops the last, incomplete line, which is not a core's
    std::optional<std::uint64_t> busy = 0, steal = 0;
    bool found = false;
    while (text.starts_with("cpu")) {
        std::string_view line = take_line(text).substr(3);
        if (line.starts_with(' '))
            continue;   // all cores together
        const auto core = take_number(line);
        if (!core)
            return;
        if (!std::ranges::binary_search(cores_, *core))
            continue;
        // user nice system idle iowait irq softirq steal; user and nice include the guests' time
        for (std::size_t field = 0; field < 8; ++field) {
            const auto ticks = take_number(line);
            if (!ticks && field < 4)
                return;
            if (!ticks) {
                steal.reset();
                break;
            }
            if (field == 7)
                steal = steal ? add(*steal, *ticks, tick_ns_) : std::nullopt;
            else if (field != 3 && field != 4)
                busy = busy ? add(*busy, *ticks, tick_ns_) : std::nullopt;
        }
        found = true;
    }
    if (found) {
        row.busy_ns = stamp(busy);
        row.steal_ns = stamp(steal);
    }
}

std::int64_t HostCounters::throttled_ns() noexcept {
    std::optional<std::uint64_t> sum = throttled_.empty() ? std::nullopt : std::optional<std::uint64_t>{0};
    for (const File& file : throttled_) {
        const auto time = number_after(file.read(room_), throttled_key_);
        sum = sum && time ? add(*sum, *time, throttled_unit_ns_) : std::nullopt;
    }
    return stamp(sum);
}

HostRow HostCounters::read(std::int64_t now_ns) noexcept {
    HostRow row{.at_ns = now_ns};
    ::timespec own{};
    if (::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &own) == 0)
        row.own_cpu_ns = own.tv_sec * 1'000'000'000 + own.tv_nsec;
    read_cores(row);
    row.throttled_ns = throttled_ns();
    row.cpu_pressure_ns = pressure_ns(pressure_[0].read(room_));
    row.io_pressure_ns = pressure_ns(pressure_[1].read(room_));
    row.memory_pressure_ns = pressure_ns(pressure_[2].read(room_));
    ::rusage usage{};
    if (::getrusage(RUSAGE_SELF, &usage) == 0) {
        row.major_faults = usage.ru_majflt;
        row.involuntary_switches = usage.ru_nivcsw;
    }
    std::string_view pages = statm_.read(room_);
    if (take_number(pages))   // the address space
        if (const auto resident = take_number(pages))
            row.resident_bytes = stamp(add(0, *resident, static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE))));
    return row;
}

}   // namespace drawpoint
