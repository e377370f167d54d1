#include "instrumentation/ledger/ledger_builder.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "instrumentation/ledger/folding.hpp"
#include <drawpoint/instrumentation/ledger/device_time.hpp>
#include <drawpoint/instrumentation/detail/wrapping.hpp>

namespace drawpoint {

namespace {

constexpr std::size_t most_host_rows = 4096, least_folded = 16, most_folded_rows = 1u << 13;
constexpr std::uint64_t most_lost_rows = 1u << 20, large_bytes = 1u << 20;
constexpr std::string_view lost_name = "(lost)";
constexpr FrameRow lost_frame{.function = nothing};   // until it gets a name
constexpr StackRow lost_stack{.frame = nothing};

/// How deep a pass lies in others: fit, epoch, train and valid.
int level_of(const PassRow& pass) noexcept { return std::min(static_cast<int>(pass.kind), 2); }

}   // namespace

Slice LedgerBuilder::add(std::span<const SpanRow> spans) {
    const Slice slice{static_cast<std::uint32_t>(ledger_.spans.size()), static_cast<std::uint32_t>(spans.size())};
    ledger_.spans.insert(ledger_.spans.end(), spans.begin(), spans.end());
    return slice;
}

void LedgerBuilder::reached(std::int64_t ns) noexcept {
    last_ns_ = std::max(last_ns_, ns);
    for (PassRow& pass : open_)
        pass.end_ns = std::max(pass.end_ns, ns);
}

void LedgerBuilder::sample(SampleRow row, std::span<const StageRow> stages) {
    row.stages = {static_cast<std::uint32_t>(ledger_.stages.size()), static_cast<std::uint32_t>(stages.size())};
    ledger_.stages.insert(ledger_.stages.end(), stages.begin(), stages.end());
    ledger_.samples.push_back(row);
}

void LedgerBuilder::step(StepRow row, std::span<const SpanRow> spans) {
    row.spans = add(spans);
    ledger_.steps.push_back(row);
    reached(wrapping_sum(wrapping_sum(row.draw_begin_ns, row.draw_ns), row.batch_ns));
    if (!spans.empty())
        reached(wrapping_sum(spans.back().begin_ns, spans.back().ns));
    if (is_full())
        fold_to_rows(std::min(ledger_.steps.size(), most_steps_ != 0 ? most_steps_ : ~std::size_t{0}) / 2);
}

void LedgerBuilder::device_step(const DeviceStepRow& row) {
    ledger_.device_steps.push_back(row);
    if (!row.loss)
        return;
    constexpr std::size_t most_behind = 256;   // a device is behind the loop by as many steps as it has buffers, twice
    const std::size_t last = ledger_.steps.size() - std::min(ledger_.steps.size(), most_behind);
    for (std::size_t i = ledger_.steps.size(); i-- > last;) {
        StepRow& step = ledger_.steps[i];
        if (step.step == row.step && step.epoch == row.epoch && step.phase == row.phase) {
            step.loss = row.loss;
            return;
        }
    }
}

void LedgerBuilder::batch(const BatchRow& row) {
    ledger_.batches.push_back(row);
    if (is_full())   // a loader that is drawn without steps
        fold_to_rows(foldable() / 2);
}

/// Whether there are more steps than allowed, or more bytes of the rows that can be folded. Since folding looks at
/// every row, there must be half as many again as it left, in number or, where few are large, in bytes.
bool LedgerBuilder::is_full() const noexcept {
    if (most_steps_ != 0 && ledger_.steps.size() > most_steps_)
        return true;
    if (most_bytes_ == 0 || foldable_bytes() <= most_bytes_)
        return false;
    return foldable() >= std::max(least_folded, kept_ + kept_ / 2) ||
           (foldable() > kept_ &&
            foldable_bytes() > std::max({2 * most_bytes_, kept_bytes_ + kept_bytes_ / 2, large_bytes}));
}

std::size_t LedgerBuilder::foldable() const noexcept { return std::max(ledger_.steps.size(), ledger_.batches.size()); }

std::uint64_t LedgerBuilder::foldable_bytes() const noexcept {
    const auto bytes_of = [](const auto&... columns) { return ((columns.size() * sizeof columns[0]) + ...); };
    return bytes_of(ledger_.steps, ledger_.spans, ledger_.batches, ledger_.samples, ledger_.stages, ledger_.transfers,
                    ledger_.device_steps);
}

void LedgerBuilder::fold_to_rows(std::size_t keep) {
    fold(ledger_, open_, std::max<std::size_t>(keep, 1));
    kept_ = foldable();
    kept_bytes_ = foldable_bytes();
}

void LedgerBuilder::fold_to(std::uint64_t bytes) {
    const std::uint64_t have = foldable_bytes();
    if (have > bytes)
        fold_to_rows(static_cast<std::size_t>(static_cast<double>(foldable()) * static_cast<double>(bytes) /
                                              static_cast<double>(have)));
    // In a slow run rows of the host may be most of a small recording.
    thin_old_host(ledger_, bytes / (4 * sizeof(HostRow)));
}

bool LedgerBuilder::folded(const Folded& more) {
    Folded& totals = ledger_.folded;
    totals.until_ns = std::max(totals.until_ns, more.until_ns);
    for (const auto count :
         {&Folded::steps, &Folded::failed, &Folded::not_drawn, &Folded::samples, &Folded::batch_samples})
        totals.*count += more.*count;
    for (const auto ns : {&Folded::draws_ns, &Folded::batches_ns, &Folded::other_ns})
        totals.*ns = wrapping_sum(totals.*ns, more.*ns);
    for (const auto ns : {&DrawSplit::callbacks_ns, &DrawSplit::starved_ns, &DrawSplit::handoff_ns,
                          &DrawSplit::transfer_ns, &DrawSplit::order_ns})
        totals.draw.*ns = wrapping_sum(totals.draw.*ns, more.draw.*ns);
    add_to(totals.device, more.device);
    // Rows of their own: a recorder writes each once.
    const auto append = [](auto& to, const auto& from, auto key) {
        for (const auto& row : from) {
            if (std::ranges::find(to, key(row), key) != to.end() || to.size() == most_folded_rows)
                return false;
            to.push_back(row);
        }
        return true;
    };
    return append(totals.actions, more.actions,
                  [](const FoldedAction& row) { return std::pair{row.phase, row.action}; }) &&
           append(totals.stages, more.stages,
                  [](const FoldedStage& row) { return std::pair{row.pipeline, row.stage}; }) &&
           append(totals.workers, more.workers, [](const FoldedWorker& row) { return row.worker; });
}

void LedgerBuilder::host(const HostRow& row) {
    ledger_.host.push_back(row);
    if (folds() && ledger_.host.size() > most_host_rows)   // a loader alone: no step ends
        thin(ledger_.host, most_host_rows / 2);
}

/// Lets these passes be over: their ends were lost.
void LedgerBuilder::leave(std::vector<PassRow>::iterator from) {
    ledger_.passes.insert(ledger_.passes.end(), from, open_.end());
    open_.erase(from, open_.end());
}

void LedgerBuilder::pass_begin(const PassRow& row) {
    reached(row.begin_ns);
    if (lost_bytes_ != 0)
        leave(std::ranges::find_if(open_, [&](const PassRow& open) { return level_of(open) >= level_of(row); }));
    open_.push_back({.kind = row.kind,
                     .epoch = row.epoch,
                     .begin_ns = row.begin_ns,
                     .end_ns = row.begin_ns,
                     .ended = false,
                     .spans = {},
                     .folded_ns = row.folded_ns});
}

void LedgerBuilder::pass(PassRow row, std::span<const SpanRow> spans) {
    row.ended = true;
    row.spans = add(spans);
    ledger_.passes.push_back(row);
    const auto opened = std::find_if(open_.rbegin(), open_.rend(), [&](const PassRow& open) {
        return open.kind == row.kind && open.epoch == row.epoch && open.begin_ns == row.begin_ns;
    });
    if (opened != open_.rend()) {
        ledger_.passes.back().folded_ns = opened->folded_ns;
        const auto at = std::next(opened).base();
        if (lost_bytes_ != 0)
            leave(std::next(at));   // passes within it, whose ends were lost
        open_.erase(at);
    } else if (lost_bytes_ != 0) {   // taken for over
        std::erase_if(ledger_.passes, [&](const PassRow& other) {
            return !other.ended && other.kind == row.kind && other.epoch == row.epoch && other.begin_ns == row.begin_ns;
        });
    }
    reached(row.end_ns);
}

void LedgerBuilder::end_of_data(const EndOfDataRow& row) {
    ledger_.ends_of_data.push_back(row);
    reached(wrapping_sum(row.begin_ns, row.ns));
}

bool LedgerBuilder::definitions(const Definitions& added) {
    const bool placed = added.places && lost_bytes_ != 0;
    if (placed && (!has_names(added.places->names_before) || added.places->threads.size() != added.threads.size()))
        return false;
    ledger_.names.insert(ledger_.names.end(), added.names.begin(), added.names.end());
    if (!placed)
        add_threads(ledger_.threads, thread_positions_, added.threads);
    for (std::size_t i = 0; placed && i < added.threads.size(); ++i) {
        const std::uint32_t number = added.places->threads[i];
        if (!has_threads(number + std::size_t{1}))
            return false;
        ThreadRow row = added.threads[i];
        if (row.name.empty())
            row.name = ledger_.threads[number].name;
        ledger_.threads[number] = std::move(row);
    }
    open_operators_.resize(ledger_.threads.size());
    if (placed && !has_frames(added.places->frames_before))
        return false;
    for (const FrameRow& row : added.frames) {
        if (!has_names(row.function + std::size_t{1}) || (row.file != nothing && !has_names(row.file + std::size_t{1})))
            return false;
        ledger_.frames.push_back(row);
    }
    if (placed && !has_stacks(added.places->stacks_before))
        return false;
    for (const StackRow& row : added.stacks) {
        if (!has_frames(row.frame + std::size_t{1}) || (row.parent != nothing && row.parent >= ledger_.stacks.size()))
            return false;
        ledger_.stacks.push_back(row);
    }
    return true;
}

bool LedgerBuilder::operator_begin(OperatorRow row) {
    if (!has_names(row.name + std::size_t{1}) || !has_threads(row.thread + std::size_t{1}) ||
        (row.shapes != nothing && !has_names(row.shapes + std::size_t{1})) ||
        (row.stack != nothing && !has_stacks(row.stack + std::size_t{1})))
        return false;
    row.ended = false;
    row.ns = 0;
    open_operators_[row.thread].push_back(ledger_.operators.size());
    ledger_.operators.push_back(row);
    last_ns_ = std::max(last_ns_, row.begin_ns);
    return true;
}

bool LedgerBuilder::operator_end(std::uint32_t thread, std::int64_t at_ns, bool lost) {
    if (thread >= open_operators_.size() || open_operators_[thread].empty())
        return lost_bytes_ != 0;   // its begin was lost
    OperatorRow& row = ledger_.operators[open_operators_[thread].back()];
    open_operators_[thread].pop_back();
    row.ns = static_cast<std::int64_t>(wrapping_difference(at_ns, row.begin_ns));
    row.ended = !lost;
    last_ns_ = std::max(last_ns_, at_ns);
    return true;
}

bool LedgerBuilder::allocation(const AllocationRow& row) {
    if (!has_threads(row.thread + std::size_t{1}))
        return false;
    ledger_.allocations.push_back(row);
    last_ns_ = std::max(last_ns_, row.at_ns);
    return true;
}

bool LedgerBuilder::stack_sample(const StackSampleRow& row) {
    if (!has_threads(row.thread + std::size_t{1}) || !has_stacks(row.stack + std::size_t{1}))
        return false;
    ledger_.stack_samples.push_back(row);
    last_ns_ = std::max(last_ns_, row.at_ns);
    return true;
}

void LedgerBuilder::close_operators(Ledger& of) const {
    for (const auto& of_thread : open_operators_)
        for (const std::size_t open : of_thread) {
            OperatorRow& row = of.operators[open];
            row.ns = static_cast<std::int64_t>(wrapping_difference(std::max(last_ns_, row.begin_ns), row.begin_ns));
        }
}

void LedgerBuilder::gap(std::uint64_t bytes) {
    close_operators(ledger_);
    for (auto& of_thread : open_operators_)
        of_thread.clear();
    lost_bytes_ += bytes;
}

/// Whether the column has `size` rows; if rows were lost, fills it up. A row takes at least two bytes of a file.
template <class Row>
bool LedgerBuilder::reach(std::vector<Row>& column, std::size_t size, const Row& lost) {
    if (size <= column.size())
        return true;
    const std::size_t missing = size - column.size();
    if (lost_rows_ + missing > std::min<std::uint64_t>(lost_bytes_ / 2, most_lost_rows))
        return false;
    lost_rows_ += missing;
    column.resize(size, lost);
    return true;
}

bool LedgerBuilder::has_names(std::size_t size) { return reach(ledger_.names, size, std::string{lost_name}); }

bool LedgerBuilder::has_threads(std::size_t size) {
    const bool has = reach(ledger_.threads, size, ThreadRow{.name = std::string{lost_name}});
    open_operators_.resize(ledger_.threads.size());
    return has;
}

bool LedgerBuilder::has_frames(std::size_t size) { return reach(ledger_.frames, size, lost_frame); }

bool LedgerBuilder::has_stacks(std::size_t size) { return reach(ledger_.stacks, size, lost_stack); }

/// Gives lost frames a name, and lost stacks a frame, behind all others.
void LedgerBuilder::name_lost(Ledger& of) {
    const auto frame = static_cast<std::uint32_t>(of.frames.size());
    bool any = false;
    for (StackRow& row : of.stacks)
        if (row == lost_stack) {
            row.frame = frame;
            any = true;
        }
    if (any)
        of.frames.push_back(lost_frame);
    const auto name = static_cast<std::uint32_t>(of.names.size());
    any = false;
    for (FrameRow& row : of.frames)
        if (row == lost_frame) {
            row.function = name;
            any = true;
        }
    if (any)
        of.names.emplace_back(lost_name);
}

bool LedgerBuilder::pipeline(const PipelineRow& row, std::uint32_t number) {
    if (number > std::numeric_limits<std::uint16_t>::max() || number < ledger_.pipelines.size() ||
        !reach(ledger_.pipelines, number, PipelineRow{.name = std::string{lost_name}}))
        return false;
    pipeline(row);
    return true;
}

Ledger LedgerBuilder::ledger() const& {
    Ledger whole = ledger_;
    complete(whole);
    return whole;
}

Ledger LedgerBuilder::ledger() && {
    complete(ledger_);
    return std::move(ledger_);
}

void LedgerBuilder::complete(Ledger& whole) const {
    close_operators(whole);
    whole.passes.insert(whole.passes.end(), open_.begin(), open_.end());
    if (lost_bytes_ != 0) {
        name_lost(whole);
        std::size_t pipelines = whole.pipelines.size();
        const auto count = [&](const auto& rows) {
            for (const auto& row : rows)
                pipelines = std::max<std::size_t>(pipelines, row.pipeline + 1u);
        };
        count(whole.batches);
        count(whole.samples);
        count(whole.failures);
        count(whole.settings);
        count(whole.orders);
        count(whole.transfers);
        whole.pipelines.resize(pipelines, PipelineRow{.name = std::string{lost_name}});
    }
    whole.sort();
}

}   // namespace drawpoint
