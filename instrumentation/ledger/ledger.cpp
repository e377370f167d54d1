#include <drawpoint/instrumentation/ledger/ledger.hpp>

#include <algorithm>
#include <bit>
#include <array>
#include <numeric>
#include <tuple>
#include <type_traits>

#include <drawpoint/instrumentation/detail/wrapping.hpp>

namespace drawpoint {
namespace {

template <class T>
std::span<const T> part(const std::vector<T>& column, Slice slice) noexcept {
    return std::span{column}.subspan(slice.first, slice.count);
}

/// Appends to `packed` what `rows` refer to in `column`, in their order, and updates their slices.
template <class T, class Row, class Member>
void repack(std::vector<T>& column, std::vector<T>& packed, std::vector<Row>& rows, Member member) {
    for (Row& row : rows) {
        const auto from = part(column, row.*member);
        (row.*member).first = static_cast<std::uint32_t>(packed.size());
        packed.insert(packed.end(), from.begin(), from.end());
    }
}

struct FactLess {
    bool operator()(const Fact& fact, std::string_view key) const noexcept { return fact.first < key; }
};

std::int64_t sum_of(std::span<const SpanRow> spans) noexcept {
    return std::accumulate(spans.begin(), spans.end(), std::int64_t{0},
                           [](std::int64_t sum, const SpanRow& piece) { return sum + piece.ns; });
}

}   // namespace

namespace {

/// Whether all columns are equal; of a loss, its bits.
template <class Row>
bool equal_columns(const Row& a, const Row& b) noexcept {
    const auto bits = [](const std::optional<double>& value) {
        return value ? std::optional{std::bit_cast<std::uint64_t>(*value)} : std::nullopt;
    };
    return schema::walk<Row>([&](const auto&... columns) {
        const auto equal = [&]<class T, class Kind>(const schema::Column<Row, T, Kind>& column) {
            if constexpr (std::is_same_v<T, std::optional<double>>)
                return bits(a.*column.member) == bits(b.*column.member);
            else
                return a.*column.member == b.*column.member;
        };
        return (... && equal(columns));
    });
}

}   // namespace

bool StepRow::operator==(const StepRow& other) const noexcept { return equal_columns(*this, other); }
bool DeviceStepRow::operator==(const DeviceStepRow& other) const noexcept { return equal_columns(*this, other); }

std::string_view name_of(BatchStatus status) noexcept {
    return std::array<std::string_view, 3>{"taken", "abandoned", "failed"}[static_cast<std::size_t>(status)];
}
std::string_view name_of(SampleStatus status) noexcept {
    return status == SampleStatus::complete ? "complete" : "failed";
}
std::string_view name_of(OperatorKind kind) noexcept {
    return std::array<std::string_view,
                      8>{"cpu_op", "user_annotation", "python_function", "runtime",
                         "kernel", "memcpy",          "memset",          "other"}[static_cast<std::size_t>(kind)];
}

std::span<const SpanRow> Ledger::spans_of(const StepRow& row) const noexcept { return part(spans, row.spans); }
std::span<const SpanRow> Ledger::spans_of(const PassRow& row) const noexcept { return part(spans, row.spans); }
std::span<const StageRow> Ledger::stages_of(const SampleRow& row) const noexcept { return part(stages, row.stages); }

std::optional<std::string_view> Ledger::fact(std::string_view key) const noexcept {
    const auto at = std::lower_bound(facts.begin(), facts.end(), key, FactLess{});
    if (at == facts.end() || at->first != key)
        return std::nullopt;
    return at->second;
}

void Ledger::set_fact(std::string_view key, std::string_view value) {
    const auto at = std::lower_bound(facts.begin(), facts.end(), key, FactLess{});
    if (at != facts.end() && at->first == key)
        at->second = value;
    else
        facts.emplace(at, key, value);
}

std::uint64_t Ledger::dropped_records() const noexcept {
    std::uint64_t sum = 0;
    for (const DroppedRow& row : dropped)
        sum += row.records;
    return sum;
}

std::uint32_t Ledger::thinned_to() const noexcept { return thinnings.empty() ? 1 : thinnings.back().samples_every; }

void Ledger::sort() {
    const auto by = [](auto& rows, auto key) {
        std::stable_sort(rows.begin(), rows.end(), [&](const auto& a, const auto& b) { return key(a) < key(b); });
    };
    by(passes, [](const PassRow& r) { return std::tuple{r.begin_ns, r.kind}; });
    by(steps, [](const StepRow& r) { return std::tuple{r.draw_begin_ns, r.step}; });
    by(ends_of_data, [](const EndOfDataRow& r) { return r.begin_ns; });
    by(batches, [](const BatchRow& r) { return std::tuple{r.pipeline, r.epoch, r.batch}; });
    by(samples, [](const SampleRow& r) { return std::tuple{r.pipeline, r.epoch, r.batch, r.slot}; });
    by(failures, [](const FailureRow& r) { return std::tuple{r.pipeline, r.epoch, r.batch, r.index}; });
    by(settings, [](const SettingRow& r) { return std::tuple{r.at_ns, r.pipeline}; });
    by(orders, [](const OrderRow& r) { return std::tuple{r.begin_ns, r.pipeline}; });
    by(transfers, [](const TransferRow& r) { return std::tuple{r.issue_ns, r.pipeline}; });
    by(device_steps, [](const DeviceStepRow& r) { return std::tuple{r.host_queued_ns, r.step}; });
    by(host, [](const HostRow& r) { return r.at_ns; });
    by(dropped, [](const DroppedRow& r) { return std::tuple{r.from_ns, r.ring}; });
    by(thinnings, [](const ThinningRow& r) { return r.at_ns; });
    by(operators, [](const OperatorRow& r) { return std::tuple{r.thread, r.begin_ns, ~r.ns}; });   // ~: longest first
    by(allocations, [](const AllocationRow& r) { return std::tuple{r.at_ns, r.thread}; });
    by(stack_samples, [](const StackSampleRow& r) { return std::tuple{r.at_ns, r.thread}; });
    by(folded.actions, [](const FoldedAction& r) { return std::tuple{r.phase, r.action}; });
    by(folded.stages, [](const FoldedStage& r) { return std::tuple{r.pipeline, r.stage}; });
    by(folded.workers, [](const FoldedWorker& r) { return r.worker; });
    pack();
}

void Ledger::pack() {
    std::vector<SpanRow> packed_spans;
    packed_spans.reserve(spans.size());
    repack(spans, packed_spans, passes, &PassRow::spans);
    repack(spans, packed_spans, steps, &StepRow::spans);
    spans = std::move(packed_spans);
    std::vector<StageRow> packed_stages;
    packed_stages.reserve(stages.size());
    repack(stages, packed_stages, samples, &SampleRow::stages);
    stages = std::move(packed_stages);
}

StepDurations durations_of(const Ledger& ledger, const StepRow& step) noexcept {
    StepDurations durations;
    durations.fill(no_stamp);
    const auto duration = [&](Action action) -> std::int64_t& { return durations[static_cast<std::size_t>(action)]; };

    // When the callbacks of each event began and ended.
    std::array<std::int64_t, event_count> begins, ends;
    begins.fill(no_stamp);
    const auto spans = ledger.spans_of(step);
    for (const SpanRow& piece : spans)
        if (piece.span < Span::starved && begins[static_cast<std::size_t>(piece.span)] == no_stamp) {
            begins[static_cast<std::size_t>(piece.span)] = piece.begin_ns;
            ends[static_cast<std::size_t>(piece.span)] = piece.begin_ns + piece.ns;
        }
    struct Interval {
        std::int64_t from, to;
    };
    std::array<Interval, action_spans.size()> inner;   // the actions inside the batch
    std::size_t inner_count = 0;
    for (const ActionSpan& action : action_spans) {
        const auto from = static_cast<std::size_t>(action.from.event), to = static_cast<std::size_t>(action.to.event);
        const bool here = step.phase == Phase::train ? action.in_train : action.in_valid;
        if (!here || action.action == Action::draw || action.action == Action::batch || begins[from] == no_stamp ||
            begins[to] == no_stamp)
            continue;
        const Interval interval{action.from.end ? ends[from] : begins[from], action.to.end ? ends[to] : begins[to]};
        duration(action.action) = interval.to - interval.from;
        inner[inner_count++] = interval;
    }

    duration(Action::step) = step.draw_ns + step.batch_ns;
    duration(Action::draw) = step.draw_ns;
    duration(Action::batch) = step.batch_ns;
    std::int64_t between = 0, callbacks = 0, other = 0;
    const Interval batch{step.draw_begin_ns + step.draw_ns, step.draw_begin_ns + step.draw_ns + step.batch_ns};
    for (const SpanRow& piece : spans) {
        const auto within = [&](const Interval& interval) {
            return piece.begin_ns >= interval.from && piece.begin_ns + piece.ns <= interval.to;
        };
        if (piece.span == Span::between)
            between += piece.ns;
        else if (within(batch) && std::none_of(inner.begin(), inner.begin() + inner_count, within))
            (piece.span < Span::starved || piece.span == Span::callbacks ? callbacks : other) += piece.ns;
    }
    duration(Action::between) = between;
    duration(Action::callbacks) = callbacks;
    duration(Action::other) = other;
    return durations;
}

std::optional<std::int64_t> duration_of(const Ledger& ledger, const StepRow& step, Action action) noexcept {
    const std::int64_t ns = durations_of(ledger, step)[static_cast<std::size_t>(action)];
    return ns == no_stamp ? std::nullopt : std::optional{ns};
}

std::int64_t untiled_ns(const Ledger& ledger) {
    std::vector<SpanRow> pieces;
    const auto add = [&](std::span<const SpanRow> more) { pieces.insert(pieces.end(), more.begin(), more.end()); };
    for (const PassRow& pass : ledger.passes)
        add(ledger.spans_of(pass));
    for (const StepRow& step : ledger.steps)
        add(ledger.spans_of(step));
    for (const EndOfDataRow& end : ledger.ends_of_data)
        pieces.push_back({Span::starved, end.begin_ns, end.ns});
    std::ranges::sort(pieces, {}, &SpanRow::begin_ns);
    std::int64_t gaps = 0, overlaps = 0;
    auto piece = pieces.begin();
    for (std::size_t i = 0; i < ledger.passes.size();) {
        const PassRow& outermost = ledger.passes[i];
        std::int64_t folded = 0, until = outermost.begin_ns, gaps_here = 0;
        bool ended = true;
        for (; i < ledger.passes.size() && ledger.passes[i].begin_ns < std::max(outermost.end_ns, until + 1); ++i) {
            folded += ledger.passes[i].folded_ns;
            ended &= ledger.passes[i].ended;   // a killed run lacks the pieces of what was open
        }
        while (piece != pieces.end() && piece->begin_ns < until)
            ++piece;   // outside of all passes
        for (; piece != pieces.end() && piece->begin_ns < outermost.end_ns; ++piece) {
            gaps_here += std::max<std::int64_t>(piece->begin_ns - until, 0);
            overlaps += std::clamp<std::int64_t>(until - piece->begin_ns, 0, std::max<std::int64_t>(piece->ns, 0));
            until = std::max(until, piece->begin_ns + piece->ns);
        }
        gaps_here += std::max<std::int64_t>(outermost.end_ns - until, 0);
        overlaps += std::max<std::int64_t>(until - outermost.end_ns, 0);
        if (ended)
            gaps += std::max<std::int64_t>(gaps_here - folded, 0);
    }
    return gaps + overlaps;
}

std::int64_t wall_ns(const Ledger& ledger) noexcept {
    std::int64_t sum = 0, covered_ns = no_stamp;
    for (const PassRow& pass : ledger.passes)
        if (pass.begin_ns >= covered_ns) {   // not inside the previous one
            sum = wrapping_sum(sum, static_cast<std::int64_t>(wrapping_difference(pass.end_ns, pass.begin_ns)));
            covered_ns = pass.end_ns;
        }
    if (ledger.passes.empty() && !ledger.steps.empty()) {
        const StepRow& last = ledger.steps.back();
        sum = last.draw_begin_ns + last.draw_ns + last.batch_ns - ledger.steps.front().draw_begin_ns;
    }
    return sum;
}

std::int64_t max_residual_ns(const Ledger& ledger) noexcept {
    // What is left of each pass once its own pieces, its inner passes and its steps are subtracted.
    const std::vector<PassRow>& passes = ledger.passes;
    std::vector<std::int64_t> left(passes.size());
    std::array<std::size_t, 4> open;   // by kind: the last that began
    open.fill(passes.size());
    const auto contains = [&](std::size_t outer, std::int64_t begin_ns, std::int64_t end_ns) {
        return outer < passes.size() && begin_ns >= passes[outer].begin_ns && end_ns <= passes[outer].end_ns;
    };
    for (std::size_t i = 0; i < passes.size(); ++i) {
        const PassRow& pass = passes[i];
        const std::int64_t wall = pass.end_ns - pass.begin_ns;
        if (pass.ended)
            left[i] += wall - sum_of(ledger.spans_of(pass)) - pass.folded_ns;
        open[static_cast<std::size_t>(pass.kind)] = i;
        // A training or validation pass lies in an epoch, or directly in a fit.
        for (auto outer_kind = static_cast<std::size_t>(std::min(pass.kind, PassKind::train)); outer_kind-- > 0;)
            if (contains(open[outer_kind], pass.begin_ns, pass.end_ns)) {
                if (passes[open[outer_kind]].ended)
                    left[open[outer_kind]] -= wall;
                break;
            }
    }
    // A pass's own pieces are recorded when it ends. One that has not ended, because the recording stops inside, is
    // judged from its first row on: its rows follow each other without a gap, and the last of them ends where the
    // recording of the pass does.
    std::vector<bool> judged(passes.size());
    // Rows in order of time belong to the last pass of their phase that began before them.
    const auto take = [&](const auto& rows, auto begin_of, auto length_of) {
        open.fill(passes.size());
        std::size_t next = 0;
        for (const auto& row : rows) {
            for (; next < passes.size() && passes[next].begin_ns <= begin_of(row); ++next)
                open[static_cast<std::size_t>(passes[next].kind)] = next;
            const PassKind kind = row.phase == Phase::train ? PassKind::train : PassKind::valid;
            const std::size_t pass = open[static_cast<std::size_t>(kind)];
            if (!contains(pass, begin_of(row), begin_of(row)))
                continue;
            if (!passes[pass].ended && begin_of(row) < ledger.folded.until_ns)   // kept where its neighbours are folded
                continue;
            if (!passes[pass].ended && !judged[pass]) {
                left[pass] = passes[pass].end_ns - begin_of(row);
                for (const SpanRow& piece : ledger.spans_of(passes[pass]))   // in a window: of steps that it cuts
                    if (piece.begin_ns >= begin_of(row))
                        left[pass] -= piece.ns;
            }
            judged[pass] = true;
            left[pass] -= length_of(row);
        }
    };
    take(
        ledger.steps, [](const StepRow& row) { return row.draw_begin_ns; },
        [&](const StepRow& row) { return sum_of(ledger.spans_of(row)); });
    take(
        ledger.ends_of_data, [](const EndOfDataRow& row) { return row.begin_ns; },
        [](const EndOfDataRow& row) { return row.ns; });
    std::int64_t worst = 0;
    for (const std::int64_t residual : left)
        worst = std::max(worst, residual < 0 ? -residual : residual);
    return worst;
}

}   // namespace drawpoint
