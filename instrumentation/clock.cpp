#include <drawpoint/instrumentation/clock.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

#include <time.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <fcntl.h>
#include <unistd.h>
#include <x86intrin.h>
#endif

#include "instrumentation/clock_source.hpp"

namespace drawpoint {
namespace {

#if defined(__x86_64__)
struct Pair {
    std::uint64_t ticks = 0;
    std::int64_t ns = 0;
};

/// Reads both clocks together: of several tries, the one that took the fewest ticks.
Pair read_both() noexcept {
    Pair best;
    std::uint64_t tightest = ~std::uint64_t{0};
    for (int attempt = 0; attempt < 32; ++attempt) {
        const std::uint64_t before = __rdtsc();
        const std::int64_t ns = SteadyClock{}.now_ns();
        const std::uint64_t after = __rdtsc();
        if (after - before < tightest) {
            tightest = after - before;
            best = {before + (after - before) / 2, ns};
        }
    }
    return best;
}

/// Read when the program is loaded, so that a clock made later need not wait to calibrate.
/// Zero only for a clock made earlier, by another file's initializer.
const Pair at_load = read_both();

/// The text of a small file; nullopt if it cannot be read.
class FileText {
public:
    explicit FileText(const char* path) noexcept {
        const int file = ::open(path, O_RDONLY | O_CLOEXEC);
        if (file < 0)
            return;
        length_ = ::read(file, text_.data(), text_.size());
        ::close(file);
    }
    [[nodiscard]] std::optional<std::string_view> text() const noexcept {
        if (length_ <= 0)
            return std::nullopt;
        return std::string_view{text_.data(), static_cast<std::size_t>(length_)};
    }

private:
    std::array<char, 512> text_;
    ssize_t length_ = -1;
};

bool kernel_trusts_this_tsc() noexcept {
    const FileText available{"/sys/devices/system/clocksource/clocksource0/available_clocksource"},
        current{"/sys/devices/system/clocksource/clocksource0/current_clocksource"};
    return kernel_trusts_tsc(available.text(), current.text());
}
#endif

/// Whether `visit` returns true for any word; it is called until then.
template <class Visit>
bool any_word(std::string_view text, Visit visit) noexcept {
    constexpr std::string_view blanks = " \t\n";
    for (std::size_t at = text.find_first_not_of(blanks); at != text.npos; at = text.find_first_not_of(blanks, at)) {
        const std::size_t end = std::min(text.find_first_of(blanks, at), text.size());
        if (visit(text.substr(at, end - at)))
            return true;
        at = end;
    }
    return false;
}

}   // namespace

bool kernel_trusts_tsc(std::optional<std::string_view> available, std::optional<std::string_view> current) noexcept {
    // Clock sources that the kernel rates below the counter: it uses one if the counter failed, or if told to.
    static constexpr std::array<std::string_view, 5> below{"hpet", "acpi_pm", "pit", "jiffies", "refined-jiffies"};
    if (current &&
        any_word(*current, [](std::string_view name) { return std::ranges::find(below, name) != below.end(); }))
        return false;
    return !available || any_word(*available, [](std::string_view name) { return name == "tsc"; });
}

#if defined(__x86_64__)
TscClock::TscClock() noexcept {
    constexpr std::int64_t least_ns = 2'000'000;
    const Pair first = at_load.ticks != 0 ? at_load : read_both();
    Pair second = read_both();
    while (second.ns - first.ns < least_ns) {   // the first batch waits for this
        timespec pause{.tv_sec = 0, .tv_nsec = least_ns - (second.ns - first.ns)};
        nanosleep(&pause, nullptr);
        second = read_both();
    }
    base_ticks_ = second.ticks;
    base_ns_ = second.ns;
    multiplier_ = static_cast<std::uint64_t>((static_cast<detail::UInt128>(second.ns - first.ns) << 32) /
                                             (second.ticks - first.ticks));
}

bool TscClock::available() noexcept {
    static const bool available = [] {
        unsigned a = 0, b = 0, c = 0, d = 0;
        // Leaf 8000_0007, bit 8 of edx: the counter is invariant, that is, constant and running through sleep states.
        // The counters of two sockets may still differ; the kernel monitors that.
        return __get_cpuid(0x80000007u, &a, &b, &c, &d) != 0 && (d & (1u << 8)) != 0 && kernel_trusts_this_tsc();
    }();
    return available;
}
#else
TscClock::TscClock() noexcept = default;
bool TscClock::available() noexcept { return false; }
#endif

AnyClock::AnyClock() noexcept : kind_{Kind::steady} {
    if (TscClock::available()) {
        tsc_ = TscClock{};
        kind_ = Kind::tsc;
    }
}

const char* AnyClock::name() const noexcept {
    switch (kind_) {
    case Kind::tsc: return "tsc";
    case Kind::manual: return "manual";
    case Kind::steady: break;
    }
    return "steady";
}

}   // namespace drawpoint
