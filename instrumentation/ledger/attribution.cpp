#include <drawpoint/instrumentation/ledger/attribution.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <span>
#include <unordered_map>

#include <drawpoint/instrumentation/facts.hpp>
#include <drawpoint/instrumentation/detail/wrapping.hpp>

namespace drawpoint {
namespace {

constexpr std::string_view worker_prefix = "worker ";

/// The actions of one step, as intervals of time.
class StepActions {
public:
    StepActions(const Ledger& ledger, const StepRow& step) : step_{&step} {
        std::array<const SpanRow*, event_count> first{};
        for (const SpanRow& piece : ledger.spans_of(step)) {
            if (piece.span < Span::starved && first[static_cast<std::size_t>(piece.span)] == nullptr)
                first[static_cast<std::size_t>(piece.span)] = &piece;
        }
        const auto time_of = [](const SpanRow& piece, bool end) { return piece.begin_ns + (end ? piece.ns : 0); };
        for (const ActionSpan& action : action_spans) {
            const SpanRow* const from = first[static_cast<std::size_t>(action.from.event)];
            const SpanRow* const to = first[static_cast<std::size_t>(action.to.event)];
            const bool here = step.phase == Phase::train ? action.in_train : action.in_valid;
            if (here && action.action != Action::draw && action.action != Action::batch && from && to)
                inner_[count_++] = {action.action, time_of(*from, action.from.end), time_of(*to, action.to.end)};
        }
    }

    /// The action that a piece of the step counts in: the innermost one.
    [[nodiscard]] Action of(const SpanRow& piece) const noexcept {
        const std::int64_t drawn_ns = step_->draw_begin_ns + step_->draw_ns;
        if (piece.begin_ns >= drawn_ns + step_->batch_ns)
            return Action::between;
        if (piece.begin_ns < drawn_ns)
            return Action::draw;
        for (std::size_t i = 0; i < count_; ++i) {
            if (inner_[i].from_ns <= piece.begin_ns && piece.begin_ns + piece.ns <= inner_[i].to_ns)
                return inner_[i].action;
        }
        switch (piece.span) {   // an edge of the piece's action never happened
        case Span::forward: return step_->phase == Phase::train ? Action::forward : Action::predict;
        case Span::loss: return Action::loss;
        case Span::backward: return Action::backward;
        case Span::opt_step: return Action::opt_step;
        case Span::zero_grad: return Action::zero_grad;
        case Span::callbacks: return Action::callbacks;
        default: return piece.span < Span::starved ? Action::callbacks : Action::other;
        }
    }

private:
    struct Interval {
        Action action;
        std::int64_t from_ns, to_ns;
    };
    const StepRow* step_;
    std::array<Interval, action_spans.size()> inner_{};
    std::size_t count_ = 0;
};

/// Whether it is the region that torch.profiler puts around each step; the step's own row says more.
bool is_profiler_step(const Ledger& ledger, const OperatorRow& row) noexcept {
    return row.name < ledger.names.size() && ledger.names[row.name].starts_with("ProfilerStep#");
}

/// The row with the largest begin ≤ `at_ns`, if it ends after `at_ns`. `rows` are sorted by begin.
template <class Row>
const Row* covering(const std::vector<Row>& rows, std::int64_t at_ns) noexcept {
    auto place = std::upper_bound(rows.begin(), rows.end(), at_ns,
                                  [](std::int64_t at, const Row& row) { return at < row.begin_ns; });
    if (place == rows.begin() || at_ns >= (--place)->end_ns)
        return nullptr;
    return &*place;
}

}   // namespace

Action action_of_piece(const Ledger& ledger, const StepRow& step, const SpanRow& piece) noexcept {
    return StepActions{ledger, step}.of(piece);
}

Attribution::Attribution(const Ledger& ledger) : ledger_{&ledger} {
    add_threads();
    add_operators();
    add_pieces();
    add_stages();
}

void Attribution::add_threads() {
    const Ledger& ledger = *ledger_;
    const std::string_view loop_tid = ledger.fact(facts::loop_tid).value_or("");
    std::unordered_map<std::uint64_t, std::uint32_t> by_tid;
    for (const ThreadRow& row : ledger.threads) {
        // A device's stream is a thread of its own, whatever its number.
        const auto fresh = static_cast<std::uint32_t>(threads_.size());
        const std::uint32_t position = row.device >= 0 ? fresh : by_tid.try_emplace(row.tid, fresh).first->second;
        if (position == fresh)
            threads_.emplace_back();
        thread_of_.push_back(position);
        Thread& thread = threads_[position];
        if (row.device < 0 && (row.name == "loop" || std::to_string(row.tid) == loop_tid))
            thread.loop = true;
        else if (row.device < 0 && row.name.starts_with(worker_prefix))
            std::from_chars(row.name.data() + worker_prefix.size(), row.name.data() + row.name.size(), thread.worker);
        if (!row.name.empty())
            thread.name = row.name;
    }
    for (std::size_t i = 0; i < ledger.threads.size(); ++i) {
        Thread& thread = threads_[thread_of_[i]];
        const std::string tid = std::to_string(ledger.threads[i].tid);
        if (thread.loop)
            thread.name = "loop";
        else if (thread.name.empty())
            thread.name = ledger.fact(std::string{facts::sampling_thread_prefix} + tid).value_or("thread " + tid);
    }
}

void Attribution::add_operators() {
    for (const OperatorRow& row : ledger_->operators) {
        if (row.thread >= thread_of_.size())
            continue;
        // An operator without an end of its own lasts until the last record, or until the end of the operator around
        // it. The last record may be a stack sample, which it has to cover: hence the 1.
        const std::int64_t end_ns = wrapping_sum(wrapping_sum(row.begin_ns, row.ns), row.ended ? 0 : 1);
        threads_[thread_of_[row.thread]].open.push_back({&row, end_ns, nothing});
    }
    for (Thread& thread : threads_) {
        std::stable_sort(thread.open.begin(), thread.open.end(), [](const Open& a, const Open& b) {
            return a.row->begin_ns != b.row->begin_ns ? a.row->begin_ns < b.row->begin_ns : a.end_ns > b.end_ns;
        });
        std::uint32_t around = nothing;
        for (std::uint32_t i = 0; i < thread.open.size(); ++i) {
            Open& open = thread.open[i];
            while (around != nothing && thread.open[around].end_ns <= open.row->begin_ns)
                around = thread.open[around].parent;
            open.parent = around;
            around = i;
        }
    }
}

void Attribution::add_pieces() {
    const Ledger& ledger = *ledger_;
    for (const StepRow& step : ledger.steps) {
        const StepActions actions{ledger, step};
        for (const SpanRow& span : ledger.spans_of(step))
            pieces_.push_back({span.begin_ns, span.begin_ns + span.ns, span.span, actions.of(span), &step, nullptr});
    }
    for (const PassRow& pass : ledger.passes) {
        for (const SpanRow& span : ledger.spans_of(pass))
            pieces_.push_back({span.begin_ns, span.begin_ns + span.ns, span.span, std::nullopt, nullptr, &pass});
    }
    // Pieces of no length cover no moment.
    std::erase_if(pieces_, [](const Piece& piece) { return piece.end_ns <= piece.begin_ns; });
    std::stable_sort(pieces_.begin(), pieces_.end(),
                     [](const Piece& a, const Piece& b) { return a.begin_ns < b.begin_ns; });
    for (const EndOfDataRow& end : ledger.ends_of_data) {   // its pieces are rows of the pass around it
        auto piece = std::lower_bound(pieces_.begin(), pieces_.end(), end.begin_ns,
                                      [](const Piece& row, std::int64_t at) { return row.begin_ns < at; });
        for (; piece != pieces_.end() && piece->end_ns <= end.begin_ns + end.ns; ++piece)
            piece->action = Action::end_of_data;
    }
}

void Attribution::add_stages() {
    const Ledger& ledger = *ledger_;
    for (const SampleRow& sample : ledger.samples) {
        if (sample.worker >= workers_.size())
            workers_.resize(sample.worker + 1u);
        const std::span<const StageRow> stages = ledger.stages_of(sample);
        for (std::size_t i = 0; i < stages.size(); ++i) {
            std::string_view name;
            if (sample.pipeline < ledger.pipelines.size() && i < ledger.pipelines[sample.pipeline].stages.size())
                name = ledger.pipelines[sample.pipeline].stages[i];
            if (stages[i].ns > 0)
                workers_[sample.worker].push_back(
                    {stages[i].begin_ns, stages[i].begin_ns + stages[i].ns, &sample, name});
        }
    }
    for (const BatchRow& batch : ledger.batches) {
        if (!batch.collate_worker || batch.collate_begin_ns == no_stamp ||
            batch.collate_end_ns <= batch.collate_begin_ns)
            continue;
        if (*batch.collate_worker >= workers_.size())
            workers_.resize(*batch.collate_worker + 1u);
        workers_[*batch.collate_worker].push_back({batch.collate_begin_ns, batch.collate_end_ns, nullptr, "collate"});
    }
    for (std::vector<Stage>& worker : workers_)
        std::stable_sort(worker.begin(), worker.end(),
                         [](const Stage& a, const Stage& b) { return a.begin_ns < b.begin_ns; });
}

Doing Attribution::at(std::uint32_t number, std::int64_t at_ns) const noexcept {
    Doing doing;
    if (number >= thread_of_.size())
        return doing;
    const Thread& thread = threads_[thread_of_[number]];
    const auto after = std::upper_bound(thread.open.begin(), thread.open.end(), at_ns,
                                        [](std::int64_t at, const Open& open) { return at < open.row->begin_ns; });
    for (auto i = static_cast<std::uint32_t>(after - thread.open.begin()) - 1; i != nothing;
         i = thread.open[i].parent) {
        const Open& open = thread.open[i];
        if (at_ns >= open.end_ns)
            continue;
        if (doing.op == nullptr)
            doing.op = open.row;
        if (open.row->kind == OperatorKind::user_annotation && !is_profiler_step(*ledger_, *open.row)) {
            doing.region = open.row;
            break;
        }
    }
    if (thread.loop) {
        if (const Piece* piece = covering(pieces_, at_ns)) {
            doing.step = piece->step;
            doing.pass = piece->pass;
            doing.span = piece->span;
            doing.action = piece->action;
        }
    }
    if (thread.worker < workers_.size()) {
        if (const Stage* stage = covering(workers_[thread.worker], at_ns)) {
            doing.sample = stage->sample;
            doing.stage = stage->name;
        }
    }
    return doing;
}

std::string Attribution::action_of(const Doing& doing) const {
    // A region around whole steps says less than the step's own piece.
    const bool around =
        doing.region != nullptr && doing.step != nullptr && doing.region->begin_ns <= doing.step->draw_begin_ns;
    if (doing.region != nullptr && !around && doing.region->name < ledger_->names.size())
        return ledger_->names[doing.region->name];
    if (doing.step != nullptr && doing.action)
        return std::string{name_of(doing.step->phase)} + "." + std::string{name_of(*doing.action)};
    if (doing.pass != nullptr) {
        std::string name{name_of(doing.pass->kind)};
        return doing.action ? name + "." + std::string{name_of(*doing.action)} : name;
    }
    return std::string{doing.stage};
}

std::string_view Attribution::thread_name(std::uint32_t thread) const noexcept {
    return thread < thread_of_.size() ? std::string_view{threads_[thread_of_[thread]].name} : "";
}

}   // namespace drawpoint
