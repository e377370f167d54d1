#include <algorithm>
#include <chrono>
#include <ctime>
#include <fstream>
#include <sstream>
#include <string>

#include <sched.h>
#include <unistd.h>

#include <fmt/format.h>

#include <drawpoint/diagnosis/paired/symmetry_test.hpp>
#include <drawpoint/instrumentation/host/host.hpp>
#include <drawpoint/instrumentation/report/machine.hpp>

#include "../machine.hpp"
#include "truth.hpp"

namespace drawpoint::bench {
namespace {

using Clock = std::chrono::steady_clock;

/// Measures the cores' time that other processes took since construction.
class ForeignMeter {
public:
    ForeignMeter() : wall_{Clock::now()}, others_s_{others()} {}
    /// Of the cores that this process may use.
    [[nodiscard]] double share() const {
        const double wall_s = std::chrono::duration<double>{Clock::now() - wall_}.count();
        return std::max(0.0, (others() - others_s_) / wall_s / usable_cores());
    }

private:
    [[nodiscard]] static double others() {
        cpu_set_t own;
        CPU_ZERO(&own);
        sched_getaffinity(0, sizeof own, &own);
        std::ifstream stat{"/proc/stat"};
        double busy = 0;
        for (std::string line; std::getline(stat, line) && line.starts_with("cpu");) {
            std::istringstream fields{line.substr(3)};
            std::size_t core = 0;
            if (line[3] == ' ' || !(fields >> core) || !CPU_ISSET(core, &own))   // the first line is their sum
                continue;
            double ticks = 0;
            for (int field = 0; field < 8 && fields >> ticks;
                 ++field)   // user nice system idle iowait irq softirq steal
                busy += field == 3 || field == 4 ? 0 : ticks;
        }
        return busy / static_cast<double>(sysconf(_SC_CLK_TCK)) - process_cpu_seconds();
    }

    Clock::time_point wall_;
    double others_s_;
};

std::string today() {
    const std::time_t now = std::time(nullptr);
    std::tm utc{};
    gmtime_r(&now, &utc);
    return fmt::format("{:04}-{:02}-{:02}", utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday);
}

/// Repeats rounds that other processes disturbed, and gives them up after too many attempts.
class Rounds {
public:
    Rounds(Truth& truth, const MeasureOptions& options) : truth_{&truth}, options_{&options} {}

    /// Runs `rounds` to `most` rounds. `round(number)` measures and returns false if stopped; `keep` takes the round's
    /// results over and returns whether they suffice. Returns false if stopped.
    template <class Round, class Keep>
    bool run(std::size_t rounds, std::size_t most, Round round, Keep keep) {
        std::size_t given_up = 0;
        bool enough = false;
        for (std::size_t number = 0; number < rounds || (number < most && !enough); ++number) {
            bool kept = false;
            for (std::size_t attempt = 0; !kept && attempt <= options_->most_repeats; ++attempt) {
                const ForeignMeter meter;
                if (!round(number))
                    return false;
                const double foreign = meter.share();
                kept = foreign <= options_->most_foreign;
                if (kept) {
                    foreign_.push_back(foreign);
                    enough = keep();
                } else {
                    ++truth_->rounds_refused;
                }
            }
            given_up += kept ? 0 : 1;
            if (2 * given_up > std::max(rounds, number))
                throw NotMeasured{
                    fmt::format("case {}: not measured: others took more than {:.0f} % of the cores, {} rounds of {} "
                                "were given up",
                                truth_->name, 100 * options_->most_foreign, given_up, std::max(rounds, number + 1))};
        }
        std::ranges::sort(foreign_);
        truth_->foreign_share_median = foreign_[foreign_.size() / 2];
        truth_->foreign_share_max = foreign_.back();
        return true;
    }

private:
    Truth* truth_;
    const MeasureOptions* options_;
    std::vector<double> foreign_;
};

double rate(const Case& of, Rig& rig, std::uint64_t& peak_bytes) {
    const CaseRun run = run_case(of, rig);
    peak_bytes = std::max(peak_bytes, run.peak_bytes);
    return run.batches_per_s;
}

/// Whether a gain is known well enough. Of a setting, to judge advice by: with wide intervals, the luckiest of several
/// settings that gain nothing would count as the best. Of any change, to tell whether it ties with the largest.
bool is_precise_enough(const MeasuredGain& measured, const MeasuredGain& largest) {
    constexpr double widest = 0.1;
    if (can_be_set(measured.key) && measured.gain.high - measured.gain.low > widest * (1 + measured.gain.median))
        return false;
    if (&measured == &largest) {   // whether there is anything to cure
        const Interval gain = centre_of(measured.rounds, 0.1);
        return gain.low > least_gain || gain.high < least_gain;
    }
    const Interval less = advantage(largest, measured);
    return less.low > tie || less.high <= tie || measured.gain.high < least_gain;
}

bool measure_gains(Truth& truth, const Case& of, Rig& rig, const MeasureOptions& options, Rounds& rounds) {
    std::vector<Case> runs;
    for (std::string& key : change_keys(of)) {
        runs.push_back(changed(of, key));
        truth.gains.push_back({.key = std::move(key), .gain = {}, .rounds = {}});
    }
    std::vector<double> base(2), rates(runs.size()), bases;
    std::vector<bool> measured_enough(runs.size());   // then it is not run any more
    std::uint64_t ignored = 0;
    const auto round = [&](std::size_t number) {
        base[0] = rate(of, rig, truth.peak_bytes);
        for (std::size_t turn = 0; turn < runs.size(); ++turn) {
            if (options.stopped())
                return false;
            const std::size_t which = number % 2 == 0 ? turn : runs.size() - 1 - turn;
            if (!measured_enough[which])
                rates[which] = rate(runs[which], rig, ignored);
        }
        base[1] = rate(of, rig, truth.peak_bytes);
        return !options.stopped();
    };
    const auto keep = [&] {
        const double as_it_is = (base[0] + base[1]) / 2;
        bases.push_back(as_it_is);
        for (std::size_t which = 0; which < runs.size(); ++which)
            if (!measured_enough[which])
                truth.gains[which].rounds.push_back(rates[which] / as_it_is - 1);
        for (MeasuredGain& measured : truth.gains)
            measured.gain = median_interval(measured.rounds);
        if (++truth.rounds < options.rounds)
            return false;
        const auto largest =
            std::ranges::max_element(truth.gains, {}, [](const MeasuredGain& one) { return one.gain.median; });
        bool enough = true;
        for (std::size_t which = 0; which < runs.size(); ++which)
            if (!measured_enough[which]) {
                const bool known = is_precise_enough(truth.gains[which], *largest);
                measured_enough[which] = known && &truth.gains[which] != &*largest;   // others are compared with it
                enough = enough && known;
            }
        return enough;
    };
    if (!rounds.run(options.rounds, options.most_rounds, round, keep))
        return false;
    truth.batches_per_s = median_interval(bases);
    return true;
}

bool measure_grid(Truth& truth, const Case& of, Rig& rig, const MeasureOptions& options, Rounds& rounds) {
    const std::vector<Case> runs = grid_of(of);
    if (runs.empty())
        return true;
    for (const Case& cell : runs)
        truth.grid.push_back({.num_workers = cell.setting.num_workers,
                              .prefetch_depth = cell.setting.prefetch_depth,
                              .batches_per_s = {}});
    std::vector<double> base(2), rates(runs.size());
    std::vector<std::vector<double>> all(runs.size());   // relative to the case as it stands, in the same round
    std::uint64_t ignored = 0;
    const auto round = [&](std::size_t number) {
        base[0] = rate(of, rig, ignored);
        for (std::size_t turn = 0; turn < runs.size(); ++turn) {
            if (options.stopped())
                return false;
            const std::size_t which = number % 2 == 0 ? turn : runs.size() - 1 - turn;
            rates[which] = rate(runs[which], rig, truth.grid[which].peak_bytes);
        }
        base[1] = rate(of, rig, ignored);
        return true;
    };
    const auto keep = [&] {
        for (std::size_t which = 0; which < runs.size(); ++which)
            all[which].push_back(2 * rates[which] / (base[0] + base[1]));
        return true;
    };
    if (!rounds.run(options.grid_rounds, options.grid_rounds, round, keep))
        return false;
    for (std::size_t which = 0; which < runs.size(); ++which)
        truth.grid[which].batches_per_s = median_interval(all[which]).times(truth.batches_per_s.median);
    return true;
}

}   // namespace

std::size_t runs_needed(const Case& of, const MeasureOptions& options) {
    return std::max(options.rounds, options.most_rounds) * (change_keys(of).size() + 2) +
           (of.grid_workers.empty() ? 0 : options.grid_rounds * (grid_of(of).size() + 2));
}

std::optional<Truth> measure_truth(const Case& of, Rig& rig, const MeasureOptions& options) {
    const auto cores = static_cast<std::size_t>(this_machine().cores_usable.value_or(0));
    Truth truth{.name = of.name, .case_digest = of.digest, .date = today(), .cpu = this_machine().cpu, .cores = cores};
    Rounds rounds{truth, options};
    if (!measure_gains(truth, of, rig, options, rounds) || !measure_grid(truth, of, rig, options, rounds))
        return std::nullopt;
    decide(truth, of);
    return truth;
}

Interval measure_gain(const Case& of, const LoaderSetting& setting, Rig& rig, std::size_t pairs) {
    Case other = of;
    other.setting = setting;
    std::vector<double> gains;
    std::uint64_t ignored = 0;
    for (std::size_t pair = 0; pair < pairs; ++pair) {
        double with = 0, without = 0;
        for (const bool first : {true, false})
            (first == (pair % 2 == 0) ? without : with) = rate(first == (pair % 2 == 0) ? of : other, rig, ignored);
        gains.push_back(with / without - 1);
    }
    return median_interval(gains);
}

}   // namespace drawpoint::bench
