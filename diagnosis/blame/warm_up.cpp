#include "diagnosis/blame/warm_up.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>

namespace drawpoint {

std::size_t mser5_truncation(std::span<const double> values) {
    constexpr std::size_t group = 5;
    std::vector<double> means;
    for (std::size_t at = 0; at + group <= values.size(); at += group) {
        double sum = 0;
        for (const double value : values.subspan(at, group))
            sum += value;
        means.push_back(sum / group);
    }
    // From the back, by Welford's algorithm: each shorter truncation adds one value.
    double mean = 0, squares = 0, least = std::numeric_limits<double>::infinity();
    std::size_t best = 0;
    for (std::size_t kept = 1; kept <= means.size(); ++kept) {
        const std::size_t cut = means.size() - kept;
        const double n = static_cast<double>(kept), off = means[cut] - mean;
        mean += off / n;
        squares += off * (means[cut] - mean);
        // A tie goes to the shorter truncation.
        if (cut <= means.size() / 2 && squares / (n * n) <= least) {
            least = squares / (n * n);
            best = cut;
        }
    }
    return std::min(best * group, values.size() / 2);
}

std::size_t first_steady_step(const Ledger& ledger, const LoaderRows& rows) {
    const auto& steps = ledger.steps;
    const bool trains = std::ranges::any_of(steps, [](const StepRow& s) { return s.phase == Phase::train; });
    const Phase phase = trains ? Phase::train : Phase::valid;
    std::vector<std::size_t> drawn;   // steps of the phase that brought a batch
    std::vector<double> logs;
    std::size_t fill = 0;
    for (std::size_t i = 0; i < steps.size(); ++i) {
        const StepRow& step = steps[i];
        const std::int64_t ns = end_ns(step) == step.draw_begin_ns ? 0 : step.draw_ns + step.batch_ns;
        if (step.phase != phase || step.size == 0 || ns <= 0 || step.draw_begin_ns < ledger.folded.until_ns)
            continue;   // of the folded steps, the ledger keeps the first one or two
        if (const std::uint32_t batch = rows.batch_of(i); batch != nothing)
            fill = std::max<std::size_t>(fill, rows.setting_at(ledger.batches[batch].pipeline,
                                                               ledger.steps[drawn.empty() ? i : drawn[0]].draw_begin_ns)
                                                   .prefetch_depth);
        drawn.push_back(i);
        logs.push_back(std::log(static_cast<double>(ns)));
    }
    if (drawn.empty())
        return 0;
    fill -= static_cast<std::size_t>(std::min<std::uint64_t>(fill, ledger.folded.steps));
    return drawn[std::min(std::max(fill, mser5_truncation(logs)), drawn.size() / 2)];
}

std::vector<bool> first_of_pass(const Ledger& ledger) {
    std::vector<bool> first;
    struct Last {
        std::optional<std::uint32_t> epoch;
        bool known = true, beginning = false;
    };
    std::array<Last, 2> last;   // by phase
    std::size_t pass = 0;
    bool after_folded = ledger.folded.steps == 0;
    for (const StepRow& step : ledger.steps) {
        if (!after_folded && step.draw_begin_ns >= ledger.folded.until_ns) {
            after_folded = true;   // it is not known which passes the folded steps began
            last.fill({.epoch = {}, .known = false});
            while (pass < ledger.passes.size() && ledger.passes[pass].begin_ns < ledger.folded.until_ns)
                ++pass;
        }
        for (; pass < ledger.passes.size() && ledger.passes[pass].begin_ns <= step.draw_begin_ns; ++pass)
            if (const PassKind kind = ledger.passes[pass].kind; kind == PassKind::train || kind == PassKind::valid)
                last[kind == PassKind::valid].beginning = true;
        Last& of = last[step.phase == Phase::valid];
        of.beginning |= of.known && of.epoch != step.epoch;
        of.epoch = step.epoch;
        of.known = true;
        first.push_back(of.beginning);
        of.beginning &= step.size == 0;
    }
    return first;
}

}   // namespace drawpoint
