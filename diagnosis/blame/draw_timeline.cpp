#include "diagnosis/blame/draw_timeline.hpp"

#include <algorithm>
#include <stdexcept>

#include <drawpoint/instrumentation/text/format.hpp>

#include "diagnosis/blame/blame_parts.hpp"

namespace drawpoint {

const DrawBlame& explained_draw(const Ledger& ledger, const Blame& blame, std::optional<std::uint32_t> step) {
    if (blame.draws.empty())
        throw std::invalid_argument{"explain: this recording has no step"};
    if (step) {
        const auto same = [&](const DrawBlame& draw) { return ledger.steps[draw.step].step == *step; };
        const auto found = std::ranges::find_if(blame.draws.rbegin(), blame.draws.rend(), same);
        if (found != blame.draws.rend())
            return *found;
        throw std::invalid_argument{"explain: no step " + std::to_string(*step) +
                                    " in this recording, whose steps are " + std::to_string(ledger.steps.front().step) +
                                    " to " + std::to_string(ledger.steps.back().step)};
    }
    const auto rank = [&](const DrawBlame& draw) {
        return std::pair{kind_of(draw) == DrawKind::steady && ledger.steps[draw.step].phase == Phase::train,
                         ledger.steps[draw.step].draw_ns};
    };
    return *std::ranges::max_element(blame.draws, {}, rank);
}

DrawTimeline draw_timeline(const Ledger& ledger, const LoaderRows& rows, const DrawBlame& draw) {
    constexpr std::size_t most_samples = 32;
    const StepRow& step = ledger.steps[draw.step];
    DrawTimeline timeline{.samples = {}, .from_ns = step.draw_begin_ns, .to_ns = draw_end_ns(step), .moments = {}};
    if (draw.batch == nothing)
        return timeline;
    const BatchRow& batch = ledger.batches[draw.batch];
    auto& samples = timeline.samples;
    samples.assign(rows.samples_of(draw.batch).begin(), rows.samples_of(draw.batch).end());
    timeline.all_samples = samples.size();
    std::ranges::stable_sort(samples, {}, [&](std::uint32_t i) { return end_ns(ledger, ledger.samples[i]); });
    samples.erase(samples.begin(), samples.end() - static_cast<std::ptrdiff_t>(std::min(samples.size(), most_samples)));
    std::ranges::stable_sort(samples, {}, [&](std::uint32_t i) { return ledger.samples[i].begin_ns; });
    if (batch.admitted_ns != no_stamp)
        timeline.from_ns = std::min(timeline.from_ns, batch.admitted_ns);
    for (const std::uint32_t i : samples)
        timeline.from_ns = std::min(timeline.from_ns, ledger.samples[i].begin_ns);
    const auto add = [&](std::string_view name, std::int64_t ns) {
        if (ns != no_stamp)
            timeline.moments.emplace_back(name, ns);
    };
    add("admitted", batch.admitted_ns);
    add("first claimed", batch.first_claim_ns);
    add("draw began", step.draw_begin_ns);
    add("last done", batch.last_done_ns);
    add("offered", batch.offered_ns);
    add("resumed", draw_end_ns(step));
    return timeline;
}

std::string sample_label(const SampleRow& sample) {
    std::string label = "sample " + std::to_string(sample.index);
    if (sample.samples > 1)
        label += " + " + std::to_string(sample.samples - 1);
    return label + ", worker " + std::to_string(sample.worker);
}

std::string_view words_of(Spent spent) noexcept {
    switch (spent) {
    case Spent::computing: return "computing";
    case Spent::run_queue: return "waiting for a core";
    case Spent::waiting: return "waiting off its core";
    case Spent::unknown: break;
    }
    return {};
}

std::string draw_sentence(const Ledger& ledger, const Blame& blame, const DrawBlame& draw) {
    const auto all = pieces_of(blame, draw);
    if (all.empty())
        return "The loop waited for nothing: the draw took no time.";
    const auto same = [](const BlamePiece& a, const BlamePiece& b) { return a.cause == b.cause && a.stage == b.stage; };
    const auto sum_of = [&](const BlamePiece& like, bool with_spent) {
        std::int64_t sum = 0;
        for (const BlamePiece& piece : all)
            sum += same(piece, like) && (!with_spent || piece.spent == like.spent) ? piece.ns : 0;
        return sum;
    };
    const BlamePiece* most = &all.front();
    for (const BlamePiece& piece : all)
        if (sum_of(piece, false) > sum_of(*most, false))
            most = &piece;
    for (const BlamePiece& piece : all)   // and how most of that cause was spent
        if (same(piece, *most) && sum_of(piece, true) > sum_of(*most, true))
            most = &piece;
    const char* const link = most->cause == Cause::unknown ? ": " : most->cause == Cause::hidden ? ", " : " because ";
    std::string text = "The loop waited " + format_duration(static_cast<double>(sum_of(*most, false)) * 1e-9) + link +
                       reason_of(ledger, draw, *most);
    if (const std::string_view spent = words_of(most->spent); most->cause == Cause::stage && !spent.empty())
        (text += ", mostly ") += spent;
    return text + ".";
}

}   // namespace drawpoint
