#include "diagnosis/blame/blame_parts.hpp"

#include <drawpoint/instrumentation/facts.hpp>

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

namespace drawpoint {
namespace {

std::uint8_t longest_stage(const Ledger& ledger, const SampleRow& sample) {
    const auto stages = ledger.stages_of(sample);
    return static_cast<std::uint8_t>(std::ranges::max_element(stages, {}, &StageRow::ns) - stages.begin());
}

}   // namespace

std::optional<std::string> path_of(const Ledger& ledger, const SlowSample& slow) {
    const SampleRow& row = ledger.samples[slow.sample];
    const auto path = ledger.fact(facts::sample_path(row.pipeline, row.index));
    return path && !path->empty() ? std::optional{std::string{*path}} : std::nullopt;
}

void add_slow_samples(Blame& blame, const Ledger& ledger, const LoaderRows& rows) {
    struct Stalls {
        std::uint32_t worst = 0, times = 0;
        std::int64_t worst_ns = 0, ns = 0;
    };
    std::map<std::pair<std::uint16_t, std::uint64_t>, Stalls> stalls;   // by pipeline and index
    for (const DrawBlame& draw : blame.draws) {
        if (draw.warm_up || draw.last_sample == nothing || !rows.whole(draw.batch))
            continue;
        std::int64_t waited_ns = 0;
        for (const BlamePiece& piece : pieces_of(blame, draw))
            waited_ns += is_making(piece.cause) ? piece.ns : 0;
        const SampleRow& last = ledger.samples[draw.last_sample];
        std::optional<std::int64_t> others_ns;   // when the last of the other workers was done
        bool in_runs = false;                    // a row that stands for several samples does not name them
        for (const std::uint32_t i : rows.samples_of(draw.batch)) {
            in_runs |= ledger.samples[i].samples != 1;
            if (ledger.samples[i].worker != last.worker)
                others_ns = std::max(others_ns.value_or(no_stamp), end_ns(ledger, ledger.samples[i]));
        }
        if (in_runs || waited_ns == 0)
            continue;
        if (others_ns)
            waited_ns = std::min(waited_ns, length_ns(*others_ns, end_ns(ledger, last)));
        for (const std::uint32_t i : rows.samples_of(draw.batch)) {
            const SampleRow& sample = ledger.samples[i];
            const std::int64_t stall_ns = std::min(waited_ns, length_ns(sample.begin_ns, end_ns(ledger, sample)));
            if (sample.worker != last.worker || stall_ns <= 0)
                continue;
            Stalls& of = stalls[{sample.pipeline, sample.index}];
            of.ns += stall_ns;
            ++of.times;
            if (stall_ns > of.worst_ns) {
                of.worst_ns = stall_ns;
                of.worst = i;
            }
        }
    }
    for (const auto& [key, of] : stalls)
        blame.slow_samples.push_back({.sample = of.worst,
                                      .stage = longest_stage(ledger, ledger.samples[of.worst]),
                                      .times = of.times,
                                      .stall_ns = of.ns});
    const auto keep = std::min(blame.slow_samples.size(), max_slow_samples);
    const auto rank = [&](const SlowSample& slow) {
        const SampleRow& sample = ledger.samples[slow.sample];
        return std::tuple{-slow.stall_ns, sample.index, sample.pipeline};
    };
    std::ranges::partial_sort(blame.slow_samples, blame.slow_samples.begin() + static_cast<std::ptrdiff_t>(keep), {},
                              rank);
    blame.slow_samples.resize(keep);
}

}   // namespace drawpoint
