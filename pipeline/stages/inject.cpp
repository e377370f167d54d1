#include <drawpoint/pipeline/stages/inject.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <span>
#include <stdexcept>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <drawpoint/pipeline/stages/detail/stage_timer.hpp>

namespace drawpoint {
namespace {

using std::chrono::nanoseconds;

constexpr std::array<std::string_view, 9> kinds{"read-latency", "read-bandwidth", "decode",
                                                "transform",    "straggler",      "collate",
                                                "compute",      "compute-jitter", "drop-events"};

struct Unit {
    std::string_view name;
    double scale;
};
constexpr std::array<Unit, 4> durations{{{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}}};
constexpr std::array<Unit, 7> rates{
    {{"B/s", 1}, {"kB/s", 1e3}, {"MB/s", 1e6}, {"GB/s", 1e9}, {"KiB/s", 0x1p10}, {"MiB/s", 0x1p20}, {"GiB/s", 0x1p30}}};
constexpr std::array<Unit, 1> percent{{{"%", 0.01}}};

[[noreturn]] void refuse(std::string_view text, std::string_view why) {
    throw std::invalid_argument{fmt::format("--inject {}: {}", text, why)};
}

/// The number that `value` begins with, times the scale of the unit that follows it.
double with_unit(std::string_view text, std::string_view value, std::span<const Unit> units,
                 std::string_view expected) {
    double number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    const std::string_view unit{end, static_cast<std::size_t>(value.data() + value.size() - end)};
    const auto found = std::ranges::find(units, unit, &Unit::name);
    if (error != std::errc{} || found == units.end() || !(number >= 0) || number > 1e12)
        refuse(text, expected);
    return number * found->scale;
}

double factor_of(std::string_view text, std::string_view value) {
    constexpr std::array<Unit, 1> none{{{"", 1}}};
    constexpr std::string_view expected = "expected xN with N at least 1, e.g. x3";
    if (!value.starts_with('x'))
        refuse(text, expected);
    const double factor = with_unit(text, value.substr(1), none, expected);
    if (factor < 1)
        refuse(text, expected);
    return factor;
}

double share_of(std::string_view text, std::string_view value, std::string_view expected) {
    const double share = with_unit(text, value, percent, expected);
    if (share > 1)
        refuse(text, expected);
    return share;
}

nanoseconds delay_of(std::string_view text, std::string_view value, std::string_view expected) {
    const double ns = with_unit(text, value, durations, expected);
    if (ns > 3600e9)
        refuse(text, "at most one hour");
    return nanoseconds{static_cast<std::int64_t>(ns + 0.5)};
}

nanoseconds scaled(std::int64_t ns, double by) {
    return nanoseconds{static_cast<std::int64_t>(static_cast<double>(ns) * by)};
}

void sleep_really(nanoseconds time) { std::this_thread::sleep_for(time); }

void spin_really(nanoseconds time) {
    const std::int64_t until = SteadyClock{}.now_ns() + time.count();
    while (SteadyClock{}.now_ns() < until) {
    }
}

/// Time has passed since the last stage ended: it goes to `stage`, and the stages after it move on.
void lengthen(SampleTask& task, std::size_t stage) {
    const StageRow& last = task.stages[task.stage_count - 1];
    const std::int64_t by = task.clock->now_ns() - last.begin_ns - last.ns;
    task.stages[stage].ns += by;
    if (task.cpu_ns != no_stamp && task.stages[stage].cpu_ns != no_stamp) {
        const std::int64_t cpu_ns = ThreadUsage::cpu_ns();
        task.stages[stage].cpu_ns += cpu_ns - std::exchange(task.cpu_ns, cpu_ns);
    }
    for (std::size_t later = stage + 1; later < task.stage_count; ++later)
        task.stages[later].begin_ns += by;
}

/// The first stage began when the wait before it did, also when it threw.
class BeganEarlier {
public:
    BeganEarlier(SampleTask& task, std::int64_t at) noexcept : task_{&task}, at_{at} {}
    ~BeganEarlier() {
        if (task_->stage_count == 0)
            return;
        task_->stages[0].ns += task_->stages[0].begin_ns - at_;
        task_->stages[0].begin_ns = at_;
    }
    BeganEarlier(const BeganEarlier&) = delete;
    BeganEarlier& operator=(const BeganEarlier&) = delete;

private:
    SampleTask* task_;
    std::int64_t at_;
};

}   // namespace

std::string_view to_string(InjectionKind kind) noexcept { return kinds[static_cast<std::size_t>(kind)]; }

Injection parse_injection(std::string_view text) {
    const std::size_t equals = text.find('=');
    const auto known = std::ranges::find(kinds, text.substr(0, equals));
    if (known == kinds.end())
        refuse(text, fmt::format("unknown kind '{}'; known are {}", text.substr(0, equals), fmt::join(kinds, ", ")));
    if (equals == std::string_view::npos)
        refuse(text, fmt::format("expected {}=VALUE", *known));
    const std::string_view value = text.substr(equals + 1);

    Injection injection{.kind = static_cast<InjectionKind>(known - kinds.begin())};
    switch (injection.kind) {
    case InjectionKind::read_latency:
    case InjectionKind::compute:
        injection.delay = delay_of(text, value, "expected a duration in ns, us, ms or s, e.g. 5ms");
        break;
    case InjectionKind::read_bandwidth:
        injection.bytes_per_s = with_unit(text, value, rates, "expected bytes per second, e.g. 20MB/s");
        if (!(injection.bytes_per_s > 0))
            refuse(text, "the bandwidth must be above 0");
        break;
    case InjectionKind::decode:
    case InjectionKind::transform:
    case InjectionKind::collate: injection.factor = factor_of(text, value); break;
    case InjectionKind::straggler: {
        constexpr std::string_view expected = "expected SHARE%:DURATION, e.g. 1%:30ms";
        const std::size_t colon = value.find(':');
        if (colon == std::string_view::npos)
            refuse(text, expected);
        injection.share = share_of(text, value.substr(0, colon), expected);
        injection.delay = delay_of(text, value.substr(colon + 1), expected);
        break;
    }
    case InjectionKind::compute_jitter:
    case InjectionKind::drop_events:
        injection.share = share_of(text, value, "expected a share of 0% to 100%, e.g. 1%");
        break;
    }
    return injection;
}

InjectedSource::InjectedSource(std::shared_ptr<const SampleSource> source, const std::vector<Injection>& injections,
                               std::uint64_t seed, InjectedWaits waits)
    : source_{std::move(source)},
      seed_{seed},
      waits_{std::move(waits)},
      storage_free_ns_{std::numeric_limits<std::int64_t>::min()} {
    if (!waits_.sleep)
        waits_.sleep = sleep_really;
    if (!waits_.spin)
        waits_.spin = spin_really;
    const std::array<std::optional<Injection>*, 5> places{&latency_, &bandwidth_, &decode_, &transform_, &straggler_};
    for (const Injection& injection : injections) {
        if (!is_of_source(injection.kind))
            continue;
        std::optional<Injection>& place = *places[static_cast<std::size_t>(injection.kind)];
        if (place)
            throw std::invalid_argument{fmt::format("--inject {}: given twice", to_string(injection.kind))};
        place = injection;
    }
    const std::vector<std::string> names = source_->stages();
    const auto image = std::ranges::find_if(names, [](const std::string& name) { return name.starts_with("decode"); });
    if (decode_ && image == names.end())
        throw std::invalid_argument{
            fmt::format("--inject decode: no stage decodes; the stages are {}", fmt::join(names, ", "))};
    image_stage_ = image != names.end() ? static_cast<std::size_t>(image - names.begin()) : names.size() - 1;
    if (transform_)
        detail::check_stage_count(names.size() + 1, "transform");
}

std::vector<std::string> InjectedSource::stages() const {
    std::vector<std::string> names = source_->stages();
    if (transform_)
        names.emplace_back("transform");
    return names;
}

bool InjectedSource::is_straggler(std::uint64_t index) const noexcept {
    return straggler_ && CounterRng{seed_ ^ 0x7374726167676C65u, 0, index}.uniform() < straggler_->share;
}

void InjectedSource::fill(SampleTask& task, WorkerScratch& scratch) const {
    if (task.clock != nullptr)
        return fill_stamped(task, scratch);
    const AnyClock steady{SteadyClock{}};   // nobody records, but times that are multiplied must be measured
    struct Lent {
        SampleTask& task;
        ~Lent() { task.clock = nullptr; }
    } lent{task};
    task.clock = &steady;
    fill_stamped(task, scratch);
}

const SampleReads* InjectedSource::reads() const noexcept {
    const SampleReads* const reads = source_->reads();
    return reads != nullptr && (latency_ || bandwidth_) ? &reads_ : reads;
}

void InjectedSource::Reads::read(std::uint64_t index, std::vector<std::byte>& contents) const {
    if (to_->latency_)
        to_->waits_.sleep(to_->latency_->delay);
    to_->source_->reads()->read(index, contents);
    if (to_->bandwidth_)
        to_->wait_for_bandwidth(contents.size(), SteadyClock{}.now_ns());
}

bool InjectedSource::Reads::wants(std::uint64_t index) const noexcept { return to_->source_->reads()->wants(index); }

void InjectedSource::wait_for_bandwidth(std::uint64_t bytes, std::int64_t now_ns) const {
    const auto needs = static_cast<std::int64_t>(static_cast<double>(bytes) * 1e9 / bandwidth_->bytes_per_s);
    std::int64_t free = storage_free_ns_.load(std::memory_order_relaxed);
    while (!storage_free_ns_.compare_exchange_weak(free, std::max(free, now_ns) + needs, std::memory_order_relaxed)) {
    }
    waits_.sleep(nanoseconds{std::max(free, now_ns) + needs - now_ns});
}

void InjectedSource::fill_stamped(SampleTask& task, WorkerScratch& scratch) const {
    // Read ahead, the faults of reading are over; and what a cache holds is not read at all.
    const bool reads = task.contents == nullptr && (source_->reads() == nullptr || source_->reads()->wants(task.index));
    if (latency_ && reads) {
        BeganEarlier wait{task, task.clock->now_ns()};
        waits_.sleep(latency_->delay);
        source_->fill(task, scratch);
    } else {
        source_->fill(task, scratch);
    }
    const std::int64_t measured_ns = task.stages[image_stage_].ns;
    if (bandwidth_ && reads) {
        wait_for_bandwidth(task.bytes_read, task.clock->now_ns());   // the bytes are only known now
        lengthen(task, 0);
    }
    if (decode_) {
        waits_.spin(scaled(measured_ns, decode_->factor - 1));
        lengthen(task, image_stage_);
    }
    if (is_straggler(task.index)) {
        waits_.sleep(straggler_->delay);
        lengthen(task, image_stage_);
    }
    if (transform_) {
        StageTimer timer{task};
        timer.begin();
        waits_.spin(scaled(measured_ns, transform_->factor - 1));
    }
}

InjectedCollate::InjectedCollate(std::shared_ptr<const Collate> collate, const std::vector<Injection>& injections,
                                 InjectedWaits waits, const AnyClock& clock)
    : collate_{std::move(collate)}, waits_{std::move(waits)}, clock_{clock} {
    if (!waits_.spin)
        waits_.spin = spin_really;
    std::size_t given = 0;
    for (const Injection& injection : injections)
        if (injection.kind == InjectionKind::collate) {
            factor_ = injection.factor;
            if (++given > 1)
                throw std::invalid_argument{"--inject collate: given twice"};
        }
}

void InjectedCollate::collate(const FinishedSamples& samples, CollatedBatch& batch) const {
    const std::int64_t begin_ns = clock_.now_ns();
    collate_->collate(samples, batch);
    if (factor_ > 1)
        waits_.spin(scaled(clock_.now_ns() - begin_ns, factor_ - 1));
}

}   // namespace drawpoint
