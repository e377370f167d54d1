#include "diagnosis/demands/recorded_steps.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include <drawpoint/diagnosis/rows/detail/loader_rows.hpp>
#include <drawpoint/instrumentation/ledger/device_time.hpp>
#include "diagnosis/demands/demand_limit.hpp"

namespace drawpoint {
namespace {

// Other threads, such as LibTorch's, are assumed to compute for the loop if together they used this many times the CPU
// time of the loop's own thread, and if that thread computed for at least this share of its time. Less may be overhead
// of the workers.
constexpr double threads_from = 1.25, computing_from = 0.2;
constexpr double full_from = 0.8;      // of the cores
constexpr double most_threads = 256;   // per step; each is replayed
// Part of an interval that training steps must fill, so that its CPU time counts as that of training.
constexpr double training_from = 0.99;

/// CPU time of this process while the steps ran, in cores; nothing if the host rows do not tell. Only intervals between
/// two of them that were all training count, because a validation computes, too.
std::optional<double> own_cores(const Ledger& ledger, std::span<const TimeRange> steps) {
    double cpu_ns = 0, ns = 0;
    const HostRow* before = nullptr;
    std::size_t first = 0;
    for (const HostRow& row : ledger.host) {
        if (row.own_cpu_ns == no_stamp)
            continue;
        const HostRow* const from = std::exchange(before, &row);
        if (from == nullptr)
            continue;
        while (first < steps.size() && steps[first].to_ns <= from->at_ns)
            ++first;
        double training = 0;
        for (std::size_t i = first; i < steps.size() && steps[i].from_ns < row.at_ns; ++i)
            training += static_cast<double>(
                length_ns(std::max(steps[i].from_ns, from->at_ns), std::min(steps[i].to_ns, row.at_ns)));
        const auto stretch = static_cast<double>(length_ns(from->at_ns, row.at_ns));
        if (stretch <= 0 || training < training_from * stretch)
            continue;
        cpu_ns += static_cast<double>(length_ns(from->own_cpu_ns, row.own_cpu_ns));
        ns += stretch;
    }
    return ns > 0 ? std::optional{cpu_ns / ns} : std::nullopt;
}

/// The loop's own CPU time in a step without delays, if its thread spins while it waits for others: then its CPU time
/// includes their delays, and if the cores are full it is smallest in steps without. Nothing if it is about the same in
/// all steps.
std::optional<std::int64_t> undelayed(std::span<const StepRow* const> rows) {
    constexpr double undisturbed = 0.1, spins_below = 0.8;
    constexpr std::size_t fewest_measured = 30;
    std::vector<std::int64_t> cpu;
    double sum = 0;
    for (const StepRow* const row : rows)
        if (row->cpu_ns) {
            cpu.push_back(bounded_ns(*row->cpu_ns));
            sum += static_cast<double>(cpu.back());
        }
    if (cpu.size() < fewest_measured)
        return std::nullopt;
    const auto least = cpu.begin() + static_cast<std::ptrdiff_t>(undisturbed * static_cast<double>(cpu.size()));
    std::ranges::nth_element(cpu, least);
    if (*least <= 0 || static_cast<double>(*least) * static_cast<double>(cpu.size()) > spins_below * sum)
        return std::nullopt;
    return *least;
}

/// What a step takes of the device, and how long the loop waits for that in it.
struct OnDevice {
    DeviceDemand demand;
    std::int64_t waited_ns = 0;
};

/// How far the device is behind the loop where the loss is computed because it works more slowly than it is given work.
/// A batch whose copy came late puts it behind, too. If the loop waits for nothing, the device catches up after that
/// place as far as it works faster than it is given work; how fast it works was seen before.
std::int64_t behind_ns(const StepRow& step, const DeviceStepRow& row) {
    const auto ns = [](std::int64_t from, std::int64_t to) { return bounded_ns(length_ns(from, to)); };
    const std::int64_t behind = ns(row.host_forward_ns, row.forward_ns), copy_wait = ns(row.queued_ns, row.begin_ns);
    const auto speed = [](std::int64_t given, std::int64_t done) {
        return static_cast<double>(given) / static_cast<double>(std::max<std::int64_t>(done, 1));
    };
    const double before = speed(ns(end_ns(step.draw_begin_ns, step.draw_ns), row.host_forward_ns),
                                ns(row.begin_ns, row.forward_ns)),
                 after = speed(ns(row.host_forward_ns, row.host_end_ns), ns(row.forward_ns, row.end_ns));
    constexpr double alike = 1.25;
    return after <= alike * before ? behind - copy_wait : behind;
}

/// By how much longer than for the work up to the loss the loop took to give the device the work after it, in
/// proportion to the time that the device took for both.
std::int64_t slower_ns(const StepRow& step, const DeviceStepRow& row) {
    const auto ns = [](std::int64_t from, std::int64_t to) {
        return static_cast<double>(bounded_ns(length_ns(from, to)));
    };
    const double done = std::max(ns(row.begin_ns, row.forward_ns), 1.0);
    const double alike_ns =
        ns(end_ns(step.draw_begin_ns, step.draw_ns), row.host_forward_ns) * ns(row.forward_ns, row.end_ns) / done;
    return bounded_ns(std::llround(ns(row.host_forward_ns, row.host_end_ns) - std::min(alike_ns, 1e18)));
}

/// Where the loop waited for the device in a step, and how long.
struct WaitInStep {
    const SpanRow* piece = nullptr;   // null: it did not
    std::int64_t ns = 0;
    bool is_of_one_kernel = false;   // the device was not further behind
};

/// The loop waited while it read the loss, or later, if the device was behind where the loss was computed, but not any
/// more at the end of the step. If it waited for a single kernel, pieces in which it only gives the device work may be
/// longer; then it is the piece that ended when the loss was computed, or the last one.
WaitInStep wait_in_step(const Ledger& ledger, const StepRow& step, const DeviceStepRow& row, std::int64_t lag_ns,
                        std::int64_t span_ns) {
    constexpr double one_kernel = 0.03;   // of the step's work, at least
    const auto part = [&](double share) { return static_cast<std::int64_t>(share * static_cast<double>(span_ns)); };
    const std::int64_t little_ns = part(DeviceTotals::little_lag), kernel_ns = part(one_kernel);
    const SpanRow *read = nullptr, *read_kernel = nullptr, *longest = nullptr, *last = nullptr;
    for (const SpanRow& piece : ledger.spans_of(step)) {
        if (piece.begin_ns < row.host_forward_ns || piece.begin_ns >= row.host_end_ns || piece.ns < kernel_ns)
            continue;
        const std::int64_t piece_end_ns = end_ns(piece.begin_ns, piece.ns);
        last = piece_end_ns <= row.host_end_ns ? &piece : last;
        const std::int64_t after_loss = length_ns(row.forward_ns, piece_end_ns);
        if (piece.span == Span::other && row.forward_ns > piece.begin_ns && after_loss >= 0 &&
            after_loss < piece.ns / 4)
            read_kernel = &piece;
        if (piece.ns < little_ns)
            continue;
        longest = longest == nullptr || piece.ns > longest->ns ? &piece : longest;
        if (piece.span == Span::other && (read == nullptr || piece.ns > read->ns))
            read = &piece;
    }
    if (read != nullptr)
        return {read, bounded_ns(read->ns)};
    if (read_kernel != nullptr)
        return {read_kernel, bounded_ns(read_kernel->ns), true};
    const std::int64_t caught_up_ns = behind_ns(step, row) - lag_ns;
    if (longest != nullptr && lag_ns < little_ns && caught_up_ns >= little_ns)
        return {longest, bounded_ns(longest->ns)};
    if (last == nullptr || lag_ns >= little_ns || caught_up_ns < std::max(kernel_ns, 2 * lag_ns))
        return {};
    const std::int64_t waited_ns = std::min(bounded_ns(last->ns), std::max(caught_up_ns, slower_ns(step, row)));
    return {last, waited_ns, waited_ns < little_ns};
}

/// Of that time, what copies took that are among the steps (Copies::in_order).
std::int64_t copied_ns(const Ledger& ledger, std::int64_t begin_ns, std::int64_t end_ns) {
    const std::int64_t window_ns = bounded_ns(length_ns(begin_ns, end_ns));
    std::int64_t ns = 0;
    auto copy = std::ranges::lower_bound(ledger.transfers, begin_ns, {}, &TransferRow::begin_ns);
    for (; copy != ledger.transfers.end() && copy->end_ns <= end_ns; ++copy)
        if ((ns = bounded_ns(ns + bounded_ns(length_ns(copy->begin_ns, copy->end_ns)))) >= window_ns)
            return window_ns;
    return ns;
}

OnDevice on_device(const Ledger& ledger, Copies copies, const StepRow& step, const DeviceStepRow& row) {
    OnDevice found;
    DeviceDemand& demand = found.demand;
    // Copies that the loop waited for at the end of its draw came before the step's work.
    const std::int64_t begin_ns = std::max(row.begin_ns, end_ns(step.draw_begin_ns, step.draw_ns));
    const std::int64_t copies_ns = copies == Copies::in_order ? copied_ns(ledger, row.begin_ns, row.end_ns) : 0;
    demand.ns = bounded_ns(length_ns(begin_ns, row.end_ns) - copies_ns);
    const std::int64_t lag_ns = bounded_ns(length_ns(row.host_end_ns, row.end_ns));
    const bool keeps_up = static_cast<double>(lag_ns) < DeviceTotals::little_lag * static_cast<double>(demand.ns);
    if (keeps_up)
        demand.lag_ns = lag_ns;
    // Or it is behind no longer than it waited for its batch. One that is behind for another reason is the limit: it
    // may hold up the loop, which then takes as long as the device.
    demand.is_launch_bound = keeps_up || length_ns(row.free_ns, row.begin_ns) >= lag_ns;
    if (demand.ns <= 0)
        return found;
    const WaitInStep wait = wait_in_step(ledger, step, row, lag_ns, demand.ns);
    if (wait.piece == nullptr)
        return found;
    if (wait.is_of_one_kernel) {
        demand.kernel_wait_ns = std::min(wait.ns, demand.ns);
        return found;
    }
    const std::int64_t until_ns = end_ns(wait.piece->begin_ns, wait.piece->ns);
    demand.first_ns = std::min(bounded_ns(length_ns(begin_ns, until_ns)), demand.ns);
    if (demand.first_ns == 0)
        return found;
    found.waited_ns = wait.ns;
    const std::int64_t own_ns = bounded_ns(bounded_ns(step.batch_ns) - wait.ns);
    const std::int64_t before_ns = bounded_ns(length_ns(end_ns(step.draw_begin_ns, step.draw_ns), until_ns) - wait.ns);
    demand.wait_at =
        own_ns > 0 ? std::clamp(static_cast<double>(before_ns) / static_cast<double>(own_ns), 0.0, 1.0) : 0;
    return found;
}

/// What is known of the device from the steps that were timed.
class DeviceSteps {
public:
    DeviceSteps(const Ledger& ledger, Copies copies, std::span<const StepRow* const> rows) : found_(rows.size()) {
        std::vector<std::pair<std::size_t, const DeviceStepRow*>> timed;
        double worked_ns = 0, all_ns = 0;
        for (std::size_t i = 0; i < rows.size(); ++i)
            if (const DeviceStepRow* const row = device_step_of(ledger, *rows[i])) {
                found_[i] = on_device(ledger, copies, *rows[i], *row);
                timed.emplace_back(i, row);
                worked_ns += static_cast<double>(found_[i].demand.ns);
                all_ns += static_cast<double>(bounded_ns(length_ns(row->free_ns, row->end_ns)));
            }
        if (timed.empty())
            return;
        const double share = all_ns > 0 ? std::min(worked_ns / all_ns, 1.0) : 0;
        fill(rows, 0, timed.front().first, timed.front().first, worked_ns / static_cast<double>(timed.size()));
        for (std::size_t i = 0; i < timed.size(); ++i) {
            const auto [at, row] = timed[i];
            const std::size_t until = i + 1 < timed.size() ? timed[i + 1].first : rows.size();
            double mean_ns = worked_ns / static_cast<double>(timed.size());
            // Between two timed steps of a pass the time of those between them is known, if not how it is divided.
            if (until < rows.size() && until > at + 1 && rows[at]->epoch == rows[until]->epoch)
                mean_ns = share *
                          static_cast<double>(bounded_ns(length_ns(row->end_ns, timed[i + 1].second->free_ns))) /
                          static_cast<double>(until - at - 1);
            fill(rows, at + 1, until, at, mean_ns);
        }
    }
    [[nodiscard]] const OnDevice& of(std::size_t step) const { return found_[step]; }

private:
    /// Steps that were not timed: they take `mean_ns` of the device, and wait for it as step `like` does.
    void fill(std::span<const StepRow* const> rows, std::size_t first, std::size_t last, std::size_t like,
              double mean_ns) {
        for (std::size_t i = first; i < last; ++i) {
            OnDevice& one = found_[i] = found_[like];
            const double factor = one.demand.ns > 0 ? mean_ns / static_cast<double>(one.demand.ns) : 1;
            one.demand.ns = bounded_ns(std::llround(mean_ns));
            for (std::int64_t* const part_ns : {&one.demand.first_ns, &one.demand.kernel_wait_ns})
                *part_ns = bounded_ns(std::llround(static_cast<double>(*part_ns) * factor));
            if (one.waited_ns > 0)
                one.waited_ns =
                    bounded_ns(bounded_ns(rows[i]->batch_ns) - bounded_ns(rows[like]->batch_ns) + one.waited_ns);
        }
    }

    std::vector<OnDevice> found_;
};

/// The waits for the device at the ends of training passes, by time.
std::vector<SpanRow> drains_of(const Ledger& ledger) {
    std::vector<SpanRow> drains;
    for (const PassRow& pass : ledger.passes)
        if (pass.kind == PassKind::train)
            for (const SpanRow& piece : ledger.spans_of(pass))
                if (piece.span == Span::device)
                    drains.push_back(piece);
    std::ranges::sort(drains, {}, &SpanRow::begin_ns);
    return drains;
}

/// Of the time between two steps, the first such wait that begins in it.
std::int64_t drained_ns(const std::vector<SpanRow>& drains, const TimeRange& between) {
    const auto drain = std::ranges::lower_bound(drains, between.from_ns, {}, &SpanRow::begin_ns);
    return drain != drains.end() && drain->begin_ns < between.to_ns ? bounded_ns(drain->ns) : 0;
}

/// Adds the steps, all their time as waiting, and to `took` the time of each from draw to draw.
void take_up(RecordedRun& run, const Ledger& ledger, std::span<const StepRow* const> rows,
             std::vector<TimeRange>& took) {
    const auto devices =
        run.device_buffers != 0 ? std::optional<DeviceSteps>{std::in_place, ledger, run.copies, rows} : std::nullopt;
    const std::vector<SpanRow> drains = devices ? drains_of(ledger) : std::vector<SpanRow>{};
    double wall = 0, draws = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const StepRow& row = *rows[i];
        // If the recording is repeated, the first step follows the last.
        const StepRow& next = *rows[(i + 1) % rows.size()];
        const std::int64_t between = sum_of(ledger, row, Span::between),
                           lost = std::clamp<std::int64_t>(row.between_run_queue_ns.value_or(0), 0, between);
        const std::int64_t callbacks = sum_of(ledger, next, span_of(Event::before_draw));
        TimeRange range{row.draw_begin_ns, end_ns(end_ns(row), between)};
        StepDemand step{.compute = {0, bounded_ns(row.batch_ns)}, .size = row.size};
        step.after.wait_ns = bounded_ns(between - lost + callbacks);
        if (devices) {
            step.device = devices->of(i).demand;
            step.compute.wait_ns -= std::min(devices->of(i).waited_ns, step.compute.wait_ns);
            step.device.is_launch_bound =
                step.device.is_launch_bound && step.device.ns > 0 &&
                static_cast<double>(step.compute.wait_ns) + static_cast<double>(step.after.wait_ns) >=
                    (1 - DeviceTotals::little_lag) * static_cast<double>(step.device.ns);
        }
        if (i + 1 < rows.size()) {
            step.pause_ns = bounded_ns(length_ns(range.to_ns, next.draw_begin_ns));
            if (devices && step.pause_ns > 0)
                step.pause_ns -= std::min(drained_ns(drains, {range.to_ns, next.draw_begin_ns}), step.pause_ns);
            range.to_ns = std::min(range.to_ns, std::max(next.draw_begin_ns, range.from_ns));
        }
        wall += static_cast<double>(length_ns(range.from_ns, range.to_ns));
        draws += static_cast<double>(bounded_ns(row.draw_ns));
        run.steps.push_back(step);
        took.push_back(range);
    }
    if (wall > 0) {
        run.batches_per_s = static_cast<double>(run.steps.size()) * 1e9 / wall;
        run.draw_share = std::min(draws / wall, 1.0);
    }
}

/// Separates computing, and waiting for a core, from the steps' time: by the measurements that some steps have, else by
/// the CPU time of the process that the loader did not use.
void split_steps(RecordedRun& run, const Ledger& ledger, std::span<const StepRow* const> rows,
                 std::span<const TimeRange> took, double loader_cpu_ns) {
    double wall = 0, computes = 0, measured = 0, own = 0, queued = 0;
    for (std::size_t i = 0; i < run.steps.size(); ++i) {
        const StepDemand& step = run.steps[i];
        const StepRow& row = *rows[i];
        wall += static_cast<double>(length_ns(took[i].from_ns, took[i].to_ns));
        computes += static_cast<double>(step.compute.ns() + step.after.ns());
        if (!row.cpu_ns)
            continue;
        const std::int64_t all = bounded_ns(row.batch_ns);
        measured += static_cast<double>(all);
        own += static_cast<double>(std::clamp<std::int64_t>(*row.cpu_ns, 0, all));
        queued += static_cast<double>(std::clamp<std::int64_t>(row.run_queue_ns.value_or(0), 0, all));
    }
    run.loop_cpu_measured = measured > 0;
    const auto process = own_cores(ledger, took);
    const double others = process && computes > 0 ? std::max(*process * wall - loader_cpu_ns, 0.0) / computes : 0;
    const double share = measured > 0 ? std::min(own / measured, 1.0) : std::min(others, 1.0);   // of the steps' time
    const double queue_share = measured > 0 ? std::min(queued / measured, 1 - share) : 0;
    const bool several = share >= computing_from && others / share >= threads_from;
    const double most = std::min(std::max(run.cores, 1.0), most_threads);
    double threads = several ? std::min(others / share, most) : 1;
    const auto undelayed_ns = several && *process >= full_from * run.cores ? undelayed(rows) : std::nullopt;
    double each_ns = 0;   // work of each thread in a step
    if (undelayed_ns) {   // the other threads only compute, each as much as the loop's
        const double own_ns = share * computes / static_cast<double>(run.steps.size()),
                     beside_ns = own_ns * (others - share) / share;
        threads = std::clamp(std::round(1 + beside_ns / static_cast<double>(*undelayed_ns)), 2.0, std::max(most, 2.0));
        each_ns = std::max(std::min(beside_ns / (threads - 1), own_ns), static_cast<double>(*undelayed_ns));
        run.least_loop_work = std::min(static_cast<double>(*undelayed_ns) / each_ns, 1.0);
    }
    for (std::size_t i = 0; i < run.steps.size(); ++i) {
        StepDemand& step = run.steps[i];
        const StepRow& row = *rows[i];
        const auto all = static_cast<double>(bounded_ns(row.batch_ns));
        const bool has_own = row.cpu_ns && all > 0;
        const double cpu = has_own ? std::clamp(static_cast<double>(*row.cpu_ns) / all, 0.0, 1.0) : share;
        const double queue =
            has_own ? std::clamp(static_cast<double>(row.run_queue_ns.value_or(0)) / all, 0.0, 1.0) : queue_share;
        for (Demand* const part : {&step.compute, &step.after}) {
            const std::int64_t ns = part->ns();
            part->cpu_ns = std::llround(cpu * static_cast<double>(ns));
            part->wait_ns =
                std::max<std::int64_t>(ns - part->cpu_ns - std::llround(queue * static_cast<double>(ns)), 0);
        }
        if (several) {
            step.threads = threads;
            step.spins = undelayed_ns.has_value();
            const double thread_ns = undelayed_ns ? each_ns : static_cast<double>(step.compute.cpu_ns);
            step.compute.cpu_ns = bounded_ns(std::llround(thread_ns * threads));
        }
    }
}

}   // namespace

std::int64_t sum_of(const Ledger& ledger, const StepRow& step, Span span) {
    std::int64_t sum = 0;
    for (const SpanRow& piece : ledger.spans_of(step))
        sum = bounded_ns(sum + (piece.span == span ? bounded_ns(piece.ns) : 0));
    return sum;
}

void add_steps(RecordedRun& run, const Ledger& ledger, std::span<const StepRow* const> rows, double loader_cpu_ns) {
    std::vector<TimeRange> took;
    take_up(run, ledger, rows, took);
    split_steps(run, ledger, rows, took, loader_cpu_ns);
}

}   // namespace drawpoint
