#pragma once

#include <chrono>
#include <iosfwd>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "cli/followed_run.hpp"
#include <drawpoint/diagnosis/verdict/verdict.hpp>
#include <drawpoint/instrumentation/report/summary.hpp>

namespace drawpoint::cli {

/// What is shown of a run to programs and browsers, made when it is asked for from what the recording has by then.
/// Where nobody asks, it costs nothing; where many ask often, it is made anew only so often that it takes a small share
/// of a core. Once the run is over, its numbers are those of `drawpoint report`. Any thread.
class LiveRun {
public:
    /// Throws as FollowedRun::read.
    LiveRun(FollowedRun, std::string command_line);

    [[nodiscard]] std::string page();
    [[nodiscard]] std::string report();    ///< JSON
    [[nodiscard]] std::string metrics();   ///< Prometheus' text format 0.0.4
    [[nodiscard]] std::string name();      ///< FollowedRun::name
    [[nodiscard]] std::string source();    ///< FollowedRun::source
    /// The recording as it is now, opened and positioned at its end. Throws Failure if it cannot be opened.
    [[nodiscard]] std::shared_ptr<std::istream> recording();
    [[nodiscard]] bool is_over();

private:
    struct Shown {
        Ledger ledger;
        Summary summary;
        std::optional<Diagnosis> diagnosis;
        bool is_over = false;
    };
    /// A text of the run, the last one made.
    struct Text {
        std::shared_ptr<const Shown> of;
        std::string text;
    };
    void read();
    std::shared_ptr<const Shown> shown(double cost_s, double share);
    void show_anew();
    [[nodiscard]] Ledger whole_run() const;
    double diagnose_if_due(Shown&);
    [[nodiscard]] static std::string state_of(const Shown&);

    std::mutex mutex_;   // of all that follows
    FollowedRun run_;
    const std::string command_line_;
    std::shared_ptr<const Shown> shown_;
    bool has_new_ = true;   // the recording has more than `shown_`
    std::chrono::steady_clock::time_point read_at_{}, shown_at_{}, next_page_{}, next_diagnosis_{};
    double shown_cost_s_ = 0;
    std::optional<Diagnosis> diagnosis_;
    Text page_, metrics_, report_;
};

}   // namespace drawpoint::cli
