#include "case_run.hpp"

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <drawpoint/instrumentation/trace/trace.hpp>

#include "case_pipeline.hpp"
#include "work.hpp"

namespace drawpoint::bench {
namespace {

double rate_of(const std::vector<std::int64_t>& begins_ns, std::size_t warm_up) {
    if (begins_ns.size() < warm_up + 2)
        return 0;
    return static_cast<double>(begins_ns.size() - 1 - warm_up) * 1e9 /
           static_cast<double>(begins_ns.back() - begins_ns[warm_up]);
}

/// Applies the case's disturbance of the clock.
Ledger disturbed(Ledger ledger, const Case& of) {
    if (of.disturbance == Disturbance::clock_step) {
        const auto at = static_cast<std::size_t>(of.disturbance_from * static_cast<double>(of.steps));
        const StepRow& step = ledger.steps.at(at);   // the clock jumps in the middle of this step's work
        step_clock(ledger, step.draw_begin_ns + step.draw_ns + step.batch_ns / 2,
                   static_cast<std::int64_t>(of.disturbance_size * 1e6));
    }
    return ledger;
}

}   // namespace

std::size_t warm_up_steps(const Case& of) noexcept { return std::min<std::size_t>(20, of.steps / 5); }

CaseRun run_case(const Case& of, Rig& rig, const CaseRunOptions& options) {
    // The steps that count draw every sample equally often, except in the last batch, so that rare samples are as rare
    // as the case says. An adversarial case has no steps added, since its disturbance has a place in the run.
    const std::size_t steps = of.steps * options.passes + (of.kind == "adversarial" ? 0 : warm_up_steps(of));
    // Enough samples beyond those drawn that the loader still prefetches during the last step.
    const std::size_t samples =
        (steps + of.setting.prefetch_depth + of.setting.num_workers + 2) * of.setting.batch_size;
    const SequentialSampler sampler{samples};
    RecorderOptions recording;
    if (of.disturbance == Disturbance::lost_records)
        recording.drop_share = of.disturbance_size;
    std::optional<Recorder> recorder;
    if (options.recording.empty())
        recorder.emplace(recording);
    else
        recorder.emplace(options.recording, recording);
    CaseRun run;
    {
        CasePipeline pipeline{of, rig, sampler, samples, *recorder};
        std::optional<ForeignLoad> load;
        if (options.neighbour > 0)
            load.emplace(1, options.neighbour);
        CallbackList none;
        pipeline.fit({.max_steps = steps, .record_loss = false}, none);
        run.peak_bytes = pipeline.loader().counters().peak_bytes;
        run.begins_ns = pipeline.learner().begins_ns();
    }
    run.batches_per_s = rate_of(run.begins_ns, warm_up_steps(of));
    recorder->finish();
    if (const std::string why = recorder->state().error; !why.empty())
        throw std::runtime_error{why};
    run.ledger = disturbed(recorder->ledger(), of);
    return run;
}

Ledger recorded_case(const Case& of, const std::filesystem::path& recording) {
    return disturbed(read_trace(recording).ledger, of);
}

void step_clock(Ledger& ledger, std::int64_t at_ns, std::int64_t by_ns) {
    const auto shift = [&](std::int64_t& stamp) {
        if (stamp != no_stamp && stamp >= at_ns)
            stamp += by_ns;
    };
    const auto stretch = [&](std::int64_t& begin_ns, std::int64_t& ns) {
        std::int64_t end_ns = begin_ns + ns;
        shift(begin_ns);
        shift(end_ns);
        ns = end_ns - begin_ns;
    };
    for (StepRow& row : ledger.steps) {
        std::int64_t batch_begin_ns = row.draw_begin_ns + row.draw_ns;
        stretch(batch_begin_ns, row.batch_ns);
        stretch(row.draw_begin_ns, row.draw_ns);
    }
    for (SpanRow& row : ledger.spans)
        stretch(row.begin_ns, row.ns);
    for (PassRow& row : ledger.passes) {
        shift(row.begin_ns);
        shift(row.end_ns);
    }
    for (BatchRow& row : ledger.batches)
        for (std::int64_t BatchRow::* const stamp :
             {&BatchRow::admitted_ns, &BatchRow::first_claim_ns, &BatchRow::last_done_ns, &BatchRow::collate_begin_ns,
              &BatchRow::collate_end_ns, &BatchRow::transfer_issue_ns, &BatchRow::transfer_done_ns,
              &BatchRow::offered_ns, &BatchRow::taken_ns})
            shift(row.*stamp);
    for (SampleRow& row : ledger.samples)
        for (std::int64_t SampleRow::* const stamp :
             {&SampleRow::begin_ns, &SampleRow::read_begin_ns, &SampleRow::read_end_ns})
            shift(row.*stamp);
    for (StageRow& row : ledger.stages)
        stretch(row.begin_ns, row.ns);
    for (HostRow& row : ledger.host)
        shift(row.at_ns);
}

}   // namespace drawpoint::bench
