#include <drawpoint/loop/profilers/fastxtend.hpp>

#include <cerrno>
#include <exception>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <system_error>
#include <utility>
#include <vector>

#include <drawpoint/instrumentation/ledger/ledger.hpp>
#include <drawpoint/instrumentation/recorder/loop_track.hpp>
#include <drawpoint/instrumentation/recorder/recorder.hpp>

namespace drawpoint {

FastxtendCallback::FastxtendCallback(Recorder& recorder, ProfileMode mode, FastxtendSettings settings)
    : recorder_{&recorder},
      mode_{mode},
      settings_{std::move(settings)},
      live_{mode_, settings_.rolling_average, settings_.drop_first_batch} {}

std::string_view FastxtendCallback::name() const noexcept {
    return mode_ == ProfileMode::throughput ? "ThroughputCallback" : "SimpleProfilerCallback";
}

EventSet FastxtendCallback::events() const noexcept {
    return settings_.logger ? EventSet{Event::before_fit, Event::after_batch, Event::after_fit}
                            : EventSet{Event::before_fit, Event::after_fit};
}

std::filesystem::path FastxtendCallback::csv_path() const {
    const std::string_view named = mode_ == ProfileMode::throughput   ? "throughput.csv"
                                   : mode_ == ProfileMode::simple_old ? "simple_profile.csv"
                                                                      : "simpleprofiler.csv";
    return settings_.path / (settings_.csv_name.empty() ? named : std::string_view{settings_.csv_name});
}

void FastxtendCallback::on(Event event, LoopState& state) {
    if (event == Event::before_fit)
        begin();
    else if (in_fit_ && event == Event::after_batch)
        log_batch(state);
    else if (in_fit_ && event == Event::after_fit)
        end(state);
}

bool FastxtendCallback::fit_over() noexcept {
    in_fit_ = false;
    return !settings_.trial_fit;
}

void FastxtendCallback::begin() {
    live_ = FastxtendLiveLog{mode_, settings_.rolling_average, settings_.drop_first_batch};
    values_ = {};
    report_.reset();
    error_.clear();
    in_fit_ = true;
}

void FastxtendCallback::log_batch(const LoopState& state) {
    if (!state.training.value_or(false) || settings_.trial_fit || !state.track ||
        (mode_ == ProfileMode::simple_old && !settings_.samples_per_second))
        return;
    StepRow step = state.track->step();
    step.batch_ns = state.track->last_ns() - step.draw_begin_ns - step.draw_ns;   // the step has not ended yet
    const auto batch = fastxtend_batch(step, state.track->step_spans());
    if (!batch)
        return;
    std::vector<Scalar> scalars;
    for (const FastxtendLogValue& value : live_.add(*batch))
        scalars.push_back({value.name, value.value});
    if (!scalars.empty())
        settings_.logger->log_scalars(scalars, state.train_steps + 1);
}

void FastxtendCallback::end(const LoopState& state) {
    const Ledger ledger = recorder_->ledger();
    values_ = fastxtend_values(ledger);
    // The fit's record does not exist yet; its last event has just ended.
    if (state.track)
        for (auto pass = ledger.passes.rbegin(); pass != ledger.passes.rend(); ++pass)
            if (pass->kind == PassKind::fit && !pass->ended) {
                values_.fit =
                    static_cast<double>(state.track->last_ns()) / 1e9 - static_cast<double>(pass->begin_ns) / 1e9;
                break;
            }
    report_ = fastxtend_report(values_, mode_, settings_.drop_first_batch);
    in_fit_ = false;
    if (settings_.trial_fit)
        return;
    std::ostream& out = settings_.out ? *settings_.out : std::cout;
    if (settings_.show_report)
        out << (settings_.markdown ? to_markdown(*report_) : to_plain(*report_)) << std::flush;
    if (settings_.save_csv)
        save();
    if (settings_.logger) {
        log_end();
        if (error_.empty())
            error_ = settings_.logger->error();
    }
    if (!error_.empty())
        out << name() << ": " << error_ << std::endl;
}

void FastxtendCallback::log_end() const {
    Logger& logger = *settings_.logger;
    for (const FastxtendSummary& summary : fastxtend_final_log(values_, mode_, report_->first_batch_dropped))
        logger.log_summary(summary.name, summary.values);
    const std::string prefix = mode_ == ProfileMode::simple_old ? "simple_" : "";
    logger.log_table(prefix + "profile_report", profile_report());
    logger.log_table(prefix + "profile_results", profile_results());
    logger.flush();
}

void FastxtendCallback::save() {
    const std::filesystem::path path = csv_path();
    try {
        if (path.has_parent_path())
            std::filesystem::create_directories(path.parent_path());
    } catch (const std::exception& failed) {
        error_ = failed.what();
        return;
    }
    errno = 0;
    std::ofstream file{path, std::ios::binary};
    file << to_csv(*report_) << std::flush;
    if (!file)
        error_ = path.string() + ": " + std::generic_category().message(errno ? errno : EIO);
}

LogTable FastxtendCallback::profile_report() const {
    return report_ ? LogTable{column_titles(*report_), formatted_cells(*report_)} : LogTable{};
}

LogTable FastxtendCallback::profile_results() const {
    return report_ ? LogTable{column_titles(*report_), raw_cells(*report_)} : LogTable{};
}

ProfileMode profile_mode_named(std::string_view name) {
    if (name == "throughput")
        return ProfileMode::throughput;
    if (name == "simple")
        return ProfileMode::simple;
    if (name == "simple_old")
        return ProfileMode::simple_old;
    throw std::invalid_argument{"profile mode " + std::string{name} + ": there are throughput, simple and simple_old"};
}

}   // namespace drawpoint
