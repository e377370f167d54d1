#include <drawpoint/loop/profilers/advanced.hpp>

#include <algorithm>
#include <ostream>
#include <stdexcept>
#include <utility>

#include <drawpoint/instrumentation/ledger/attribution.hpp>
#include <drawpoint/instrumentation/export/file.hpp>
#include <drawpoint/instrumentation/export/pprof.hpp>

namespace drawpoint {

AdvancedProfiler::AdvancedProfiler(Recorder& recorder, ProfilerFiles files, const AdvancedProfilerOptions& options)
    : Profiler{std::move(files)},
      recorder_{&recorder},
      options_{options},
      since_ns_{recorder.now_ns()},
      sampler_{recorder, options.sampler} {}

void AdvancedProfiler::start(std::string_view action) {
    if (std::ranges::find(open_, action, &Open::action) != open_.end())
        throw std::invalid_argument{"Attempted to start " + std::string{action} + " which has already started."};
    sampler_.start();
    open_.push_back({std::string{action}, recorder_->add_name(action), 0});
    open_.back().ticket = recorder_->begin_operator({.name = open_.back().name});
}

void AdvancedProfiler::stop(std::string_view action) {
    const auto found = std::ranges::find(open_, action, &Open::action);
    if (found == open_.end())
        throw std::invalid_argument{"Attempting to stop recording an action (" + std::string{action} +
                                    ") which was never started."};
    // Regions must nest: those begun later are ended here too and continue as new ones.
    for (auto inner = open_.end(); inner-- != found;)
        recorder_->end_operator(inner->ticket);
    for (auto inner = found + 1; inner != open_.end(); ++inner)
        inner->ticket = recorder_->begin_operator({.name = inner->name});
    open_.erase(found);
}

std::string AdvancedProfiler::summary() {
    sampler_.stop();
    Ledger ledger = recorder_->ledger();
    if (!open_.empty())
        sampler_.start();
    std::erase_if(ledger.stack_samples, [this](const StackSampleRow& row) { return row.at_ns < since_ns_; });
    if (options_.dump_stats)
        dump(ledger);
    AdvancedOptions report{.line_count_restriction = options_.line_count_restriction, .stage = stage(), .rank = {}};
    if (has_rank_)
        report.rank = local_rank();
    return advanced_report(ledger, report);
}

void AdvancedProfiler::dump(const Ledger& ledger) const {
    if (dirpath().empty())
        throw std::invalid_argument{"dump_stats needs a dirpath, or a log_dir given at setup"};
    std::filesystem::create_directories(dirpath());
    const Attribution attribution{ledger};
    std::vector<std::string> actions;
    for (const StackSampleRow& row : ledger.stack_samples) {
        std::string action = attribution.action_of(attribution.at(row.thread, row.at_ns));
        if (!action.empty() && std::ranges::find(actions, action) == actions.end())
            actions.push_back(std::move(action));
    }
    for (const std::string& action : actions)
        write_file_whole(dirpath() / file_name(action, ".prof"), false,
                         [&](std::ostream& file) { write_pprof(ledger, file, action); });
}

void AdvancedProfiler::setup(std::string_view stage, int local_rank, const std::filesystem::path& log_dir) {
    Profiler::setup(stage, local_rank, log_dir);
    has_rank_ = true;
}

void AdvancedProfiler::teardown(std::string_view stage) {
    while (!open_.empty())
        stop(open_.back().action);
    sampler_.stop();
    since_ns_ = recorder_->now_ns();
    Profiler::teardown(stage);
}

}   // namespace drawpoint
