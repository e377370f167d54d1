#include <drawpoint/diagnosis/tuner/online_tuner.hpp>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <thread>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include <drawpoint/diagnosis/tuner/live_target.hpp>
#include <drawpoint/diagnosis/whatif/whatif.hpp>
#include <drawpoint/instrumentation/host/host.hpp>
#include <drawpoint/instrumentation/recorder/recorder.hpp>
#include <drawpoint/pipeline/loader/data_loader.hpp>

#include <drawpoint/instrumentation/host/detail/host_counters.hpp>

namespace drawpoint {

namespace {

constexpr int most_pairs = 5;
constexpr double least_noise = 0.01;    // of the log ratio of two blocks; less noise than this is chance
constexpr double clear_at_once = 0.1;   // a log ratio that needs only one pair

const OnlineTunerOptions& checked(const OnlineTunerOptions& options, const DataLoader& loader) {
    const auto refuse = [](const char* name, std::size_t least, std::size_t got) {
        throw std::invalid_argument{fmt::format("{} must be at least {}, got {}", name, least, got)};
    };
    if (options.observe_steps < 20)
        refuse("observe_steps", 20, options.observe_steps);
    if (options.block_steps < 1)
        refuse("block_steps", 1, options.block_steps);
    if (const auto found = out_of_range("most_depth", options.most_depth, 1, loader_limits::most_prefetch_depth);
        !found.empty())
        throw std::invalid_argument{found};
    if (loader.options().num_workers == 0)
        throw std::invalid_argument{"a loader without workers (num_workers 0) has nothing to tune"};
    return options;
}

std::string text_of(const LoaderSetting& setting) {
    return fmt::format("num_workers {}, prefetch_depth {}", setting.num_workers, setting.prefetch_depth);
}

bool is_smaller(const LoaderSetting& a, const LoaderSetting& b) {
    return std::tuple{a.num_workers, a.prefetch_depth} < std::tuple{b.num_workers, b.prefetch_depth};
}

}   // namespace

struct OnlineTuner::Impl {
    struct Move {
        LoaderSetting to;
        Interval gain;
    };

    Impl(DataLoader& loader, Recorder& to, const OnlineTunerOptions& given)
        : options{checked(given, loader)},
          recorder{to},
          target{loader, to},
          current{loader.options().setting()},
          most_workers{std::min(given.most_workers != 0 ? given.most_workers
                                                        : 2 * static_cast<std::size_t>(std::ceil(usable_cores())) + 8,
                                loader.most_workers())},
          thread{[this] { run(); }} {}
    ~Impl() {
        target.fit_over();
        thread.join();
    }

    void run() {
        try {
            std::size_t period = options.observe_steps;
            for (;;) {
                const RecordedRun seen = wait_for_look(period);
                const bool moved = look(seen);
                period = moved ? options.observe_steps : std::min(2 * period, options.most_observe_steps);
            }
        } catch (const FitOver&) {
            // nothing to tune any more
        } catch (const std::exception& error) {
            stop_with(error.what());
        } catch (...) {
            stop_with("an exception that is no std::exception");
        }
    }

    void stop_with(const char* why) noexcept {
        try {
            recorder.set_fact("tuner.stopped", why);
        } catch (...) {
            // no memory to say so: the loader stays as it is
        }
    }

    /// Waits for `period` steps, less if the loop changes, and records the last `observe_steps`.
    RecordedRun wait_for_look(std::size_t period) {
        const std::size_t watched = options.observe_steps / 2;
        for (std::size_t seen = options.observe_steps; seen < period; seen += watched) {
            const TuneTarget::Block block = target.run(current, 0, watched);
            brake();
            if (has_changed(block)) {
                // What was learnt does not apply to the changed loop.
                quiet = 0;
                shrunk = 0;
                tabu_until.clear();
                break;
            }
        }
        RecordedRun run = target.record(current, 0, options.observe_steps);
        brake();
        return run;
    }

    /// Compares the rate, and the loop's own time: if the loader is the limit, the rate does not show changes of the
    /// loop.
    [[nodiscard]] bool has_changed(const TuneTarget::Block& block) {
        const TuneTarget::Block before = std::exchange(last_block, block);
        const auto differ = [this](double a, double b) {
            return a > 0 && b > 0 && std::abs(std::log(a / b)) > options.change;
        };
        return differ(before.batches_per_s, block.batches_per_s) || differ(before.own_s, block.own_s);
    }

    /// If memory is short, some is given back at once, before anything is compared.
    void brake() {
        const HostRow now = host.read(recorder.now_ns()), before = std::exchange(last_host, now);
        if (now.memory_pressure_ns == no_stamp || before.memory_pressure_ns == no_stamp || now.at_ns <= before.at_ns)
            return;
        const double share = static_cast<double>(now.memory_pressure_ns - before.memory_pressure_ns) /
                             static_cast<double>(now.at_ns - before.at_ns);
        if (share < options.memory_pressure || current.prefetch_depth == 1)
            return;
        LoaderSetting to = current;
        to.prefetch_depth /= 2;
        (void)target.run(to, 0, 1);
        note({.from = current,
              .to = to,
              .kept = true,
              .why = fmt::format("{:.0f} % of the time stalled for memory", 100 * share)});
        current = to;
    }

    /// One look: tries at most one move. Returns whether it was kept.
    bool look(const RecordedRun& run) {
        ++looks;
        if (!run.unusable.empty())
            return false;
        std::optional<Move> move;
        try {
            move = best_move(run);
        } catch (const std::invalid_argument&) {
            // this stretch cannot be replayed; the next one may
        }
        if (!move) {
            ++quiet;
            return false;
        }
        quiet = 0;
        const bool kept = verify(*move);
        last_block = {};   // the rate may be another one from here on
        return kept;
    }

    [[nodiscard]] std::optional<Move> best_move(const RecordedRun& run) const {
        WhatifGrid grid;
        const auto add = [](std::vector<std::size_t>& to, std::size_t value, std::size_t most) {
            if (value >= 1 && value <= most && std::ranges::find(to, value) == to.end())
                to.push_back(value);
        };
        const std::size_t w = current.num_workers, d = current.prefetch_depth;
        for (const std::size_t workers : {w, w - 1, w / 2, w + 1, 2 * w, 4 * w})
            add(grid.num_workers, workers, std::max(most_workers, w));
        for (const std::size_t depth : {d, d - 1, d / 2, d + 1, 2 * d, 4 * d})
            add(grid.prefetch_depth, depth, std::max(options.most_depth, d));
        // Few replications: they use a core that the loop or a worker may need, and the result is verified.
        const Whatif predicted =
            whatif(run, grid, {.predict = {.replications = 4, .warm_up_steps = 16}, .most_samples = 100'000});
        const bool may_shrink = quiet >= options.quiet_looks;
        const double best = predicted.rows[predicted.best].samples_per_s;
        const WhatifRow* chosen = nullptr;   // the smallest that is nearly as good as the best
        for (const WhatifRow& row : predicted.rows)
            if (row.samples_per_s >= (1 - options.least_gain / 2) * best && !is_tabu(row.setting) &&
                (row.setting.memory_budget == 0 || row.prediction.peak_bytes <= row.setting.memory_budget) &&
                (chosen == nullptr || is_smaller(row.setting, chosen->setting)))
                chosen = &row;
        if (chosen == nullptr || (chosen->setting.num_workers == w && chosen->setting.prefetch_depth == d))
            return std::nullopt;
        const Interval gain = predict_gain(run, chosen->setting, {}, {.replications = 20});
        const bool shrinks = is_smaller(chosen->setting, current);
        // More likely than not is enough: it is verified before it is kept.
        const bool grows = gain.median > options.least_gain && gain.low > -gain.median;
        if (grows || (shrinks && may_shrink && gain.median > -options.least_gain))
            return Move{chosen->setting, gain};
        return std::nullopt;
    }

    [[nodiscard]] bool is_tabu(const LoaderSetting& to) const {
        const auto found = tabu_until.find({to.num_workers, to.prefetch_depth});
        return found != tabu_until.end() && looks < found->second;
    }

    /// Runs blocks of the new and the old setting in turns, until it is clear whether the new one gains, at most
    /// `most_pairs` of each.
    bool verify(const Move& move) {
        const std::size_t settling = std::max(steps_to_settle(current, move.to), steps_to_settle(move.to, current));
        const bool shrinks = is_smaller(move.to, current);
        // What shrinking may cost in all, less what it has cost so far: otherwise many small losses would add up.
        const double least = shrinks ? -options.least_gain - shrunk : options.least_gain / 2;
        double mean = 0, squares = 0, error = 0;
        int pairs = 0;
        bool clear = false;
        while (pairs < most_pairs && !clear) {
            const double with = target.run(move.to, settling, options.block_steps).batches_per_s;
            const double without = target.run(current, settling, options.block_steps).batches_per_s;
            const double value = std::log(with / without), beyond = value - mean;
            mean += beyond / ++pairs;
            squares += beyond * (value - mean);
            error = std::max(std::sqrt(squares / std::max(pairs - 1, 1)), least_noise) / std::sqrt(pairs);
            const bool far_off = mean < -clear_at_once / 2 || mean > std::max(clear_at_once, 0.5 * move.gain.median);
            clear = (pairs == 1 && far_off) || (pairs > 1 && std::abs(mean - least) > 2 * error);
        }
        const bool kept = mean - (shrinks ? 0 : error) > least;
        note({.from = current,
              .to = move.to,
              .predicted_gain = move.gain,
              .obtained_gain = std::expm1(mean),
              .kept = kept,
              .why = kept ? shrinks ? "as fast with less" : "faster" : "not enough in interleaved blocks"});
        if (kept) {
            (void)target.run(move.to, 0, 1);
            shrunk = shrinks ? shrunk + mean : 0;
            current = move.to;
        } else {
            tabu_until[{move.to.num_workers, move.to.prefetch_depth}] = looks + options.tabu_looks;
        }
        return kept;
    }

    void note(TunerDecision decision) {
        decision.step = steps.load(std::memory_order_relaxed);
        const std::lock_guard lock{mutex};
        made.push_back(std::move(decision));
        const TunerDecision& d = made.back();
        recorder.set_fact(
            fmt::format("tuner.{}", made.size()),
            fmt::format("step {}: {} -> {}; predicted {:+.1f} % ({:+.1f} to {:+.1f}), obtained {:+.1f} %; {}: {}",
                        d.step, text_of(d.from), text_of(d.to), 100 * d.predicted_gain.median,
                        100 * d.predicted_gain.low, 100 * d.predicted_gain.high, 100 * d.obtained_gain,
                        d.kept ? "kept" : "taken back", d.why));
    }

    const OnlineTunerOptions options;
    Recorder& recorder;
    LiveTarget target;
    std::atomic<std::size_t> steps{0};

    mutable std::mutex mutex;
    std::vector<TunerDecision> made;

    // Used by the thread only.
    LoaderSetting current;
    std::size_t most_workers, looks = 0, quiet = 0;
    TuneTarget::Block last_block;   // the last one watched
    double shrunk = 0;              // sum of log ratios that smaller settings have cost since the last gain
    std::map<std::pair<std::size_t, std::size_t>, std::size_t> tabu_until;   // (workers, depth): until which look
    HostCounters host;
    HostRow last_host;

    std::thread thread;   // last member: it uses all others
};

OnlineTuner::OnlineTuner(DataLoader& loader, Recorder& recorder, const OnlineTunerOptions& options)
    : impl_{std::make_unique<Impl>(loader, recorder, options)} {}
OnlineTuner::~OnlineTuner() = default;

std::vector<TunerDecision> OnlineTuner::decisions() const {
    const std::lock_guard lock{impl_->mutex};
    return impl_->made;
}

void OnlineTuner::before_train() { impl_->target.before_train(); }
void OnlineTuner::after_train() { impl_->target.after_train(); }
void OnlineTuner::after_batch(const LoopState& state) {
    impl_->steps.store(state.train_steps, std::memory_order_relaxed);
    impl_->target.after_batch(state);
}
bool OnlineTuner::fit_over() noexcept { return impl_->target.fit_over(); }

}   // namespace drawpoint
